"""The resource types of the simulated cloud, one for each sort of service.

Services offer different help after a crash. Some find an object by its token; some refuse a second creation with the
same token; some do neither. Some let objects be observed, some do not. Some report the id of an object late, or never.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    ForeignObject,
    InProgress,
    ObjectNotFound,
    Observed,
    OutcomeUnknown,
    TransientFailure,
)
from convergence.values import replace
from convergence_simulator.cloud.reality import Behaviour, Mishap, PhysicalObject, Question
from convergence_simulator.cloud.things import Thing, ThingProperties


class Unfindable(Thing):
    """Cannot find an object by its token; an object with a known id can be observed."""

    type_name = 'Convergence::Simulated::Unfindable'

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if the type had no such method."""
        return hook != 'find' and super().implements(hook)


class Blind(Unfindable):
    """Offers no query at all."""

    type_name = 'Convergence::Simulated::Blind'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return None: objects are not observable."""
        return None


class Unobservable(Thing):
    """Finds objects by token, but cannot observe them."""

    type_name = 'Convergence::Simulated::Unobservable'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return None: objects are not observable."""
        return None


class Enforced(Unfindable):
    """Answers a second creation with the same token with the object of the first one; cannot find objects by token."""

    type_name = 'Convergence::Simulated::Enforced'
    token_enforced = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class Both(Thing):
    """Finds objects by token, and creates only one object with each token."""

    type_name = 'Convergence::Simulated::Both'
    token_enforced = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class EnforcedBlind(Enforced):
    """Offers no query: only a second creation with the same token returns the object."""

    type_name = 'Convergence::Simulated::EnforcedBlind'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return None: objects are not observable."""
        return None


class Cancellable(Thing):
    """Stops an action in progress on request."""

    type_name = 'Convergence::Simulated::Cancellable'

    @override
    def cancel(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> None:
        """Stop the action. The object stays in its present state."""
        self._reality.ask(call.name, Question.CANCEL)


class Keeper(Thing):
    """Keeps copies of its objects for snapshots."""

    type_name = 'Convergence::Simulated::Keeper'

    @override
    def snapshot(self, call: Call[ThingProperties], snapshot_id: str) -> Answer:
        """Copy the object. Repeated calls with the same id create one copy only."""
        mishap = self._begin(call, Action.SNAPSHOT)
        thing = self._existing(call)
        self._reality.kept[snapshot_id, thing.id] = dict(thing.properties)
        self._reality.pause('kept')
        return self._end(call, mishap, thing.id)

    @override
    def delete_snapshot(self, call: Call[ThingProperties], snapshot_id: str, kept: Mapping[str, Json]) -> None:
        """Remove a copy."""
        self._reality.pause('forget')
        self._reality.kept.pop((snapshot_id, call.physical_id or ''), None)


class Listener(Thing):
    """Completes its creation when it receives a signal."""

    type_name = 'Convergence::Simulated::Listener'
    takes_signals = True

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Create the object, and wait for a signal."""
        answer = super().create(call)
        return InProgress({'listens': True}, call.physical_id or answer.physical_id, poll_after_s=30.0)

    @override
    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Return `Done` after a signal has arrived."""
        if not progress.get('listens'):
            return super().poll(call, action, progress)
        self._reality.pause('poll')
        if call.signals().get(call.name):
            return Done(call.physical_id)
        return InProgress(progress, poll_after_s=30.0)


class NamedLater(Thing):
    """Reports the id of an object only at the end of its creation."""

    type_name = 'Convergence::Simulated::NamedLater'

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Begin the creation without an id."""
        answer = super().create(call)
        return replace(answer, physical_id=None) if isinstance(answer, InProgress) else InProgress({}, poll_after_s=1.0)

    @override
    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Return the id at the end of the creation."""
        answer = super().poll(call, action, progress)
        if action is not Action.CREATE or isinstance(answer, InProgress):
            return answer
        return Done(self._of_token(call).id)


class EnforcedLater(NamedLater, Enforced):
    """Reports the id late, and cannot find objects: only a second creation with the same token returns the id."""

    type_name = 'Convergence::Simulated::EnforcedLater'


class Chosen(Thing):
    """Chooses a key for each object, which is the only way to find it. The key is recorded before it is used."""

    type_name = 'Convergence::Simulated::Chosen'

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Choose and record a key, then create the object."""
        if 'key' in call.data:
            return super().create(call)
        data = {'key': f'{call.token} {self._reality.now()}'}
        call.record(data=data)
        return super().create(replace(call, data=data))

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        thing = super()._make(call)
        thing.key = str(call.data['key'])
        return thing

    @override
    def _is_made_for(self, call: Call[ThingProperties], thing: PhysicalObject) -> bool:
        return bool(thing.key) and thing.key == call.data.get('key')


