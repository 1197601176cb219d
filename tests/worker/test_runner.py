"""Driving a resource type to an end that can be stored: polling, parking, patience, finding out, letting go."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from convergence.concurrency import StopReason, Task, TaskKilled
from convergence.core.claim import Step
from convergence.core.model import Action, Output, Status
from convergence.core.results import Failed, NeedsReplacement, NotBegun, Parked, Postponed, Succeeded
from convergence.resources.attributes import attr
from convergence.resources.contract import (
    Done,
    FinalFailure,
    ForeignObject,
    InProgress,
    ObjectNotFound,
    Observed,
    ReplacementNeeded,
    ResourceType,
    TransientFailure,
)
from convergence.resources.registry import Registry
from convergence.resources.schema import prop
from convergence.worker.attempts.attempt import ClaimLost, PollPolicy
from convergence.worker.attempts.port import WorkerPort
from convergence.worker.attempts.runner import Runner
from tests.core.build import MADE, NODE, PENDING, claim, held


@dataclass(frozen=True)
class Properties:
    """One that may change, one that may not."""

    p: int = prop(0, update_allowed=True)
    key: str = prop('')


@dataclass(frozen=True)
class Attributes:
    """Two, which are read only for those who ask."""

    x: int = attr(dear=True)
    y: int = attr(dear=True)


class Scripted(ResourceType[Properties]):
    """Answers as it was told, once each; the calls are kept."""

    Properties = Properties
    Attributes = Attributes

    def __init__(self, **answers):
        self.answers = {name: list(given) if isinstance(given, list) else [given] for name, given in answers.items()}
        self.calls = []
        self.counts = Counter()

    def answer(self, name, call, *details):
        """The next answer to a call."""
        self.calls.append((name, call, *details))
        self.counts[name] += 1
        given = self.answers[name].pop(0)
        if callable(given):
            given = given()
        if isinstance(given, BaseException):
            raise given
        return given

    def create(self, call):
        """As told."""
        return self.answer('create', call)

    def update(self, call):
        """As told."""
        return self.answer('update', call)

    def delete(self, call):
        """As told."""
        return self.answer('delete', call)

    def poll(self, call, action, progress):
        """As told."""
        return self.answer('poll', call, action, progress)

    def find(self, call):
        """As told."""
        return self.answer('find', call)

    def observe(self, call):
        """As told."""
        return self.answer('observe', call)

    def attribute(self, call, name):
        """As told."""
        return self.answer(f'attribute_{name}', call)


class Enforced(Scripted):
    """Cannot look, and makes nothing new under one token."""

    token_enforced = True

    def implements(self, hook: str) -> bool:
        """Everything but `find`."""
        return hook != 'find' and super().implements(hook)


class Cancellable(Scripted):
    """Can be stopped."""

    def cancel(self, call, action, progress):
        """As told."""
        return self.answer('cancel', call, action, progress)


class Around:
    """What a worker would do; notes what it was asked."""

    def __init__(self, *, holds=True, draining=False, wanted=True, cancelled_after=99):
        self.holds, self.is_draining, self.is_wanted = holds, draining, wanted
        self.cancelled_after = cancelled_after
        self.recorded, self.waited, self.escalated = [], [], 0
        self.wait = lambda: None

    def surroundings(self):
        """For a runner."""
        return WorkerPort(
            self._record, self._escalate, lambda: self.is_draining, lambda claim: self.is_wanted, self._wait
        )

    def drain(self, answer):
        """An answer that comes when the process has been told to end meanwhile."""

        def give():
            self.is_draining = True
            return answer

        return give

    def _record(self, claim, known):
        self.recorded.append(known)
        return self.holds

    def _escalate(self, claim):
        self.escalated += 1
        return self.holds

    def _wait(self, task, duration_s):
        self.wait()
        self.waited.append(duration_s)
        return len(self.waited) > self.cancelled_after


PACE = PollPolicy(
    poll_interval_min_s=1.0,
    poll_interval_max_s=4.0,
    park_after_s=10.0,
    transient_attempts=3,
    jitter=lambda low, high: high,
)
CREATE = claim(
    Step.CREATE, Action.CREATE, held(replace(MADE, status=Status.IN_PROGRESS, physical_id=None, output=None))
)
UPDATE = claim(Step.UPDATE, Action.UPDATE, held(replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS)))
DELETE = claim(Step.DELETE, Action.DELETE, held(replace(MADE, action=Action.DELETE, status=Status.IN_PROGRESS)))


def resume(claimed, progress=None, **changes):
    """The same action, taken up in the middle."""
    return replace(claimed, step=Step.RESUME, resource=replace(claimed.resource, progress=progress, **changes))


def repair(**changes):
    """A failed row that is looked at."""
    resource = held(replace(MADE, status=Status.FAILED, **changes))
    return claim(Step.REPAIR, Action.UPDATE, resource, pending=replace(PENDING, properties={'p': 1}))


def run(kind, claimed, around=None, task=None):
    """What comes of it."""
    runner = Runner(Registry({'Type': kind}), PACE, (around or Around()).surroundings())
    return runner.run(claimed, task or Task('t'))


# --- at once, and by polling ------------------------------------------------------------------------------------


def test_an_action_done_at_once_is_one_call():
    kind = Scripted(create=Done('made', {'k': 1}))
    result = run(kind, CREATE)
    assert result == Succeeded(Output('R', 'made'), 'made', {'k': 1})
    (called,) = kind.calls
    assert (called[1].token, called[1].properties.p, called[1].physical_id) == ('token', 1, None)


def test_a_long_action_is_polled_with_growing_pauses_and_its_id_stored_at_once():
    """F027."""
    kind = Scripted(create=InProgress({'n': 0}, 'made'), poll=[InProgress({'n': 1}), InProgress({'n': 2}), Done()])
    around = Around()
    assert run(kind, CREATE, around) == Succeeded(Output('R', 'made'), 'made', MADE.data)
    assert len(around.waited) == 3
    assert around.waited == sorted(around.waited)
    assert all(PACE.poll_interval_min_s <= waited_s <= PACE.poll_interval_max_s for waited_s in around.waited)
    assert [known.physical_id for known in around.recorded] == ['made']
    assert [(action, progress) for name, _, action, progress in kind.calls[1:]] == [
        (Action.CREATE, {'n': 0}),
        (Action.CREATE, {'n': 1}),
        (Action.CREATE, {'n': 2}),
    ]
    assert kind.calls[1][1].physical_id == 'made'


def test_what_becomes_known_later_is_stored_when_it_does():
    kind = Scripted(create=InProgress({}), poll=[InProgress({}, 'made'), InProgress({}, data={'k': 1}), Done()])
    around = Around()
    run(kind, CREATE, around)
    assert [(known.physical_id, known.data) for known in around.recorded] == [
        (None, {}),
        ('made', {}),
        ('made', {'k': 1}),
    ]


def test_what_somebody_else_has_made_is_neither_taken_over_nor_deleted():
    taken = 'key pair web (id-7) is there, and was not made for this stack'
    kind = Scripted(find=ForeignObject(taken))
    failed = run(kind, resume(CREATE))
    assert (failed.reason, failed.physical_id, kind.counts) == (taken, None, {'find': 1})
    unmade = replace(DELETE, resource=replace(DELETE.resource, physical_id=None, output=None))
    kind = Scripted(find=ForeignObject(taken))
    assert run(kind, unmade) == Succeeded(None)
    assert kind.counts == {'find': 1}
    assert run(Scripted(create=ForeignObject(taken)), CREATE) == Failed(
        taken, data=MADE.data, nothing_made=True, findable=True
    )


class Looking(Scripted):
    """Looks before it makes anything."""

    def prepare(self, call):
        """As told."""
        return self.answer('prepare', call)


def test_what_a_type_sees_before_it_makes_anything_is_stored_first():
    around = Around()
    kind = Looking(prepare={'key': 'k'}, create=lambda: Done(f'made-{len(around.recorded)}'))
    assert run(kind, CREATE, around) == Succeeded(Output('R', 'made-1'), 'made-1', {'key': 'k'})
    assert [call.data for _, call in kind.calls] == [MADE.data, {'key': 'k'}]
    refused = run(Looking(prepare={'key': 'k'}, create=FinalFailure('no')), CREATE)
    assert (refused.nothing_made, refused.data) == (True, {'key': 'k'})
    unmade = replace(DELETE.resource, physical_id=None, output=None, data={'key': 'k'}, nothing_made=True)
    assert run(Looking(find=None), replace(DELETE, resource=unmade)) == Succeeded(None)


def test_a_creation_that_is_called_again_because_nothing_was_made_looks_again():
    kind = Looking(prepare={'key': 'k'}, create=Done('made'))
    assert run(kind, replace(resume(CREATE), clean=True)) == Succeeded(Output('R', 'made'), 'made', {'key': 'k'})


def test_a_look_that_fails_fails_the_creation_and_nothing_was_made():
    failed = run(Looking(prepare=FinalFailure('no such network')), CREATE)
    assert (failed.reason, failed.nothing_made) == ('no such network', True)


class Asking(Looking):
    """Asks whether there can be such a thing."""

    def validate(self, call):
        """As told."""
        return self.answer('validate', call)


def test_what_cannot_be_made_is_refused_before_anything_is_made():
    kind = Asking(validate=None, prepare={'key': 'k'}, create=Done('made'))
    assert run(kind, CREATE) == Succeeded(Output('R', 'made'), 'made', {'key': 'k'})
    assert [name for name, _ in kind.calls] == ['validate', 'prepare', 'create']
    for error in (FinalFailure('no such flavor'), ValueError('no such flavor')):
        kind = Asking(validate=error)
        failed = run(kind, CREATE)
        assert ('no such flavor' in failed.reason, failed.nothing_made, kind.counts) == (True, True, {'validate': 1})
    kind = Asking(validate=[TransientFailure('away'), None], prepare={}, create=Done('made'))
    assert run(kind, replace(resume(CREATE), clean=True)).physical_id == 'made'
    failed = run(Asking(validate=None, prepare={}, create=ValueError('cut off')), CREATE)
    assert not failed.nothing_made, 'from here on it is not known'


class TwoParts(Scripted):
    """Makes two things: what it knows of the first is recorded before it turns to the second."""

    def create(self, call):
        """The first, recorded twice, for it may be called again; then as told."""
        call.record(data={'port': 'p-1'})
        call.record(data={'port': 'p-1'})
        return self.answer('create', call)


def test_what_is_recorded_in_the_middle_of_a_call_is_stored_once_and_kept_by_the_answer():
    around = Around()
    assert run(TwoParts(create=Done('made')), CREATE, around) == Succeeded(Output('R', 'made'), 'made', {'port': 'p-1'})
    assert [(known.physical_id, known.data, known.progress) for known in around.recorded] == [
        (None, {'port': 'p-1'}, None)
    ]


def test_a_creation_that_recorded_something_and_failed_has_made_something():
    failed = run(TwoParts(create=FinalFailure('no more servers')), CREATE)
    assert failed == Failed('no more servers', data={'port': 'p-1'}, findable=True)
    deleting = replace(DELETE, resource=replace(DELETE.resource, physical_id=None, output=None, data={'port': 'p-1'}))
    kind = TwoParts(find=None, delete=Done())
    assert run(kind, deleting) == Succeeded(None)
    assert [(name, call.data) for name, call in kind.calls] == [('find', {'port': 'p-1'}), ('delete', {'port': 'p-1'})]


def test_a_type_that_records_for_somebody_else_is_stopped_there():
    kind = TwoParts()
    with pytest.raises(ClaimLost):
        run(kind, CREATE, Around(holds=False))
    assert not kind.calls


def test_what_cannot_be_recorded_is_refused_where_it_is_recorded():
    class Careless(Scripted):
        def create(self, call):
            """Records what no database takes."""
            call.record('id-1', {'key': object()})

    assert run(Careless(), CREATE) == Failed(
        'data cannot be stored (Object of type object is not JSON serializable); use texts, numbers, lists and maps',
        physical_id='id-1',
        findable=True,
    )


def test_an_action_that_takes_longer_gives_its_thread_back():
    kind = Scripted(update=InProgress({'n': 0}), poll=[InProgress({'n': number}) for number in range(1, 99)])
    around = Around()
    result = run(kind, UPDATE, around)
    assert isinstance(result, Parked)
    assert sum(around.waited) <= PACE.park_after_s
    assert result.progress == {'n': len(around.waited)}
    assert PACE.poll_interval_min_s <= result.after_s <= PACE.poll_interval_max_s
    assert result.physical_id == 'phys'


@pytest.mark.parametrize(('asked_s', 'given_s'), [(2.0, 2.0), (100.0, 4.0), (0.0, 1.0), (-5.0, 1.0)])
def test_a_type_may_say_how_long_to_wait_within_bounds(asked_s, given_s):
    """One that asks for no pause must not keep a thread busy for ever."""
    kind = Scripted(update=[InProgress({}, poll_after_s=asked_s)], poll=[InProgress({}, poll_after_s=asked_s)] * 99)
    around = Around()
    assert isinstance(run(kind, UPDATE, around), Parked)
    assert set(around.waited) == {given_s}


def test_whoever_loses_the_row_while_it_polls_stops_and_says_what_it_made():
    """F021."""
    kind = Scripted(create=InProgress({}, 'made'))
    with pytest.raises(ClaimLost) as fenced:
        run(kind, CREATE, Around(holds=False))
    assert fenced.value.physical_id == 'made'


# --- errors -----------------------------------------------------------------------------------------------------


def test_what_fails_for_the_moment_is_repeated_a_few_times():
    """F093."""
    kind, around = Scripted(create=[TransientFailure('busy'), TransientFailure('busy'), Done('made')]), Around()
    assert isinstance(run(kind, CREATE, around), Succeeded)
    assert around.waited == [2.0, 4.0]
    kind = Scripted(create=[TransientFailure('busy', physical_id='half')] * 9)
    assert run(kind, CREATE) == Failed('busy', 'half', findable=True)
    assert kind.counts['create'] == 3


def test_a_poll_that_fails_for_the_moment_is_repeated_too():
    kind = Scripted(update=InProgress({}), poll=[TransientFailure('busy'), Done()])
    assert isinstance(run(kind, UPDATE), Succeeded)


@pytest.mark.parametrize('error', [FinalFailure('no', physical_id='half'), ValueError('no'), SystemExit('no')])
def test_what_fails_has_failed_with_all_that_is_known(error):
    kind = Scripted(create=InProgress({}, 'first'), poll=error)
    result = run(kind, CREATE)
    assert isinstance(result, Failed)
    assert 'no' in result.reason
    assert result.physical_id == (getattr(error, 'physical_id', None) or 'first')


def test_a_type_that_is_not_installed_here_fails_the_resource():
    runner = Runner(Registry({}), PACE, Around().surroundings())
    assert 'could not be found' in runner.run(CREATE, Task('t')).reason


def test_properties_that_the_type_refuses_fail_the_resource_but_never_keep_it_from_being_deleted():
    wrong = replace(CREATE, pending=replace(PENDING, properties={'nonsense': 1}))
    assert 'nonsense' in run(Scripted(), wrong).reason
    doomed = replace(DELETE, resource=replace(DELETE.resource, properties={'nonsense': 1}))
    assert run(Scripted(delete=Done()), doomed) == Succeeded(None)


def test_only_an_update_may_ask_for_a_new_object():
    """F067."""
    assert run(Scripted(update=ReplacementNeeded('new')), UPDATE) == NeedsReplacement('new', 'phys', MADE.data)
    assert isinstance(run(Scripted(create=ReplacementNeeded('new')), CREATE), Failed)
    assert isinstance(run(Scripted(delete=ReplacementNeeded('new')), DELETE), Failed)


def test_a_kill_is_no_answer():
    with pytest.raises(TaskKilled):
        run(Scripted(update=TaskKilled('t')), UPDATE)


# --- delete -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'answers',
    [
        {'delete': Done()},
        {'delete': ObjectNotFound('gone')},
        {'delete': InProgress({}), 'poll': ObjectNotFound('gone')},
    ],
)
def test_an_object_that_is_not_there_is_deleted(answers):
    assert run(Scripted(**answers), DELETE) == Succeeded(None)


def test_an_object_whose_id_is_not_known_is_looked_for_and_deleted():
    """F027."""
    unknown = replace(DELETE, resource=replace(DELETE.resource, physical_id=None, output=None))
    kind = Scripted(find=Done('found'), delete=Done())
    assert run(kind, unknown) == Succeeded(None)
    assert kind.calls[-1][1].physical_id == 'found'
    kind = Scripted(find=None)
    assert run(kind, unknown) == Succeeded(None)
    assert kind.counts['delete'] == 0
    assert run(Scripted(find=ObjectNotFound('none')), unknown) == Succeeded(None)


def test_a_delete_that_cannot_look_asks_again_until_its_time_is_over():
    """Nothing is known: the row must stay."""
    unknown = replace(DELETE, resource=replace(DELETE.resource, physical_id=None, output=None))
    never = Scripted(find=[FinalFailure('no answer')] * 9)
    put_off = run(never, unknown)
    assert isinstance(put_off, Postponed)
    assert (put_off.reason, put_off.attempts) == ('find() does not answer: no answer', 4)
    limited = replace(unknown, resource=replace(unknown.resource, deadline=unknown.at + 0.5))
    failed = run(Scripted(find=[FinalFailure('no answer')] * 9), limited)
    assert isinstance(failed, Failed)
    assert failed.reason == 'the object of its creation is not known, because find() does not answer: no answer'


# --- resume -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('claimed', 'action'), [(CREATE, 'CREATE'), (UPDATE, 'UPDATE'), (DELETE, 'DELETE')])
def test_an_action_with_progress_is_polled_on(claimed, action):
    kind = Scripted(poll=Done())
    assert isinstance(run(kind, resume(claimed, {'n': 5})), Succeeded)
    assert [(name, given, progress) for name, _, given, progress in kind.calls] == [('poll', action, {'n': 5})]


def test_a_create_without_progress_is_looked_for():
    """F027: and waited for, where it is found but still in progress."""
    found = run(Scripted(find=Done('found')), resume(CREATE))
    assert (type(found), found.physical_id) == (Succeeded, 'found')
    found = run(Scripted(find=InProgress({'n': 1}, 'found'), poll=Done()), resume(CREATE))
    assert (type(found), found.physical_id) in ((Parked, 'found'), (Succeeded, 'found'))


def test_a_create_that_is_nowhere_is_repeated_only_where_the_service_enforces_the_token():
    kind = Scripted(find=None)
    assert isinstance(run(kind, resume(CREATE)), NeedsReplacement)
    assert kind.counts['create'] == 0
    enforced = Scripted(find=None, create=Done('made'))
    enforced.token_enforced = True
    assert isinstance(run(enforced, resume(CREATE)), Succeeded)


def test_an_update_without_progress_is_done_again():
    kind = Scripted(observe=Observed(), update=Done())
    assert isinstance(run(kind, resume(UPDATE)), Succeeded)
    assert kind.calls[1][1].previous.p == 1


# --- repair -----------------------------------------------------------------------------------------------------


def test_what_is_in_good_order_is_kept_as_it_is():
    """F069."""
    kind, around = Scripted(observe=Observed()), Around()
    assert isinstance(run(kind, repair(properties={'p': 1}), around), Succeeded)
    assert (kind.counts['update'], around.escalated) == (0, 0)


def test_what_has_changed_or_was_being_updated_is_updated():
    """Parts of a failed update may have been applied: it is not enough that nothing differs."""
    for claimed in (repair(properties={'p': 7}), repair(action=Action.UPDATE, properties={'p': 1})):
        kind, around = Scripted(observe=Observed(), update=Done()), Around()
        assert isinstance(run(kind, claimed, around), Succeeded)
        assert around.escalated == 1


@pytest.mark.parametrize(
    'answers',
    [
        {'observe': None},
        {'observe': Observed(healthy=False)},
        {'observe': ObjectNotFound('gone')},
    ],
    ids=['cannot tell', 'unhealthy', 'gone'],
)
def test_what_is_of_no_use_is_replaced(answers):
    assert isinstance(run(Scripted(**answers), repair()), NeedsReplacement)


def test_a_failed_update_of_a_type_that_cannot_tell_is_tried_again():
    kind = Scripted(observe=None, update=Done())
    assert isinstance(run(kind, repair(action=Action.UPDATE)), Succeeded)


def test_a_failed_create_without_an_object_is_looked_for_then_replaced():
    assert isinstance(run(Scripted(find=None), repair(physical_id=None)), NeedsReplacement)
    kept = run(Scripted(find=Done('found'), observe=Observed()), repair(physical_id=None, properties={'p': 1}))
    assert (type(kept), kept.physical_id) == (Succeeded, 'found')


def test_a_repair_that_needs_other_properties_than_can_be_changed_replaces():
    claimed = replace(repair(properties={'p': 1, 'key': 'a'}), pending=replace(PENDING, properties={'key': 'b'}))
    assert isinstance(run(Scripted(observe=Observed()), claimed), NeedsReplacement)


def test_a_repair_that_has_lost_the_row_does_not_update():
    kind = Scripted(observe=Observed())
    with pytest.raises(ClaimLost):
        run(kind, repair(properties={'p': 7}), Around(holds=False))
    assert kind.counts['update'] == 0


# --- letting go -------------------------------------------------------------------------------------------------


def test_a_cancelled_action_is_stopped_and_its_type_told_once():
    """F102."""
    kind = Cancellable(update=InProgress({'n': 1}), cancel=None)
    result = run(kind, UPDATE, Around(wanted=False, cancelled_after=0))
    assert (type(result), result.reason, result.progress) == (Failed, 'UPDATE cancelled', None)
    assert kind.calls[-1][2:] == (Action.UPDATE, {'n': 1})


def test_a_cancelled_action_that_cannot_be_stopped_can_be_resumed():
    """F101: the type has no cancel: it goes on by itself, and a later update may find it done."""
    result = run(Scripted(update=InProgress({'n': 1})), UPDATE, Around(wanted=False, cancelled_after=0))
    assert (type(result), result.progress) == (Failed, {'n': 1})


def test_a_type_says_which_of_its_actions_can_be_stopped():
    """It may have a cancel, and yet none for this action."""
    kind = Cancellable(update=InProgress({'n': 1}), cancel=None)
    kind.can_cancel = lambda action: action is not Action.UPDATE
    assert run(kind, UPDATE, Around(wanted=False, cancelled_after=0)).progress == {'n': 1}


@pytest.mark.parametrize('error', [RuntimeError('no'), SystemExit('no')])
def test_a_cancel_that_fails_is_a_cancel_all_the_same(error):
    kind = Cancellable(update=InProgress({}), cancel=error)
    assert run(kind, UPDATE, Around(wanted=False, cancelled_after=0)).reason == 'UPDATE cancelled'


@pytest.mark.parametrize('drains', [True, False], ids=['draining', 'only this worker'])
def test_an_action_that_is_still_wanted_is_handed_over_not_failed(drains):
    """F022, F038."""
    around, begun = Around(wanted=True, cancelled_after=0), InProgress({'n': 1}, 'made')
    kind = Cancellable(create=around.drain(begun) if drains else begun)
    assert run(kind, CREATE, around) == Parked({'n': 1}, 0.0, 'made', MADE.data)
    assert kind.counts['cancel'] == 0


@pytest.mark.parametrize(
    'claimed',
    [
        CREATE,
        UPDATE,
        DELETE,
        resume(UPDATE),
        resume(DELETE),
        resume(UPDATE, {'n': 1}),
        resume(replace(CREATE, clean=True)),
    ],
    ids=['create', 'update', 'delete', 'update again', 'delete again', 'poll', 'create at last'],
)
def test_nothing_begins_in_a_process_that_was_told_to_end(claimed):
    kind = Scripted()
    assert isinstance(run(kind, claimed, Around(draining=True)), NotBegun)
    assert kind.calls == []


def test_what_was_found_before_the_process_was_told_to_end_is_not_forgotten_and_not_deleted_here():
    around = Around()
    kind = Scripted(find=around.drain(Done('found')))
    claimed = replace(DELETE, resource=replace(DELETE.resource, physical_id=None, output=None))
    assert run(kind, claimed, around) == NotBegun('found', MADE.data)
    assert kind.counts == {'find': 1}


@pytest.mark.parametrize('begun', [False, True])
def test_a_second_creation_does_not_begin_or_go_on_in_a_process_that_was_told_to_end(begun):
    """Nor does it fail: another worker learns what is to be deleted."""
    lost = replace(DELETE.resource, physical_id=None, output=None)
    if begun:
        lost = replace(lost, progress={'creating_first': {'n': 1}})
    kind = Enforced(create=Done('made'))
    assert run(kind, replace(DELETE, resource=lost), Around(draining=True)) == NotBegun(None, MADE.data)
    assert kind.calls == []


def test_a_repair_does_not_begin_its_update_in_a_process_that_was_told_to_end():
    around = Around()
    kind = Scripted(observe=around.drain(Observed(True)))
    assert isinstance(run(kind, repair(action=Action.UPDATE), around), NotBegun)
    assert kind.counts == {'observe': 1}


@pytest.mark.parametrize('cancelled', [False, True])
def test_a_call_that_failed_for_the_moment_is_not_repeated_in_a_process_that_was_told_to_end(cancelled):
    """It has left nothing behind: another worker repeats it, without a search."""
    around, task = Around(), Task('t')
    answer = around.drain(TransientFailure('busy'))

    def busy():
        if cancelled:
            task.cancelled.set()
        return answer()

    kind = Scripted(create=[busy, Done('made')])
    assert run(kind, CREATE, around, task) == Postponed('busy', 1, 2.0, data=MADE.data)
    assert kind.counts == {'create': 1}


def test_a_pause_before_a_repetition_ends_when_the_process_is_told_to_end():
    around = Around()
    around.wait = lambda: setattr(around, 'is_draining', True)
    kind = Scripted(create=[TransientFailure('busy'), Done('made')])
    result = run(kind, CREATE, around)
    assert isinstance(result, Postponed)
    assert result.after_s == 0.0
    assert kind.counts == {'create': 1}


def test_a_call_that_failed_for_the_moment_is_not_repeated_when_it_was_cancelled_during_the_pause():
    around, task = Around(), Task('t')
    around.wait, around.is_wanted = task.cancelled.set, False
    kind = Scripted(create=[TransientFailure('busy'), Done('made')])
    assert run(kind, CREATE, around, task) == Failed('busy', data=MADE.data, nothing_made=True, findable=True)
    assert kind.counts == {'create': 1}


@pytest.mark.parametrize('reason', [StopReason.CANCEL, StopReason.TIME])
def test_nothing_is_called_for_an_action_that_is_cancelled_before_it_begins(reason):
    """One that has taken too long says so itself."""
    task = Task('t')
    task.reason = reason
    task.cancelled.set()
    kind = Scripted(create=Done('made'))
    result = run(kind, CREATE, Around(), task)
    assert isinstance(result, NotBegun if reason is StopReason.CANCEL else Succeeded)
    assert kind.counts['create'] == (reason is StopReason.TIME)


@pytest.mark.parametrize(
    ('reason', 'wanted', 'end'),
    [
        (StopReason.CANCEL, True, Parked),
        (StopReason.CANCEL, False, Failed),
        (StopReason.TIME, True, Failed),
    ],
    ids=['the lease is lost', 'cancelled', 'late'],
)
def test_an_error_of_a_call_that_was_told_to_stop_is_no_failure_while_its_result_is_wanted(reason, wanted, end):
    """A type that gives up when its worker has lost the lease: the database was away for longer, nothing else."""
    task = Task('t')

    def stopped():
        task.reason = reason
        task.cancelled.set()
        return FinalFailure('told to stop', physical_id='made')

    kind = Cancellable(create=stopped)
    given = run(kind, CREATE, Around(wanted=wanted), task)
    assert isinstance(given, end)
    assert given.physical_id == 'made'


def test_what_an_older_traversal_left_is_cancelled_where_nobody_waits_for_it():
    parked = claim(Step.CANCEL, Action.UPDATE, held(replace(MADE, progress={'n': 1})), completes_node=False)
    kind = Cancellable(cancel=None)
    assert isinstance(run(kind, parked), Failed)
    assert kind.calls[-1][2:] == (Action.UPDATE, {'n': 1})


# --- outputs ----------------------------------------------------------------------------------------------------


def asking(*names):
    """A node of whose resource attributes are asked."""
    return replace(CREATE, node=replace(NODE, asked=names))


@dataclass(frozen=True)
class Shown:
    """What is asked for, what is shown, what is secret, and what is dear."""

    x: int = attr()
    y: int = attr()
    password: str = attr(secret=True)
    slow: str = attr(dear=True)


class Showing(Scripted):
    """Has attributes that nobody asks for."""

    Attributes = Shown


@pytest.mark.parametrize(
    ('value', 'shown'),
    [(6, {'y': 6}), (RuntimeError('unreadable'), {}), (object(), {}), ('x' * 70_000, {})],
    ids=['read', 'unreadable', 'no data', 'too large'],
)
def test_attributes_that_nobody_asks_for_are_read_to_be_shown_and_harm_nobody(value, shown):
    output = run(Showing(create=Done('made'), attribute_x=5, attribute_y=value), asking('x')).output
    assert (output.attributes, output.shown, output.errors) == ({'x': 5}, shown, {})
    assert Output.from_document(output.document()) == output
    assert output.handed().shown == {}


def test_every_resource_can_be_asked_for_show_and_it_is_null_where_no_service_describes_it():
    assert run(Scripted(create=Done('made')), asking('show')).output.attributes == {'show': None}


def test_only_the_attributes_that_are_asked_for_are_read():
    kind = Scripted(create=Done('made'), attribute_x=5)
    assert run(kind, asking('x')).output.attributes == {'x': 5}
    assert run(Scripted(create=Done('made'), attribute_x=5, attribute_y=6), asking('')).output.attributes == {
        '': {'x': 5, 'y': 6}
    }


@pytest.mark.parametrize('value', [RuntimeError('unreadable'), SystemExit('unreadable'), object(), float('nan')])
def test_an_attribute_that_cannot_be_had_is_an_error_of_that_attribute(value):
    """F035."""
    output = run(Scripted(create=Done('made'), attribute_x=value, attribute_y=6), asking('x', 'y')).output
    assert (dict(output.attributes), set(output.errors)) == ({'y': 6}, {'x'})


def test_reading_touches_nothing():
    read = claim(Step.READ, Action.CREATE, held(), node=replace(NODE, asked=('x',)))
    kind = Scripted(attribute_x=5)
    assert run(kind, read) == Succeeded(Output('R', 'phys', {'x': 5}), 'phys', MADE.data)


@dataclass(frozen=True)
class Moving:
    """One changes by itself, one does not."""

    x: int = attr(live=True)
    y: int = attr()


class Alive(Scripted):
    """Has an attribute that changes by itself."""

    Attributes = Moving


def test_a_check_reads_anew_what_changes_by_itself():
    kept = Output('R', 'phys', {'x': 1, '': {'x': 1, 'y': 2}}, shown={'y': 2})
    checked = claim(Step.PERFORM, Action.CHECK, held(replace(MADE, output=kept)))
    kind = Alive(observe=None, attribute_x=[5])
    assert run(kind, checked).output == replace(kept, attributes={'x': 5, '': {'x': 5, 'y': 2}})
    assert run(Alive(observe=None, attribute_x=OSError('away')), checked).output is None
    only_shown = replace(checked.resource, output=replace(kept, attributes={}, errors={'x': 'away'}))
    output = run(Alive(observe=None, attribute_x=[5]), replace(checked, resource=only_shown)).output
    assert (output.attributes, output.errors) == ({'x': 5}, {})


def test_an_action_knows_which_attributes_are_asked_for():
    kind = Scripted(create=Done('made'), attribute_x=5)
    run(kind, asking('x'))
    assert kind.calls[0][1].asked == ('x',)
