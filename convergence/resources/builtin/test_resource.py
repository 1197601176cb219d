"""``OS::Heat::TestResource``: waits, fails and raises replacement as its properties say."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.waiting import Clock, physical_name, still_waiting, system_clock, wait
from convergence.resources.constraints import Range, custom
from convergence.resources.contract import Answer, Call, Done, FinalFailure, InProgress, ObjectNotFound, ResourceType
from convergence.resources.schema import prop
from convergence.resources.support import since

NOT_NEGATIVE = (Range(minimum=0),)


STEP_S = 1.0
"""Seconds between two polls of a wait: tests with this type expect polls."""
FOR_EVER: Mapping[str, Json] = {'until': 'cancelled'}
"""The progress of a wait that has no end of its own."""


@dataclass(frozen=True)
class ActionWait:
    """Seconds to wait in each action; less than 0: for ever. None leaves it to ``wait_secs``."""

    create: float | None = prop(None, update_allowed=True)
    update: float | None = prop(None, update_allowed=True)
    delete: float | None = prop(None, update_allowed=True)

    def of(self, action: Action) -> float | None:
        """The wait for `action`."""
        return {Action.CREATE: self.create, Action.UPDATE: self.update, Action.DELETE: self.delete}.get(action)


@dataclass(frozen=True)
class TestProperties:
    """See the descriptions of the fields."""

    value: str = prop('test_string', update_allowed=True, description='The value that is stored.')
    fail: bool = prop(False, update_allowed=True, description='Fail, after the wait, on create and update.')
    update_replace: bool = prop(False, update_allowed=True, description='A change of the value replaces the resource.')
    update_replace_value: str | None = prop(
        None, support=since('7.0.0'), description='A change of this replaces the resource.'
    )
    wait_secs: float = prop(
        0, update_allowed=True, description='Seconds to wait in each action; -1: until it is cancelled or times out.'
    )
    action_wait_secs: ActionWait | None = prop(
        None, update_allowed=True, description='Seconds to wait in particular actions.'
    )
    attr_wait_secs: float = prop(
        0,
        update_allowed=True,
        constraints=NOT_NEGATIVE,
        support=since('6.0.0'),
        description='Seconds by which the output is late. The create or update ends only when it can be read.',
    )
    constraint_prop_secs: float = prop(
        0,
        update_allowed=True,
        constraints=[custom('test_constr')],
        support=since('6.0.0'),
        description='Accepted for templates that have it. Validation here never waits.',
    )
    client_name: str = prop(
        '',
        update_allowed=True,
        description='Accepted for compatibility and ignored.',
    )
    entity_name: str = prop('', update_allowed=True, description='Name of the entity for the client.')


@dataclass(frozen=True)
class TestAttributes:
    """The attributes of a test resource."""

    output: Json = attr('The stored value.', of=('value',))


class TestResource(ResourceType[TestProperties]):
    """Does nothing real, slowly or wrongly: for trying out an engine."""

    __test__ = False  # Test runners would take the class for a test case.

    support = since('5.0.0')
    Properties = TestProperties
    Attributes = TestAttributes
    token_enforced = True
    create_ambiguity_s = 0.0

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock

    @override
    def create(self, call: Call[TestProperties]) -> Answer:
        """Store the value."""
        return self._begin(call, Action.CREATE, physical_name(call), {'value': call.properties.value})

    @override
    def update(self, call: Call[TestProperties]) -> Answer:
        """Store the new value, if it changed."""
        if call.previous is not None and call.previous.value == call.properties.value:
            return Done()
        return self._begin(call, Action.UPDATE, call.physical_id, {'value': call.properties.value})

    @override
    def delete(self, call: Call[TestProperties]) -> Answer:
        """Wait; there is nothing to remove."""
        if call.physical_id is None:
            return Done()
        return self._begin(call, Action.DELETE, None, None)

    @override
    def poll(self, call: Call[TestProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Continue to wait, then fail if the properties say so."""
        if progress == FOR_EVER:
            return InProgress(FOR_EVER)
        waiting = still_waiting(self._clock, progress, step_s=STEP_S)
        if waiting is not None:
            return waiting
        return self._end(call, action, call.physical_id, None)

    @override
    def needs_replacement(self, call: Call[TestProperties]) -> bool:
        """A new value replaces where ``update_replace`` says so."""
        previous = call.previous
        return call.properties.update_replace and previous is not None and previous.value != call.properties.value

    @override
    def attribute(self, call: Call[TestProperties], name: str) -> Json:
        """The stored value."""
        return call.data.get('value', call.properties.value)

    @override
    def check(self, call: Call[TestProperties]) -> Answer:
        """It is there if it has an id."""
        if call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no physical object')
        return Done()

    def _begin(
        self, call: Call[TestProperties], action: Action, physical_id: str | None, data: Mapping[str, Json] | None
    ) -> Answer:
        seconds = _wait_of(call.properties, action)
        if seconds < 0:
            return InProgress(FOR_EVER, physical_id, data)
        if seconds > 0:
            return wait(self._clock, seconds, physical_id, data, step_s=STEP_S)
        return self._end(call, action, physical_id, data)

    def _end(
        self, call: Call[TestProperties], action: Action, physical_id: str | None, data: Mapping[str, Json] | None
    ) -> Answer:
        if action is Action.DELETE:
            return Done()
        if call.properties.fail:
            # With the class that the field's tests of clients expect in the reason of the stack.
            raise FinalFailure(f'ValueError: Test Resource failed {call.name}', physical_id=physical_id)
        return Done(physical_id, data)


def _wait_of(properties: TestProperties, action: Action) -> float:
    particular = properties.action_wait_secs.of(action) if properties.action_wait_secs else None
    seconds = properties.wait_secs if particular is None else particular
    return seconds if seconds < 0 or action is Action.DELETE else seconds + properties.attr_wait_secs
