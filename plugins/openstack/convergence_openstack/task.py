"""One call of one resource: the desired properties, the private data, and the services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from convergence.core.model import Action, Json
from convergence.resources.contract import Call, FinalFailure
from convergence.resources.openstack.names import NAMES
from convergence.resources.values import named
from convergence_openstack.cloud import Cloud
from convergence_openstack.errors import failure_of
from convergence_openstack.lookups import JUST_S, Recent, Sort

SHOWN = Recent(JUST_S)
"""Objects as services showed them last, by the token of their resource."""


@dataclass
class Task:
    """The subject of a call. Made with `at_work`.

    :ivar given: the desired properties by their names in templates, with ids in place of names; None: not given.
    :ivar data: the private data, which may be changed.
    """

    call: Call[Any]
    cloud: Cloud
    data: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def object_id(self) -> str:
        """The id of the object, which there is."""
        assert self.call.physical_id is not None
        return self.call.physical_id

    def resolve(self, sorts: Mapping[str, Sort]) -> dict[str, Any]:
        """Read the desired properties, and store the ids of names.

        :param sorts: the kind of object that the names at a path of properties mean; paths leave out indexes of lists.
        :raises FinalFailure: no object has a name.
        """
        meant: dict[str, dict[str, str]] = {}
        given: Any = named(self.call.properties)
        for path, sort in sorts.items():
            try:
                given = self._resolved(given, path.split('.'), sort, meant.setdefault(path, {}))
            except FinalFailure as error:
                raise FinalFailure(f'{self.call.type_name} {self.call.name}: {path}: {error}') from None
        known = {path: ids for path, ids in meant.items() if ids}
        if known or NAMES in self.data:
            self.data[NAMES] = known
        self.given = given
        return self.given

    def record(self, physical_id: str | None = None) -> None:
        """Have the private data stored now, and the id of the object."""
        self.call.record(physical_id, self.data)

    def changed_data(self) -> dict[str, Json] | None:
        """The private data, if they have changed."""
        return self.data if self.data != dict(self.call.data) else None

    def default_name(self) -> str:
        """The name of an object that the template gives none: the same in every call."""
        return f'{self.call.stack_name}-{self.call.name}-{sha256(self.call.token.encode()).hexdigest()[:12]}'

    def saw(self, shown: Mapping[str, Any]) -> Mapping[str, Any]:
        """Cache the object for the next reads of its attributes."""
        SHOWN.put(self.call.token, shown)
        return shown

    def _resolved(self, value: Any, path: list[str], sort: Sort, meant: dict[str, str]) -> Any:
        if isinstance(value, list):
            return [self._resolved(each, path, sort, meant) for each in value]
        if not path:
            if not isinstance(value, str) or not value:
                return value
            found = self.cloud.id_of(sort, value)
            if found != value:
                meant[value] = found
            return found
        if isinstance(value, Mapping) and path[0] in value:
            return {**value, path[0]: self._resolved(value[path[0]], path[1:], sort, meant)}
        return value


@contextmanager
def at_work(call: Call[Any], action: Action, *, is_repeatable: bool = True) -> Iterator[Task]:
    """Act for a call; errors of services become failures of the contract.

    :param is_repeatable: True if the whole may be repeated, after any part of it was done. Otherwise an error that may
        have left an object says so.
    """
    cloud = Cloud(call)
    if action is not Action.CHECK:
        SHOWN.drop(call.token)
    try:
        yield Task(call, cloud, dict(call.data))
    except Exception as error:
        unsure = not is_repeatable and (cloud.is_unsure or cloud.made > 0)
        raise failure_of(error, action, f'{call.type_name} {call.name}'.strip(), is_unsure=unsure) from error
