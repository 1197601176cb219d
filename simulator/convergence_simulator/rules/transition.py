"""The changes of one commit: every row that it touched, before and after."""

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
    """One row before and after; None before its creation and after its removal."""

    before: RowT | None
    after: RowT | None


@dataclass(slots=True)
class Transition:
    """One commit.

    :ivar tables: all rows after the commit.
    :ivar events: events that it stored.
    :ivar beside: stacks of other written rows: signals, snapshots and their items.
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
        """The effects of the commit."""
        return self.decision.effects

    def of_kind(self, kind: type[RowT]) -> list[RowT]:
        """Return the effects of one kind. They are sorted once, because every rule reads some kinds at each commit."""
        return self._kinds.get(kind, [])

    def let_go_above(self) -> list[Resource]:
        """Return the rows of nested stacks that are released because the nested stacks have begun an operation.

        The commit writes nothing else of these rows.
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
        """Return the stacks that are scaled by this commit."""
        begun = (effect.traversal for effect in self.of_kind(effects.InsertTraversal))
        return [each.stack_id for each in begun if each.scaling]

    def told_above(self) -> tuple[set[str], set[NodeKey]]:
        """Return the rows of parent stacks that are notified, and the nodes of parent stacks that are woken."""
        told = {effect.resource_id for effect in self.of_kind(effects.TellParent)}
        let_go = self.let_go_above()
        told.update(row.id for row in let_go)
        told.update(self.tables.stack[key].parent_resource_id or '' for key in self.scaled())
        woken = {(effect.traversal_id, effect.number) for effect in self.of_kind(effects.NotifyNode) if let_go}
        return told, woken

    def finished_above(self) -> dict[str, Resource]:
        """Return the rows of nested stacks that are done because the nested stacks have completed, by their ids."""
        if not self.stacks:
            return {}
        rested = [change.after for change in self.stacks.values() if change.after is not None]
        keys = {stack.parent_resource_id for stack in rested if stack.status is Status.COMPLETE}
        changed = ((key, change.before) for key, change in self.resources.items() if key in keys)
        return {key: row for key, row in changed if row is not None and row.owner is None and row.progress}

    def finished_by_others(self) -> list[Resource]:
        """Return those of these rows whose project differs from the project of the nested stacks."""
        projects = {stack.project_id for key in self.stacks if (stack := self.tables.stack.get(key)) is not None}
        rows = self.finished_above().values()
        return [row for row in rows if {self.tables.stack[row.stack_id].project_id} != projects]

    def arrived_above(self) -> set[NodeKey]:
        """Return the nodes of these rows, and the nodes at which they arrive."""
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
        """Return the current traversal of a stack after the commit."""
        stack = self.tables.stack.get(stack_id)
        return self.tables.traversal.get(stack.traversal_id or '') if stack is not None else None


class Memory:
    """Keeps all rows as they were before the next commit, with any store. Costs as much as a commit touches."""

    def __init__(self) -> None:
        self._stacks: dict[str, Stack] = {}
        self._traversals: dict[str, Traversal] = {}
        self._resources: dict[str, Resource] = {}
        self._nodes: dict[NodeKey, Node] = {}

    @classmethod
    def of(cls, tables: Tables) -> Memory:
        """Record the present rows."""
        memory = cls()
        memory._stacks.update(tables.stack)
        memory._traversals.update(tables.traversal)
        memory._resources.update(tables.resource)
        memory._nodes.update(
            ((key, number), node) for key, nodes in tables.node.items() for number, node in nodes.items()
        )
        return memory

    def take(self, tables: Tables, decision: Decision[Any]) -> Transition:
        """Return the changes of a commit, and record the rows after it."""
        transition = Transition(tables, decision)
        for effect in decision.effects:
            # An unknown effect is an error: every write has to be recorded.
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
        """Ignore an effect that only guards and writes no row."""

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
