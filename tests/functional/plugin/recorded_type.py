"""The resource type `Test::Recorded`: its objects are files, each call leaves a note, and gates hold calls up.

`FUNCTIONAL_REALITY` names the directory: ``objects/`` is what really exists, ``calls/`` what was done and by which
process, ``gates/`` which gates are open. So a test sees reality with its own eyes, not through the engine.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from convergence.resources.attributes import attr
from convergence.resources.contract import Done, FinalFailure, InProgress, ObjectNotFound, ResourceType
from convergence.resources.schema import prop

POLL_S = 0.05


@dataclass(frozen=True)
class RecordedProperties:
    """`hold`: the call itself blocks until that gate is open. `until`: the action is polled until that gate is open.

    `deaf`: a call that blocks goes on although it is told to stop.
    """

    value: str = prop('', update_allowed=True)
    place: str = prop('')
    hold: str = prop('', update_allowed=True)
    until: str = prop('', update_allowed=True)
    fail: bool = prop(False, update_allowed=True)
    deaf: bool = prop(False, update_allowed=True)


@dataclass(frozen=True)
class RecordedAttributes:
    """What others may use."""

    value: str = attr('The stored value.')


class Recorded(ResourceType[RecordedProperties]):
    """See the module."""

    Properties = RecordedProperties
    Attributes = RecordedAttributes

    def __init__(self):
        self._root = Path(os.environ['FUNCTIONAL_REALITY'])

    def create(self, call):
        physical_id = hashlib.sha256(call.token.encode()).hexdigest()[:16]
        self._store(call, physical_id)
        self._note(call, 'create', physical_id)
        return self._go_on(call, physical_id)

    def update(self, call):
        self._store(call, call.physical_id)
        self._note(call, 'update', call.physical_id)
        return self._go_on(call, None)

    def delete(self, call):
        path = self._object(call.physical_id)
        if not path.exists():
            raise ObjectNotFound(f'{call.physical_id} is not there')
        self._note(call, 'delete', call.physical_id)
        path.unlink(missing_ok=True)
        return Done()

    def poll(self, call, action, progress):
        return Done() if self._open(progress['until']) else InProgress(progress, poll_after_s=POLL_S)

    def find(self, call):
        physical_id = hashlib.sha256(call.token.encode()).hexdigest()[:16]
        return self._go_on(call, physical_id) if self._object(physical_id).exists() else None

    def cancel(self, call, action, progress):
        self._note(call, 'cancel', call.physical_id)

    def attribute(self, call, name):
        return call.properties.value

    def _go_on(self, call, physical_id):
        while call.properties.hold and not self._open(call.properties.hold):
            if call.cancelled() and not call.properties.deaf:
                return InProgress({'until': call.properties.hold}, physical_id, poll_after_s=POLL_S)
            time.sleep(POLL_S)
        if call.properties.fail:
            raise FinalFailure(f'{call.name} was told to fail', physical_id=physical_id)
        if call.properties.until and not self._open(call.properties.until):
            return InProgress({'until': call.properties.until}, physical_id, poll_after_s=POLL_S)
        return Done(physical_id)

    def _open(self, gate):
        return (self._root / 'gates' / gate).exists()

    def _object(self, physical_id):
        return self._root / 'objects' / f'{physical_id}.json'

    def _store(self, call, physical_id):
        properties = call.properties
        content = {'id': physical_id, 'stack': call.stack_name, 'name': call.name, 'value': properties.value}
        self._write(self._object(physical_id), {**content, 'place': properties.place})

    def _note(self, call, action, physical_id):
        content = {'action': action, 'stack': call.stack_name, 'name': call.name, 'id': physical_id}
        self._write(self._root / 'calls' / f'{uuid.uuid4()}.json', {**content, 'process': os.getpid()})

    def _write(self, path, content):
        temporary = path.with_suffix(f'.{uuid.uuid4().hex}')
        temporary.write_text(json.dumps(content))
        temporary.replace(path)
