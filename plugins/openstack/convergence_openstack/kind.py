"""The common base of all types: an object of a collection is made with a label, polled, changed, found and removed.

A type declares its collection and the request key of each property; a few methods cover its differences. Another
process may repeat each step: a worker may die after any request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json, RetryPolicy
from convergence.resources.contract import (
    Answer,
    Call,
    Change,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    Observed,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.openstack.labels import LABEL, described, label, uuid_of
from convergence.resources.openstack.names import canonical
from convergence.resources.schema import exact_text
from convergence.resources.values import named
from convergence_openstack.lookups import Sort
from convergence_openstack.task import SHOWN, Task, at_work

PATIENCE = RetryPolicy(attempts=12, first_s=1, longest_s=30)
"""For two to four minutes: services are restarted, and quotas are raised by people."""

FIRST_PAUSE_S = 1.0
"""To the first question whether something is done; each further pause is longer by half, up to the longest."""

PAUSES_GROW = 1.5
MOST_POLL_S = 30.0

TRIED = 'tried'
"""Key in the private data: names of the properties that updates tried to change since the last success."""

Shown = Mapping[str, Any]
"""An object as its service shows it."""


class Place(StrEnum):
    """The part of an object that carries the token."""

    DESCRIPTION = 'description'
    METADATA = 'metadata'
    ID = 'id'


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of objects in a service.

    :param path: of the collection, behind the endpoint of the service, which contains the version.
    :param singular: the key of an object in bodies; empty if a body is the object.
    :param plural: the key of the list in answers.
    :param change: the HTTP method that changes an object.
    :param listing: the path of the list with all fields of objects, if it is another one.
    :param filters: True if the service can filter the list by description.
    :param microversion: of the API, if it has any.
    """

    service: str
    path: str
    singular: str
    plural: str
    place: Place = Place.DESCRIPTION
    change: str = 'PUT'
    listing: str = ''
    filters: bool = True
    microversion: str = ''


def of_network(path: str, singular: str) -> Collection:
    """A collection of Neutron."""
    return Collection('network', f'/{path}', singular, path.replace('-', '_'))


