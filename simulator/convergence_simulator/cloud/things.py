"""The usual resource type of the simulated cloud; `convergence_simulator.cloud.sorts` has the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.attributes import AnyAttribute
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    Observed,
    OutcomeUnknown,
    ReplacementNeeded,
    ResourceType,
    TransientFailure,
)
from convergence.resources.schema import remaining
from convergence_simulator.cloud.reality import NOBODY, TYPE, Behaviour, Mishap, PhysicalObject, Question, Reality


@dataclass(frozen=True)
class ThingProperties:
    """Any properties."""

    values: dict[str, Json] = remaining(description='Any property.')  # noqa: RUF009 - makes a field


class AtRest(ResourceType[ThingProperties]):
    """Actions that do not change the properties of an object. Subclasses define how an action begins and ends."""

    _reality: Reality
    _begin: Callable[[Call[ThingProperties], Action], Mishap | None]
    _end: Callable[[Call[ThingProperties], Mishap | None, str], Answer]
    _existing: Callable[[Call[ThingProperties]], PhysicalObject]

    @override
    def check(self, call: Call[ThingProperties]) -> Answer:
        """Require that the object exists."""
        mishap = self._begin(call, Action.CHECK)
        return self._end(call, mishap, self._existing(call).id)

    @override
    def suspend(self, call: Call[ThingProperties]) -> Answer:
        """Suspend the object; it cannot be changed from now on."""
        return self._rest(call, Action.SUSPEND, asleep=True)

    @override
    def resume(self, call: Call[ThingProperties]) -> Answer:
        """Resume the object; it can be changed again."""
        return self._rest(call, Action.RESUME, asleep=False)

    def _rest(self, call: Call[ThingProperties], action: Action, *, asleep: bool) -> Answer:
        mishap = self._begin(call, action)
        thing = self._existing(call)
        thing.asleep = asleep
        self._reality.changed(action, thing)
        self._reality.pause('rested')
        return self._end(call, mishap, thing.id)


class Thing(AtRest):
    """An object in the simulated cloud. A property with a ``!`` in its name cannot be changed in place."""

    Properties = ThingProperties
    Attributes = AnyAttribute
    type_name: ClassVar[str] = TYPE

    def __init__(self, reality: Reality) -> None:
        self._reality = reality

    @override
    def create(self, call: Call[ThingProperties]) -> Answer:
        """Create the object. Its id is known when the call returns, so a crash before that loses the id."""
        reality = self._reality
        mishap = self._begin(call, Action.CREATE)
        thing = self._make(call)
        reality.pause('created')
        self._linger(call, mishap)
        if mishap is Mishap.FAILS_SILENTLY:
            # Only a type with `find` may deny the creation wrongly, because the engine searches once. Other types must
            # report an unknown outcome.
            tells = self.implements('find') and (call.name, Question.FIND) not in reality.answers
            error = FinalFailure if tells else OutcomeUnknown
            thing.denied = tells
            raise error(f'{call.name} fails, and does not say whether it was made')
        return self._end(call, mishap, thing.id)

    @override
    def update(self, call: Call[ThingProperties]) -> Answer:
        """Update the object in place."""
        mishap = self._begin(call, Action.UPDATE)
        thing = self._existing(call)
        if thing.asleep:
            raise FinalFailure(f'{call.name} cannot be changed while it is suspended')
        said = dict(call.previous.values) if call.previous is not None else None
        thing.before, thing.was = said if said != thing.properties else None, thing.properties
        thing.properties = dict(call.properties.values)
        self._reality.changed(Action.UPDATE, thing)
        self._reality.left(thing)
        self._reality.pause('updated')
        self._linger(call, mishap)
        if mishap is Mishap.REFUSES_AFTERWARDS:
            raise ReplacementNeeded(f'{call.name} was changed in part, but the rest cannot be changed in place')
        return self._end(call, mishap, thing.id)

    @override
    def delete(self, call: Call[ThingProperties]) -> Answer:
        """Delete the object."""
        mishap = self._begin(call, Action.DELETE)
        thing = self._existing(call)
        behaviour = self._reality.behaviours.get(call.name)
        if mishap is Mishap.HANGS:
            return InProgress({'hangs': True}, poll_after_s=60.0)
        if behaviour is not None and behaviour.takes_s:
            return self._takes(behaviour, mishap, thing.id)
        self._remove(thing)
        self._linger(call, mishap)
        if mishap is Mishap.FAILS_AFTERWARDS:
            raise FinalFailure(f'{call.name} fails after it was removed')
        return Done()

    @override
    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Return `Done` after the duration of the action; never for an action that hangs."""
        self._reality.pause('poll')
        until, now = progress.get('until'), self._reality.now()
        behaviour = self._reality.behaviours.get(call.name)
        if progress.get('hangs') and behaviour is not None and behaviour.mishap is Mishap.HANGS:
            return InProgress(progress, poll_after_s=60.0)
        if isinstance(until, (int, float)) and until > now:
            every_s = progress.get('every_s')
            left_s = until - now
            return InProgress(progress, poll_after_s=min(every_s, left_s) if isinstance(every_s, float) else left_s)
        if progress.get('refuses'):
            raise ReplacementNeeded(f'{call.name} cannot be changed in place after all')
        if progress.get('fails') and not self._reality.mended:
            raise FinalFailure(f'{action} of {call.name} fails after a while')
        if action in (Action.UPDATE, Action.DELETE):
            thing = self._existing(call)
            if action is Action.DELETE:
                self._remove(thing)
        return Done(call.physical_id)

    @override
    def find(self, call: Call[ThingProperties]) -> Answer | None:
        """Return the object that was created with the token."""
        unknown_s = self._reality.ask(call.name, Question.FIND)
        for thing in self._reality.objects.values():
            is_known = thing.denied or self._reality.now() - thing.made_at >= unknown_s
            if is_known and self._is_made_for(call, thing):
                return Done(thing.id)
        return None

    @override
    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """Return the properties of the object."""
        unknown_s = self._reality.ask(call.name, Question.OBSERVE)
        thing = self._existing(call)
        if self._reality.now() - thing.made_at < unknown_s:
            raise ObjectNotFound(f'{call.name} ({call.physical_id}) is not known yet')
        return Observed(healthy=not thing.ill, properties=dict(thing.properties))

    @override
    def needs_replacement(self, call: Call[ThingProperties]) -> bool:
        """Return True if a property with a ``!`` in its name changes."""
        before = call.previous.values if call.previous is not None else {}
        after = call.properties.values
        return any('!' in name and before.get(name) != after.get(name) for name in {*before, *after})

    @override
    def attribute(self, call: Call[ThingProperties], name: str) -> Json:
        """Return the property of this name."""
        self._reality.ask(call.name, Question.ATTRIBUTE)
        thing = self._reality.objects.get(call.physical_id or '')
        of_others = thing is not None and thing.stack_id == NOBODY
        return thing.properties.get(name) if thing is not None and of_others else call.properties.values.get(name)

    def _is_made_for(self, call: Call[ThingProperties], thing: PhysicalObject) -> bool:
        return thing.token == call.token

    def _make(self, call: Call[ThingProperties]) -> PhysicalObject:
        return self._reality.create(call.name, call.stack_id, call.token, call.properties.values, kind=self.type_name)

    @override
    def _begin(self, call: Call[ThingProperties], action: Action) -> Mishap | None:
        self._reality.pause('call')
        mishap = self._reality.goes_wrong(call.name, action)
        if mishap is Mishap.BLOCKS:
            self._reality.block(self._reality.behaviours[call.name].blocks_s)
        if mishap is Mishap.FAILS:
            raise FinalFailure(f'{action} of {call.name} fails')
        if mishap is Mishap.RAISES:
            raise SystemExit(f'{action} of {call.name} raises an unexpected exception')
        if mishap is Mishap.BUSY:
            raise TransientFailure(f'{call.name} is busy')
        if mishap is Mishap.NEEDS_REPLACEMENT and not self._reality.behaviours[call.name].takes_s:
            raise ReplacementNeeded(f'{call.name} cannot be changed in place after all')
        return mishap

    def _linger(self, call: Call[ThingProperties], mishap: Mishap | None) -> None:
        """Block the call after the action is done, if the mishap says so."""
        if mishap is Mishap.BLOCKS_AFTERWARDS:
            self._reality.block(self._reality.behaviours[call.name].blocks_s)

    @override
    def _end(self, call: Call[ThingProperties], mishap: Mishap | None, physical_id: str) -> Answer:
        behaviour = self._reality.behaviours.get(call.name)
        if mishap is Mishap.HANGS:
            return InProgress({'hangs': True}, physical_id=physical_id, poll_after_s=60.0)
        if behaviour is not None and behaviour.takes_s:
            return self._takes(behaviour, mishap, physical_id)
        if mishap is Mishap.FAILS_AFTERWARDS:
            raise FinalFailure(f'{call.name} fails after it was made', physical_id=physical_id)
        return Done(physical_id)

    def _takes(self, behaviour: Behaviour, mishap: Mishap | None, physical_id: str) -> Answer:
        progress: dict[str, Json] = {
            'until': self._reality.now() + behaviour.takes_s,
            'fails': mishap is Mishap.FAILS_AFTERWARDS,
            'refuses': mishap is Mishap.NEEDS_REPLACEMENT,
            'every_s': behaviour.every_s,
        }
        wait_s = behaviour.takes_s if behaviour.every_s is None else min(behaviour.every_s, behaviour.takes_s)
        return InProgress(progress, physical_id=physical_id, poll_after_s=wait_s)

    @override
    def _existing(self, call: Call[ThingProperties]) -> PhysicalObject:
        thing = self._reality.objects.get(call.physical_id or '')
        if thing is None:
            self._reality.told_gone.add(call.physical_id or '')
            raise ObjectNotFound(f'{call.name} ({call.physical_id}) does not exist')
        return thing

    def _of_token(self, call: Call[ThingProperties]) -> PhysicalObject:
        for thing in self._reality.objects.values():
            if thing.token == call.token:
                return thing
        raise ObjectNotFound(f'{call.name} (token {call.token}) does not exist')

    def _remove(self, thing: PhysicalObject) -> None:
        del self._reality.objects[thing.id]
        self._reality.harmed.pop(thing.id, None)
        self._reality.changed(Action.DELETE, thing)
        self._reality.pause('deleted')
