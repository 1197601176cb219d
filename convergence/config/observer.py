"""The observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oslo_config import cfg

from convergence.errors import ConfigurationError

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        'enabled',
        default=True,
        help='Whether "convergence serve" and convergence-all-in-one observe. convergence-observer does in any case.',
    ),
    cfg.BoolOpt(
        'watch',
        default=True,
        help='Whether objects are looked at as soon as their resource type tells that something has happened to them, '
        'such as the end of a process. Otherwise only when it is time.',
    ),
    cfg.ListOpt(
        'notification_topics',
        default=[],
        sample_default='notifications',
        help='Topics of the notifications of services (oslo.messaging) that observers hear, so that objects are looked '
        'at as soon as their service tells of them. It is taken away from nobody else. None: nobody listens.',
    ),
    cfg.ListOpt(
        'notification_exchanges',
        default=['nova', 'neutron', 'cinder', 'glance', 'openstack'],
        help='The exchanges to which those services send: their control_exchange.',
    ),
    cfg.StrOpt(
        'notification_url',
        secret=True,
        help='URL of the broker to which they send. Default: [transport] url.',
    ),
    cfg.IntOpt('workers', default=1, min=1, help='Observer processes that convergence-observer starts.'),
    cfg.IntOpt('threads', default=8, min=1, help='Objects that each observer process looks at at the same time.'),
    cfg.FloatOpt(
        'interval_s',
        default=300.0,
        min=0.0,
        help='Seconds between two looks at an object, where its resource type does not say it. While something was '
        'found otherwise than before, looks follow each other up to four times as fast. 0: none but at types that say '
        'it, or are in intervals. Engines need the same as observers, and intervals too.',
    ),
    cfg.ListOpt(
        'intervals',
        default=[],
        sample_default='OS::Nova::Server=60,OS::Heat::SoftwareConfig=0',
        help='Seconds between two looks, for resource types with others, each as TYPE=SECONDS. 0: it is not looked at.',
    ),
    cfg.IntOpt(
        'calls_per_minute',
        default=600,
        min=0,
        help='Looks at objects of one resource type in one project that all observers together make in a minute. What '
        'is due beyond that waits. 0: no limit.',
    ),
    cfg.FloatOpt(
        'timeout_s',
        default=30.0,
        min=0.1,
        help='Seconds after which a look counts as stuck. What a dead observer had in hand is looked at by others '
        'after somewhat more than twice that.',
    ),
]


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """How reality is looked at. See the options of the same names."""

    enabled: bool = True
    watch: bool = True
    notification_topics: Sequence[str] = ()
    notification_exchanges: Sequence[str] = ()
    notification_url: str | None = field(default=None, repr=False)
    workers: int = 1
    threads: int = 8
    interval_s: float = 300.0
    intervals: Mapping[str, float] = field(default_factory=dict)
    calls_per_minute: int = 600
    timeout_s: float = 30.0


def intervals(entries: Sequence[str]) -> dict[str, float]:
    """The entries of the option of that name.

    :raises ConfigurationError: one is wrong.
    """
    found: dict[str, float] = {}
    for entry in entries:
        name, _, seconds = entry.rpartition('=')
        try:
            found[name.strip()] = max(0.0, float(seconds))
        except ValueError:
            name = ''
        if not name:
            raise ConfigurationError(
                f'[observer] intervals: {entry} must be TYPE=SECONDS, such as OS::Nova::Server=60.'
            )
    return found
