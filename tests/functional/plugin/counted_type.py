"""The resource type `Test::Counted`: a cloud that refuses nothing, and counts.

Each `create` makes another object, whatever its token: if the engine asks twice for what was wanted once, both are
there to be seen. Below `FUNCTIONAL_REALITY`, ``counted/STACK/NAME/`` holds the objects of a resource, one file each,
named after the token; ``created`` has one line for each that was ever made; an open gate is a file in ``gates/``.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from convergence.resources.attributes import attr
from convergence.resources.contract import Done, FinalFailure, InProgress, ObjectNotFound, ResourceType
from convergence.resources.schema import prop

STUCK_S = 3600


@dataclass(frozen=True)
class CountedProperties:
    """`takes`: seconds that a creation or a change takes, polled. `until`: it is polled until that gate is open.

    `stuck`: the call never comes back, whatever it is told: ``sleep``, ``socket`` or ``subprocess``.
    """

    value: str = prop('', update_allowed=True)
    place: str = prop('')
    takes: float = prop(0.0, update_allowed=True)
    until: str = prop('', update_allowed=True)
    stuck: str = prop('', update_allowed=True)
    fail: bool = prop(False, update_allowed=True)


@dataclass(frozen=True)
class CountedAttributes:
    """What others may use."""

    value: str = attr('The stored value.')


class Counted(ResourceType[CountedProperties]):
    """See the module."""

    Properties = CountedProperties
    Attributes = CountedAttributes

    def __init__(self):
        self._root = Path(os.environ['FUNCTIONAL_REALITY'])

    def create(self, call):
        physical_id = f'{call.stack_name}/{call.name}/{_mark(call)}-{uuid.uuid4().hex[:12]}'
        self._store(call, physical_id)
        with (self._root / 'created').open('a', encoding='utf-8') as created:
            created.write(f'{call.stack_name} {call.name} {_mark(call)} {physical_id} {os.getpid()}\n')
        return self._go_on(call, physical_id)

    def update(self, call):
        if not self._object(call.physical_id).exists():
            raise ObjectNotFound(f'{call.physical_id} is not there')
        self._store(call, call.physical_id)
        return self._go_on(call, call.physical_id)

    def delete(self, call):
        if call.physical_id is None or not self._object(call.physical_id).exists():
            raise ObjectNotFound(f'{call.physical_id} is not there')
        self._object(call.physical_id).unlink(missing_ok=True)
        return Done()

    def poll(self, call, action, progress):
        waits = time.time() < progress['ready_at'] or not self._open(progress['until'])
        return InProgress(progress) if waits else Done()

    def find(self, call):
        made = sorted((self._root / 'counted' / call.stack_name / call.name).glob(f'{_mark(call)}-*.json'))
        return self._wait(call, f'{call.stack_name}/{call.name}/{made[0].stem}') if made else None

    def cancel(self, call, action, progress):
        with (self._root / 'cancelled').open('a', encoding='utf-8') as cancelled:
            cancelled.write(f'{call.stack_name} {call.name} {action.value}\n')

    def attribute(self, call, name):
        return call.properties.value

    def _go_on(self, call, physical_id):
        wanted = call.properties
        if wanted.stuck:
            self._note_stuck(call)
            _be_stuck(wanted.stuck)
        if wanted.fail:
            raise FinalFailure(f'{call.name} was told to fail', physical_id=physical_id)
        return self._wait(call, physical_id)

    def _wait(self, call, physical_id):
        wanted = call.properties
        if wanted.takes or wanted.until:
            return InProgress({'ready_at': time.time() + wanted.takes, 'until': wanted.until}, physical_id)
        return Done(physical_id)

    def _note_stuck(self, call):
        with (self._root / 'stuck').open('a', encoding='utf-8') as stuck:
            stuck.write(f'{call.stack_name} {call.name} {os.getpid()}\n')

    def _open(self, gate):
        return not gate or (self._root / 'gates' / gate).exists()

    def _object(self, physical_id):
        return self._root / 'counted' / f'{physical_id}.json'

    def _store(self, call, physical_id):
        path = self._object(physical_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {'id': physical_id, 'stack': call.stack_name, 'name': call.name, 'place': call.properties.place}
        temporary = path.with_suffix(f'.{uuid.uuid4().hex}')
        temporary.write_text(json.dumps({**content, 'value': call.properties.value}))
        temporary.replace(path)


def _mark(call):
    return hashlib.sha256(call.token.encode()).hexdigest()[:12]


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
