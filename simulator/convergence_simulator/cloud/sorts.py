"""The resource types of the simulated cloud: one for each sort of service that there is.

Services differ in what can be asked of them after a crash: some find an object by its token, some refuse a second
creation under one token, some do neither; some show what is there, some do not; some name their objects late, or never.
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
    """Nobody can ask for what was made under a token; what has an id can be looked at."""

    type_name = 'Convergence::Simulated::Unfindable'

    @override
    def implements(self, hook: str) -> bool:
        """As if `find` were not written."""
        return hook != 'find' and super().implements(hook)


class Blind(Unfindable):
    """Nothing can be asked at all."""

    type_name = 'Convergence::Simulated::Blind'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Nobody can tell."""
        return None


class Unobservable(Thing):
    """Finds by token what it cannot look at."""

    type_name = 'Convergence::Simulated::Unobservable'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Nobody can tell."""
        return None


class Enforced(Unfindable):
    """The service answers a second creation under one token with the object of the first."""

    type_name = 'Convergence::Simulated::Enforced'
    token_enforced = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class Both(Thing):
    """Finds what was made under a token, and makes nothing else under it."""

    type_name = 'Convergence::Simulated::Both'
    token_enforced = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class EnforcedBlind(Enforced):
    """Of its objects nothing is known but what creating them again tells."""

    type_name = 'Convergence::Simulated::EnforcedBlind'

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Nobody can tell."""
        return None


