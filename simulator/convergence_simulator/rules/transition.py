"""What one commit has changed: every row that it touched, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from convergence.core import effects
from convergence.core.effects import Decision, Effect
from convergence.core.model import Status
from convergence.core.rows import Event, Node, Resource, Stack, Template, Traversal
from convergence.values import replace
from convergence_simulator.memory.look import Tables

RowT = TypeVar('RowT')
NodeKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RowChange(Generic[RowT]):
    """One row; None where it did not exist before, or does not any more."""

    before: RowT | None
    after: RowT | None


@dataclass(slots=True)
class Transition:
    """One commit.

    :ivar tables: all rows, as they are after it.
    :ivar events: what was announced by it.
    :ivar beside: stacks to which further rows belong that it has written: signals, snapshots and what is kept for them.
    """

    tables: Tables
    decision: Decision[Any]
    stacks: dict[str, RowChange[Stack]] = field(default_factory=dict)
    traversals: dict[str, RowChange[Traversal]] = field(default_factory=dict)
    resources: dict[str, RowChange[Resource]] = field(default_factory=dict)
    nodes: dict[NodeKey, RowChange[Node]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    templates: tuple[Template, ...] = ()
    beside: set[str] = field(default_factory=set)
    _kinds: dict[type, list[Any]] = field(init=False)

    def __post_init__(self) -> None:
        self._kinds = {}
        for effect in self.decision.effects:
            self._kinds.setdefault(type(effect), []).append(effect)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What the commit was to do."""
        return self.decision.effects

    def of_kind(self, kind: type[RowT]) -> list[RowT]:
        """The effects of one kind. Every invariant asks for some, at each commit: they are sorted once."""
        return self._kinds.get(kind, [])

    def let_go_above(self) -> list[Resource]:
        """The rows that are let go of because the stacks that are their objects have begun something in this commit.

        Nothing else of them is written.
        """
        begun = {effect.traversal.stack_id for effect in self.of_kind(effects.InsertTraversal)}
        if not begun:
            return []
        found = []
        for change in self.resources.values():
            before, after = change.before, change.after
            if before is None or after is None or before.owner is None or after.token not in begun:
                continue
            parked = replace(
                before,
                owner=None,
                progress=after.progress,
                wake_at=after.wake_at,
                polled_event_count=after.polled_event_count,
                crash_count=0,
                retry=None,
            )
            if parked == after:
                found.append(after)
        return found

    def scaled(self) -> list[str]:
        """The stacks that are scaled by this commit."""
        begun = (effect.traversal for effect in self.of_kind(effects.InsertTraversal))
        return [each.stack_id for each in begun if each.scaling]

    def told_above(self) -> tuple[set[str], set[NodeKey]]:
        """Of the stacks around this one: the rows that are told of it, and the nodes that are woken."""
        told = {effect.resource_id for effect in self.of_kind(effects.TellParent)}
        let_go = self.let_go_above()
        told.update(row.id for row in let_go)
        told.update(self.tables.stack[key].parent_resource_id or '' for key in self.scaled())
        woken = {(effect.traversal_id, effect.number) for effect in self.of_kind(effects.NotifyNode) if let_go}
        return told, woken

    def finished_above(self) -> dict[str, Resource]:
        """The rows, by their keys, that are done because the stacks have come to rest that are their objects."""
        if not self.stacks:
            return {}
        rested = [change.after for change in self.stacks.values() if change.after is not None]
        keys = {stack.parent_resource_id for stack in rested if stack.status is Status.COMPLETE}
        changed = ((key, change.before) for key, change in self.resources.items() if key in keys)
        return {key: row for key, row in changed if row is not None and row.owner is None and row.progress}

    def finished_by_others(self) -> list[Resource]:
        """Those of these rows that are of another project than what has come to rest."""
        projects = {stack.project_id for key in self.stacks if (stack := self.tables.stack.get(key)) is not None}
        rows = self.finished_above().values()
        return [row for row in rows if {self.tables.stack[row.stack_id].project_id} != projects]

    def arrived_above(self) -> set[NodeKey]:
        """The nodes of those rows, and the ones at which they arrive."""
        stacks = {row.stack_id for row in self.finished_above().values()}
        done = [each for each in self.of_kind(effects.FinishNode) if each.last is None]
        above = [each for each in done if self.tables.traversal[each.traversal_id].stack_id in stacks]
        return {
            (each.traversal_id, number)
            for each in above
            for number in (each.number, *each.required_by, each.next_in_backlog)
            if number is not None
        }

    def current(self, stack_id: str) -> Traversal | None:
        """The current traversal of a stack, after the commit."""
        stack = self.tables.stack.get(stack_id)
        return self.tables.traversal.get(stack.traversal_id or '') if stack is not None else None


