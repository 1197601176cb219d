"""What must hold of stacks in stacks, and of stacks beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import override

from convergence.core import effects
from convergence.core.model import Action, Status
from convergence.core.rows import Resource
from convergence_simulator.cloud.trees import NESTING, STACK, TEMPLATE, child_of
from convergence_simulator.rules.invariants import Invariant
from convergence_simulator.rules.transition import Transition

if TYPE_CHECKING:
    from convergence_simulator.memory.look import Tables


class InTrees(Invariant):
    """No nested stack without its resource; none that outlives the stack it is in; no resource ahead of its stack.

    One whose resource was left behind, as was asked for, stays and is set free by a sweep: `Ending` looks that it was.
    """

    rule = 'I13'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Resources that go or are up, stacks that are gone, and stacks that are made."""
        tables = step.tables
        for change in step.resources.values():
            before, after = change.before, change.after
            if after is None and before is not None:
                yield from self._gone(tables, before)
            elif after is not None and self._is_up(after) and not (before is not None and self._is_up(before)):
                yield from self._ahead(tables, after)
        for key, stack_change in step.stacks.items():
            stack = stack_change.after
            if stack is not None and stack.deleted_at is not None:
                yield from self._outlived(tables, key)
        for effect in step.of_kind(effects.InsertStack):
            parent = tables.resource.get(effect.stack.parent_resource_id or '')
            if effect.stack.parent_resource_id is not None and (parent is None or parent.action is Action.DELETE):
                yield f'the nested stack {effect.stack.id} is made, and no resource wants it'

    @staticmethod
    def _is_up(row: Resource) -> bool:
        return row.status is Status.COMPLETE and row.action in (Action.CREATE, Action.UPDATE)

    def _gone(self, tables: Tables, row: Resource) -> Iterator[str]:
        child = child_of(tables, row)
        if child is None or child.parent_resource_id != row.id:
            return
        if _was_left(tables, row.stack_id, row.id):
            self.world.left_stacks.add(child.id)
        else:
            yield f'the row {row.id} of {row.name} goes, but the stack {child.id} is still there'

    @staticmethod
    def _ahead(tables: Tables, row: Resource) -> Iterator[str]:
        if row.type not in NESTING:
            return
        child = child_of(tables, row)
        if child is None or child.status is not Status.COMPLETE:
            state = f'{child.action}_{child.status}' if child is not None else 'gone'
            yield f'{row.name} is {row.action}_COMPLETE, but its stack is {state}'
            return
        if row.type != STACK:
            return  # see `convergence_simulator.rules.groups`
        content = tables.template[child.template_id or ''].content
        wanted = row.properties.get(TEMPLATE)
        if content['template'] != json.loads(str(wanted)):
            yield f'{row.name} is {row.action}_COMPLETE, but its stack has another goal than it should'

    @staticmethod
    def _outlived(tables: Tables, stack_id: str) -> Iterator[str]:
        for other in tables.stack.values():
            left = _was_left(tables, stack_id, other.parent_resource_id or '')
            if other.parent_id == stack_id and other.deleted_at is None and not left:
                yield f'the stack {other.id} outlives {stack_id}, in which it is nested'


class OneTenant(Invariant):
    """Every row that a commit touches belongs to one stack, and so to one project.

    But for the resource that waits for the end of a nested stack: it belongs to the same project. And for stacks that
    are nested in one and the same, and that one commit gives something to do, all of them.
    """

    rule = 'I12'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """All rows touched."""
        owners = {*step.stacks, *step.beside}
        told, woken = step.told_above()
        finished = step.finished_above()
        yield from (f'{each.name} is finished by another project' for each in step.finished_by_others())
        told |= finished.keys()
        woken |= step.arrived_above()
        doubts = bool(step.of_kind(effects.DoubtParents))
        new = {row.id for effect in step.of_kind(effects.InsertResources) for row in effect.resources}
        # A loop for each kind of row: this is asked of each commit, of which most have written one row of some kinds.
        for key, change in step.resources.items():
            row = change.after or change.before
            if row is not None and (key in new if doubts else key not in told):
                owners.add(row.stack_id)
        for ended in step.traversals.values():
            traversal = ended.after or ended.before
            if traversal is not None:
                owners.add(traversal.stack_id)
        for event in step.events:
            is_above = any(
                (row.stack_id, row.name) == (event.stack_id, event.resource_name) for row in finished.values()
            )
            if not is_above and (event.action is not Action.SIGNAL or not step.scaled()):
                owners.add(event.stack_id)
        for template in step.templates:
            owners.add(template.stack_id)
        for place in step.nodes:
            if place not in woken:
                owners.add(step.tables.traversal[place[0]].stack_id)
        planned = {effect.traversal.stack_id for effect in step.of_kind(effects.InsertTraversal)}
        around = {step.tables.stack[stack_id].parent_id for stack_id in planned & step.tables.stack.keys()}
        if len(owners) > 1 and not (owners <= planned and len(around) == 1 and None not in around):
            yield f'one commit touches rows of the stacks {", ".join(sorted(owners))}'
        elif not owners <= step.tables.stack.keys():
            yield f'rows of a stack are written that does not exist: {owners}'


def _was_left(tables: Tables, stack_id: str, row_id: str) -> bool:
    """Whether a delete was asked to leave the object of a row behind."""
    return any(each.stack_id == stack_id and row_id in each.left_rows for each in tables.traversal.values())
