"""The cases every resource type has to pass.

``conformance(fixture)`` gives a list of cases; each has a name and can be run. With pytest::

    @pytest.mark.parametrize('case', conformance(Fixture(Motto, {'text': 'hello'})), ids=str)
    def test_motto(case):
        case.run()
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from typing_extensions import override

from convergence.core.model import Action, Change, Json
from convergence.errors import StackValidationFailed
from convergence.resources.attributes import describe_attributes
from convergence.resources.comparison import compare
from convergence.resources.contract import (
    FinalFailure,
    InProgress,
    ObjectNotFound,
    Outline,
    PluginFailure,
    ReplacementNeeded,
    Signal,
)
from convergence.resources.schema import PropertySchema
from convergence.testing.faults import Boundary, Moment
from convergence.testing.fixture import Fixture, Recovery
from convergence.testing.life import ActionFailed, Life, Loss, MadeAnew, carried

WATCHER_LIMIT_S = 30.0
"""Seconds in which a watcher must report an event. Generous, because test machines are slow."""


@dataclass(frozen=True)
class Case:
    """One check of a type.

    :param check: raises if the type does not conform; an AssertionError names the fault.
    """

    name: str
    check: Callable[[Fixture], None]
    fixture: Fixture

    def run(self) -> None:
        """Try it.

        :raises AssertionError: the type does not conform.
        """
        self.check(self.fixture)

    @override
    def __str__(self) -> str:
        return self.name


def conformance(fixture: Fixture) -> list[Case]:
    """The cases that apply to `fixture`, each on objects of its own."""
    checks = [described, refuses_wrong_properties, lives, is_deleted_twice, is_deleted_before_it_exists]
    if fixture.recovery is Recovery.EXPECTED:
        checks += [is_found_after_a_crash, survives_lost_answers]
    if fixture.make().implements('validate'):
        checks.append(is_validated)
    if fixture.make().implements('plan'):
        checks.append(is_planned)
    if fixture.make().implements('prepare'):
        checks.append(is_prepared)
    if fixture.make().token_enforced:
        checks.append(is_created_twice)
    if fixture.changed is not None:
        checks += [compares, is_updated_twice]
    if fixture.replaced is not None:
        checks.append(is_replaced)
    if fixture.replaced is not None and fixture.make().delete_before_create:
        checks.append(makes_room)
    if fixture.replaced is not None and fixture.make().implements('release_for_replacement'):
        checks.append(gives_way)
    if fixture.make().inventory() is not None:
        checks.append(is_listed)
    if fixture.make().implements('watcher'):
        checks.append(is_watched)
    if fixture.make().takes_signals:
        checks.append(is_signalled)
    if fixture.taken is not None:
        checks.append(leaves_others_alone)
    if fixture.boundaries:
        checks.append(survives_faults)
    return [Case(check.__name__, check, fixture) for check in checks]


def described(fixture: Fixture) -> None:
    """The schema and the attributes can be shown as JSON."""
    kind = fixture.make()
    json.dumps(PropertySchema.of(kind.Properties).describe(), allow_nan=False)
    json.dumps(describe_attributes(kind), allow_nan=False)
    alone = Outline('thing', 'Conformance::Type', fixture.properties)
    _assert(
        set(kind.implied(alone, {'thing': alone})) <= {'thing'},
        'implied() names a resource that is not in the template',
    )


def refuses_wrong_properties(fixture: Fixture) -> None:
    """Unknown properties, missing ones and those of `Fixture.wrong` are refused before any hook is called."""
    schema = PropertySchema.of(fixture.make().Properties)
    schema.parse(fixture.properties)
    wrong = list(fixture.wrong)
    if schema.rest is None:
        wrong.append({**fixture.properties, 'no_such_property': 1})
    for name, declared in schema.properties.items():
        if declared.required:
            wrong.append({key: value for key, value in fixture.properties.items() if key != name})
    for mapping in wrong:
        try:
            schema.parse(mapping)
        except StackValidationFailed:
            continue
        raise AssertionError(f'the schema accepts {mapping}')


def lives(fixture: Fixture) -> None:
    """Create, read, delete; each in as many polls as it takes."""
    life = Life(fixture)
    try:
        life.create()
        _assert(life.physical_id is not None, 'a create must end with a physical id')
        life.attributes(fixture.properties)
        life.kind().reference_id(life.call(fixture.properties))
        life.kind().check(life.call(fixture.properties))
        life.kind().observe(life.call(fixture.properties))
    finally:
        life.delete()
    _assert_nothing_left(fixture)
    try:
        observed = life.kind().observe(life.call(fixture.properties))
    except ObjectNotFound:
        return
    _assert(observed is None or not observed.healthy, 'observe() still sees the object after its delete')


def is_watched(fixture: Fixture) -> None:
    """A watcher reports an object that is deleted, and none that is not watched; it can be closed."""
    life, told = Life(fixture), set[str]()
    watcher = life.kind().watcher(told.add)
    if watcher is None:  # not on this machine
        return
    try:
        try:
            life.create()
            watcher.watch([life.physical_id or ''])
            watcher.watch([life.physical_id or ''])
            watched = {life.physical_id}
        finally:
            life.delete()
        ends = time.monotonic() + WATCHER_LIMIT_S
        while told != watched and time.monotonic() < ends:
            time.sleep(0.01)
        _assert(bool(told), 'the watcher does not report a deleted object')
        _assert(told == watched, f'the watcher reports objects that are not watched: {sorted(told)}')
        watcher.watch([])
    finally:
        watcher.close()


def is_validated(fixture: Fixture) -> None:
    """If `validate` is written: it accepts valid properties, refuses those of `impossible`, and makes nothing."""
    life = Life(fixture)
    life.kind().validate(life.call(fixture.properties))
    for given in fixture.impossible:
        refused = False
        try:
            life.kind().validate(life.call(given))
        except FinalFailure:
            refused = True
        _assert(refused, f'validate() takes {given}')
    _assert_nothing_left(fixture)


def is_planned(fixture: Fixture) -> None:
    """If `plan` is written: it says what `update` does then, says it again, and changes nothing."""
    told = [*fixture.planned, *([(fixture.changed, Change.IN_PLACE)] if fixture.changed is not None else [])]
    for number, (wanted, expected) in enumerate(told):
        life = Life(fixture)
        try:
            life.create()
            before = _seen(life, fixture.properties)
            first = _planned(life, wanted)
            _assert(_planned(life, wanted) is first, 'plan() returns another result when it is called again')
            _assert(_seen(life, fixture.properties) == before, 'plan() has changed something')
            must = number < len(fixture.planned)
            _assert(first is expected or not must, f'plan() says {_said(first)} and not {expected} of {wanted}')
            if expected is not Change.REPLACE:
                _assert(first is not Change.REPLACE, 'plan() returns REPLACE for an update that needs no new object')
                life.update(wanted)
                same = _seen(life, wanted) == before
                _assert(same or first is not Change.NONE, 'plan() says that nothing changes, and the update changes it')
            else:
                _assert(_asks_for_another(life, wanted), f'update() does not raise ReplacementNeeded for {wanted}')
        finally:
            life.delete()
        _assert_nothing_left(fixture)


def _seen(life: Life, properties: Mapping[str, Json]) -> tuple[object, ...]:
    """Everything of the object that can be seen from here."""
    observed = life.kind().observe(life.call(properties))
    return life.physical_id, life.attributes(properties), observed, sorted(map(str, life.fixture.leftovers()))


def _planned(life: Life, properties: Mapping[str, Json]) -> Change | None:
    """Return the result of `plan` for an update."""
    said = life.kind().plan(life.call(properties, life.fixture.properties))
    _assert(said is None or isinstance(said, Change), f'plan() answers {said!r}, and not a Change or None')
    return said


def _asks_for_another(life: Life, properties: Mapping[str, Json]) -> bool:
    """Return True if an update to `properties`, polls included, raises `ReplacementNeeded`."""
    call = life.call(properties, life.fixture.properties)
    try:
        answer = life.kind().update(call)
        while isinstance(answer, InProgress):
            life.fixture.wait(answer.poll_after_s or 0.0)
            answer = life.kind().poll(call, Action.UPDATE, answer.progress)
    except ReplacementNeeded:
        return True
    return False


def _said(change: Change | None) -> str:
    return 'nothing' if change is None else str(change)


def is_prepared(fixture: Fixture) -> None:
    """If `prepare` is written: it makes nothing, and what it gives can be stored."""
    life = Life(fixture)
    carried(life.kind().prepare(life.call(fixture.properties)), 'data')
    _assert_nothing_left(fixture)


def is_created_twice(fixture: Fixture) -> None:
    """`token_enforced` promises that a second create with the same token makes nothing new."""
    life = Life(fixture)
    try:
        life.create()
        first = life.physical_id
        life.create_again()
        _assert(life.physical_id == first, f'a second create made {life.physical_id} besides {first}')
    finally:
        life.delete()
    _assert_nothing_left(fixture)


def is_listed(fixture: Fixture) -> None:
    """`inventory` lists the object while it exists, by its physical id, and not afterwards."""
    life = Life(fixture)
    try:
        life.create()
        made = life.physical_id
        _assert(made in _listed(life), f'inventory() does not list {made}, which exists')
    finally:
        life.delete()
    _assert(made not in _listed(life), f'inventory() still lists {made}, which was deleted')


def _listed(life: Life) -> set[str]:
    return {item.physical_id for item in life.kind().inventory() or ()}


def compares(fixture: Fixture) -> None:
    """`Fixture.changed` is an update in place, and equal properties are no change."""
    _assert(_change(fixture, fixture.changed or {}) is Change.IN_PLACE, 'Fixture.changed is no update in place')
    _assert(_change(fixture, fixture.properties) is Change.NONE, 'equal properties are seen as a change')


def is_replaced(fixture: Fixture) -> None:
    """`Fixture.replaced` leads to a new object."""
    _assert(_change(fixture, fixture.replaced or {}) is Change.REPLACE, 'Fixture.replaced needs no replacement')


def makes_room(fixture: Fixture) -> None:
    """If `delete_before_create`: the old object goes, another one is made, and after each call the worker may die."""

    def play(life: Life) -> None:
        life.create()
        life.make_anew(fixture.replaced or {})

    _each_loss(fixture, play)


def gives_way(fixture: Fixture) -> None:
    """If the type writes `release_for_replacement`: the replacement can be made, and the object reclaims."""

    def play(life: Life) -> None:
        life.create()
        before = life.attributes(fixture.properties)
        life.release_for_replacement(fixture.replaced or {})
        other = Life(replace(fixture, properties=fixture.replaced or {}), resource_id='replacement-id')
        try:
            try:
                other.create()
            except ActionFailed as error:
                raise AssertionError(
                    f'after release_for_replacement() another object cannot be made: {error}'
                ) from error
            life.reclaim(other)
        finally:
            other.delete_at_last()
        _assert(
            life.attributes(fixture.properties) == before,
            'reclaim() has not given back what release_for_replacement() took',
        )

    _each_loss(fixture, play)


def is_updated_twice(fixture: Fixture) -> None:
    """The same update can be made again and changes nothing more."""
    life, changed = Life(fixture), fixture.changed or {}
    try:
        life.create()
        life.update(changed)
        physical_id, attributes = life.physical_id, life.attributes(changed)
        life.update(changed)
        _assert(life.physical_id == physical_id, 'the second update changed the physical id')
        _assert(life.attributes(changed) == attributes, 'the second update changed the attributes')
    finally:
        life.delete()
    _assert_nothing_left(fixture)


def is_deleted_twice(fixture: Fixture) -> None:
    """The worker dies when the object has been deleted: the second delete finds nothing, and that is a success."""
    life = Life(fixture)
    try:
        life.create()
    finally:
        life.lose_next()
        life.delete()
    _assert_nothing_left(fixture)


def is_deleted_before_it_exists(fixture: Fixture) -> None:
    """A resource whose create never began can be deleted, and so can one whose create was cut off, at any call."""
    Life(fixture).delete()
    if fixture.recovery is Recovery.EXPECTED:
        _each_loss(fixture, lambda life: life.create_until_lost())


def is_found_after_a_crash(fixture: Fixture) -> None:
    """After a create whose id was lost, find() gives the object, or a second create gives the same one."""
    life = Life(fixture, lose=1)
    try:
        with suppress(MadeAnew):
            life.create()
    finally:
        life.delete()
    _assert_nothing_left(fixture)


def survives_lost_answers(fixture: Fixture) -> None:
    """After each single call of a whole life in turn the worker dies or the answer is lost; another worker
    continues.
    """
    _each_loss(fixture, _live)


def _each_loss(fixture: Fixture, play: Callable[[Life], None]) -> None:
    """Lose the answer to each call in turn, in each way, delete the objects, and check that nothing is left."""
    for loss in Loss:
        number, calls = 0, 1
        while number < calls:
            number += 1
            life = Life(fixture, lose=number, loss=loss)
            try:
                play(life)
            except MadeAnew:
                pass  # the recorded object is deleted below
            except ActionFailed:
                _assert(loss is Loss.ANSWER, f'after call {number} {loss.value}, and then: {life.told[-1]}')
            finally:
                calls = life.calls
                life.delete_at_last()
            _assert_nothing_left(fixture)


def _live(life: Life) -> None:
    life.create()
    if life.fixture.changed is not None:
        life.update(life.fixture.changed)
    life.delete()


def is_signalled(fixture: Fixture) -> None:
    """Signals are accepted one after the other, and can be shown; those of `Fixture.refused` are refused."""
    life = Life(fixture)
    life.create()
    for details in fixture.signals:
        told = fixture.make().signal(life.call(fixture.properties), details)
        _assert(isinstance(told, str) and told != '', f'signal() must return a text for the event, not {told!r}')
        life.received.append(Signal(details, float(len(life.received)), 'resource-id'))
        carried(fixture.make().metadata(life.call(fixture.properties)), 'metadata')
    for details in fixture.refused:
        try:
            fixture.make().signal(life.call(fixture.properties), details)
        except PluginFailure:
            continue
        _assert(False, f'the signal {details!r} was taken')
    life.delete()


def leaves_others_alone(fixture: Fixture) -> None:
    """If another creator made such an object, the create fails, and the delete leaves that object alone."""
    assert fixture.taken is not None
    for number in (0, 1):
        with fixture.taken() as name:
            life = Life(fixture, lose=number or None)
            try:
                life.create()
            except ActionFailed:
                _assert(life.physical_id is None, f'the foreign object {life.physical_id} was taken over')
            else:
                _assert(False, 'a create succeeds although another creator has made such an object')
            life.delete_at_last()
            _assert(name in set(fixture.leftovers()), f'the foreign object {name} was deleted')
        _assert_nothing_left(fixture)


def survives_faults(fixture: Fixture) -> None:
    """Each call to the outside fails in turn: the create fails cleanly, and nothing real is left by the delete."""
    boundary = Boundary(fixture.boundaries)
    for moment in Moment:
        number = 0
        while True:
            number += 1
            life = Life(fixture)
            with boundary.failing(number, moment):
                _try_to_live(life)
                reached = boundary.count >= number
            life.delete_at_last()
            _assert_nothing_left(fixture)
            if not reached:
                break


def _try_to_live(life: Life) -> None:
    try:
        life.create()
        if life.fixture.changed is not None:
            life.update(life.fixture.changed)
        life.delete()
    except AssertionError:
        raise
    except Exception:  # noqa: BLE001 - any error of the type is fine here, the next steps check its leftovers
        return


def _change(fixture: Fixture, properties: object) -> Change:
    life = Life(fixture)
    assert isinstance(properties, dict)
    return compare(
        fixture.make(), fixture.properties, properties, lambda: life.call(properties, previous=fixture.properties)
    )


def _assert_nothing_left(fixture: Fixture) -> None:
    left = sorted(fixture.leftovers())
    _assert(not left, f'left over after the delete: {", ".join(left)}')


def _assert(holds: bool, otherwise: str) -> None:
    # Not the statement, which python -O would drop from a kit that lives outside of tests.
    if not holds:
        raise AssertionError(otherwise)
