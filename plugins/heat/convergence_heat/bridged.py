"""A mixin for classes of Heat that stores their data in rows of Convergence instead of Heat's."""

from __future__ import annotations

import copy
import json
from typing import Any

from convergence.core.model import Json
from convergence.resources.contract import Call, TransientFailure
from convergence.resources.openstack.labels import uuid_of
from convergence.resources.openstack.names import NAMES
from convergence.resources.values import named
from convergence_heat.names import names_in
from convergence_heat.stack import EngineCalls

_METADATA = '$metadata'
_MEMORY = '$memory'
_GIVEN = '$given'
"""Key in the private data: data stored since the object began to release things for its replacement."""

_TRIED = '$tried'
"""Key in the private data: values that updates tried to set since the last success."""

REMEMBERED = ('_update_called', '_delete_called')
"""Attributes of instances that classes use from a handler to its check: those of Octavia."""


class Bridged:
    """The methods of Heat's Resource that would use its database, its events or its engine. See `bridged`.

    :ivar tried: values that earlier attempts tried to set since the last successful update: given values by property.
    """

    id: Any
    resource_id: str | None
    action: str
    status: str

    def begin(self, call: Call[Any], action: str) -> None:
        """Know the row that a call is about."""
        self._call = call
        self.id = call.resource_id
        self.uuid = uuid_of(call.token or call.resource_id)
        self.resource_id = call.physical_id
        self._kept = {key: copy.deepcopy(value) for key, value in call.data.items() if not key.startswith('$')}
        self._rsrc_metadata = copy.deepcopy(call.data.get(_METADATA, call.metadata)) or {}
        self._stored = dict(call.data)
        self._has_new_metadata = _METADATA in call.data
        self._names: Any = call.data.get(NAMES)
        self._given: Any = call.data.get(_GIVEN)
        self._gives = False
        tried: Any = call.data.get(_TRIED)
        self.tried: list[dict[str, Any]] = list(tried or ())
        self._tries: list[dict[str, Any]] | None = tried
        self.action, self.status = action, 'IN_PROGRESS'
        memory: Any = call.data.get(_MEMORY) or {}
        for name in REMEMBERED:
            if name in memory:
                setattr(self, name, memory[name])

    def changed_data(self) -> dict[str, Json] | None:
        """The private data, if it has changed."""
        memory = {name: getattr(self, name) for name in REMEMBERED if name in vars(self)}
        data: dict[str, Any] = dict(self._kept)
        data |= {_METADATA: self._rsrc_metadata} if self._has_new_metadata else {}
        data |= {_MEMORY: memory} if memory else {}
        data |= {NAMES: self._names} if self._names else {}
        data |= {_GIVEN: self._given} if self._given is not None else {}
        data |= {_TRIED: self._tries} if self._tries is not None else {}
        plain: dict[str, Json] = json.loads(json.dumps(data))
        return plain if plain != self._stored else None

    def keep_names(self, properties: Any, given: Any) -> None:
        """Keep what names stand for in properties that have been applied.

        :param properties: as Heat has them, and `given` as the call has.
        """
        self._names = names_in(properties, named(given, given=True))

    def begin_to_change(self, wanted: dict[str, Any]) -> None:
        """Store the values that an update tries to set, until an update has succeeded."""
        if wanted and wanted not in self.tried:
            self._tries = [*self.tried, wanted]
            self.store_data()

    def has_changed(self) -> None:
        """An update has succeeded."""
        if self._tries:
            self._tries = []  # no data at all would not be stored

    def found_again(self) -> None:
        """Continue with the object of an interrupted creation."""

    def keep_in_row(self, key: str, value: bool = True) -> None:
        """Have a key in the stored private data from now on, until the action is done."""
        self._stored[key] = value
        self._call.record(None, self._stored)

    def begin_giving_way(self) -> None:
        """Keep from now on what the object had before it gave it up, and not what a second call finds of it."""
        self._gives, self._given = True, self._given or []

    def has_taken_back(self) -> None:
        """Restore the stored data after a reclaim."""
        for key in self._given or ():
            self._kept.pop(key, None)
        self._given = []  # no data at all would not be stored

    def store_data(self) -> None:
        """Have the private data stored now."""
        data = self.changed_data()
        if data is not None:
            self._call.record(None, data)
            self._stored = data

    def resource_id_set(self, inst: str | bool | None) -> None:
        """Know the id of the object from now on.

        :raises TransientFailure: it is False, by which the class for attachments says that the service was not ready.
        """
        if inst is False:
            raise TransientFailure(f'{self._call.name} cannot be made at the moment: what it needs is still in use')
        self.resource_id = str(inst) if inst is not None else None

    def data(self) -> dict[str, Any]:
        """Return the data stored with the resource."""
        return dict(self._kept)

    def data_set(self, key: str, value: Any, redact: bool = False) -> None:
        """Store private data, sealed. During a release for a replacement it is stored at once, and only once."""
        if not self._gives:
            self._kept[key] = value
        elif key not in self._given:
            self._given = [*self._given, key]
            self._kept[key] = value
            self.store_data()

    def data_delete(self, key: str) -> bool:
        """Keep it no longer; whether it was there."""
        return self._kept.pop(key, None) is not None

    def metadata_get(self, refresh: bool = False) -> Any:
        """The metadata, as the template or the class has it."""
        return self._rsrc_metadata

    def metadata_set(self, metadata: Any, merge_metadata: Any = None) -> None:
        """Have other metadata from now on."""
        merged = merge_metadata(metadata, self._rsrc_metadata) if merge_metadata else metadata
        self._rsrc_metadata, self._has_new_metadata = merged, True

    def state_set(self, action: str, status: str, reason: str = '', lock: Any = None) -> None:
        """Be in a state, for as long as the call takes."""
        self.action, self.status, self.status_reason = action, status, reason

    def store(self, *arguments: Any, **options: Any) -> None:
        """Store nothing: answers of calls are stored by the engine."""

    def _add_event(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: the engine records events."""

    def store_attributes(self) -> None:
        """Store nothing."""

    def clear_stored_attributes(self) -> None:
        """Drop the attributes that were read."""
        self.attributes.reset_resolved_values()  # type: ignore[attr-defined]

    def rpc_client(self) -> EngineCalls:
        """Return the engine calls that a class may make."""
        return EngineCalls(self._call)


def bridged(plugin: type[Any], before: type[Bridged] = Bridged) -> type[Any]:
    """Return a class of Heat that works on rows of Convergence.

    :param before: the mixin that comes first.
    """
    return type(plugin.__name__, (before, plugin), {'__module__': plugin.__module__, '__doc__': plugin.__doc__})
