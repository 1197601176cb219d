"""Puts right what observers have found changed, where that is the policy: by ordinary operations on the stacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from convergence import errors
from convergence.core.effects import Decision, InsertEvents
from convergence.core.model import Action, Status
from convergence.core.observation import ObservedState, repair_pause_s
from convergence.core.plan import Request
from convergence.core.rows import Event, Stack
from convergence.core.views import PlanView
from convergence.db.ports import ObservationsPort, ReaderPort
from convergence.db.queries.observations import Drifted
from convergence.db.scopes import StackAlone
from convergence.engine.operations.goals import Goals
from convergence.engine.operations.traversals import Overtaken, Traversals
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema

LOG = logging.getLogger(__name__)

NAMED = 5
"""Resources named in the reason of a repair."""


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """How stubbornly objects are put right.

    :param attempts: how many repairs of one object in a row are begun before it is given up.
    :param first_pause_s: seconds from the first to the second; twice as many each time.
    """

    attempts: int = 5
    first_pause_s: float = 10.0


class DriftRepairs:
    """Begins operations that visit what differs and what reads it, on stacks at rest.

    A stack is left alone unless it is complete, with just the goal for which it was looked at: any operation of a user
    supersedes a repair, and none is begun against one.
    """

    def __init__(
        self,
        rows: ObservationsPort,
        reader: ReaderPort,
        goals: Goals,
        traversals: Traversals,
        types: Registry,
        new_id: Callable[[], str],
        options: RepairOptions,
    ) -> None:
        self._rows = rows
        self._reader = reader
        self._goals = goals
        self._traversals = traversals
        self._types = types
        self._new_id = new_id
        self._options = options

    def __call__(self, limit: int) -> int:
        """Begin what can begin now; how many stacks were attended to. What is wrong with one keeps no other waiting.

        :raises DatabaseUnavailable: nothing can be begun now.
        """
        attended = 0
        for root_id, found in groupby(self._rows.to_repair(limit), key=lambda each: each.root_id):
            stack = self._reader.stack(root_id)
            if stack is None:
                continue
            try:
                attended += self._attend(stack, list(found))
            except errors.DatabaseUnavailable:
                raise
            except errors.ConvergenceError as error:
                LOG.info('Stack %s is not repaired now: %s', stack.name, error)
        return attended

    def _attend(self, stack: Stack, drifted: Sequence[Drifted]) -> bool:
        hopeless = {each.known.row.id: why for each in drifted if (why := self._why_not(each))}
        if hopeless:
            self._give_up(stack, [each for each in drifted if each.known.row.id in hopeless], hopeless)
        mendable = [each for each in drifted if each.known.row.id not in hopeless]
        if not mendable:
            return bool(hopeless)
        self._traversals.start(stack, self._request(stack, mendable))
        first_s = self._options.first_pause_s
        pauses = {each.known.row.id: repair_pause_s(first_s, each.known.observation.repairs + 1) for each in mendable}
        self._rows.repair_begun(pauses)
        return True

    def _request(self, stack: Stack, drifted: Sequence[Drifted]) -> Request:
        """An update to what the stack has already.

        :raises Overtaken: it has no such goal any more.
        """
        if stack.template_id is None or stack.template_id != stack.last_good_template_id:
            raise Overtaken(f'the goal of stack {stack.name} was never in service')
        row, compiled = self._goals.stored(stack, stack.template_id)

        def guard(view: PlanView) -> None:
            now = view.stack
            before = (stack.traversal_id, row.id, row.id)
            same = now is not None and (now.traversal_id, now.template_id, now.last_good_template_id) == before
            rests = now is not None and now.status is Status.COMPLETE and now.deleted_at is None
            if now is None or not same or not rests or now.action in (Action.SUSPEND, Action.DELETE):
                raise Overtaken(f'stack {stack.name} has moved on')

        names = sorted({each.known.row.name for each in drifted})
        shown = ', '.join(names[:NAMED]) + (' and more' if len(names) > NAMED else '')
        LOG.info('Stack %s is repaired: %s changed outside of it', stack.name, shown)
        return Request(
            Action.UPDATE,
            compiled.goal,
            guard,
            template=row,
            cause=f'{shown} changed outside of the stack',
            observes=True,
            visits=frozenset(self._top(stack, each) for each in drifted),
        )

    def _top(self, stack: Stack, drifted: Drifted) -> str:
        """The resource of the stack in which a drifted object is, or which it is the object of.

        :raises Overtaken: what it is in is not there any more.
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
        """Why an object is not put right any more; empty: it is."""
        seen, row = drifted.known.observation, drifted.known.row
        if seen.repairs >= self._options.attempts:
            return f'it was put right {seen.repairs} times and keeps changing: somebody else is changing it'
        if seen.found is not ObservedState.DIFFERS or row.type not in self._types:
            return ''
        schema = PropertySchema.of(self._types.get(row.type).Properties)
        declared = {name: schema.properties[name] for name in seen.names if name in schema.properties}
        fixed = [name for name, each in declared.items() if not each.update_allowed]
        return f'no update can put {", ".join(fixed)} right' if fixed else ''

    def _give_up(self, stack: Stack, drifted: Sequence[Drifted], reasons: Mapping[str, str]) -> None:
        """Say so in an event of each resource, and begin no repair of it any more."""

        def tell(view: PlanView) -> Decision[bool]:
            if view.stack is None:
                return Decision(False)
            events = tuple(
                Event.of_resource(
                    self._new_id(),
                    each.known.row,
                    each.known.row.action,
                    each.known.row.status,
                    f'Repair given up: {reasons[each.known.row.id]}',
                    view.now,
                )
                for each in drifted
            )
            return Decision(True, (InsertEvents(events),))

        for each in drifted:
            LOG.warning(
                'Stack %s: %s is not repaired any more: %s', stack.name, each.known.row.name, reasons[each.known.row.id]
            )
        self._traversals.decide(StackAlone(stack.id), tell)
        self._rows.give_up([each.known.row.id for each in drifted])
