"""Repairs drift where the policy demands it, by ordinary operations on the stacks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from convergence import errors
from convergence.core.observation import ObservedState, repair_pause_s
from convergence.core.request import Request
from convergence.core.rows import Event, Stack
from convergence.core.views import PlanView
from convergence.db.ports import ObservationsPort, ReaderPort
from convergence.db.records import Drifted
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.drift.failed_repairs import FailedRepairs
from convergence.engine.drift.requested_repairs import RepairOptions, cause_of, repair_of
from convergence.engine.traversals.traversals import Overtaken, Traversals
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema

LOG = logging.getLogger(__name__)

NAMED = 5
"""Resources named in the reason of a repair."""


class DriftRepairs:
    """Begins operations that visit drifted resources and their dependents, on stacks at rest.

    Repairs only stacks that are complete or failed by a repair, and whose goal is still the one that was observed: any
    operation of a user supersedes a repair, and no repair begins against one.
    """

    def __init__(
        self,
        rows: ObservationsPort,
        reader: ReaderPort,
        compiler: TemplateCompiler,
        traversals: Traversals,
        types: Registry,
        new_id: Callable[[], str],
        options: RepairOptions,
    ) -> None:
        self._rows = rows
        self._reader = reader
        self._compiler = compiler
        self._traversals = traversals
        self._types = types
        self._new_id = new_id
        self._options = options
        self._failed = FailedRepairs(rows, reader, compiler, traversals, types, options)

    def __call__(self, limit: int) -> int:
        """Begin the repairs that can begin now; the number of stacks. An error in one stack delays no other.

        :raises DatabaseUnavailable: nothing can begin now.
        """
        attended = self._failed(limit)
        found: dict[str, list[Drifted]] = defaultdict(list)
        for each in self._rows.to_repair(limit):
            found[each.root_id].append(each)
        for root_id, drifted in found.items():
            stack = self._reader.stack(root_id)
            if stack is None:
                continue
            try:
                attended += self._attend(stack, drifted)
            except errors.DatabaseUnavailable:
                raise
            except errors.ConvergenceError as error:
                LOG.info('Repair of stack %s postponed: %s', stack.name, error)
                # Otherwise each sweep would find it first again, and repairs that cannot begin would keep others
                # waiting.
                self._rows.repair_put_off([each.known.row.id for each in drifted], self._options.repair_pause_s)
        return attended

    def _attend(self, stack: Stack, drifted: Sequence[Drifted]) -> bool:
        hopeless = {each.known.row.id: why for each in drifted if (why := self._why_not(each))}
        if hopeless:
            self._give_up(stack, [each for each in drifted if each.known.row.id in hopeless], hopeless)
        repairable = [each for each in drifted if each.known.row.id not in hopeless]
        if not repairable:
            return bool(hopeless)
        self._traversals.start(stack, self._request(stack, repairable))
        first_s = self._options.repair_pause_s
        pauses_s = (repair_pause_s(first_s, each.known.observation.repairs + 1) for each in repairable)
        self._rows.repair_begun(list(zip((each.known.row for each in repairable), pauses_s, strict=True)))
        return True

    def _request(self, stack: Stack, drifted: Sequence[Drifted]) -> Request:
        """A request for an update to the present goal.

        :raises Overtaken: the stack has another goal.
        """
        names = sorted({each.known.row.name for each in drifted})
        shown = ', '.join(names[:NAMED]) + (' and more' if len(names) > NAMED else '')
        visits = [self._top(stack, each) for each in drifted]
        attempt = 1 + max(each.known.observation.repairs for each in drifted)
        cause = cause_of(f'{shown} changed outside of the stack', attempt, self._options.repair_attempts)
        seen = {each.known.row.id: each.known.row.fence for each in drifted if each.known.row.stack_id == stack.id}

        def as_seen(view: PlanView) -> None:
            # A lagging server shows differences of before a repair that has ended; that repair has claimed the row.
            if not seen.items() <= {row.id: row.fence for row in view.resources}.items():
                raise Overtaken(f'drift of stack {stack.name} is already repaired, or its resource is gone')

        request = repair_of(self._compiler, stack, visits, cause, attempt=attempt, also=as_seen)
        LOG.info('Repairing stack %s: %s drifted', stack.name, shown)
        return request

    def _top(self, stack: Stack, drifted: Drifted) -> str:
        """The resource of the stack that contains a drifted object, or whose object contains it.

        :raises Overtaken: that resource is gone.
        """
        inner, name = self._reader.stack(drifted.known.row.stack_id), drifted.known.row.name
        while inner is not None and inner.id != stack.id:
            around = self._reader.resource(inner.parent_resource_id or '')
            if around is None:
                break
            inner, name = self._reader.stack(around.stack_id), around.name
        if inner is None or inner.id != stack.id:
            raise Overtaken(f'stack {stack.name} has moved on')
        return name

    def _why_not(self, drifted: Drifted) -> str:
        """The reason to repair an object no longer; empty: it is repaired."""
        seen, row = drifted.known.observation, drifted.known.row
        if seen.repairs >= self._options.repair_attempts:
            return f'it was repaired {seen.repairs} times and keeps changing: another program changes it'
        if row.definition is not None and row.definition.external_id is not None:
            return 'its object belongs to others, and is never changed'
        if seen.found is not ObservedState.DIFFERS or row.type not in self._types:
            return ''
        schema = PropertySchema.of(self._types.get(row.type).Properties)
        declared = {name: schema.properties[name] for name in seen.names if name in schema.properties}
        fixed = [name for name, each in declared.items() if not each.update_allowed]
        return f'no update can put {", ".join(fixed)} right' if fixed else ''

    def _give_up(self, stack: Stack, drifted: Sequence[Drifted], reasons: Mapping[str, str]) -> None:
        """Give up the repairs of some objects, with an event of each resource."""
        told = {}
        for row in (each.known.row for each in drifted):
            LOG.warning(
                'Giving up repairs of stack %s, resource %s; repair or accept the drift manually: %s',
                stack.name,
                row.name,
                reasons[row.id],
            )
            reason = f'Repair given up: {reasons[row.id]}'
            told[row.id] = Event.of_resource(self._new_id(), row, row.action, row.status, reason, at=0.0)
        self._rows.give_up(told)