class Memory:
    """Remembers all rows as they were before the next commit, whatever the store does. Costs what a commit touches."""

    def __init__(self) -> None:
        self._stacks: dict[str, Stack] = {}
        self._traversals: dict[str, Traversal] = {}
        self._resources: dict[str, Resource] = {}
        self._nodes: dict[NodeKey, Node] = {}

    @classmethod
    def of(cls, tables: Tables) -> Memory:
        """The rows as they are now."""
        memory = cls()
        memory._stacks.update(tables.stack)
        memory._traversals.update(tables.traversal)
        memory._resources.update(tables.resource)
        memory._nodes.update(
            ((key, number), node) for key, nodes in tables.node.items() for number, node in nodes.items()
        )
        return memory

    def take(self, tables: Tables, decision: Decision[Any]) -> Transition:
        """What a commit has changed; from now on that is what was before."""
        transition = Transition(tables, decision)
        for effect in decision.effects:
            # An effect that is not there is an error: nothing that is written may stay unseen.
            _READERS[type(effect)](self, transition, effect)
        return transition

    def _stack(self, transition: Transition, effect: effects.InsertStack | effects.UpdateStack) -> None:
        key = effect.stack.id if isinstance(effect, effects.InsertStack) else effect.stack_id
        _note(transition.stacks, self._stacks, key, transition.tables.stack)

    def _template(self, transition: Transition, effect: effects.InsertTemplate) -> None:
        transition.templates = (*transition.templates, effect.template)

    def _traversal(
        self,
        transition: Transition,
        effect: effects.EndTraversal
        | effects.BeginCancel
        | effects.NoteFailure
        | effects.NoteInService
        | effects.StallTraversal,
    ) -> None:
        _note(transition.traversals, self._traversals, effect.traversal_id, transition.tables.traversal)

    def _new_traversal(self, transition: Transition, effect: effects.InsertTraversal) -> None:
        _note(transition.traversals, self._traversals, effect.traversal.id, transition.tables.traversal)
        self._touch(transition, effect.traversal.id, (node.number for node in effect.nodes))

    def _new_resources(self, transition: Transition, effect: effects.InsertResources) -> None:
        for row in effect.resources:
            _note(transition.resources, self._resources, row.id, transition.tables.resource)

    def _resource(
        self,
        transition: Transition,
        effect: effects.UpdateResource
        | effects.DeleteResource
        | effects.CountEvent
        | effects.TellParent
        | effects.ClearHook
        | effects.RevokeAddresses,
    ) -> None:
        _note(transition.resources, self._resources, effect.resource_id, transition.tables.resource)

    def _upwards(self, transition: Transition, effect: effects.DoubtParents) -> None:
        key: str | None = effect.resource_id
        tables = transition.tables
        while key is not None and key in tables.resource:
            _note(transition.resources, self._resources, key, tables.resource)
            key = tables.stack[tables.resource[key].stack_id].parent_resource_id

    def _many_resources(self, transition: Transition, effect: effects.UpdateResources) -> None:
        for key in effect.resource_ids:
            _note(transition.resources, self._resources, key, transition.tables.resource)

    def _finished(self, transition: Transition, effect: effects.FinishNode) -> None:
        told = tuple(number for number in (effect.next_in_backlog, effect.last) if number is not None)
        self._touch(transition, effect.traversal_id, (effect.number, *effect.required_by, *told))

    def _one_node(
        self, transition: Transition, effect: effects.FailNode | effects.PointNode | effects.NotifyNode
    ) -> None:
        self._touch(transition, effect.traversal_id, (effect.number,))

    def _appended(self, transition: Transition, effect: effects.AppendCleanup) -> None:
        node = transition.tables.node[effect.node.traversal_id][effect.node.number]
        self._touch(transition, node.traversal_id, (node.number, *node.required_by))
        _note(transition.traversals, self._traversals, effect.node.traversal_id, transition.tables.traversal)

    def _events(self, transition: Transition, effect: effects.InsertEvents) -> None:
        transition.events = (*transition.events, *effect.events)

    def _nothing(self, transition: Transition, effect: effects.RequireRoom) -> None:
        """What only refuses writes no row."""

    def _signal(self, transition: Transition, effect: effects.InsertSignal) -> None:
        transition.beside.add(transition.tables.resource[effect.signal.resource_id].stack_id)

    def _beside(self, transition: Transition, effect: effects.PurgeTemplates | effects.DeleteSnapshots) -> None:
        transition.beside.add(effect.stack_id)

    def _snapshot(self, transition: Transition, effect: effects.InsertSnapshot) -> None:
        transition.beside.add(effect.snapshot.stack_id)

    def _item(self, transition: Transition, effect: effects.KeepItem) -> None:
        transition.beside.add(effect.item.stack_id)

    def _touch(self, transition: Transition, traversal_id: str, numbers: Iterable[int]) -> None:
        nodes = transition.tables.node.get(traversal_id, {})
        for number in numbers:
            key = (traversal_id, number)
            after = nodes.get(number)
            if key not in transition.nodes:
                transition.nodes[key] = RowChange(self._nodes.get(key), after)
            if after is not None:
                self._nodes[key] = after


