"""Carries the rows of the outbox to a message bus and to webhooks. Background work of every engine.

One engine at a time empties the outbox, so the notifications of a stack are in order. All engines call webhooks: each
webhook is served by one engine at a time, its events in order, in a thread of its own. Delivery is at least once: if an
engine dies after sending and before recording that, another engine sends again, with the same id.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from convergence.concurrency import Lock, RunningThread, ThreadEvent, start_thread
from convergence.db.null_ports import ALL_PENDING
from convergence.db.ports import PendingPort, SweepsPort
from convergence.db.records import RelayTask
from convergence.db.repositories.outbox import Outbox
from convergence.db.repositories.webhooks import Delivery, Webhook, WebhookRows
from convergence.engine.notifications.progress import ProgressReports
from convergence.engine.notifications.sending import NotDelivered, Sender
from convergence.errors import ConvergenceError, DatabaseUnavailable, MessagingUnavailable
from convergence.notices import StackNotice

LOG = logging.getLogger(__name__)

DUTY = 'notifications'
BATCH = 100
"""Most that are carried in one transaction."""
MOST_OF_HOST = 2
"""Maximum number of webhooks of one host that an engine calls at a time."""
TIDY_S = 3600.0
"""Seconds between two polls for notifications of a message bus, where there is none."""
SELDOM = 5
"""An engine polls only every so many turns while another engine polls each turn, and its last poll found nothing."""
SESSION_S = 30.0
"""Time limit for one webhook before others have their turn."""


class Bus(Protocol):
    """A message bus."""

    def tell(self, notice: StackNotice) -> None:
        """Publish a notification.

        :raises MessagingUnavailable: the bus has not taken it.
        """


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """Settings of the delivery of notifications.

    :param interval_s: seconds between two polls.
    :param threads: maximum number of webhooks called at a time.
    :param timeout_s: time limit for one request.
    :param give_up_after_s: age of an event at which its delivery is given up.
    """

    interval_s: float = 2.0
    threads: int = 8
    timeout_s: float = 10.0
    give_up_after_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class RelayPorts:
    """The database rows that are read, and the channels to which notifications are sent.

    :param bus: None: there is none.
    :param pending: knows which work is pending.
    """

    sweeps: SweepsPort
    outbox: Outbox
    webhooks: WebhookRows
    progress: ProgressReports
    sender: Sender
    bus: Bus | None = None
    pending: PendingPort = ALL_PENDING


def nobody() -> bool:
    """No other engine polls each turn."""
    return False


class Relay:
    """Polls the outbox and delivers notifications.

    :param engine_id: of this process, for the election.
    :param begin: runs the delivery to one webhook.
    :param another_asks: returns True if another engine polls each turn.
    """

    def __init__(
        self,
        ports: RelayPorts,
        engine_id: str,
        options: RelayOptions,
        begin: Callable[[str, Callable[[], object]], object] = start_thread,
        another_asks: Callable[[], bool] = nobody,
    ) -> None:
        self._sweeps = ports.sweeps
        self._outbox = ports.outbox
        self._webhooks = ports.webhooks
        self._progress = ports.progress
        self._sender = ports.sender
        self._bus = ports.bus
        self._pending = ports.pending
        self._engine_id = engine_id
        self._options = options
        self._begin = begin
        self._another_asks = another_asks
        self._turns_left_out = SELDOM
        self._carries_until = 0.0
        self._stopping = ThreadEvent()
        self._thread: RunningThread | None = None
        self._lock = Lock()
        self._telling: dict[str, Webhook] = {}
        self._bus_again_at = 0.0

    def start(self) -> None:
        """Start, in a thread of its own."""
        self._thread = start_thread('notifications', self._run)

    def stop(self) -> None:
        """Stop after the turn in progress. Returns at once; `wait` waits for that turn."""
        self._stopping.set()

    def wait(self, timeout_s: float) -> bool:
        """After `stop`: wait for the turn in progress; True if it ended in time."""
        return self._thread is None or self._thread.wait(timeout_s)

    def turn(self) -> None:
        """Deliver the notifications that are due.

        :raises DatabaseUnavailable: the database is out of reach; the next turn delivers the rest.
        """
        if self._is_left_to_another():
            return
        pending = self._pending.of_relay(self._progress.interval_s)
        # While notifications are pending, one engine may not be enough.
        self._turns_left_out = SELDOM if pending else 0
        if self._is_to_carry(pending):
            self._carry()
        if pending:
            self._tell_webhooks()

    def _is_left_to_another(self) -> bool:
        """Return True if another engine polls for this one; False while only this one may empty the outbox."""
        self._turns_left_out += 1
        carries = time.monotonic() < self._carries_until
        return not carries and self._turns_left_out < SELDOM and self._another_asks()

    def _is_to_carry(self, pending: frozenset[RelayTask]) -> bool:
        """Return True if the engine that empties the outbox has work."""
        if pending & {RelayTask.REPORT_PROGRESS, RelayTask.FAN_OUT}:
            return True
        return RelayTask.TELL_BUS in pending and time.monotonic() >= self._bus_again_at

    def _carry(self) -> None:
        """Empty the outbox, if this engine has that duty."""
        begun, for_s = time.monotonic(), max(3 * self._options.interval_s, SESSION_S)
        if self._sweeps.take_duty(DUTY, self._engine_id, for_s):
            self._carries_until = begun + for_s
            self._progress.report()
            while self._outbox.fan_out(BATCH, to_bus=self._bus is not None) == BATCH:
                pass
            if self._bus is not None:
                self._to_bus(self._bus)
            elif time.monotonic() >= self._bus_again_at:
                # Notifications for a message bus that the installation does not have any more.
                self._bus_again_at = time.monotonic() + TIDY_S
                self._outbox.give_up(self._options.give_up_after_s)

    # --- a message bus ----------------------------------------------------------------------------------------

    def _to_bus(self, bus: Bus) -> None:
        """Publish, in order, until the bus refuses; a later turn continues."""
        if time.monotonic() < self._bus_again_at:
            return
        try:
            while notices := self._outbox.for_bus(BATCH):
                for notice in notices:
                    bus.tell(notice)
                    self._outbox.told((notice,))
        except MessagingUnavailable as error:
            self._bus_again_at = time.monotonic() + 5 * self._options.interval_s
            lost = self._outbox.give_up(self._options.give_up_after_s)
            LOG.warning('Publishing to the message bus paused, will retry: %s', error)
            if lost:
                LOG.error(
                    '%d notifications discarded: the message bus was unreachable for too long; check its broker', lost
                )

    # --- webhooks ---------------------------------------------------------------------------------------------

    def _tell_webhooks(self) -> None:
        for webhook in self._webhooks.due(4 * self._options.threads):
            if not self._reserve(webhook):
                continue
            lease_s = SESSION_S + 3 * self._options.timeout_s
            if self._webhooks.take(webhook.id, lease_s):
                self._begin(f'webhook {webhook.id}', partial(self._tell_all, webhook))
            else:
                self._telling.pop(webhook.id, None)

    def _reserve(self, webhook: Webhook) -> bool:
        """Return True if a thread is free for a webhook, and neither its host nor its project has reached its share."""
        with self._lock:
            told = self._telling.values()
            hosts, projects = Counter(each.host for each in told), Counter(each.project_id for each in told)
            of_project = max(self._options.threads // 2, 1)
            is_fair = hosts[webhook.host] < MOST_OF_HOST and projects[webhook.project_id] < of_project
            if webhook.id in self._telling or not is_fair or len(told) >= self._options.threads:
                return False
            self._telling[webhook.id] = webhook
            return True

    def _tell_all(self, webhook: Webhook) -> None:
        """Deliver to one webhook until nothing is pending, its time is over, or it fails."""
        until, attempts = time.monotonic() + SESSION_S, webhook.attempts
        try:
            while not self._stopping.is_set() and time.monotonic() < until:
                delivery = self._webhooks.next_delivery(webhook.id)
                if delivery is None:
                    break
                if not self._tell(webhook, delivery, attempts):
                    return
                attempts = 0
            self._webhooks.release(webhook.id)
        except DatabaseUnavailable as error:
            LOG.warning('Delivery to webhook %s postponed, will retry: %s', webhook.id, error)
        except Exception:
            LOG.exception('Delivery to webhook %s failed unexpectedly, will retry', webhook.id)
        finally:
            self._telling.pop(webhook.id, None)

    def _tell(self, webhook: Webhook, delivery: Delivery, attempts: int) -> bool:
        """Deliver one event; True if the next may follow."""
        try:
            if webhook.content is None or delivery.content is None:
                raise NotDelivered('the stored webhook is unreadable; its key is not among those of [secrets]')
            self._sender.send(webhook.content['url'], webhook.content['key'], delivery.content)
        except DatabaseUnavailable:
            raise
        except ConvergenceError as error:
            lost = self._webhooks.failed(webhook, attempts + 1, str(error), self._options.give_up_after_s)
            LOG.info('Delivery to webhook %s failed, attempt %d, will retry: %s', webhook.id, attempts + 1, error)
            if lost:
                LOG.warning(
                    '%d events discarded: webhook %s was unreachable for too long; check its URL', lost, webhook.id
                )
            return False
        self._webhooks.delivered(webhook.id, delivery.sequence)
        return True

    def _run(self) -> None:
        while not self._stopping.wait(self._options.interval_s):
            try:
                self.turn()
            except DatabaseUnavailable as error:
                LOG.warning('Notification delivery paused, will retry: %s', error)
            except Exception:
                LOG.exception('Notification delivery failed unexpectedly, will retry')
