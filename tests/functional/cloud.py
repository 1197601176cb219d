"""The cloud of real processes: a directory in which resource types keep their objects, and tests look at them.

``objects/STACK/`` is what exists, one file each; ``journal`` has a line for each call that begins, each object that is
made, and each call that ends, with the process; an open gate is a file in ``gates/``; ``faults/STACK.NAME`` is what
becomes of the next creation of that resource once its object is there. So a test sees reality with its own eyes, not
through the engine, whatever becomes of the processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convergence.resources.contract import Call

VARIABLE = 'FUNCTIONAL_CLOUD'
"""Names the directory in the environment of the processes."""
HELD_S = 120.0

Goal = Mapping[str, Mapping[str, Any]]
"""Properties of each resource of a stack. `type`: its type; `after`: the names of those that come before it."""


@dataclass(frozen=True)
class Object:
    """One object of the cloud."""

    id: str
    stack: str
    name: str
    token: str
    value: str
    place: str


@dataclass(frozen=True)
class Line:
    """One line of the journal.

    :param what: ``create``, ``update``, ``delete`` begin a call; ``created``, ``updated``, ``deleted`` end one;
        ``cancel`` is told to one; ``made`` an object; ``stuck``: the call will not come back; ``die``, ``lose``,
        ``hold``: what was planned came true.
    """

    what: str
    at: float
    pid: int
    stack: str
    name: str
    token: str
    id: str | None


class Cloud:
    """Processes and tests have each one of their own on the same directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ('objects', 'faults', 'gates'):
            (root / name).mkdir(parents=True, exist_ok=True)

    # --- what resource types do -------------------------------------------------------------------------------

    def note(self, what: str, call: Call[Any], physical_id: str | None = None) -> None:
        """One line in the journal."""
        line = Line(what, time.time(), os.getpid(), call.stack_name, call.name, call.token, physical_id)
        descriptor = os.open(self.root / 'journal', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, f'{json.dumps(asdict(line))}\n'.encode())  # one write: no other one comes in between
        finally:
            os.close(descriptor)

    def make(self, call: Call[Any]) -> str:
        """A new object, even if there is one for the token already."""
        physical_id = f'{call.stack_name}/{_mark(call.token)}-{uuid.uuid4().hex[:12]}'
        self.change(call, physical_id)
        self.note('made', call, physical_id)
        return physical_id

    def change(self, call: Call[Any], physical_id: str, **other: Any) -> None:
        """Have an object be as the call wants it, but for `other`."""
        wanted = {'value': call.properties.value, 'place': call.properties.place, **other}
        content = Object(physical_id, call.stack_name, call.name, call.token, **wanted)
        path = self._path(physical_id)
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_suffix(f'.{uuid.uuid4().hex}')
        temporary.write_text(json.dumps(asdict(content)))
        temporary.replace(path)

    def remove(self, physical_id: str) -> None:
        """There is no such object any more."""
        self._path(physical_id).unlink(missing_ok=True)

    def exists(self, physical_id: str | None) -> bool:
        """Whether there is such an object."""
        return physical_id is not None and self._path(physical_id).exists()

    def made_for(self, call: Call[Any]) -> str | None:
        """The object that was made under the token of a call, and exists."""
        found = sorted((self.root / 'objects' / call.stack_name).glob(f'{_mark(call.token)}-*.json'))
        return f'{call.stack_name}/{found[0].stem}' if found else None

    def is_open(self, gate: str) -> bool:
        """Whether a gate lets those through who wait at it."""
        return (self.root / 'gates' / gate).exists()

    def strike(self, call: Call[Any]) -> None:
        """What was planned for this creation, once."""
        planned = self.root / 'faults' / f'{call.stack_name}.{call.name}'
        claimed = planned.with_suffix(f'.{uuid.uuid4().hex}')
        try:
            planned.rename(claimed)
        except FileNotFoundError:
            return
        what, _, gate = claimed.read_text().partition(' ')
        self.note(what, call)
        if what == 'die':
            os.kill(os.getpid(), signal.SIGKILL)
        if what == 'lose':
            raise ConnectionResetError('the answer got lost')
        ends = time.monotonic() + HELD_S
        while not self.is_open(gate) and time.monotonic() < ends:
            time.sleep(0.02)

    # --- what tests do ----------------------------------------------------------------------------------------

    def plan(self, stack: str, name: str, fault: str) -> None:
        """What is to become of the next creation of a resource, once its object is there.

        :param fault: ``die`` (the process is killed), ``lose`` (the answer gets lost) or ``hold GATE`` (it is held up
            until the gate is open, and then answers).
        """
        (self.root / 'faults' / f'{stack}.{name}').write_text(fault)

    def open(self, gate: str) -> None:
        """Let those through who wait at a gate."""
        (self.root / 'gates' / gate).touch()

    def objects(self, stack: str) -> list[Object]:
        """What exists for a stack."""
        found = []
        for path in (self.root / 'objects' / stack).glob('*.json'):
            with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                found.append(Object(**json.loads(path.read_text())))
        return found

    def by_name(self, stack: str) -> dict[str, Object]:
        """The objects of a stack, by resource; two of the same resource are a mistake in any final state."""
        found = self.objects(stack)
        twice = [name for name, count in Counter(each.name for each in found).items() if count > 1]
        assert not twice, f'more than one object of {twice}: {found}'
        return {each.name: each for each in found}

    def values(self, stack: str) -> dict[str, str]:
        """The value of each existing object of a stack, by resource."""
        return {name: each.value for name, each in self.by_name(stack).items()}

    def journal(self, stack: str | None = None, name: str | None = None, what: str | None = None) -> list[Line]:
        """What was done: all of it, or what concerns one stack, one resource name, one sort of line."""
        wanted = [('stack', stack), ('name', name), ('what', what)]
        return [line for line in self._lines() if all(given in (None, getattr(line, field)) for field, given in wanted)]

    def doubles(self, stack: str) -> list[str]:
        """Resources for one token of which more than one object was ever made."""
        made = Counter((each.name, each.token) for each in self.journal(stack, what='made'))
        return sorted(name for (name, _), count in made.items() if count > 1)

    def struck(self, stack: str) -> bool:
        """Whether what was planned has come true."""
        return any(each.what in ('die', 'lose', 'hold') for each in self.journal(stack))

    def _lines(self) -> Iterator[Line]:
        path = self.root / 'journal'
        if path.exists():
            yield from (Line(**json.loads(each)) for each in path.read_text().splitlines())

    def _path(self, physical_id: str) -> Path:
        return self.root / 'objects' / f'{physical_id}.json'


def _mark(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:12]


def template(goal: Goal | None = None, tag: str = '', /, **more: Mapping[str, Any]) -> str:
    """A template of resources of `tests.functional.cloud_types`; JSON, which is YAML.

    :param tag: tells two templates apart that are otherwise the same.
    :param more: further resources of the goal.
    """
    resources = {}
    for name, given in {**(goal or {}), **more}.items():
        properties = {key: value for key, value in given.items() if key not in ('type', 'after')}
        resources[name] = {
            'type': given.get('type', 'Test::Recorded'),
            'properties': properties,
            'depends_on': list(given.get('after', [])),
        }
    return json.dumps({'heat_template_version': '2018-08-31', 'description': tag, 'resources': resources})
