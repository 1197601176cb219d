"""The resource types of the simulated cloud: one for each behaviour of a real service.

Services differ in the questions that they answer after a crash. Some find an object by its token, some refuse a second
creation under one token, some do neither. Some show the state of their objects, some do not. Some give an object its id
late, or never.
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
    """A type that cannot find objects by token, but observes objects by id."""

    type_name = 'Convergence::Simulated::Unfindable'

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if this type did not define it."""
        return hook != 'find' and super().implements(hook)


class Blind(Unfindable):
    """A type that can neither find nor observe its objects."""

    type_name = 'Convergence::Simulated::Blind'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return None: the state is unknown."""
        return None


class Unobservable(Thing):
    """A type that finds its objects by token, but cannot observe them."""

    type_name = 'Convergence::Simulated::Unobservable'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return None: the state is unknown."""
        return None


class Enforced(Unfindable):
    """A type whose service answers a second creation under one token with the first object."""

    type_name = 'Convergence::Simulated::Enforced'
    token_enforced = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class Both(Thing):
    """A type that finds its objects by token, and creates one object per token only."""

    type_name = 'Convergence::Simulated::Both'
    token_enforced = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class EnforcedBlind(Enforced):
    """A type without `find` and `observe`. Only a repeated creation under a token shows its object."""

    type_name = 'Convergence::Simulated::EnforcedBlind'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return None: the state is unknown."""
        return None


class Cancellable(Thing):
    """A type that stops a running action on request."""

    type_name = 'Convergence::Simulated::Cancellable'

    @override
    def cancel(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> None:
        """Stop the action. The object stays in its present state."""
        self._reality.ask(call.name, Question.CANCEL)


class Keeper(Thing):
    """A type that keeps copies of its objects."""

    type_name = 'Convergence::Simulated::Keeper'

    @override
    def snapshot(self, call: Call[ThingProperties], snapshot_id: str) -> Answer:
        """Keep a copy of an object. Repeated calls with one snapshot id keep one copy."""
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
    """A type whose creation is complete when a signal arrives."""

    type_name = 'Convergence::Simulated::Listener'
    takes_signals = True

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Create it, and wait for a signal."""
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
    """A type that returns the physical id only at the end of the creation."""

    type_name = 'Convergence::Simulated::NamedLater'

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Begin the creation, without an id."""
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
    """The same without `find`: only a second creation under its token leads to the object, when it exists."""

    type_name = 'Convergence::Simulated::EnforcedLater'


class Chosen(Thing):
    """A type that chooses a key for each object and records it before it uses it. `find` needs this key."""

    type_name = 'Convergence::Simulated::Chosen'

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Choose a key, record it, create the object."""
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
    """The same, but chooses the key in a step of its own before the creation."""

    type_name = 'Convergence::Simulated::Prepared'

    @override
    def prepare(self, call: Call[ThingProperties]) -> Mapping[str, Json]:
        """Choose a key."""
        self._reality.pause('prepare')
        return {'key': f'{call.token} {self._reality.now()}'}

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Create the object under the key that `prepare` chose."""
        return Thing.create(self, call)


class Exclusive(Thing):
    """A type that allows one object of a name only: the old one is deleted before a new one is created."""

    type_name = 'Convergence::Simulated::Exclusive'
    delete_before_create = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        for other in self._reality.objects.values():
            if (other.kind, other.name, other.stack_id) == (self.type_name, call.name, call.stack_id):
                # A retained object that is unusable still blocks its replacement.
                self._reality.mishaps += other.ill
                raise ForeignObject(f'{other.id} has the name already')
        return super()._make(call)


class Addressed(Thing):
    """A type whose address belongs to one object of a name. The old object releases it before its replacement is
    created."""

    type_name = 'Convergence::Simulated::Addressed'
    _taken: type[Exception] = TransientFailure

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        self._be_alone(call, '')
        return super()._make(call)

    @override
    def update(self, call: Call[ThingProperties]) -> Answer:
        """Change it in place. It has the address afterwards, even if it had released it."""
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
        """Take the address again."""
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
    """The same without `find`: only a second creation under its token shows its object.

    If another object has the address, the refusal proves that no object has the token.
    """

    type_name = 'Convergence::Simulated::EnforcedAddressed'
    token_enforced = True
    _taken = ForeignObject

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if this type did not define it."""
        return hook != 'find' and super().implements(hook)

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class Nameless(Thing):
    """A type whose objects have no id. The token finds them."""

    type_name = 'Convergence::Simulated::Nameless'

    @override
    def find(self, call: Call[ThingProperties]) -> Answer | None:
        """Return `Done` if the object exists, else None."""
        return Done() if super().find(call) is not None else None

    @override
    def reference_id(self, call: Call[ThingProperties]) -> str | None:
        """The id by which the rules of the simulator know the object."""
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
    """A type whose objects have no id and cannot be found by token."""

    type_name = 'Convergence::Simulated::Traceless'

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if this type did not define it."""
        return hook != 'find' and super().implements(hook)


class EnforcedNameless(Nameless):
    """A type whose objects have no id and cannot be found. A second creation under one token creates nothing."""

    type_name = 'Convergence::Simulated::EnforcedNameless'
    token_enforced = True

    @override
    def implements(self, hook: str) -> bool:
        """Return False for `find`, as if this type did not define it."""
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
"""The types by their names in scenarios."""
ENFORCED = frozenset(
    kind.type_name for kind in SORTS.values() if kind.token_enforced and kind.implements is not Thing.implements
)
"""Names of types without `find` that create one object per token only."""
NEVER_FOUND = frozenset({Unfindable.type_name, Blind.type_name, Traceless.type_name})
"""Names of types without `find`: after an interrupted creation, it stays unknown if there is an object."""
WITHOUT_ID = frozenset({Nameless.type_name, Traceless.type_name, EnforcedNameless.type_name})
"""Names of types whose objects have no id."""
ADDRESSED = frozenset({Addressed.type_name, EnforcedAddressed.type_name})
"""Names of types whose address belongs to one object of a name."""
UNSEEN = frozenset({Blind.type_name, Unobservable.type_name, EnforcedBlind.type_name, *WITHOUT_ID})
"""Names of types whose objects an observer cannot observe."""
