"""Telling those outside what happens to stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        'webhooks',
        default=True,
        help='Whether users may have webhooks: addresses that are told by HTTP what happens to their stacks. All '
        'engines and workers need the same. Notifications on a message bus are set by '
        '[oslo_messaging_notifications] driver, which all engines and workers need as well.',
    ),
    cfg.ListOpt(
        'allowed_networks',
        default=[],
        sample_default='192.0.2.0/24',
        help='Networks, besides those that everybody can reach, in which webhooks may be. Addresses of this machine, '
        'of private networks and of the services of a cloud (127.0.0.1, 10.0.0.0/8, 169.254.169.254 …) are refused '
        'otherwise, so that nobody has an engine call what he cannot call himself.',
    ),
    cfg.IntOpt(
        'max_webhooks_per_project', default=20, min=0, help='Webhooks that a project may have, those of its stacks too.'
    ),
    cfg.FloatOpt(
        'interval_s', default=2.0, min=0.05, help='Seconds between two looks of an engine for what is to be told.'
    ),
    cfg.IntOpt('threads', default=8, min=1, help='Webhooks that each engine tells at the same time.'),
    cfg.FloatOpt('timeout_s', default=10.0, min=0.1, help='Seconds in which a webhook must have answered.'),
    cfg.FloatOpt(
        'give_up_after_s',
        default=86400.0,
        min=1.0,
        help='Seconds after which an event is not told any more that could not be. A webhook that fails is tried again '
        'after 5 s, then after twice as long each time, up to an hour.',
    ),
]


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """How what happens to stacks is told. See the options of the same names."""

    webhooks: bool = True
    allowed_networks: Sequence[str] = ()
    max_webhooks_per_project: int = 20
    interval_s: float = 2.0
    threads: int = 8
    timeout_s: float = 10.0
    give_up_after_s: float = 86400.0
