"""Rules about groups and the policies that scale them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from convergence.core import effects
from convergence.core.model import Action, NodeStatus, Phase, Status
from convergence.core.rows import Resource, Stack, Traversal
from convergence.documents import AnyJson
from convergence_simulator.cloud.trees import COUNTED, GROUP, child_of
from convergence_simulator.rules.invariants import Invariant
from convergence_simulator.rules.transition import Transition

if TYPE_CHECKING:
    from convergence_simulator.world.world import World

GOAL_OF_ITS_OWN = (Action.RESTORE, Action.ADOPT)
"""Actions that set the members of a group to earlier or existing ones, at any size."""


class InGroups(Invariant):
    """A group has the last requested size, and its members match its definition.

    Scaling either adds members or removes members, and changes no other member.
    """

    rule = 'I14'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sizes: dict[str, int] = {}
        self._contents: dict[str, Mapping[str, Any]] = {}

    @override
    def went_back(self) -> None:
        """Read the definitions and the requested sizes of groups from the rows."""
        tables = self.world.store.tables
        self._sizes.clear()
        self._contents.clear()
        for stack in tables.stack.values():
            template = tables.template.get(stack.template_id or '')
            if template is not None:
                content: Any = template.content['template']
                self._contents[stack.id] = content
                self._sizes[stack.id] = len(_members(content))

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check new goals of nested stacks of groups, and groups that become complete."""
        for effect in step.of_kind(effects.InsertTraversal):
            stack = step.tables.stack[effect.traversal.stack_id]
            group = step.tables.resource.get(stack.parent_resource_id or '')
            new = next((each for each in step.templates if each.id == effect.traversal.template_id), None)
            if group is not None and group.type in (GROUP, COUNTED) and new is not None:
                content: Any = new.content['template']
                if effect.traversal.scaling is not None:
                    yield from self._scaled(step, stack, group, content, effect)
                else:
                    self._told(stack, group, content, effect.traversal)
                self._contents[stack.id] = content
        for change in step.resources.values():
            before, after = change.before, change.after
            if after is not None and _is_up(after) and not (before is not None and _is_up(before)):
                yield from self._up(step, after)

    def _told(self, stack: Stack, group: Resource, content: Mapping[str, Any], traversal: Traversal) -> None:
        """Record the requested size.

        A size in the template counts from the time at which it differs from the size before.
        """
        wanted: Mapping[str, Any] = group.pending.properties if group.pending is not None else group.properties
        if traversal.action in GOAL_OF_ITS_OWN:
            self._sizes[stack.id] = len(_members(content))
        elif group.type == COUNTED:
            self._sizes[stack.id] = wanted['count']
        else:
            present, desired = self._contents.get(stack.id), wanted.get('desired_capacity')
            if present is None or (desired is not None and desired != _output(present, 'desired_capacity')):
                self._sizes[stack.id] = desired or wanted['min_size']
            self._sizes[stack.id] = max(wanted['min_size'], min(self._sizes[stack.id], wanted['max_size']))

    def _scaled(
        self,
        step: Transition,
        stack: Stack,
        group: Resource,
        content: Mapping[str, Any],
        effect: effects.InsertTraversal,
    ) -> Iterator[str]:
        present, wanted = _members(self._contents[stack.id]), _members(content)
        told = next(event for event in step.events if event.action is Action.SIGNAL)
        policy = next(row for row in step.tables.resources_of(group.stack_id) if row.name == told.resource_name)
        works = not any(row.status is Status.FAILED for row in _before(step, stack.id))
        if works:
            said: Mapping[str, Any] = policy.properties
            bounds: Mapping[str, Any] = group.properties
            amount = int(said['scaling_adjustment'])
            is_exact = said['adjustment_type'] == 'exact_capacity'
            asked = amount if is_exact else self._sizes[stack.id] + amount
            asked = max(bounds['min_size'], min(asked, bounds['max_size']))
        else:
            asked = len(wanted)  # members that do not work are not counted
        self._sizes[stack.id] = asked
        if len(wanted) != asked:
            yield f'{group.name} is scaled to {len(wanted)} members, but the requested size is {asked}'
        stay = present.keys() & wanted.keys()
        if works and len(stay) < min(len(present), len(wanted)):
            yield f'{group.name} is scaled from {sorted(present)} to {sorted(wanted)}: members are exchanged'
        for name in sorted(stay):
            if present[name] != wanted[name]:
                yield f'{group.name} is scaled, but its member {name} changes'
        if self.world.skips_unchanged:
            yield from self._touched(step, group, stay, effect)

    @staticmethod
    def _touched(step: Transition, group: Resource, stay: set[str], effect: effects.InsertTraversal) -> Iterator[str]:
        for node in effect.nodes:
            row = step.tables.resource.get(node.resource_id or '')
            is_unfinished = row is None or row.status is not Status.COMPLETE or row.digest is None
            is_visited = node.phase is Phase.UPDATE and node.name in stay and node.status is not NodeStatus.DONE
            if is_visited and not is_unfinished:
                yield f'{group.name} is scaled, but its member {node.name} is visited'

    def _up(self, step: Transition, row: Resource) -> Iterator[str]:
        child = child_of(step.tables, row)
        if row.type not in (GROUP, COUNTED) or child is None:
            return
        content: Any = step.tables.template[child.template_id or ''].content['template']
        members = _members(content)
        if len(members) != self._sizes[child.id]:
            yield f'{row.name} has {len(members)} members, but the requested size is {self._sizes[child.id]}'
        traversal = step.tables.traversal[child.traversal_id or '']
        if traversal.action in GOAL_OF_ITS_OWN:
            return
        for name, body in members.items():
            if body != _member(row, name):
                yield f'the member {name} of {row.name} is {body}, but should be {_member(row, name)}'


def _before(step: Transition, stack_id: str) -> Iterator[Resource]:
    """Yield the rows of a stack before a commit."""
    for row in step.tables.resources_of(stack_id):
        before = step.resources[row.id].before if row.id in step.resources else row
        if before is not None:
            yield before


def _is_up(row: Resource) -> bool:
    return row.status is Status.COMPLETE and row.action in (Action.CREATE, Action.UPDATE)


def _members(content: Mapping[str, Any]) -> dict[str, Any]:
    return dict(content.get('resources') or {})


def _output(content: Mapping[str, Any], name: str) -> AnyJson:
    return content.get('outputs', {}).get(name, {}).get('value')


def _member(group: Resource, name: str) -> dict[str, Any]:
    """Return the definition of a member of a group, as in a template."""
    properties: Mapping[str, Any] = group.properties
    if group.type == GROUP:
        return dict(properties['resource'])
    written = properties['resource_def']
    inner = {
        key: value.replace('%index%', name) if isinstance(value, str) else value
        for key, value in written['properties'].items()
    }
    return {'type': written['type'], 'properties': inner}
