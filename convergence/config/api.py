"""The REST API."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.HostAddressOpt('host', default='127.0.0.1', help='Address on which the API listens.'),
    cfg.PortOpt('port', default=8004, help='Port on which the API listens. 0: any that is free; the log names it.'),
    cfg.IntOpt('workers', default=1, min=1, help='API processes that convergence-api starts.'),
    cfg.IntOpt('threads', default=16, min=1, help='Requests that each API process serves at the same time.'),
    cfg.StrOpt(
        'authentication',
        default='noauth',
        choices=[
            ('noauth', 'believe everybody on this machine, and take the project from the URL'),
            ('keystone', 'have Keystone verify the token of every request; see [keystone_authtoken]'),
        ],
        help='How the API knows who asks. noauth serves requests from this machine only.',
    ),
    cfg.StrOpt(
        'public_url',
        sample_default='https://orchestration.example.org',
        help='Beginning of the links in answers, where clients reach the API by another address than the one in '
        'their requests. Without it: what the request says.',
    ),
    cfg.IntOpt('max_body_bytes', default=8 * 1024 * 1024, min=1024, help='Largest body of a request in bytes.'),
    cfg.IntOpt(
        'max_followers',
        default=8,
        min=0,
        help='Streams of events (events?follow) that each API process serves at the same time. Each holds a thread: '
        'keep this below threads.',
    ),
    cfg.BoolOpt(
        'embedded', default=True, help='Whether convergence-all-in-one serves the API too, beside engine and workers.'
    ),
]


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What an API process needs to know. See the options of the same names. Empty texts: not set."""

    host: str = '127.0.0.1'
    port: int = 8004
    workers: int = 1
    threads: int = 16
    authentication: str = 'noauth'
    public_url: str = ''
    max_body_bytes: int = 8 * 1024 * 1024
    max_followers: int = 8
    embedded: bool = True