class CloudType(ResourceType[Any]):
    """An object of a collection.

    Class attributes:

    * `collection`: the collection of the objects.
    * `sorts`: the kind of object that the names at a path of properties mean.
    * `sent`: the request key of each property that is sent unchanged.
    * `later`: properties that take further requests, made by `put`, when the object exists.
    * `live`: properties whose live value an observation reads: the keys of `sent` with those names.
    * `removal_takes_time`: True if an object exists for a while after its removal has begun.
    * `first_pause_s`: seconds before the first poll of a new object.

    The progress of an action is a step: ``finish`` sends the requests that follow a creation, ``wait`` and ``gone``
    poll; other steps belong to single types.
    """

    collection: ClassVar[Collection]
    sorts: ClassVar[Mapping[str, Sort]] = {}
    sent: ClassVar[Mapping[str, str]] = {}
    later: ClassVar[tuple[str, ...]] = ()
    live: ClassVar[tuple[str, ...]] = ()
    removal_takes_time: ClassVar[bool] = False
    first_pause_s: ClassVar[float] = FIRST_PAUSE_S
    retry: ClassVar[RetryPolicy] = PATIENCE
    reference_of: ClassVar[tuple[str, ...] | None] = ()

    # --- what types say -----------------------------------------------------------------------------------------------

    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Return the problem of properties that do not fit together, as a sentence; None if there is none."""
        return None

    def body(self, task: Task) -> dict[str, Any]:
        """Return the body of the request that makes the object, without the label."""
        given = task.given
        body = {key: given[name] for name, key in self.sent.items() if given.get(name) is not None}
        if 'name' in self.sent and not given.get('name'):
            body['name'] = task.default_name()
        return body | {key: value for key, value in (given.get('value_specs') or {}).items() if value is not None}

    def cleared(self, task: Task, name: str) -> Json:
        """Return the value to send for a property that is not given any more."""
        return task.default_name() if name == 'name' else None

    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Send one of the properties `later`, as it is in ``task.given``; a repeated request changes nothing."""
        raise NotImplementedError(f'{type(self).__name__} has nothing to put')

    def is_built(self, shown: Shown) -> bool:
        """Return True if the object is ready.

        :raises FinalFailure: it will never be.
        """
        return True

    def is_broken(self, shown: Shown) -> bool:
        """Return True if the object exists and cannot be used."""
        return str(shown.get('status', '')).lower() == 'error'

    def replaces(self, changed: frozenset[str], before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """Return True if a change that the schema allows in place needs a new object."""
        return False

    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Bring an object to its desired properties. After an error, or an interruption, it is called again."""
        shown = self._put_changed(task, changed)
        for name in self.later:
            if name in changed:
                self.put(task, name, shown)
                SHOWN.drop(task.call.token)
        return self.updated(task)

    def go_on(self, task: Task, action: Action, progress: Mapping[str, Any]) -> Answer:
        """The next step of an action with steps of the type's own."""
        raise NotImplementedError(f'{type(self).__name__} has no step {progress["step"]}')

    def read(self, task: Task, shown: Shown, name: str) -> Json:
        """The value of an attribute."""
        return shown.get(name)

    # --- the contract -------------------------------------------------------------------------------------------------

    @override
    def validate(self, call: Call[Any]) -> None:
        """Check that the properties fit together and that the objects which they name exist."""
        with at_work(call, Action.CREATE) as task:
            self._read_properties(task)

    @override
    def plan(self, call: Call[Any]) -> Change | None:
        """See `ResourceType.plan`."""
        with at_work(call, Action.UPDATE) as task:
            self._read_properties(task)
            before, changed = self._difference(task)
            if not changed:
                return Change.NONE
            return Change.REPLACE if self.replaces(changed, before, task.given) else Change.IN_PLACE

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Make it; the label is in the request."""
        with at_work(call, Action.CREATE, is_repeatable=False) as task:
            self._read_properties(task)
            return self.make(task)

    @override
    def find(self, call: Call[Any]) -> Answer | None:
        """Return the object that carries the label."""
        with at_work(call, Action.CREATE) as task:
            found = call.physical_id or self.labelled(task)
            return None if found is None else InProgress({'step': 'finish'}, found, poll_after_s=0.0)

    @override
    def update(self, call: Call[Any]) -> Answer:
        """Change the properties that differ, and those that earlier attempts tried to change."""
        with at_work(call, Action.UPDATE) as task:
            self._read_properties(task)
            before, changed = self._difference(task)
            if not changed:
                return Done()
            if self.replaces(changed, before, task.given):
                raise ReplacementNeeded(f'{call.name}: {", ".join(sorted(changed))} can be had with a new object only')
            if task.data.get(TRIED) != sorted(changed):
                task.data[TRIED] = sorted(changed)
                task.record()
            return self.change(task, changed, before)

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """Remove the object; a missing one counts as success."""
        if call.physical_id is None:
            return Done()
        with at_work(call, Action.DELETE) as task:
            self.remove(task)
            return (
                InProgress({'step': 'gone', 'looks': 0}, poll_after_s=FIRST_PAUSE_S)
                if self.removal_takes_time
                else Done()
            )

    @override
    def poll(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> Answer:
        """The next step; see above."""
        with at_work(call, action) as task:
            match progress['step']:
                case 'finish':
                    return self._finish(task)
                case 'wait':
                    return self.waited(task, self.shown(task), looks_of(progress))
                case 'gone':
                    return self._gone(task, looks_of(progress))
                case _:
                    self._read_properties(task)
                    return self.go_on(task, action, progress)

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Return the live state of the object."""
        if call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no object')
        with at_work(call, Action.CHECK) as task:
            SHOWN.drop(call.token)
            shown = self.shown(task)
            wanted = named(call.properties, given=True)
            live = {name: shown.get(self.sent[name]) for name in self.live if name in wanted}
            return Observed(healthy=not self.is_broken(shown), properties=live)

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """Return an attribute from the last answer of the service, or from a new request."""
        if call.physical_id is None:
            return None
        with at_work(call, Action.CHECK) as task:
            shown = SHOWN.get(call.token) or self.shown(task)
            value = self.unlabelled(task, shown) if name == 'show' else self.read(task, shown, name)
            plain: Json = json.loads(json.dumps(value, default=str))
            return plain

    @override
    def canonical(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the properties with the ids of names that were resolved before."""
        return canonical('', properties, data)

    # --- steps --------------------------------------------------------------------------------------------------------

    def make(self, task: Task) -> Answer:
        """Request the object; if the service is overloaded, make sure that it made nothing, and retry later."""
        try:
            shown = self._asked_for(task)
        except HttpException as error:
            if error.status_code != 503:
                raise
            found = self.labelled(task)
            if found is not None:
                return InProgress({'step': 'finish'}, found, task.changed_data(), 0.0)
            task.cloud.is_unsure = False
            raise
        return self.made(task, shown)

    def made(self, task: Task, shown: Shown) -> Answer:
        """There is an object now."""
        if self._is_unfinished(task):
            return InProgress({'step': 'finish'}, str(shown['id']), task.changed_data(), 0.0)
        return self.waited(task, shown, 0)

    def waited(self, task: Task, shown: Shown, looks: int) -> Answer:
        """Return `Done` if the object is ready, otherwise poll again."""
        object_id, data = task.call.physical_id or str(shown['id']), task.changed_data()
        if self.is_built(shown):
            task.saw(shown)
            return Done(object_id, data)
        return InProgress({'step': 'wait', 'looks': looks + 1}, object_id, data, pause_s(looks, self.first_pause_s))

    def updated(self, task: Task) -> Answer:
        """Finish an update."""
        task.data[TRIED] = []
        return Done(data=task.data)

    def shown(self, task: Task) -> Shown:
        """The object as the service shows it now."""
        return task.saw(self.inner(self.ask(task, 'GET')))

    def remove(self, task: Task) -> None:
        """Have the service remove the object. That it is gone is no error."""
        task.cloud.remove(self.collection.service, f'{self.collection.path}/{task.object_id}')

    def ask(self, task: Task, method: str, behind: str = '', body: Any = None) -> Any:
        """A request about the object, or about a part of it."""
        place = self.collection
        options: dict[str, Any] = {'microversion': place.microversion} if place.microversion else {}
        return task.cloud.ask(place.service, method, f'{place.path}/{task.object_id}{behind}', body, **options)

    def inner(self, answer: Any) -> Shown:
        """The object in an answer."""
        shown: Shown = answer[self.collection.singular] if self.collection.singular else answer
        return shown

    def unlabelled(self, task: Task, shown: Shown) -> Shown:
        """The object without our label, of which users know nothing."""
        if shown.get('description') == label(task.call.token):
            return {**shown, 'description': ''}
        metadata = shown.get('metadata')
        if isinstance(metadata, Mapping) and LABEL in metadata:
            return {**shown, 'metadata': {key: value for key, value in metadata.items() if key != LABEL}}
        return shown

    def _read_properties(self, task: Task) -> None:
        problem = self.refuse(task.resolve(self.sorts))
        if problem:
            raise FinalFailure(f'{task.call.type_name} {task.call.name}: {problem}')

    def _difference(self, task: Task) -> tuple[dict[str, Any], frozenset[str]]:
        """Return the applied properties, and the names of properties that differ now or that earlier attempts tried to
        change.
        """
        # Some names were resolved when they were applied, others just now.
        before = canonical('', canonical('', named(task.call.previous), task.call.data), task.data)
        tried = task.data.get(TRIED) or ()
        after = task.given
        differing = {name for name in after if exact_text(before.get(name)) != exact_text(after[name])}
        return dict(before), frozenset(differing | (set(tried) & set(after)))

    def _asked_for(self, task: Task) -> Shown:
        place, body = self.collection, self.body(task)
        if place.place is Place.DESCRIPTION:
            body['description'] = described(body.get('description'), task.call.token)
        elif place.place is Place.METADATA:
            body['metadata'] = {**(body.get('metadata') or {}), LABEL: task.call.token}
        else:
            body.setdefault('id', uuid_of(task.call.token))
        return self.inner(self.post(task, {place.singular: body} if place.singular else body))

    def post(self, task: Task, body: Any) -> Any:
        """Send the request that makes the object."""
        version = self.collection.microversion
        options: dict[str, Any] = {'microversion': version} if version else {}
        return task.cloud.ask(self.collection.service, 'POST', self.collection.path, body, **options)

    def labelled(self, task: Task) -> str | None:
        """The id of the object that carries the label."""
        place = self.collection
        if place.place is Place.ID:
            object_id = uuid_of(task.call.token)
            return object_id if task.cloud.there(place.service, f'{place.path}/{object_id}') is not None else None
        listing = place.listing or place.path
        if place.place is Place.METADATA:
            for each in task.cloud.listed(place.service, listing, place.plural):
                if (each.get('metadata') or {}).get(LABEL) == task.call.token:
                    return str(each['id'])
            return None
        wanted = described(self.told(named(task.call.properties)), task.call.token)
        params = {'description': wanted} if place.filters else {}
        for each in task.cloud.listed(place.service, listing, place.plural, **params):
            if each.get('description') == wanted:
                return str(each['id'])
        return None

    def told(self, given: Mapping[str, Any]) -> str | None:
        """Return the user's own description of the object."""
        specs = given.get('value_specs') or {}
        said = specs.get('description') or (given.get('description') if 'description' in self.sent else None)
        return said or None

    def _is_unfinished(self, task: Task) -> bool:
        told = self.collection.place is Place.DESCRIPTION and self.told(task.given)
        return bool(told) or any(task.given.get(name) for name in self.later)

    def _finish(self, task: Task) -> Answer:
        """Send the requests that follow the creation. Those that were sent before are repeated."""
        self._read_properties(task)
        shown = None
        told = self.told(task.given) if self.collection.place is Place.DESCRIPTION else None
        if told:
            shown = self._changed(task, {'description': told})
        later = [name for name in self.later if task.given.get(name)]
        shown = shown or self.shown(task)
        for name in later:
            self.put(task, name, shown)
        answer = self.waited(task, shown, 0)
        if later:
            SHOWN.drop(task.call.token)
        return answer

    def _put_changed(self, task: Task, changed: frozenset[str]) -> Shown | None:
        given = task.given
        body: dict[str, Any] = {
            key: self.cleared(task, name) if given[name] is None else given[name]
            for name, key in self.sent.items()
            if name in changed
        }
        if 'value_specs' in changed:
            body |= given.get('value_specs') or {}
        return self._changed(task, body) if body else None

    def _changed(self, task: Task, body: Mapping[str, Any]) -> Shown:
        return task.saw(self.inner(self.ask(task, self.collection.change, body={self.collection.singular: body})))

    def _gone(self, task: Task, looks: int) -> Answer:
        try:
            shown = self.shown(task)
        except HttpException as error:
            if error.status_code == 404:
                return Done()
            raise
        if self.is_broken(shown) or str(shown.get('status', '')).lower() == 'error_deleting':
            raise FinalFailure(
                f'{task.call.type_name} {task.call.name}: the service could not remove {task.object_id} '
                f'({shown.get("status")}); see its log, then delete again'
            )
        return InProgress({'step': 'gone', 'looks': looks + 1}, poll_after_s=pause_s(looks))


def looks_of(progress: Mapping[str, Any]) -> int:
    """Return the number of earlier polls."""
    return int(progress.get('looks', 0))


def pause_s(looks: int, first_s: float = FIRST_PAUSE_S) -> float:
    """Return the seconds to the next poll."""
    return min(first_s * PAUSES_GROW ** min(looks, 20), MOST_POLL_S)
