"""Settings of the notifications about stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """The section ``notifications``."""

    webhooks: bool = option(
        True,
        'Allow users to register webhooks: URLs that receive the events of their stacks over HTTP. Set the same value '
        'for all engines and workers. Notifications on a message bus need [oslo_messaging_notifications] driver, also '
        'for all engines and workers.',
    )
    allowed_networks: Sequence[str] = option(
        (),
        'Networks in which webhooks may be, besides the public Internet. Default: none. Other addresses of this '
        'machine, of private networks and of the services of a cloud (127.0.0.1, 10.0.0.0/8, 169.254.169.254 …) are '
        'refused, so that users cannot make an engine call an address that they cannot reach themselves.',
        sample='192.0.2.0/24',
    )
    max_webhooks_per_project: int = option(
        20, 'Maximum number of webhooks of a project, including those of its stacks.', min=0
    )
    interval_s: float = option(2.0, 'Seconds between two polls of an engine for notifications to deliver.', min=0.05)
    threads: int = option(8, 'Number of webhook calls that each engine makes at the same time.', min=1)
    timeout_s: float = option(10.0, 'Seconds in which a webhook must answer.', min=0.1)
    give_up_after_s: float = option(
        86400.0,
        'Seconds after which an engine drops an event that it could not deliver. It retries a failed webhook after 5 '
        's, then after twice as long each time, up to an hour.',
        min=1.0,
    )
