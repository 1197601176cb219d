"""Observes one object: makes the same comparison as a check, and passes the type the same arguments."""

from __future__ import annotations

import logging

from convergence import logs
from convergence.concurrency import Task, TaskKilled
from convergence.core.observation import Leased, ObservationResult, ObservedState
from convergence.resources.contract import FinalFailure, ObjectNotFound
from convergence.resources.drift import observe_object
from convergence.resources.invocation import CallAccess, Subject, build_call
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets
from convergence.resources.storable import MOST_BYTES, carried, text_of

LOG = logging.getLogger(__name__)


class ObservationTask:
    """Calls the `observe` hook of resource types.

    :param most_bytes: maximum size of the stored live values, as JSON. Of larger values, only the names of the
        properties are stored.
    """

    def __init__(self, registry: Registry, access: CallAccess, most_bytes: int = MOST_BYTES) -> None:
        self._registry = registry
        self._access = access
        self._most_bytes = most_bytes

    def run(self, leased: Leased, task: Task) -> ObservationResult:
        """Observe one object. An error of the type is a result too: the object's state is unknown."""
        row = leased.row
        with logs.masking(known_secrets(row, self._registry)):
            try:
                with task.killable():
                    result = self._observed(leased, task)
            except ObjectNotFound as error:
                return ObservationResult(ObservedState.GONE, reason=text_of(error))
            except TaskKilled:
                raise
            except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the observer
                LOG.info(
                    'Cannot observe %s of stack %s, retrying later: %s', row.name, leased.stack.name, text_of(error)
                )
                return ObservationResult(ObservedState.UNKNOWN, reason=f'it cannot be observed: {text_of(error)}')
        return self._storable(result)

    def _observed(self, leased: Leased, task: Task) -> ObservationResult:
        kind = self._registry.get(leased.row.type)
        if leased.row.damaged:
            raise FinalFailure(f'its stored columns cannot be read: {", ".join(leased.row.damaged)}')
        call = build_call(
            kind,
            Subject.of(leased.stack, leased.row),
            leased.row.properties,
            strictness=Strictness.LENIENT,
            cancelled=task.cancelled.is_set,
        )
        return observe_object(kind, self._access.given_to(call, leased.row, on_cancel=task.on_cancel))

    def _storable(self, result: ObservationResult) -> ObservationResult:
        try:
            carried(dict(result.live), 'live values', self._most_bytes)
        except FinalFailure:
            return ObservationResult(result.found, result.names, {}, result.reason)
        return result
