"""Resource types that do what the classes of Heat do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from heat.common.exception import EntityNotFound
from heat.engine.resource import PollDelay, Resource, UpdateReplace
from typing_extensions import override

from convergence.concurrency import Lock
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
    PluginFailure,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.openstack.implied import AFTER
from convergence.resources.openstack.names import canonical
from convergence.resources.openstack.notified import NOTIFIED
from convergence_heat.bridged import Bridged, bridged
from convergence_heat.carried import carried, restored
from convergence_heat.changing import changes, updated
from convergence_heat.describing import described
from convergence_heat.errors import may_pass, status_of
from convergence_heat.finders import BY_KEY, LATER, NAMED, SETS, found, told
from convergence_heat.halfway import OF_CLASSES
from convergence_heat.handover import HandsOver
from convergence_heat.labels import OF_TYPES, Place
from convergence_heat.operation import Operation, operation

LACKING = 'its creation was interrupted, and what belongs to it may be missing'
NAMED_IN = frozenset({'identity'})
"""Services in which there is no other object of the same name."""

_BEGUN = 'begun'
_LOOKED = '$looked'
"""Key in the private data: no object had this key before, so the present one is ours."""

MOST_PAUSE_S = 300.0
"""The longest that a service is left alone because it says so."""

FIRST_PAUSE_S = 1.0
"""To the first question whether something is done. Services need as long for a volume, and for no server less."""

PAUSES_GROW = 1.5
"""Growth of the pauses between polls: the end of an action is noticed after at most one and a half times its duration.
"""

MOST_POLL_S = 30.0

TAKE_TIME = frozenset(
    {
        ('OS::Nova::Server', Action.CREATE),
        ('OS::Cinder::Volume', Action.CREATE),
    }
)
"""Actions that are never complete right after the service has accepted them; the first poll waits."""

PATIENCE = RetryPolicy(attempts=12, first_s=1, longest_s=30)
"""For two to four minutes: services are restarted, and quotas are raised by people."""

Handler = Callable[[Operation], Any]


class HeatType(ResourceType[Any]):
    """A class of Heat behind the contract. Made with `heat_type`.

    The progress of an action is a step, and what that step needs: ``begun`` is followed by the class's own check,
    ``again`` by the handler, ``adopt`` and ``take`` by the rest of a creation that was found, ``remake`` and
    ``removing`` by a new creation in its place.
    """

    plugin: ClassVar[type[Any]]
    name: ClassVar[str]
    retry: ClassVar[RetryPolicy] = PATIENCE

    @override
    def validate(self, call: Call[Any]) -> None:
        """``validate``, with the constraints that query services."""
        with self._at_work(call, Action.CREATE) as at_work:
            problem = at_work.one.validate()
            if problem:
                raise FinalFailure(f'{self.name} {call.name}: {problem}')

    @override
    def create(self, call: Call[Any]) -> Answer:
        """``handle_create``. An object with a key of its own is searched before."""
        with self._at_work(call, Action.CREATE) as at_work:
            if self.name in BY_KEY:
                there = BY_KEY[self.name](at_work.seeker(), at_work.one.properties)
                if there is not None:
                    return self._taken(at_work, there)
                at_work.one.keep_in_row(_LOOKED)
            try:
                return self._made(at_work)
            except Exception as error:
                if self.name in BY_KEY and not at_work.doings.made and 400 <= (status_of(error) or 0) < 500:
                    # What will be there is none of ours: it was refused to us.
                    at_work.one.keep_in_row(_LOOKED, False)
                raise

    @override
    def plan(self, call: Call[Any]) -> Change | None:
        """Return Heat's decision about the difference, before it does anything."""
        with self._at_work(call, Action.UPDATE, call.previous) as at_work:
            try:
                *_, changed = changes(at_work)
            except UpdateReplace:
                return Change.REPLACE
            return Change.IN_PLACE if changed else Change.NONE

    @override
    def update(self, call: Call[Any]) -> Answer:
        """``handle_update`` with what Heat finds to have changed."""
        with self._at_work(call, Action.UPDATE, call.previous) as at_work:
            return self._handled(at_work, Action.UPDATE, updated)

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """``handle_delete``. An object with a key of its own whose creation was not confirmed is searched first."""
        with self._at_work(call, Action.DELETE) as at_work:
            if call.physical_id is None and call.data.get(_LOOKED):
                at_work.one.resource_id = BY_KEY[self.name](at_work.seeker(), at_work.one.properties)
            return self._handled(at_work, Action.DELETE, lambda work: work.one.handle_delete())

    @override
    def poll(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> Answer:
        """The next step; see above."""
        step = progress['step']
        if step == 'again':
            return self._again(call, action)
        properties = call.previous if action is Action.UPDATE else None
        looks = int(str(progress.get('looks', 0))) + 1
        with self._at_work(call, action, properties) as at_work:
            if step == 'take':
                return self._taken(at_work, str(call.physical_id))
            if step == 'adopt':
                at_work.one.found_again()
                self._tidy(at_work, str(call.physical_id))
                return self._checked(at_work, action, call.physical_id)
            if step == 'remake':
                cookie = at_work.one.handle_delete()
                return self._remade(at_work, cookie)
            if step == 'removing':
                return self._remade(at_work, restored(progress['cookie']))
            return self._checked(at_work, action, restored(progress['cookie']), looks)

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Return the live state of the object as the class shows it, or None if the class cannot."""
        if call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no object')
        own = self.plugin.needs_replace_failed is not Resource.needs_replace_failed
        try:
            with self._at_work(call, Action.CHECK) as at_work:
                if self.name in BY_KEY:
                    if call.previous is not None and 'handle_update' in vars(self.plugin):
                        return Observed()  # the object of the new properties does not exist yet; an update makes it
                    there = BY_KEY[self.name](at_work.seeker(), at_work.one.properties)
                    if there is None:
                        raise ObjectNotFound(f'{self.name} {call.physical_id} is not there')
                    return Observed()
                if not self.plugin.entity or at_work.one.get_live_resource_data() is None:
                    return None
                return Observed(healthy=not (own and at_work.one.needs_replace_failed()))
        except ObjectNotFound:
            raise
        except PluginFailure as failure:
            if isinstance(failure.__cause__, EntityNotFound):
                raise ObjectNotFound(str(failure)) from failure
            return None

    @override
    def canonical(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """See `convergence.resources.openstack.names`."""
        return canonical(self.name, properties, data)

    @override
    def reference_id(self, call: Call[Any]) -> str | None:
        """``get_reference_id``."""
        with operation(self._bridged, self.name, call, Action.CHECK, looks=True) as at_work:
            reference = at_work.one.get_reference_id()
            return None if reference is None else str(reference)

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """``FnGetAtt``."""
        if name == 'show' and not self.plugin.entity and '_show_resource' not in vars(self.plugin):
            return None  # There is no object of its own to show.
        with operation(self._bridged, self.name, call, Action.CHECK, looks=True) as at_work:
            at_work.one.action, at_work.one.status = 'CREATE', 'COMPLETE'
            value: Json = json.loads(json.dumps(at_work.one.FnGetAtt(name), default=_plain))
            return value

    # --- steps ----------------------------------------------------------------------------------------------------

    @property
    def _bridged(self) -> type[Any]:
        return _bridged_once(self.plugin)

    def _at_work(self, call: Call[Any], action: Action, properties: Any = None) -> Any:
        return operation(self._bridged, self.name, call, action, properties)

    def _made(self, at_work: Operation) -> Answer:
        """Make the object."""
        return self._handled(at_work, Action.CREATE, lambda work: work.one.handle_create())

    def _handled(self, at_work: Operation, action: Action, handler: Handler) -> Answer:
        """Call a handler, then its check."""
        try:
            cookie = handler(at_work)
        except UpdateReplace:
            raise
        except Exception:
            doings = at_work.doings
            nothing_done = not (doings.made or doings.unsure) and at_work.one.resource_id == at_work.call.physical_id
            if doings.retry_after_s is None or not nothing_done:
                raise
            return InProgress({'step': 'again'}, poll_after_s=min(doings.retry_after_s, MOST_PAUSE_S))
        if action is Action.CREATE:
            at_work.one.keep_names(at_work.one.properties, at_work.call.properties)
        if at_work.doings.tidying and at_work.one.resource_id is not None:
            at_work.call.record(at_work.one.resource_id, at_work.one.changed_data())
            self._tidy(at_work, at_work.one.resource_id)
        return self._checked(at_work, action, cookie)

    def _again(self, call: Call[Any], action: Action) -> Answer:
        """Do once more what a service had no time for."""
        step: Callable[[Call[Any]], Answer] = getattr(self, action.value.lower())
        return step(call)

    def _checked(self, at_work: Operation, action: Action, cookie: Any, looks: int = 0) -> Answer:
        """Run the check of the class.

        :param looks: number of earlier polls. If the service does not answer the first one, the next poll repeats it;
            later that is a failure.
        """
        one, pause_s = at_work.one, min(FIRST_PAUSE_S * PAUSES_GROW**looks, MOST_POLL_S)
        check = getattr(one, f'check_{action.value.lower()}_complete', None)
        begins = looks == 0 and (self.name, action) in TAKE_TIME
        try:
            complete = not begins and (check(cookie) if callable(check) else True)
        except PollDelay as delay:
            complete, pause_s = False, float(delay.period)
        except Exception as error:
            # The handler has done its part and must not repeat it: the next poll runs the check.
            if not (looks == 0 and may_pass(error, one._default_client_plugin())):
                raise
            complete = False
        if complete:
            if action is Action.UPDATE:
                one.has_changed()
            return Done(one.resource_id, one.changed_data())
        progress = {'step': _BEGUN, 'cookie': carried(cookie, f'what {self.name} carries'), 'looks': looks}
        return InProgress(progress, one.resource_id, one.changed_data(), pause_s)

    # --- after a crash ----------------------------------------------------------------------------------------------

    def _found(self, call: Call[Any]) -> Answer | None:
        with self._at_work(call, Action.CREATE) as at_work:
            given = at_work.one.properties
            if self.name in BY_KEY:
                if not call.data.get(_LOOKED):
                    return None
                there = BY_KEY[self.name](at_work.seeker(), given)
                if there is None and self.name in NAMED:
                    return None
                # A repeated creation has the same effect: its object is indistinguishable from that of another row.
                step = 'again' if there is None else 'take'
                return InProgress({'step': step}, there, poll_after_s=0.0)
            there = call.physical_id or found(at_work.seeker(), self.name, call, given)
            if there is None:
                return None
            step = 'adopt'
            if any(given.get(each) for each in LATER & set(given.props)):
                # Another one beside it has another token: however often a worker dies, one token has one object. Where
                # a name is the key that cannot be, and the service makes nothing twice.
                if OF_TYPES[self.name].service not in NAMED_IN:
                    raise ReplacementNeeded(LACKING, physical_id=there)
                step = 'remake'
            return InProgress({'step': step}, there, poll_after_s=0.0)

    def _taken(self, at_work: Operation, there: str) -> Answer:
        """Continue with an object that has our key: it is ours if the key was free before our creation."""
        one = at_work.one
        if not at_work.call.data.get(_LOOKED):
            raise FinalFailure(
                f'{self.name} {there} exists already, and was not made for this resource; remove it, name another one, '
                'or take it into the stack with external_id'
            )
        one.resource_id = there
        if self.name == 'OS::Nova::KeyPair' and not one.properties['public_key']:
            # Its private key was in the lost answer.
            one.handle_delete()
            one.resource_id = None
            return self._made(at_work)
        cookie = one.properties['volume_id'] if self.name == 'OS::Cinder::VolumeAttachment' else there
        return self._checked(at_work, Action.CREATE, cookie)

    def _remade(self, at_work: Operation, cookie: Any) -> Answer:
        """Remove an incomplete object, then begin again."""
        one = at_work.one
        check = getattr(one, 'check_delete_complete', None)
        try:
            gone = check(cookie) if callable(check) else True
        except Exception as error:
            if not one._default_client_plugin().is_not_found(error):
                raise
            gone = True
        if not gone:
            return InProgress({'step': 'removing', 'cookie': carried(cookie, self.name)}, at_work.call.physical_id)
        one.resource_id = None
        return self._made(at_work)

    def _tidy(self, at_work: Operation, physical_id: str) -> None:
        """Take our token off what a user has described himself."""
        collection = OF_TYPES.get(self.name)
        said = told(at_work.one.properties)
        if collection is None or said is None or collection.place is not Place.DESCRIPTION:
            return
        body = {collection.singular: {'description': said}}
        at_work.seeker().change(collection, physical_id, body)


class _Finds(HeatType):
    @override
    def find(self, call: Call[Any]) -> Answer | None:
        """Return the object that was made for the call; its creation continues with it."""
        return self._found(call)


class _Checks(HeatType):
    @override
    def check(self, call: Call[Any]) -> Answer:
        """``handle_check``."""
        with self._at_work(call, Action.CHECK) as at_work:
            return self._handled(at_work, Action.CHECK, lambda work: work.one.handle_check())


class _Suspends(HeatType):
    @override
    def suspend(self, call: Call[Any]) -> Answer:
        """``handle_suspend``."""
        with self._at_work(call, Action.SUSPEND) as at_work:
            return self._handled(at_work, Action.SUSPEND, lambda work: work.one.handle_suspend())


class _Resumes(HeatType):
    @override
    def resume(self, call: Call[Any]) -> Answer:
        """``handle_resume``."""
        with self._at_work(call, Action.RESUME) as at_work:
            return self._handled(at_work, Action.RESUME, lambda work: work.one.handle_resume())


def heat_type(name: str, plugin: type[Any]) -> HeatType:
    """The resource type that does what a class of Heat does.

    :param name: of the type in templates.
    :raises TypeError: it declares something that has no form here.
    """
    bases: list[type[HeatType]] = [
        base
        for handler, base in (('check', _Checks), ('suspend', _Suspends), ('resume', _Resumes))
        if hasattr(plugin, f'handle_{handler}')
    ]
    if name in OF_TYPES or name in BY_KEY:
        bases.append(_Finds)
    gives_way = plugin.prepare_for_replace is not Resource.prepare_for_replace and name not in NAMED
    more: dict[str, Any] = {
        'plugin': plugin,
        'name': name,
        'token_enforced': name in SETS,
        'delete_before_create': name in NAMED,
    }
    if name in BY_KEY:
        more['create_ambiguity_s'] = None
    if name in AFTER:
        more['implied'] = lambda self, own, template: AFTER[name](own, template)
    if name in NOTIFIED:
        more['notified'] = lambda self, event_type, payload: NOTIFIED[name](event_type, payload)
    kind = described(name, plugin, (*([HandsOver] if gives_way else []), *(bases or [HeatType])), more)
    assert isinstance(kind, HeatType)
    return kind


_lock = Lock()
_made: dict[type[Any], type[Any]] = {}


def _bridged_once(plugin: type[Any]) -> type[Any]:
    with _lock:
        if plugin not in _made:
            _made[plugin] = bridged(plugin, OF_CLASSES.get(plugin.__name__, Bridged))
        return _made[plugin]


def _plain(value: Any) -> Any:
    """Return JSON for other values: maps that query a service for each value, times, sets."""
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value) if isinstance(value, (set, frozenset)) else str(value)
