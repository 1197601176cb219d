"""What is known of the resources of a stack while an operation goes on. Pure: events in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from convergence.cli.stack import event_id, is_about_a_resource

OLD = ' (old)'


class Part(StrEnum):
    """What a line stands for: the object that is wanted under a name, or one that has to go."""

    WANTED = 'WANTED'
    LEAVING = 'LEAVING'


class Mood(StrEnum):
    """How a state is to be taken."""

    WAITING = 'WAITING'
    BUSY = 'BUSY'
    GOOD = 'GOOD'
    BAD = 'BAD'


@dataclass(slots=True)
class Line:
    """One resource in the course of an operation. Times in seconds since the operation began.

    :ivar state: for example ``CREATE_IN_PROGRESS``; empty while nothing has happened to the resource.
    """

    name: str
    type: str
    part: Part
    state: str = ''
    reason: str = ''
    begun_s: float | None = None
    ended_s: float | None = None

    @property
    def mood(self) -> Mood:
        """How the state is to be taken."""
        if not self.state:
            return Mood.WAITING
        if self.state.endswith('_FAILED'):
            return Mood.BAD
        return Mood.GOOD if self.state.endswith('_COMPLETE') else Mood.BUSY

    def took_s(self, now_s: float) -> float | None:
        """How long the action has taken, so far or in all; None where none has begun."""
        if self.begun_s is None:
            return None
        return (now_s if self.ended_s is None else self.ended_s) - self.begun_s


class Progress:
    """The lines of one operation.

    :param wanted: type by name of what the stack is to have, in the order to show; empty for a delete.
    :param existing: type by name of what it has at the beginning.
    :ivar width: how long a title can become, in characters.
    """

    def __init__(self, wanted: Mapping[str, str], existing: Mapping[str, str]) -> None:
        self._seen: set[str] = set()
        names = [len(name) for name in (*wanted, *existing)]
        self.width = max(names, default=0) + (len(OLD) if wanted.keys() & existing.keys() else 0)
        self._lines = {(name, Part.WANTED): Line(name, kind, Part.WANTED) for name, kind in wanted.items()}
        gone = {name: kind for name, kind in existing.items() if name not in wanted}
        self._lines |= {(name, Part.LEAVING): Line(name, kind, Part.LEAVING) for name, kind in gone.items()}

    @property
    def lines(self) -> list[Line]:
        """All lines; an old object follows the one that replaces it."""
        names = dict.fromkeys(name for name, _ in self._lines)
        return [self._lines[key] for name in names for part in Part if (key := (name, part)) in self._lines]

    def title(self, line: Line) -> str:
        """The name of a line, different from all others."""
        doubled = line.part is Part.LEAVING and (line.name, Part.WANTED) in self._lines
        return f'{line.name}{OLD}' if doubled else line.name

    def learn(self, events: Iterable[Mapping[str, Any]], now_s: float) -> list[Line]:
        """Take note of events, in their order; those that were seen before change nothing.

        :returns: the state of a line after each event that changed it.
        """
        changes = []
        for event in events:
            if event_id(dict(event)) in self._seen:
                continue
            self._seen.add(event_id(dict(event)))
            if is_about_a_resource(dict(event)):
                changes.append(self._apply(event, now_s))
        return changes

    def _apply(self, event: Mapping[str, Any], now_s: float) -> Line:
        name, action, status = event['resource_name'], event['resource_action'], event['resource_status']
        part = Part.LEAVING if action == 'DELETE' else Part.WANTED
        line = self._lines.setdefault((name, part), Line(name, str(event['resource_type']), part))
        line.type, line.state = str(event['resource_type']), f'{action}_{status}'
        line.reason = str(event['resource_status_reason'])
        if status == 'IN_PROGRESS':
            line.begun_s, line.ended_s = now_s, None
        else:
            line.begun_s = now_s if line.begun_s is None else line.begun_s
            line.ended_s = now_s
        return Line(name, line.type, part, line.state, line.reason, line.begun_s, line.ended_s)
