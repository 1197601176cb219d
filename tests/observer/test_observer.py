"""Observers: what they see of objects, what they leave alone, and how they share the work."""

import threading

import pytest

from convergence.core.observation import ObservationSource, ObservedState, pause_s
from convergence.observer.budget import CallBudget
from convergence.observer.observer import QUIET_TURNS
from convergence.resources.contract import Observed, TransientFailure
from tests.harness import Harness, things
from tests.observing import EVERY_S, Observing


@pytest.fixture
def harness():
    return Harness(None)


def made(harness, names=('a', 'b')):
    """A stack with some things."""
    stack_id = harness.create(things(list(names)))
    harness.run()
    return stack_id


def looks(harness):
    """How often each object was looked at."""
    return {name: count for (verb, name), count in harness.reality.calls.items() if verb == 'observe'}


def change(harness, stack_id, name, **values):
    """Somebody changes an object behind the engine's back."""
    harness.reality.objects[physical_id(harness, stack_id, name)].update(values)


def physical_id(harness, stack_id, name):
    return next(row.physical_id for row in harness.reader.resources(stack_id) if row.name == name)


def test_each_object_is_seen_as_it_is_and_nothing_is_touched(harness):
    stack_id, observing = made(harness, 'abcdef'), Observing(harness)
    change(harness, stack_id, 'b', value='else', link='x')
    del harness.reality.objects[physical_id(harness, stack_id, 'c')]
    harness.reality.once['observe', 'd'] = [lambda call: (_ for _ in ()).throw(TransientFailure('not now'))]
    before = dict(harness.reality.objects), harness.reader.resources(stack_id)
    assert observing.look() == 6
    seen = observing.known(stack_id)
    assert {name: each.found for name, each in seen.items()} == {
        **dict.fromkeys('aef', ObservedState.HEALTHY),
        'b': ObservedState.DIFFERS,
        'c': ObservedState.GONE,
        'd': ObservedState.UNKNOWN,
    }
    assert (seen['b'].names, seen['b'].live, seen['b'].source) == (
        ('value',),
        {'value': 'else'},
        ObservationSource.POLL,
    )
    assert seen['d'].reason == 'it cannot be observed: not now'
    assert (harness.reality.objects, harness.reader.resources(stack_id)) == before
    assert observing.acts_for == []


def test_looks_follow_each_other_quickly_after_a_change_and_slowly_while_nothing_changes():
    assert [pause_s(80.0, alike) for alike in (1, 2, 3, 4, 99)] == [20.0, 40.0, 80.0, 80.0, 80.0]


def test_the_pause_grows_until_something_is_found_otherwise(harness):
    stack_id, observing = made(harness, 'a'), Observing(harness)
    pauses = []
    for value in ('x', 'x', 'x', 'else', 'else', 'x'):
        change(harness, stack_id, 'a', value=value)
        observing.look(stack_id)
        known = observing.known(stack_id)['a']
        pauses.append((known.found, known.same_results, round((known.due_at - known.observed_at) / EVERY_S, 2)))
    assert pauses == [
        (ObservedState.HEALTHY, 1, 0.25),
        (ObservedState.HEALTHY, 2, 0.5),
        (ObservedState.HEALTHY, 3, 1.0),
        (ObservedState.DIFFERS, 1, 0.25),
        (ObservedState.DIFFERS, 2, 0.5),
        (ObservedState.HEALTHY, 1, 0.25),
    ]


def test_a_type_that_stays_away_holds_up_nobody_else_and_what_it_says_late_is_not_taken(harness):
    stack_id, observing = made(harness, 'abc'), Observing(harness, timeout_s=0.05)
    stays = threading.Event()
    harness.reality.once['observe', 'b'] = [lambda call: stays.wait(30) and None]
    observing.look()
    stays.set()
    found = {name: each.found for name, each in observing.known(stack_id).items()}
    assert found == {'a': ObservedState.HEALTHY, 'b': ObservedState.UNKNOWN, 'c': ObservedState.HEALTHY}
    assert 'has not answered' in observing.known(stack_id)['b'].reason


def test_where_looks_take_long_several_threads_make_them_and_else_one_does(harness):
    stack_id, observing = made(harness, 'abcd'), Observing(harness)
    threads = []
    for name in 'abcd':
        harness.reality.once['observe', name] = [lambda call: threads.append(threading.get_ident())]
    observing.look(stack_id)
    assert (len(threads), len(set(threads))) == (4, 1)
    two = threading.Barrier(2)  # who is alone here waits for ever
    for name in 'abcd':
        harness.reality.once['observe', name] = [lambda call: two.wait(30) and None]
    observing.look(stack_id)
    assert {each.found for each in observing.known(stack_id).values()} == {ObservedState.HEALTHY}


def test_what_a_type_says_is_looked_at_even_if_it_is_nonsense(harness):
    stack_id, observing = made(harness, 'ab'), Observing(harness)
    thing = harness.registry.get('Test::Thing')
    usual = type(thing).observe

    def observe(self, call):
        return Observed(properties={'value': {1, 2}}) if call.name == 'a' else usual(self, call)

    type(thing).observe = observe
    try:
        observing.look()
    finally:
        type(thing).observe = usual
    seen = observing.known(stack_id)
    assert seen['a'].found in (ObservedState.DIFFERS, ObservedState.UNKNOWN)
    assert seen['a'].live == {}
    assert seen['b'].found is ObservedState.HEALTHY