def _note(changes: dict[str, RowChange[RowT]], known: dict[str, RowT], key: str, rows: Mapping[str, RowT]) -> None:
    after = rows.get(key)
    if key not in changes:
        changes[key] = RowChange(known.get(key), after)
    if after is None:
        known.pop(key, None)
    else:
        known[key] = after


_READERS: dict[type, Any] = {
    effects.InsertStack: Memory._stack,
    effects.UpdateStack: Memory._stack,
    effects.RequireRoom: Memory._nothing,
    effects.InsertTemplate: Memory._template,
    effects.InsertTraversal: Memory._new_traversal,
    effects.EndTraversal: Memory._traversal,
    effects.InsertResources: Memory._new_resources,
    effects.UpdateResource: Memory._resource,
    effects.UpdateResources: Memory._many_resources,
    effects.DeleteResource: Memory._resource,
    effects.FinishNode: Memory._finished,
    effects.FailNode: Memory._one_node,
    effects.PointNode: Memory._one_node,
    effects.AppendCleanup: Memory._appended,
    effects.InsertEvents: Memory._events,
    effects.BeginCancel: Memory._traversal,
    effects.NoteFailure: Memory._traversal,
    effects.NoteInService: Memory._traversal,
    effects.StallTraversal: Memory._traversal,
    effects.CountEvent: Memory._resource,
    effects.TellParent: Memory._resource,
    effects.DoubtParents: Memory._upwards,
    effects.ClearHook: Memory._resource,
    effects.RevokeAddresses: Memory._resource,
    effects.NotifyNode: Memory._one_node,
    effects.InsertSignal: Memory._signal,
    effects.PurgeTemplates: Memory._beside,
    effects.DeleteSnapshots: Memory._beside,
    effects.InsertSnapshot: Memory._snapshot,
    effects.KeepItem: Memory._item,
}
