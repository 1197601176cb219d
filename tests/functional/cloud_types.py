"""The resource types of the cloud of real processes.

`Test::Recorded` does what its properties say; `Test::Counted` is the same, polled at the engine's own pace. The types
`Kind::...` are of every sort that the guide for authors knows, and differ in how a lost creation can be found out:
`Kind::Find` and `Kind::Async` are asked, `Kind::Token` and `Kind::Both` make nothing new for a token that they know,
`Kind::Neither` and `Kind::AsyncNeither` cannot tell; `Kind::Replaced` begins each update and then wants a new object.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from convergence.resources.attributes import attr
from convergence.resources.contract import (
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.schema import prop
from tests.functional.cloud import VARIABLE, Cloud

GATE_S = 0.05
"""How often somebody who waits at a gate looks."""
STUCK_S = 3600


@dataclass(frozen=True)
class StoredProperties:
    """`takes`: how many seconds a call lasts. `place`: another one needs another object."""

    value: str = prop('', update_allowed=True)
    place: str = prop('')
    takes: float = prop(0.0, update_allowed=True)


@dataclass(frozen=True)
class StoredAttributes:
    """What others may use."""

    value: str = attr('The stored value.')


class Neither(ResourceType[StoredProperties]):
    """Each creation makes another object, and nobody can tell which; `takes` blocks, whatever the call is told."""

    Properties = StoredProperties
    Attributes = StoredAttributes

    def __init__(self):
        self._cloud = Cloud(Path(os.environ[VARIABLE]))

    def create(self, call):
        self._cloud.note('create', call)
        physical_id = self._made(call)
        self._cloud.strike(call)
        self._last(call)
        answer = self._answer(call, physical_id)
        self._cloud.note('created', call, physical_id)
        return answer

    def update(self, call):
        self._cloud.note('update', call, call.physical_id)
        self._must_exist(call)
        self._last(call)
        self._cloud.change(call, call.physical_id)
        answer = self._answer(call, call.physical_id)
        self._cloud.note('updated', call, call.physical_id)
        return answer

    def delete(self, call):
        self._cloud.note('delete', call, call.physical_id)
        self._must_exist(call)
        self._cloud.remove(call.physical_id)
        self._cloud.note('deleted', call, call.physical_id)
        return Done()

    def attribute(self, call, name):
        return call.properties.value

    def _must_exist(self, call):
        if not self._cloud.exists(call.physical_id):
            raise ObjectNotFound(f'{call.physical_id} is not there')

    def _made(self, call):
        return self._cloud.make(call)

    def _last(self, call):
        time.sleep(call.properties.takes)

    def _answer(self, call, physical_id):
        return Done(physical_id)


class Find(Neither):
    """It is asked."""

    def find(self, call):
        known = self._cloud.made_for(call)
        return self._answer(call, known) if known is not None else None


class Enforcing(Neither):
    """The service knows its tokens."""

    token_enforced = True

    def _made(self, call):
        return self._cloud.made_for(call) or self._cloud.make(call)


class Both(Enforcing):
    """It can be asked as well."""

    find = Find.find


class AsyncNeither(Neither):
    """Creations and updates take two polls."""

    def poll(self, call, action, progress):
        return Done() if progress['round'] >= 2 else InProgress({'round': progress['round'] + 1}, poll_after_s=0.1)

    def _answer(self, call, physical_id):
        return InProgress({'round': 1}, physical_id, poll_after_s=0.1)


class Async(AsyncNeither):
    """The same, and it is asked."""

    find = Find.find


class Replaced(Find):
    """Updates begin, and then turn out to need a new object."""

    def update(self, call):
        self._cloud.note('update', call, call.physical_id)
        self._cloud.change(call, call.physical_id, value='half')
        raise ReplacementNeeded(f'{call.name} cannot be changed further')


@dataclass(frozen=True)
class RecordedProperties(StoredProperties):
    """`hold`: the call itself blocks until that gate is open; if it is `deaf`, even when it is told to stop.

    `takes`: seconds that a creation or a change takes, polled. `until`: it is polled until that gate is open. `stuck`:
    the call never comes back, whatever it is told: ``sleep``, ``socket`` or ``subprocess``.
    """

    hold: str = prop('', update_allowed=True)
    until: str = prop('', update_allowed=True)
    stuck: str = prop('', update_allowed=True)
    fail: bool = prop(False, update_allowed=True)
    deaf: bool = prop(False, update_allowed=True)


class Recorded(Neither):
    """See `RecordedProperties`; it is asked what a lost creation has made."""

    Properties = RecordedProperties
    poll_after_s: ClassVar[float | None] = GATE_S

    def poll(self, call, action, progress):
        waits = time.time() < progress['ready_at'] or not self._is_open(progress['until'])
        return InProgress(progress, poll_after_s=self.poll_after_s) if waits else Done()

    def find(self, call):
        known = self._cloud.made_for(call)
        return self._polled(call, known) if known is not None else None

    def cancel(self, call, action, progress):
        self._cloud.note('cancel', call, call.physical_id)

    def _last(self, call):
        """It is polled."""

    def _answer(self, call, physical_id):
        wanted = call.properties
        while not self._is_open(wanted.hold):
            if call.cancelled() and not wanted.deaf:
                return InProgress({'ready_at': 0.0, 'until': wanted.hold}, physical_id, poll_after_s=self.poll_after_s)
            time.sleep(GATE_S)
        if wanted.stuck:
            self._cloud.note('stuck', call, physical_id)
            _be_stuck(wanted.stuck)
        if wanted.fail:
            raise FinalFailure(f'{call.name} was told to fail', physical_id=physical_id)
        return self._polled(call, physical_id)

    def _polled(self, call, physical_id):
        wanted = call.properties
        if not wanted.takes and self._is_open(wanted.until):
            return Done(physical_id)
        progress = {'ready_at': time.time() + wanted.takes, 'until': wanted.until}
        return InProgress(progress, physical_id, poll_after_s=self.poll_after_s)

    def _is_open(self, gate):
        return not gate or self._cloud.is_open(gate)


class Counted(Recorded):
    """The engine says when it polls."""

    poll_after_s = None


def _be_stuck(how):
    """Block this thread; nothing that it is told is heard."""
    if how == 'socket':
        near, far = socket.socketpair()
        near.recv(1)  # nobody ever sends
        far.close()
    elif how == 'subprocess':
        subprocess.run(['sleep', str(STUCK_S)], check=False)
    else:
        ends = time.monotonic() + STUCK_S
        while time.monotonic() < ends:
            time.sleep(60)


TYPES = {
    'Test::Recorded': Recorded,
    'Test::Counted': Counted,
    'Kind::Find': Find,
    'Kind::Token': Enforcing,
    'Kind::Both': Both,
    'Kind::Neither': Neither,
    'Kind::Async': Async,
    'Kind::AsyncNeither': AsyncNeither,
    'Kind::Replaced': Replaced,
}