def test_of_many_observers_each_object_is_looked_at_by_one(harness):
    made(harness, 'abcdefgh')
    crowd = [Observing(harness, batch=3) for _ in range(10)]
    crowd[0].schedule()
    threads = [threading.Thread(target=each.observer.turn) for each in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in crowd:
        each.look()
    assert looks(harness) == dict.fromkeys('abcdefgh', 1)


def quiet(observing):
    """Nothing was due for a while: the last rest, which is as long as it gets."""
    rests = [observing.observer.round() for _ in range(QUIET_TURNS + 1)]
    assert rests[:QUIET_TURNS] == [1.0] * QUIET_TURNS
    return rests[-1]


def test_where_nothing_was_due_for_a_while_rests_are_longer_but_end_when_something_is_due(harness):
    observing = Observing(harness)
    assert quiet(observing) == 3.0
    stack_id = made(harness, 'ab')
    observing.look(stack_id)
    in_s = 1000.0
    for lasts_s, rests_s in ((1000.0, 3.0), (2.5, 2.5), (0.4, 1.0)):
        observing.rows.request([stack_id], ObservationSource.REQUEST)
        leased = observing.rows.lease('o', 10, 60.0)
        observing.rows.put_off('o', [each.row.id for each in leased], in_s)
        assert observing.observer.round() == 3.0
        observing.rows.due_in_s, due_in_s = lambda lasts_s=lasts_s: lasts_s, observing.rows.due_in_s
        assert observing.observer.round() == rests_s
        observing.rows.due_in_s = due_in_s


def test_what_somebody_asks_for_in_a_long_rest_is_looked_at_after_it_and_then_rests_are_short_again(harness):
    observing = Observing(harness)
    stack_id = made(harness, 'ab')
    observing.look(stack_id)
    assert quiet(observing) == 3.0
    observing.rows.request([stack_id], ObservationSource.REQUEST)
    assert observing.observer.round() == 0.0
    assert {each.source for each in observing.known(stack_id).values()} == {ObservationSource.REQUEST}
    assert quiet(observing) == 3.0


def test_no_rest_is_longer_than_the_shortest_interval(harness):
    """What engines enrol meanwhile may be due by then."""
    assert quiet(Observing(harness, intervals={'Test::Thing': 100.0, 'Test::Other': 2.0})) == 2.0
    assert quiet(Observing(harness, intervals={'Test::Thing': 0.2})) == 1.0


def test_what_a_dead_observer_had_in_hand_is_looked_at_when_its_lease_is_over(harness):
    stack_id, observing = made(harness, 'a'), Observing(harness)
    observing.schedule()
    assert len(observing.rows.lease('dead', 10, 0.0)) == 1
    observing.look()
    assert observing.known(stack_id)['a'].found is ObservedState.HEALTHY


def test_nothing_is_looked_at_that_no_type_can_see_or_nobody_wants_seen(harness):
    made(harness, 'a')
    observing = Observing(harness, intervals={})
    assert observing.look() == 0
    assert looks(harness) == {}


def test_calls_beyond_the_budget_wait(harness):
    stack_id, observing = made(harness, 'abc'), Observing(harness, calls_per_minute=2)
    observing.schedule()
    observing.observer.turn()
    seen = observing.known(stack_id)
    assert sorted(each.found for each in seen.values()) == [
        ObservedState.HEALTHY,
        ObservedState.HEALTHY,
        ObservedState.UNKNOWN,
    ]
    assert sum(looks(harness).values()) == 2


def test_how_many_share_a_budget_is_asked_when_a_call_is_to_be_made_and_not_before():
    asked = []
    budget = CallBudget(6, lambda: 0.0)
    budget.share(lambda: asked.append(True) or 3)
    assert (asked, budget.sharers) == ([], 1)
    assert [budget.take('a') for _ in range(3)] == [True, True, False]
    assert (len(asked), budget.sharers) == (1, 3)


def test_a_budget_is_for_each_key_refills_and_is_shared():
    now = [0.0]
    budget = CallBudget(6, lambda: now[0])
    assert [budget.take('a') for _ in range(8)] == [True] * 6 + [False] * 2
    assert budget.take('b')
    now[0] = 10.0
    assert [budget.take('a') for _ in range(2)] == [True, False]
    budget.sharers = 3
    now[0] = 1000.0
    assert [budget.take('a') for _ in range(3)] == [True, True, False]
    assert budget.pause_s(1) == 30.0
    assert all(CallBudget(None, lambda: 0.0).take('a') for _ in range(100))


def test_an_update_takes_what_was_seen_before_from_sight(harness):
    stack_id, observing = made(harness, 'a'), Observing(harness)
    change(harness, stack_id, 'a', value='else')
    observing.look()
    assert observing.known(stack_id)['a'].found is ObservedState.DIFFERS
    harness.update(stack_id, things(['a'], 'new'))
    harness.run()
    assert observing.known(stack_id)['a'].found is ObservedState.UNKNOWN
    observing.look(stack_id)
    assert observing.known(stack_id)['a'].found is ObservedState.HEALTHY
