"""Settings of the observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convergence.errors import ConfigurationError
from convergence.settings.declaring import option


def intervals(entries: Sequence[str]) -> dict[str, float]:
    """Return the entries of the option of that name as a map from resource types to seconds.

    :raises ConfigurationError: an entry is not TYPE=SECONDS.
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


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """The section ``observer``."""

    enabled: bool = option(
        True, 'Run an observer in "convergence serve" and in convergence-all-in-one. convergence-observer ignores it.'
    )
    watch: bool = option(
        True,
        'Observe an object as soon as its resource type reports an event of it, such as the end of a process. False: '
        'only at intervals.',
    )
    notification_topics: Sequence[str] = option(
        (),
        'Topics of oslo.messaging on which observers listen for notifications of services, to observe the objects that '
        'a notification concerns at once. Other listeners still receive them. Default: observers do not listen.',
        sample='notifications',
    )
    notification_exchanges: Sequence[str] = option(
        ['nova', 'neutron', 'cinder', 'glance', 'openstack'],
        'Exchanges to which those services send: their control_exchange.',
    )
    notification_url: str | None = option(
        None, 'URL of the broker to which those services send. Default: [transport] url.', secret=True
    )
    workers: int = option(1, 'Number of observer processes that convergence-observer starts.', min=1)
    threads: int = option(8, 'Number of objects that each observer process observes at the same time.', min=1)
    interval_s: float = option(
        300.0,
        'Seconds between two observations of an object whose resource type sets no interval. After a change they '
        'follow each other up to four times as fast. 0: only types with an interval of their own, or with an entry in '
        'intervals, are observed. Set the same value, and the same intervals, for engines and observers.',
        min=0.0,
    )
    intervals: Mapping[str, float] = option(
        [],
        'Seconds between two observations for single resource types, each as TYPE=SECONDS. 0: the type is not '
        'observed.',
        sample='OS::Nova::Server=60,OS::Heat::SoftwareConfig=0',
        form='list',
        read=intervals,
    )
    calls_per_minute: int = option(
        600,
        'Maximum number of observations per minute of objects of one resource type in one project, by all observers '
        'together. Further ones wait. 0: no limit.',
        min=0,
    )
    timeout_s: float = option(
        30.0,
        'Seconds after which an observation counts as stuck. Objects leased by a dead observer become due after 2 x '
        'this + 5 s.',
        min=0.1,
    )
