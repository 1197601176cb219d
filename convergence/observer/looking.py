"""One look at one object: the question that a check asks, with what a check is given."""

from __future__ import annotations

import logging

from convergence import logs
from convergence.concurrency import Task, TaskKilled
from convergence.core.observation import Comparison, Leased, ObservedState
from convergence.resources.contract import FinalFailure, ObjectNotFound
from convergence.resources.drift import sight
from convergence.resources.invocation import CallAccess, Subject, build_call
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets
from convergence.resources.storable import MOST_BYTES, carried, text_of

LOG = logging.getLogger(__name__)


class Looking:
    """Asks resource types what is really there.

    :param most_bytes: what of live values may be stored, as JSON; of more, the names of the properties alone are.
    """

    def __init__(self, registry: Registry, access: CallAccess, most_bytes: int = MOST_BYTES) -> None:
        self._registry = registry
        self._access = access
        self._most_bytes = most_bytes

    def look(self, leased: Leased, task: Task) -> Comparison:
        """What is there. Whatever a type raises is an answer: that nobody could look."""
        row = leased.row
        with logs.masking(known_secrets(row, self._registry)):
            try:
                with task.killable():
                    seen = self._seen(leased, task)
            except ObjectNotFound as error:
                return Comparison(ObservedState.GONE, reason=text_of(error))
            except TaskKilled:
                raise
            except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the observer
                LOG.info('This observer cannot look at %s of stack %s: %s', row.name, leased.stack.name, text_of(error))
                return Comparison(ObservedState.UNKNOWN, reason=f'it cannot be looked at: {text_of(error)}')
        return self._storable(seen)

    def _seen(self, leased: Leased, task: Task) -> Comparison:
        kind = self._registry.get(leased.row.type)
        if leased.row.damaged:
            raise FinalFailure(f'what is stored of it cannot be read: {", ".join(leased.row.damaged)}')
        call = build_call(
            kind,
            Subject.of(leased.stack, leased.row),
            leased.row.properties,
            strictness=Strictness.LENIENT,
            cancelled=task.cancelled.is_set,
        )
        return sight(kind, self._access.given_to(call, leased.row, on_cancel=task.on_cancel))

    def _storable(self, seen: Comparison) -> Comparison:
        try:
            carried(dict(seen.live), 'live values', self._most_bytes)
        except FinalFailure:
            return Comparison(seen.found, seen.names, {}, seen.reason)
        return seen
