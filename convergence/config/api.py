"""The REST API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.HostAddressOpt('host', default='127.0.0.1', help='Address on which the API listens.'),
    cfg.PortOpt('port', default=8004, help='Port on which the API listens. 0: any that is free; the log names it.'),
    cfg.IntOpt('workers', default=1, min=1, help='API processes that convergence-api starts.'),
    cfg.IntOpt(
        'threads',
        default=16,
        min=1,
        help='Requests that each API process serves at the same time. A request takes a thread only when all of it has '
        'arrived; probes and streams of events have threads of their own.',
    ),
    cfg.HostAddressOpt('health_host', default='127.0.0.1', help='Address on which health_port listens.'),
    cfg.PortOpt(
        'health_port',
        help='A port that serves /health/live, /health/ready, /health/progress and /healthcheck and nothing else, with '
        'a loop and threads of its own: for the probes of a supervisor. Always plain HTTP. Not set: only the port of '
        'the API serves them.',
    ),
    cfg.StrOpt(
        'cert_file',
        sample_default='/etc/convergence/api.crt',
        help='Certificate of the API and those between it and the root, PEM. Set: the API speaks HTTPS. Where the API '
        'is open to a network that is not yours alone, either this is set or a proxy before it ends TLS.',
    ),
    cfg.StrOpt('key_file', sample_default='/etc/convergence/api.key', help='The private key of cert_file, PEM.'),
    cfg.ListOpt(
        'trusted_proxies',
        default=[],
        sample_default='192.0.2.10,192.0.2.0/28',
        help='Addresses and networks of the proxies before the API. Only from them X-Forwarded-For and '
        'X-Forwarded-Proto are believed; from others they are removed. They may have any number of connections.',
    ),
    cfg.ListOpt(
        'allowed_hosts',
        default=[],
        sample_default='orchestration.example.org,10.0.0.5',
        help='Names and addresses, without a port, under which clients may reach the API and which its links may begin '
        'with, besides host and those of this machine for itself. Where public_url is set all links begin with that '
        'instead.',
    ),
    cfg.FloatOpt(
        'header_timeout_s',
        default=10.0,
        min=0.1,
        help='Seconds that the whole header of a request may take to arrive, from the opening of the connection on. '
        'Then the connection is closed.',
    ),
    cfg.FloatOpt(
        'body_timeout_s',
        default=60.0,
        min=0.1,
        help='Seconds that the whole body of a request may take to arrive. Then it is answered with 408.',
    ),
    cfg.FloatOpt(
        'send_timeout_s',
        default=60.0,
        min=0.1,
        help='Seconds that a client may take for an answer, or for one piece of a stream of events.',
    ),
    cfg.FloatOpt(
        'keep_alive_s',
        default=65.0,
        min=0.1,
        help='Seconds for which a connection stays open between two requests. Longer than what a proxy before the API '
        'keeps a connection open without use, or requests fail now and then.',
    ),
    cfg.IntOpt(
        'max_connections',
        default=500,
        min=1,
        help='Connections that each API process keeps at a time. For a further one, a connection is closed that waits '
        'for its client, of the client that has most. Stay well below the number of files that a process may open.',
    ),
    cfg.IntOpt(
        'max_client_connections',
        default=200,
        min=1,
        help='Connections of one address. For a further one, that which has waited longest for the client is closed.',
    ),
    cfg.IntOpt(
        'max_client_requests',
        default=100,
        min=1,
        help='Requests of one address that are served or wait for a thread. Further ones are answered with 503.',
    ),
    cfg.IntOpt(
        'max_buffered_bytes',
        default=256 * 1024 * 1024,
        min=1024,
        help='Memory of each API process for bodies of requests and for answers that are not sent yet.',
    ),
    cfg.IntOpt(
        'max_client_buffered_bytes',
        default=64 * 1024 * 1024,
        min=1024,
        help='The same for one address.',
    ),
    cfg.StrOpt(
        'authentication',
        default='noauth',
        choices=[
            ('noauth', 'serve the account that runs the API, and take the project from the URL'),
            ('keystone', 'have Keystone verify the token of every request; see [keystone_authtoken]'),
        ],
        help='How the API knows who asks. noauth serves requests from this machine only, with the token in the file '
        '"token" of the state_dir, which nobody but the account of the API can read.',
    ),
    cfg.BoolOpt(
        'insecure',
        default=False,
        help='With noauth: ask for no token, and serve everybody who can reach a loopback address of this machine. '
        'Whoever is logged in here then owns all stacks, and has every right of the account that runs the service '
        'where [local_provider] is enabled.',
    ),
    cfg.StrOpt(
        'public_url',
        sample_default='https://orchestration.example.org',
        help='Beginning of the links in answers, and of the addresses at which resources are signalled; for those it '
        'is needed on the machines of engines and workers too. Without it: the Host of the request, which must then '
        'be one of this machine, host, or one of allowed_hosts. Needed, or allowed_hosts, where the API listens on '
        'all addresses.',
    ),
    cfg.IntOpt('max_body_bytes', default=8 * 1024 * 1024, min=1024, help='Largest body of a request in bytes.'),
    cfg.IntOpt(
        'max_followers',
        default=16,
        min=0,
        help='Streams of events (events?follow) that each API process serves at the same time. Each holds a thread '
        'of its own.',
    ),
    cfg.IntOpt(
        'max_client_followers',
        default=8,
        min=1,
        help='Of these, the streams of one address, and those of one project: nobody holds all of them. Behind a proxy '
        'that is not one of trusted_proxies all clients have one address.',
    ),
    cfg.BoolOpt(
        'embedded', default=True, help='Whether convergence-all-in-one serves the API too, beside engine and workers.'
    ),
]


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What an API process needs to know. See the options of the same names. Empty texts: not set.

    :param token_file: where the token is that opens an API without Keystone. None: nobody is asked for a token.
    """

    host: str = '127.0.0.1'
    port: int = 8004
    workers: int = 1
    threads: int = 16
    authentication: str = 'noauth'
    public_url: str = ''
    max_body_bytes: int = 8 * 1024 * 1024
    max_followers: int = 16
    max_client_followers: int = 8
    embedded: bool = True
    insecure: bool = False
    token_file: Path | None = None
    health_host: str = '127.0.0.1'
    health_port: int | None = None
    cert_file: str = ''
    key_file: str = ''
    trusted_proxies: Sequence[str] = ()
    allowed_hosts: Sequence[str] = ()
    header_timeout_s: float = 10.0
    body_timeout_s: float = 60.0
    send_timeout_s: float = 60.0
    keep_alive_s: float = 65.0
    max_connections: int = 500
    max_client_connections: int = 200
    max_client_requests: int = 100
    max_buffered_bytes: int = 256 * 1024 * 1024
    max_client_buffered_bytes: int = 64 * 1024 * 1024
