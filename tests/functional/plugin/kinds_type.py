"""Resource types of every sort that the guide for authors knows, in front of one cloud that keeps its own books.

They differ in how a lost creation can be found out: `Kind::Find` and `Kind::Async` are asked, `Kind::Token` and
`Kind::Both` make nothing new for a token that they know, `Kind::Neither` and `Kind::AsyncNeither` cannot tell;
`Kind::Replaced` begins each update and then wants a new object.

Below ``FUNCTIONAL_REALITY/kinds``: ``objects/`` is what exists, one file each; ``journal`` has a line for each call that
begins, each object that is made or removed, and each call that ends, with the process; ``faults/STACK.NAME`` is what
becomes of the next creation of that resource once its object is there: ``die`` (the process is killed), ``lose`` (the
answer gets lost) or ``hold GATE`` (it is held up until ``gates/GATE`` exists, and then answers).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from convergence.resources.attributes import attr
from convergence.resources.contract import Done, InProgress, ObjectNotFound, ReplacementNeeded, ResourceType
from convergence.resources.schema import prop

HELD_S = 120.0


@dataclass(frozen=True)
class KindProperties:
    """`takes`: seconds that a call lasts, whatever it is told. `place`: another one needs another object."""

    value: str = prop('', update_allowed=True)
    place: str = prop('')
    takes: float = prop(0.0, update_allowed=True)


@dataclass(frozen=True)
class KindAttributes:
    """What others may use."""

    value: str = attr('The stored value.')


class Cloud:
    """The cloud behind all of them."""

    def __init__(self) -> None:
        self._root = Path(os.environ['FUNCTIONAL_REALITY']) / 'kinds'
        for name in ('objects', 'faults', 'gates'):
            (self._root / name).mkdir(parents=True, exist_ok=True)

    def note(self, what, call, physical_id=None):
        """One line in the journal."""
        line = {'what': what, 'at': time.time(), 'pid': os.getpid(), 'stack': call.stack_name, 'name': call.name}
        text = json.dumps({**line, 'token': call.token, 'id': physical_id}) + '\n'
        descriptor = os.open(self._root / 'journal', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, text.encode())  # one write: no other process comes in between
        finally:
            os.close(descriptor)

    def make(self, call):
        """A new object."""
        physical_id = uuid.uuid4().hex
        self.store(call, physical_id)
        self.note('made', call, physical_id)
        return physical_id

    def store(self, call, physical_id, **other):
        """Have an object be as it is wanted."""
        wanted = {'value': call.properties.value, 'place': call.properties.place}
        content = {'id': physical_id, 'stack': call.stack_name, 'name': call.name, 'token': call.token}
        temporary = self._root / f'{uuid.uuid4().hex}.new'
        temporary.write_text(json.dumps({**content, **wanted, **other}))
        temporary.replace(self.path(physical_id))

    def path(self, physical_id):
        """Where an object is."""
        return self._root / 'objects' / f'{physical_id}.json'

    def of(self, token):
        """The id of the object that was made under a token and exists."""
        for path in (self._root / 'objects').glob('*.json'):
            with contextlib.suppress(FileNotFoundError):
                content = json.loads(path.read_text())
                if content['token'] == token:
                    return content['id']
        return None

    def strike(self, call):
        """What was planned for this creation, once."""
        planned = self._root / 'faults' / f'{call.stack_name}.{call.name}'
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
        while not (self._root / 'gates' / gate).exists() and time.monotonic() < ends:
            time.sleep(0.02)


class Kind(ResourceType[KindProperties]):
    """What all have in common: each creation makes another object, and nobody can tell which."""

    Properties = KindProperties
    Attributes = KindAttributes

    def __init__(self):
        self._cloud = Cloud()

    def create(self, call):
        self._cloud.note('create', call)
        physical_id = self._made(call)
        self._cloud.strike(call)
        time.sleep(call.properties.takes)
        self._cloud.note('created', call, physical_id)
        return self._answer(physical_id)

    def update(self, call):
        self._cloud.note('update', call, call.physical_id)
        if call.physical_id is None or not self._cloud.path(call.physical_id).exists():
            raise ObjectNotFound(f'{call.physical_id} is not there')
        time.sleep(call.properties.takes)
        self._cloud.store(call, call.physical_id)
        self._cloud.note('updated', call, call.physical_id)
        return self._answer(None)

    def delete(self, call):
        self._cloud.note('delete', call, call.physical_id)
        if call.physical_id is None or not self._cloud.path(call.physical_id).exists():
            raise ObjectNotFound(f'{call.physical_id} is not there')
        self._cloud.path(call.physical_id).unlink(missing_ok=True)
        self._cloud.note('deleted', call, call.physical_id)
        return Done()

    def attribute(self, call, name):
        return call.properties.value

    def _made(self, call):
        return self._cloud.make(call)

    def _answer(self, physical_id):
        return Done(physical_id)


class Neither(Kind):
    """Nobody can tell."""


class Find(Kind):
    """It is asked."""

    def find(self, call):
        known = self._cloud.of(call.token)
        return self._answer(known) if known is not None else None


class Enforcing(Kind):
    """The service knows its tokens."""

    token_enforced = True

    def _made(self, call):
        known = self._cloud.of(call.token)
        return known if known is not None else self._cloud.make(call)


class Both(Enforcing):
    """It can be asked as well."""

    find = Find.find


class AsyncNeither(Kind):
    """Creations and updates take two polls."""

    def poll(self, call, action, progress):
        return Done() if progress['round'] >= 2 else InProgress({'round': progress['round'] + 1}, poll_after_s=0.1)

    def _answer(self, physical_id):
        return InProgress({'round': 1}, physical_id, poll_after_s=0.1)


class Async(AsyncNeither):
    """The same, and it is asked."""

    find = Find.find


class Replaced(Find):
    """Updates begin, and then turn out to need a new object."""

    def update(self, call):
        self._cloud.note('update', call, call.physical_id)
        self._cloud.store(call, call.physical_id, value='half')
        raise ReplacementNeeded(f'{call.name} cannot be changed further')
