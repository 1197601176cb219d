"""Settings of the REST API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """The section ``api``. Empty texts: not set.

    :param token_file: the file with the token that opens an API without Keystone. None: the API requires no token.
    :param secret: of this start; the server proves its identity with it. Empty: the server proves nothing.
    """

    host: str = option('127.0.0.1', 'Address on which the API listens.', form='host')
    port: int = option(8004, 'Port on which the API listens. 0: any free port; the log names it.', form='port')
    workers: int = option(1, 'Number of API processes that convergence-api starts.', min=1)
    threads: int = option(
        16,
        'Number of requests that each API process serves at the same time. A request takes a thread when all of it has '
        'arrived. Health probes and streams of events have threads of their own.',
        min=1,
    )
    health_host: str = option('127.0.0.1', 'Address on which health_port listens.', form='host')
    health_port: int | None = option(
        None,
        'Port that serves only /health/live, /health/ready, /health/progress and /healthcheck, with threads of its '
        'own, for the probes of a supervisor. Always plain HTTP. Default: only the port of the API serves them.',
        form='port',
    )
    cert_file: str = option(
        '',
        'Path of the certificate of the API with its intermediate certificates, PEM. If set, the API speaks HTTPS. In '
        'an untrusted network set it, or put a proxy before the API that ends TLS.',
        sample='/etc/convergence/api.crt',
    )
    key_file: str = option('', 'Path of the private key of cert_file, PEM.', sample='/etc/convergence/api.key')
    trusted_proxies: Sequence[str] = option(
        (),
        'Addresses and networks of the proxies before the API. The API believes X-Forwarded-For and X-Forwarded-Proto '
        'only from them and removes those headers from other requests. Proxies may have any number of connections.',
        sample='192.0.2.10,192.0.2.0/28',
    )
    allowed_hosts: Sequence[str] = option(
        (),
        'Names and addresses, without a port, by which clients may reach the API and with which its links may begin. '
        'The option host and the names of the machine for itself, such as localhost, are always allowed. With '
        'public_url, all links begin with that instead.',
        sample='orchestration.example.org,10.0.0.5',
    )
    header_timeout_s: float = option(
        10.0,
        'Seconds from the opening of a connection in which the whole header of a request must arrive. Then the API '
        'closes the connection.',
        min=0.1,
    )
    body_timeout_s: float = option(
        60.0, 'Seconds in which the whole body of a request must arrive. Then the API answers 408.', min=0.1
    )
    send_timeout_s: float = option(
        60.0, 'Seconds in which a client must receive an answer, or one piece of a stream of events.', min=0.1
    )
    keep_alive_s: float = option(
        65.0,
        'Seconds that a connection stays open between two requests. Set it longer than the idle time of a proxy before '
        'the API, or requests fail now and then.',
        min=0.1,
    )
    max_connections: int = option(
        500,
        'Maximum number of connections of each API process. For a further one, the API closes an idle connection of '
        'the client that has most. Stay well below the number of files that a process may open.',
        min=1,
    )
    max_client_connections: int = option(
        200,
        'Maximum number of connections of one address. For a further one, the API closes the one that is idle longest.',
        min=1,
    )
    max_client_requests: int = option(
        100,
        'Maximum number of requests of one address that run or wait for a thread. The API answers 503 to further ones.',
        min=1,
    )
    max_buffered_bytes: int = option(
        256 * 1024 * 1024,
        'Maximum memory in bytes of each API process for bodies of requests and for unsent answers.',
        min=1024,
    )
    max_client_buffered_bytes: int = option(
        64 * 1024 * 1024,
        'Maximum memory in bytes for bodies of requests and for unsent answers of one address.',
        min=1024,
    )
    authentication: str = option(
        'noauth',
        'Method by which the API authenticates a caller. noauth serves requests from this machine only, with the token '
        'in the file "token" of the state_dir, which only the account of the API can read.',
        choices=[
            ('noauth', 'serve the account that runs the API, and take the project from the URL'),
            ('keystone', 'have Keystone verify the token of every request; see [keystone_authtoken]'),
        ],
    )
    insecure: bool = option(
        False,
        'Require no token with noauth, and serve every user who can reach a loopback address of this machine. Every '
        'user with a login here then owns all stacks, and has every right of the account that runs the service where '
        '[local_provider] is enabled.',
    )
    public_url: str = option(
        '',
        'URL with which links in answers and the signal addresses of resources begin. Engines and workers need it for '
        'the signal addresses. Default: the Host header of the request, which must be a name of this machine, host, or '
        'one of allowed_hosts. Set it, or allowed_hosts, if the API listens on all addresses.',
        sample='https://orchestration.example.org',
    )
    max_body_bytes: int = option(8 * 1024 * 1024, 'Maximum size of the body of a request in bytes.', min=1024)
    max_followers: int = option(
        16,
        'Number of streams of events (events?follow) that each API process serves at the same time. Each holds a '
        'thread of its own.',
        min=0,
    )
    max_client_followers: int = option(
        8,
        'Maximum number of streams of events of one address, and of one project, so that a single client cannot hold '
        'all of them. Behind a proxy that is not in trusted_proxies all clients have one address.',
        min=1,
    )
    embedded: bool = option(True, 'Serve the API in convergence-all-in-one too, beside engine and workers.')
    token_file: Path | None = None
    secret: str = field(default='', repr=False)
