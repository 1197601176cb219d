"""Tracks the stack to which each object belongs, from the commits of many threads, in any order.

In a simulated world `convergence_simulator.rules.objects` and `convergence_simulator.rules.checker` know the rows
before and after each commit. Here only the rows that the committing thread has read are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from convergence.core import effects
from convergence.core.claim import StepDecision
from convergence.core.effects import Decision
from convergence.core.model import Action, DeletionPolicy
from convergence.core.object_state import is_adopted
from convergence.core.rows import Resource, Traversal
from convergence.db.ports import ReaderPort
from convergence.values import replace
from convergence_simulator.cloud.reality import NOBODY, PhysicalObject, Reality, is_of
from convergence_simulator.cloud.sorts import NEVER_FOUND
from convergence_simulator.cloud.trees import NESTING
from convergence_simulator.memory.look import Tables
from convergence_simulator.rules.objects import UNKNOWN


class Belongings:
    """Records facts about objects that only commits reveal: released objects, and objects that were changed too late.

    :param reader: reads the committed rows.
    :ivar left_stacks: see `convergence_simulator.world.place.WatchedPlace`.
    """

    def __init__(self, reality: Reality, reader: ReaderPort) -> None:
        self._reality = reality
        self._reader = reader
        self._claimed: ContextVar[Resource | None] = ContextVar('claimed', default=None)
        self.left_stacks: set[str] = set()

    def committed(self, decision: Decision[Any], view: Any) -> None:
        """Record a commit of the current thread: its decision and the rows that it had read."""
        verdict = decision.verdict
        if isinstance(verdict, StepDecision) and verdict.claim is not None:
            self._claimed.set(verdict.claim.resource)
        adopts = any(isinstance(effect, effects.InsertStack) for effect in decision.effects)
        planned = [each.traversal for each in decision.effects if isinstance(each, effects.InsertTraversal)]
        traversal = planned[0] if planned else getattr(view, 'traversal', None)
        for effect in decision.effects:
            match effect:
                case effects.DeleteResource():
                    for row in _rows_of(view, effect.resource_id):
                        self._goes(row, traversal)
                case effects.UpdateResource(changes={'physical_id': str(physical_id)}):
                    for row in _rows_of(view, effect.resource_id):
                        definition = effect.changes.get('definition', row.definition)
                        self._takes_over(replace(row, definition=definition), physical_id)
                case effects.InsertResources() if not adopts:
                    # Rows of objects that were reported late; the objects may exist or not.
                    made = [row.physical_id for row in effect.resources if row.physical_id is not None]
                    self._reality.late.update(dict.fromkeys(made, Action.CREATE))

    def _goes(self, row: Resource, traversal: Traversal | None) -> None:
        """Release the object of a removed row if the object stays on purpose."""
        left = traversal is not None and (traversal.retains or row.id in traversal.left_rows)
        if row.type in NESTING and left and row.token is not None:
            self.left_stacks.add(row.token)
        retained = row.definition is not None and row.definition.deletion_policy is DeletionPolicy.RETAIN
        if not (left or retained) or is_adopted(row):
            return
        for thing in self._reality.objects.values():
            if thing.stack_id == row.stack_id and is_of(row, thing):
                thing.stack_id = NOBODY

    def _takes_over(self, row: Resource, physical_id: str) -> None:
        """Assign an adopted object to its stack."""
        thing = self._reality.objects.get(physical_id)
        if thing is not None and thing.stack_id == NOBODY and not is_adopted(row):
            thing.stack_id = row.stack_id

    def happened(self, action: Action, thing: PhysicalObject) -> None:
        """Record that the current thread changed an object; it was too late if the thread had lost the row."""
        held = self._claimed.get()
        row = self._reader.resource(held.id) if held is not None else None
        if held is not None and (row is None or (row.owner, row.fence) != (held.owner, held.fence)):
            self._reality.late[thing.id] = action
        elif action is Action.UPDATE:
            self._reality.late.pop(thing.id, None)

    def set_aside(self, tables: Tables) -> None:
        """Mark objects that no call can find and that an event has reported: their removal is not expected."""
        rows = tables.resource.values()
        for thing in self._reality.objects.values():
            if thing.kind not in NEVER_FOUND or any(is_of(row, thing) for row in rows):
                continue
            told = (
                each for each in tables.event if (each.stack_id, each.resource_name) == (thing.stack_id, thing.name)
            )
            if any(UNKNOWN.search(each.reason) for each in told):
                self._reality.untold.add(thing.id)


def _rows_of(view: Any, resource_id: str) -> Iterator[Resource]:
    """Yield the row with this id if the view contains it."""
    for row in (getattr(view, 'resource', None), *getattr(view, 'resources', ())):
        if row is not None and row.id == resource_id:
            yield row