class Prepared(Chosen):
    """Chooses the key in a separate step before the creation."""

    type_name = 'Convergence::Simulated::Prepared'

    @override
    def prepare(self, call: Call[ThingProperties]) -> Mapping[str, Json]:
        """Choose the key."""
        self._reality.pause('prepare')
        return {'key': f'{call.token} {self._reality.now()}'}

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Create the object with the chosen key."""
        return Thing.create(self, call)


class Exclusive(Thing):
    """Allows one object of a name only: the old object must be deleted before the new one is created."""

    type_name = 'Convergence::Simulated::Exclusive'
    delete_before_create = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        for other in self._reality.objects.values():
            if (other.kind, other.name, other.stack_id) == (self.type_name, call.name, call.stack_id):
                # An unusable object that was retained blocks its replacement.
                self._reality.mishaps += other.ill
                raise ForeignObject(f'{other.id} has the name already')
        return super()._make(call)


class Addressed(Thing):
    """Gives an address to one object of a name, and an object needs it: the old object must release it first."""

    type_name = 'Convergence::Simulated::Addressed'
    _taken: type[Exception] = TransientFailure

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        self._be_alone(call, '')
        return super()._make(call)

    @override
    def update(self, call: Call[ThingProperties]) -> Answer:
        """Update in place, and take the address back if it was lost."""
        self._take(call)
        return super().update(call)

    @override
    def release_for_replacement(self, call: Call[ThingProperties]) -> None:
        """Release the address."""
        self._begin(call, Action.UPDATE)
        thing = self._existing(call)
        call.record(data={'has': 'an address'})
        thing.has_address = False
        self._reality.changed(Action.SIGNAL, thing)
        self._reality.pause('gave way')

    @override
    def reclaim(self, call: Call[ThingProperties]) -> None:
        """Take the address back."""
        self._begin(call, Action.UPDATE)
        self._take(call)
        self._reality.pause('took back')

    def _take(self, call: Call[ThingProperties]) -> None:
        thing = self._existing(call)
        self._be_alone(call, thing.id)
        thing.has_address = True
        self._reality.changed(Action.SIGNAL, thing)

    def _be_alone(self, call: Call[ThingProperties], own_id: str) -> None:
        for other in self._reality.objects.values():
            is_named = (other.kind, other.name, other.stack_id) == (self.type_name, call.name, call.stack_id)
            if is_named and other.has_address and other.id != own_id:
                raise self._taken(f'{other.id} has the address')


class EnforcedAddressed(Addressed):
    """Has addresses, and cannot find objects: only a second creation with the same token returns the object.

    If another object has the address, no object was created with the token.
    """

    type_name = 'Convergence::Simulated::EnforcedAddressed'
    token_enforced = True
    _taken = ForeignObject

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if the type had no such method."""
        return hook != 'find' and super().implements(hook)

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class Nameless(Thing):
    """Creates objects without id, which are found by their token."""

    type_name = 'Convergence::Simulated::Nameless'

    @override
    def find(self, call: Call[ThingProperties]) -> Answer | None:
        """Return `Done` without an id if the object exists, None otherwise."""
        return Done() if super().find(call) is not None else None

    @override
    def reference_id(self, call: Call[ThingProperties]) -> str | None:
        """Return the id that the rules of the simulator use."""
        return self._of_token(call).id

    @override
    def _existing(self, call: Call[ThingProperties]) -> PhysicalObject:
        return self._of_token(call)

    @override
    def _end(self, call: Call[ThingProperties], mishap: Mishap | None, physical_id: str) -> Answer:
        if mishap is Mishap.FAILS_AFTERWARDS and not self._reality.behaviours[call.name].takes_s:
            raise OutcomeUnknown(f'{call.name} fails after it was made')
        return replace(super()._end(call, mishap, physical_id), physical_id=None)

    @override
    def _takes(self, behaviour: Behaviour, mishap: Mishap | None, physical_id: str) -> Answer:
        return replace(super()._takes(behaviour, mishap, physical_id), physical_id=None)


class Traceless(Nameless):
    """Creates objects without id, and cannot find an object until its creation is known to have succeeded."""

    type_name = 'Convergence::Simulated::Traceless'

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if the type had no such method."""
        return hook != 'find' and super().implements(hook)


class EnforcedNameless(Nameless):
    """Creates objects without id, and cannot find them; a second creation with the same token creates nothing."""

    type_name = 'Convergence::Simulated::EnforcedNameless'
    token_enforced = True

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if the type had no such method."""
        return hook != 'find' and super().implements(hook)

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


SORTS: Mapping[str, type[Thing]] = {
    kind.__name__: kind
    for kind in (
        *(Thing, Unfindable, Blind, Unobservable, Enforced, Cancellable, Keeper, Listener),
        *(NamedLater, Nameless, Traceless, Chosen, Prepared, Exclusive, Addressed),
        *(Both, EnforcedBlind, EnforcedLater, EnforcedNameless, EnforcedAddressed),
    )
}
"""The types, by their names in scenarios."""
ENFORCED = frozenset(
    kind.type_name for kind in SORTS.values() if kind.token_enforced and kind.implements is not Thing.implements
)
"""Names of types that cannot find objects, but create only one object with each token."""
NEVER_FOUND = frozenset({Unfindable.type_name, Blind.type_name, Traceless.type_name})
"""Names of types that cannot find objects: the result of an interrupted creation stays unknown."""
WITHOUT_ID = frozenset({Nameless.type_name, Traceless.type_name, EnforcedNameless.type_name})
"""Names of types whose objects have no id."""
ADDRESSED = frozenset({Addressed.type_name, EnforcedAddressed.type_name})
"""Names of types that give an address to one object of a name."""
UNSEEN = frozenset({Blind.type_name, Unobservable.type_name, EnforcedBlind.type_name, *WITHOUT_ID})
"""Names of types whose objects cannot be observed."""
