"""The base class of plugins of the field's established style: methods that they may call, and default handlers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from convergence.core.model import Json
from convergence.resources.contract import Call


@dataclass(frozen=True, slots=True)
class Snippet:
    """The new definition, as ``handle_update`` gets it."""

    name: str
    resource_type: str
    values: Mapping[str, Any]
    metadata: Json

    def properties(self, schema: Any = None, context: Any = None) -> Mapping[str, Any]:
        """The desired properties, with defaults."""
        return self.values


class Handlers:
    """The base that `convergence.resources.adapter` puts below a plugin's class.

    `properties` maps each name of the schema to its value; `stack` has `id` and `name`.
    """

    properties: Mapping[str, Any]
    resource_id: str | None

    def begin(self, call: Call[Any], properties: Mapping[str, Any]) -> None:
        """Take over what a call says. Stands in for the constructor."""
        self.name = call.name
        self.id = call.resource_id
        self.uuid = call.resource_id
        self.stack = SimpleNamespace(id=call.stack_id, name=call.stack_name, project_id=call.project_id)
        self.properties = properties
        self.resource_id = call.physical_id
        self.cancelled = call.cancelled
        self._metadata = call.metadata
        self._before: dict[str, Json] = dict(call.data)
        self._data: dict[str, Json] = dict(call.data)
        self._token = call.token
        self._record = call.record

    def resource_id_set(self, physical_id: str | None) -> None:
        """Say which physical object this is; stored at once, with the private data that there are."""
        self.resource_id = physical_id
        if physical_id is not None:
            self._record(physical_id, self.changed_data())

    def physical_resource_name(self) -> str:
        """A name for the object, the same in every call, different from all others."""
        return f'{self.stack.name}-{self.name}-{hashlib.sha256(self._token.encode()).hexdigest()[:12]}'

    def data(self) -> dict[str, Json]:
        """Private data of the plugin, as last set."""
        return dict(self._data)

    def data_set(self, key: str, value: Json, redact: bool = False) -> None:
        """Store private data with the resource. All of them are secret, also without `redact`."""
        self._data[key] = value

    def data_delete(self, key: str) -> bool:
        """Remove private data; whether there was any."""
        return self._data.pop(key, None) is not None

    def changed_data(self) -> dict[str, Json] | None:
        """All private data if it has changed, otherwise None."""
        return dict(self._data) if self._data != self._before else None

    def metadata_get(self) -> Json:
        """The metadata of the template."""
        return self._metadata

    def get_reference_id(self) -> Json:
        """Return the value of ``get_resource``."""
        return self.resource_id

    def needs_replace_with_prop_diff(
        self, changed: set[str], after: Mapping[str, Any], before: Mapping[str, Any]
    ) -> bool:
        """Return True if a change that the schema allows in place needs a new object."""
        return False

    def needs_replace_failed(self) -> bool | None:
        """Return True if the object cannot be used. None: not known."""
        return None

    def __getattr__(self, name: str) -> Any:
        # Handlers and checks that a plugin does not define have nothing to do, and are complete.
        if name in _NOTHING_TO_DO:
            return lambda *arguments: None
        if name in _COMPLETE:
            return lambda *arguments: True
        if name == '_resolve_attribute':
            return lambda attribute: None
        raise AttributeError(f'{type(self).__name__} has no {name}')


_NOTHING_TO_DO = frozenset({'handle_create', 'handle_update', 'handle_delete'})
_COMPLETE = frozenset(
    f'check_{action}_complete' for action in ('create', 'update', 'delete', 'check', 'suspend', 'resume')
)