class Cancellable(Thing):
    """Stops what it is doing when it is told to."""

    type_name = 'Convergence::Simulated::Cancellable'

    @override
    def cancel(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> None:
        """What was made so far stays; nothing more happens to it."""
        self._reality.ask(call.name, Question.CANCEL)


class Keeper(Thing):
    """Keeps copies of its objects."""

    type_name = 'Convergence::Simulated::Keeper'

    @override
    def snapshot(self, call: Call[ThingProperties], snapshot_id: str) -> Answer:
        """Under one id there is one copy of an object, however often it is asked for."""
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
    """Is up when somebody has said so."""

    type_name = 'Convergence::Simulated::Listener'
    takes_signals = True

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Make it, and wait."""
        answer = super().create(call)
        return InProgress({'listens': True}, call.physical_id or answer.physical_id, poll_after_s=30.0)

    @override
    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Done when a signal has come."""
        if not progress.get('listens'):
            return super().poll(call, action, progress)
        self._reality.pause('poll')
        if call.signals().get(call.name):
            return Done(call.physical_id)
        return InProgress(progress, poll_after_s=30.0)


class NamedLater(Thing):
    """Says only when it is made which object it is."""

    type_name = 'Convergence::Simulated::NamedLater'

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Begin to make it."""
        answer = super().create(call)
        return replace(answer, physical_id=None) if isinstance(answer, InProgress) else InProgress({}, poll_after_s=1.0)

    @override
    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Now it has an id."""
        answer = super().poll(call, action, progress)
        if action is not Action.CREATE or isinstance(answer, InProgress):
            return answer
        return Done(self._of_token(call).id)


class EnforcedLater(NamedLater, Enforced):
    """The same, and it cannot be asked for: only another creation under its token leads to it, in its time."""

    type_name = 'Convergence::Simulated::EnforcedLater'


class Chosen(Thing):
    """Its objects have keys of its own choice, and are asked for by these alone: each is recorded before it is used."""

    type_name = 'Convergence::Simulated::Chosen'

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Choose, record, make."""
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
    """The same, in a step of its own before the creation."""

    type_name = 'Convergence::Simulated::Prepared'

    @override
    def prepare(self, call: Call[ThingProperties]) -> Mapping[str, Json]:
        """Choose."""
        self._reality.pause('prepare')
        return {'key': f'{call.token} {self._reality.now()}'}

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Make what was chosen."""
        return Thing.create(self, call)


class Exclusive(Thing):
    """There can be one object only of a name: the old one has to go before another one is made."""

    type_name = 'Convergence::Simulated::Exclusive'
    delete_before_create = True

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        for other in self._reality.objects.values():
            if (other.kind, other.name, other.stack_id) == (self.type_name, call.name, call.stack_id):
                # One that is of no use any more, and was to be retained, stays in the way of its replacement.
                self._reality.mishaps += other.ill
                raise ForeignObject(f'{other.id} has the name already')
        return super()._make(call)


class Addressed(Thing):
    """Only one object of a name can have the address, and is of no use without: the one before gives it up first."""

    type_name = 'Convergence::Simulated::Addressed'
    _taken: type[Exception] = TransientFailure

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        self._be_alone(call, '')
        return super()._make(call)

    @override
    def update(self, call: Call[ThingProperties]) -> Answer:
        """Change it in place; whatever had happened to it, it is reached again afterwards."""
        self._take(call)
        return super().update(call)

    @override
    def release_for_replacement(self, call: Call[ThingProperties]) -> None:
        """It is not reached any more."""
        self._begin(call, Action.UPDATE)
        thing = self._existing(call)
        call.record(data={'has': 'an address'})
        thing.has_address = False
        self._reality.changed(Action.SIGNAL, thing)
        self._reality.pause('gave way')

    @override
    def reclaim(self, call: Call[ThingProperties]) -> None:
        """It is reached again."""
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
    """The same, and nobody can ask for it: only a second creation under its token tells what was made.

    Where another one has the address, that says that there is nothing under the token.
    """

    type_name = 'Convergence::Simulated::EnforcedAddressed'
    token_enforced = True
    _taken = ForeignObject

    @override
    def implements(self, hook: str) -> bool:
        """As if `find` were not written."""
        return hook != 'find' and super().implements(hook)

    @override
    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        try:
            return self._of_token(call)
        except ObjectNotFound:
            return super()._make(call)


class Nameless(Thing):
    """What it makes has no id: it is asked for by its token."""

    type_name = 'Convergence::Simulated::Nameless'

    @override
    def find(self, call: Call[ThingProperties]) -> Answer | None:
        """It is there, or it is not."""
        return Done() if super().find(call) is not None else None

    @override
    def reference_id(self, call: Call[ThingProperties]) -> str | None:
        """What the rules of the simulator know it by."""
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
    """What it makes has no id, and nobody can ask for it before it is known to be there."""

    type_name = 'Convergence::Simulated::Traceless'

    @override
    def implements(self, hook: str) -> bool:
        """As if `find` were not written."""
        return hook != 'find' and super().implements(hook)


class EnforcedNameless(Nameless):
    """What it makes has no id; nobody can ask for it, and a second creation under its token makes nothing."""

    type_name = 'Convergence::Simulated::EnforcedNameless'
    token_enforced = True

    @override
    def implements(self, hook: str) -> bool:
        """As if `find` were not written."""
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
"""The types, as scenarios call them."""
ENFORCED = frozenset(
    kind.type_name for kind in SORTS.values() if kind.token_enforced and kind.implements is not Thing.implements
)
"""Names of types whose objects nobody can ask for, but that make nothing twice under one token."""
NEVER_FOUND = frozenset({Unfindable.type_name, Blind.type_name, Traceless.type_name})
"""Names of types whose objects nobody can ask for: whether an interrupted creation made one cannot be known."""
WITHOUT_ID = frozenset({Nameless.type_name, Traceless.type_name, EnforcedNameless.type_name})
"""Names of types whose objects have no id."""
ADDRESSED = frozenset({Addressed.type_name, EnforcedAddressed.type_name})
"""Names of types of which only one object of a name can have its address."""
UNSEEN = frozenset({Blind.type_name, Unobservable.type_name, EnforcedBlind.type_name, *WITHOUT_ID})
"""Names of types at whose objects no observer can look."""
