"""Rules about nested stacks and about stacks in parallel."""

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
    """A nested stack has a resource, does not outlive its parent stack, and is never behind its resource.

    A nested stack that is kept on request when its resource is removed stays; a sweep turns it into a root stack. The
    final comparison checks that.
    """

    rule = 'I13'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check resources that are removed or complete, and stacks that are gone or created."""
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
                yield f'the nested stack {effect.stack.id} is created, but no resource needs it'

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
            yield f'the row {row.id} of {row.name} is removed, but the stack {child.id} still exists'

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
            yield f'{row.name} is {row.action}_COMPLETE, but its stack has a different goal'

    @staticmethod
    def _outlived(tables: Tables, stack_id: str) -> Iterator[str]:
        for other in tables.stack.values():
            left = _was_left(tables, stack_id, other.parent_resource_id or '')
            if other.parent_id == stack_id and other.deleted_at is None and not left:
                yield f'the nested stack {other.id} outlives its parent {stack_id}'


class OneTenant(Invariant):
    """All rows that a commit touches belong to one stack, and so to one project.

    There are two exceptions: the resource that waits for the end of a nested stack, which belongs to the same project;
    and stacks nested in the same parent stack that one commit starts together.
    """

    rule = 'I12'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check all rows that the commit touched."""
        owners = {*step.stacks, *step.beside}
        told, woken = step.told_above()
        finished = step.finished_above()
        yield from (f'{each.name} is finished by a commit of another project' for each in step.finished_by_others())
        told |= finished.keys()
        woken |= step.arrived_above()
        doubts = bool(step.of_kind(effects.DoubtParents))
        new = {row.id for effect in step.of_kind(effects.InsertResources) for row in effect.resources}
        # One loop for each kind of row: this runs at each commit, and most commits write one row of a few kinds.
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
            yield f'rows of a stack that does not exist are written: {owners}'


def _was_left(tables: Tables, stack_id: str, row_id: str) -> bool:
    """Return True if a delete had to keep the object of a row."""
    return any(each.stack_id == stack_id and row_id in each.left_rows for each in tables.traversal.values())
