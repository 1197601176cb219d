"""The state of a stack's resources during an operation. Pure: events in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

OLD = ' (old)'
STARTED, OVER = '_IN_PROGRESS', ('_COMPLETE', '_FAILED')


class Part(StrEnum):
    """The object of a line: the desired one of a name, or an old one to delete."""

    DESIRED = 'DESIRED'
    LEAVING = 'LEAVING'


class StateKind(StrEnum):
    """The kind of a state, for its style."""

    WAITING = 'WAITING'
    BUSY = 'BUSY'
    GOOD = 'GOOD'
    BAD = 'BAD'


@dataclass(slots=True)
class Line:
    """One resource, or the stack itself, during an operation. Times are seconds since its start.

    :ivar above: the path of its nested stack: names of resources, with slashes; empty at the top.
    :ivar state: for example ``CREATE_IN_PROGRESS``; empty before the first event.
    """

    name: str
    type: str
    part: Part
    state: str = ''
    reason: str = ''
    begun_s: float | None = None
    ended_s: float | None = None
    above: str = ''

    @property
    def depth(self) -> int:
        """The depth of its nested stack; 0 at the top."""
        return self.above.count('/') + 1 if self.above else 0

    @property
    def path(self) -> str:
        """The names that lead to the resource, with slashes."""
        return f'{self.above}/{self.name}' if self.above else self.name

    @property
    def state_kind(self) -> StateKind:
        """The kind of the state."""
        if not self.state:
            return StateKind.WAITING
        if self.state.endswith('_FAILED'):
            return StateKind.BAD
        return StateKind.GOOD if self.state.endswith('_COMPLETE') else StateKind.BUSY

    def took_s(self, now_s: float) -> float | None:
        """The duration of the action in seconds; None before it starts."""
        if self.begun_s is None:
            return None
        return (now_s if self.ended_s is None else self.ended_s) - self.begun_s

    def enter(self, state: str, reason: str, now_s: float) -> None:
        """Change to a state."""
        self.state, self.reason = state, reason
        if state.endswith(STARTED):
            self.begun_s, self.ended_s = now_s, None
        else:
            self.begun_s = now_s if self.begun_s is None else self.begun_s
            self.ended_s = now_s


@dataclass(frozen=True, slots=True)
class Scene:
    """The resources of a stack at the start of an operation.

    :param desired: the types of the desired resources by name, in the order of display; empty for a delete.
    :param existing: the types of the existing resources by name.
    :param requires: the dependencies of each resource, by name.
    :param planned: the desired resources that the operation visits; the others are unchanged.
    :param outside: the known drift of objects, by name.
    """

    stack_name: str
    stack_id: str
    desired: Mapping[str, str] = field(default_factory=dict)
    existing: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, Sequence[str]] = field(default_factory=dict)
    planned: frozenset[str] = frozenset()
    outside: Mapping[str, str] = field(default_factory=dict)


class OperationProgress:
    """The lines of one operation.

    :ivar stack: the line of the stack itself.
    :ivar last_event: id of the last processed event.
    :ivar is_over: True if the operation has ended; `went_well`: True if it succeeded.
    """

    def __init__(self, scene: Scene) -> None:
        self.stack = Line(scene.stack_name, '', Part.DESIRED)
        self.last_event: str | None = None
        self.is_over = self.went_well = False
        self._scene = scene
        self._seen: set[str] = set()
        self._lines: dict[tuple[str, str, Part], Line] = {}
        self._names: dict[str, dict[str, None]] = {}  # In the order of display, by the path of the stack.
        self._paths: dict[str, str] = {}  # By the name of the stack.
        for name, kind in scene.desired.items():
            self._line('', name, kind, Part.DESIRED)
        for name, kind in scene.existing.items():
            if name not in scene.desired:
                self._line('', name, kind, Part.LEAVING)
        self._needed_by: dict[str, list[str]] = {}
        for name, required in scene.requires.items():
            for each in required:
                self._needed_by.setdefault(each, []).append(name)

    @property
    def lines(self) -> list[Line]:
        """Return the lines of all resources of the stack. An old object follows its replacement.

        The lines of a nested stack follow its resource while that one is in progress, or if it has failed.
        """
        return self._inside('')

    def _inside(self, above: str) -> list[Line]:
        found = []
        for name in self._names.get(above, ()):
            own = [self._lines[key] for part in Part if (key := (above, name, part)) in self._lines]
            found += own
            if any(line.state_kind in (StateKind.BUSY, StateKind.BAD) for line in own):
                found += self._inside(own[0].path)
        return found

    def _line(self, above: str, name: str, kind: str, part: Part) -> Line:
        """Return the line of a resource; create it if it is missing."""
        self._names.setdefault(above, {})[name] = None
        return self._lines.setdefault((above, name, part), Line(name, kind, part, above=above))

    @property
    def width(self) -> int:
        """The maximum length of a title in characters."""
        names = map(len, self._names.get('', ()))
        doubled = self._scene.desired.keys() & self._scene.existing.keys()
        return max(names, default=0) + (len(OLD) if doubled else 0)

    def title(self, line: Line) -> str:
        """Return the unique title of a line."""
        doubled = line.part is Part.LEAVING and (line.above, line.name, Part.DESIRED) in self._lines
        return f'{line.name}{OLD}' if doubled else line.name

    def outside(self, line: Line) -> str:
        """Return the drift of a line's object before the operation; empty without drift."""
        return '' if line.above else self._scene.outside.get(line.name, '')

    def end(self, *, well: bool) -> None:
        """Record the end of the operation.

        :param well: True if it succeeded.
        """
        self.is_over, self.went_well = True, well

    def was_kept_from(self, line: Line) -> bool:
        """Return True if a failed operation planned a resource and did not start it."""
        was_meant = line.part is Part.LEAVING or (not line.above and line.name in self._scene.planned)
        return self.is_over and not self.went_well and not line.state and was_meant

    def waits_for(self, line: Line) -> list[str]:
        """Return the resources that block a resource, directly or through others: busy ones, then failed ones.

        If there are none of either, return the ready ones.
        """
        edges = self._scene.requires if line.part is Part.DESIRED else self._needed_by
        found: dict[StateKind, list[str]] = {StateKind.BUSY: [], StateKind.BAD: [], StateKind.WAITING: []}
        seen, waiting = {line.name}, list(edges.get(line.name, ()))
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            waiting += edges.get(name, ())
            other = self._lines.get(('', name, line.part))
            if other is not None and other.state_kind in (StateKind.BUSY, StateKind.BAD):
                found[other.state_kind].append(name)
            elif other is not None and self._is_next(other, edges):
                found[StateKind.WAITING].append(name)
        return [*found[StateKind.BUSY], *found[StateKind.BAD]] or found[StateKind.WAITING]

    def _is_next(self, line: Line, edges: Mapping[str, Sequence[str]]) -> bool:
        """Return True if a waiting resource is ready."""
        if line.state_kind is not StateKind.WAITING or (
            line.part is Part.DESIRED and line.name not in self._scene.planned
        ):
            return False
        others = (self._lines.get(('', name, line.part)) for name in edges.get(line.name, ()))
        return all(other is None or other.state_kind is StateKind.GOOD for other in others)

    def learn(self, events: Iterable[Mapping[str, Any]], now_s: float) -> list[Line]:
        """Process events in their order. Known events change nothing.

        :returns: the state of a line after each event that changed it.
        """
        changes = []
        for event in events:
            self.last_event = str(event['id'])
            if self.last_event not in self._seen:
                self._seen.add(self.last_event)
                changed = self._apply(event, now_s)
                changes += [changed] if changed is not None else []
        return changes

    def is_about_the_stack(self, event: Mapping[str, Any]) -> bool:
        """Return True if an event belongs to the stack itself. A resource may have the same name."""
        scene = self._scene
        return (event['resource_name'], event['physical_resource_id']) == (scene.stack_name, scene.stack_id)

    def _above(self, event: Mapping[str, Any]) -> str | None:
        """Return the path of the stack of an event; None if it is unknown.

        Also None for the events of a nested stack itself: its resource has the same events.
        """
        stack, path = str(event.get('stack_name') or self._scene.stack_name), event.get('stack_path')
        if path:
            self._paths[stack] = str(path)
        if path == '' or stack == self._scene.stack_name:
            return ''
        return None if event['resource_name'] == stack else self._paths.get(stack)

    def _apply(self, event: Mapping[str, Any], now_s: float) -> Line | None:
        state = str(event['resource_status'])
        if self.is_about_the_stack(event):
            line = self.stack
        else:
            name, above = str(event['resource_name']), self._above(event)
            if above is None:
                return None
            part = Part.LEAVING if state.startswith('DELETE_') else Part.DESIRED
            kind = '' if above else self._scene.desired.get(name) or self._scene.existing.get(name, '')
            line = self._line(above, name, kind, part)
        line.enter(state, str(event.get('resource_status_reason') or ''), now_s)
        return replace(line)
