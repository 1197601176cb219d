"""Signals and what waits for them: no thread waits, none is lost, and whoever works on a resource is not disturbed."""

import json
import threading
from dataclasses import replace

import pytest
from sqlalchemy import select

from convergence import errors
from convergence.db.schema.models import RESOURCE, SIGNAL
from convergence.engine.reads.resources import ResourceReads
from convergence.worker.attempts.attempt import PollPolicy
from tests.harness import Context, Harness
from tests.reality import meanwhile

COUNTED = {
    'handle': {'type': 'OS::Heat::WaitConditionHandle'},
    'ready': {
        'type': 'OS::Heat::WaitCondition',
        'properties': {'handle': {'get_resource': 'handle'}, 'timeout': 600, 'count': 2},
    },
    'after': {'type': 'Test::Thing', 'properties': {'value': 'x'}, 'depends_on': ['ready']},
}
OUTPUTS = {'said': {'value': {'get_attr': ['ready', 'data']}}}


@pytest.fixture
def harness(engine):
    """A parked action is looked at again when something happens, not because time goes by."""
    return Harness(engine, pace=PollPolicy(0.0, 1e6, -1.0, 1))


def template(resources, **sections):
    return {'heat_template_version': '2018-08-31', 'resources': resources, **sections}


def changed(name, **properties):
    one = COUNTED[name]
    return {**COUNTED, name: {**one, 'properties': {**one.get('properties', {}), **properties}}}


def create(harness, resources=COUNTED, **args):
    whole = template(resources, outputs=OUTPUTS)
    made = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, args)
    harness.run()
    return made['stack_id']


def update(harness, stack, resources, **args):
    whole = template(resources, outputs=OUTPUTS)
    harness.stacks.update_stack(harness.context, {'stack_id': stack}, whole, None, None, args)
    harness.run()


def signal(harness, stack, details=None, name='handle'):
    return harness.signals.resource_signal(harness.context, {'stack_id': stack}, name, details)


def kept(harness):
    with harness.store.reading() as connection:
        return list(connection.execute(select(SIGNAL.c.details).order_by(SIGNAL.c.sequence)).scalars())


def metadata(harness, stack, name='handle'):
    reads = ResourceReads(harness.reader, harness.compiler)
    return reads.describe_stack_resource(harness.context, {'stack_id': stack}, name)['metadata']


# --- waiting ----------------------------------------------------------------------------------------------------


def test_a_condition_waits_in_its_row_and_is_woken_by_each_signal(harness):
    stack = create(harness)
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    assert harness.row(stack, 'ready').owner is None
    assert harness.messages.checks == []
    signal(harness, stack, {'id': 'one', 'data': {'port': 1}})
    assert len(harness.messages.checks) == 1
    harness.run()
    assert harness.reality.order('create') == []
    signal(harness, stack, {'id': 'two', 'data': 'b', 'reason': 'up'})
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert json.loads(harness.row(stack, 'ready').output.attributes['data']) == {'one': {'port': 1}, 'two': 'b'}
    assert [event.reason for event in harness.reader.events(stack) if event.action == 'SIGNAL'] == [
        'Signal: status:SUCCESS reason:Signal 1 received',
        'Signal: status:SUCCESS reason:up',
    ]
    assert metadata(harness, stack) == {
        'one': {'status': 'SUCCESS', 'reason': 'Signal 1 received', 'data': {'port': 1}},
        'two': {'status': 'SUCCESS', 'reason': 'up', 'data': 'b'},
    }


def test_the_same_id_counts_once_and_what_is_missing_has_a_default(harness):
    stack = create(harness)
    for details in (None, {'id': '1', 'data': 'later'}):
        signal(harness, stack, details)
    harness.run()
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    signal(harness, stack, {})
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert {key: each['data'] for key, each in metadata(harness, stack).items()} == {'1': 'later', '2': None}


def test_one_failure_fails_the_condition(harness):
    stack = create(harness)
    signal(harness, stack, {'status': 'FAILURE', 'reason': 'disk full'})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert harness.stack(stack).status_reason == (
        'Resource CREATE failed: WaitConditionFailure: resources.ready: disk full'
    )


def test_a_condition_does_not_wait_for_ever(harness):
    stack = create(harness)
    signal(harness, stack)
    harness.run()
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().where(RESOURCE.c.name == 'ready').values(began_at=1.0))
        connection.commit()
    harness.recover()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'WaitConditionTimeout: resources.ready: 1 of 2 received' in harness.stack(stack).status_reason


def test_a_signal_whose_message_is_lost_is_found_by_the_sweeper(harness):
    """Everybody may die in the meantime as well."""
    stack = create(harness)
    harness.messages.lost = True
    signal(harness, stack, {'id': 1})
    signal(harness, stack, {'id': 2})
    harness.messages.lost = False
    harness.restart()
    assert harness.sweep() > 0
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_signals_of_before_the_condition_has_begun_count(harness):
    """Whoever is fast signals while the condition still waits for something else."""

    def early():
        stack = harness.reader.stack_named('p', 'stack').id
        for number in (1, 2):
            signal(harness, stack, {'id': number})

    harness.reality.once['create', 'thing'] = [meanwhile(early)]
    stack = create(
        harness,
        {
            **COUNTED,
            'ready': {**COUNTED['ready'], 'depends_on': ['thing']},
            'thing': {'type': 'Test::Thing', 'properties': {'value': 'x'}, 'depends_on': ['handle']},
        },
    )
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_a_greater_count_waits_for_more_and_what_was_said_before_counts(harness):
    stack = create(harness)
    signal(harness, stack, {'id': 1})
    signal(harness, stack, {'id': 2})
    harness.run()
    update(harness, stack, changed('ready', count=3))
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    signal(harness, stack, {'id': 3})
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert len(harness.rows(stack, 'ready')) == 1


def test_an_update_while_it_waits_goes_on_waiting(harness):
    """The new operation has a node of its own; a signal to the handle, which it found done, wakes that."""
    stack = create(harness)
    signal(harness, stack, {'id': 1})
    harness.run()
    update(harness, stack, {**COUNTED, 'more': {'type': 'Test::Thing', 'properties': {'value': 'y'}}})
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    signal(harness, stack, {'id': 2})
    assert len(harness.messages.checks) == 1
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'after': 'x', 'more': 'y'}


def of_its_own(number):
    return {'id': number}


def of_cloudformation(number):
    return {'Status': 'SUCCESS', 'Reason': 'up', 'Data': '', 'UniqueId': number}


@pytest.mark.parametrize(
    ('kind', 'state'),
    [
        ('OS::Heat::WaitConditionHandle', 'UPDATE_COMPLETE'),
        ('OS::Heat::UpdateWaitConditionHandle', 'UPDATE_IN_PROGRESS'),
    ],
)
def test_an_update_handle_is_made_anew_by_every_update_and_everybody_has_to_signal_again(harness, kind, state):
    resources = {**COUNTED, 'handle': {'type': kind}}
    stack = create(harness, resources)
    by_number = of_cloudformation if 'Update' in kind else of_its_own
    for number in (1, 2):
        signal(harness, stack, by_number(number))
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    update(harness, stack, resources)
    assert harness.state(stack) == state
    if state == 'UPDATE_IN_PROGRESS':
        assert metadata(harness, stack) == {}
        with pytest.raises(errors.Invalid, match='Metadata format invalid'):
            signal(harness, stack, of_its_own(1))
        for number in (1, 2):
            signal(harness, stack, by_number(number))
        harness.run()
        assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert len(harness.rows(stack, 'handle')) == len(harness.rows(stack, 'ready')) == 1


# --- being a third party ----------------------------------------------------------------------------------------


def test_a_hundred_signals_during_an_action_change_nothing_of_it(harness):
    """F008, F025."""
    before = []

    def disturb():
        stack = harness.reader.stack_named('p', 'stack').id
        before.append(harness.row(stack, 'thing'))
        for number in range(100):
            signal(harness, stack, {'id': number})
        after = harness.row(stack, 'thing')
        assert after == replace(before[0], event_count=after.event_count)

    harness.reality.once['create', 'thing'] = [meanwhile(disturb)]
    stack = create(
        harness,
        {
            'handle': COUNTED['handle'],
            'thing': {'type': 'Test::Thing', 'properties': {'value': 'x'}, 'depends_on': ['handle']},
            'ready': {**COUNTED['ready'], 'properties': {**COUNTED['ready']['properties'], 'count': 100}},
        },
    )
    assert before[0].owner is not None
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert len(kept(harness)) == 100


def test_signals_that_come_all_at_once_are_all_kept(harness):
    """F155, F163: 200 at once to one handle, all recorded, each counted once."""
    stack = create(harness, changed('ready', count=200))
    failed = []

    def send(numbers):
        try:
            for number in numbers:
                signal(harness, stack, {'id': number})
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    senders = [threading.Thread(target=send, args=(range(first, 200, 8),)) for first in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert failed == []
    assert sorted(details['id'] for details in kept(harness)) == list(range(200))
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_signals_go_with_what_they_were_sent_to(harness):
    stack = create(harness)
    signal(harness, stack, {'id': 1})
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert kept(harness) == []


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('details', 'why'),
    [
        ('text', 'it must be a map, or nothing at all'),
        ({'status': 'GOOD'}, 'the status must be SUCCESS or FAILURE'),
        ({'stat': 'SUCCESS'}, 'stat is not known; what can be said is status, reason, data, id'),
        ({'id': {}}, 'the id must be a text or a number'),
    ],
)
def test_a_signal_that_makes_no_sense_is_refused_and_not_kept(harness, details, why):
    stack = create(harness)
    with pytest.raises(errors.Invalid, match=f'The signal to handle makes no sense: {why}'):
        signal(harness, stack, details)
    assert kept(harness) == []


def test_not_everything_can_be_signalled(harness):
    stack = create(harness)
    with pytest.raises(errors.ResourceActionNotSupported, match='signal is not supported for resource'):
        signal(harness, stack, name='ready')
    with pytest.raises(errors.ResourceNotFound, match=r'The Resource \(nobody\) could not be found in Stack stack\.'):
        signal(harness, stack, name='nobody')
    stranger = Context(project_id='other')
    with pytest.raises(errors.EntityNotFound):
        harness.signals.resource_signal(stranger, {'stack_id': stack}, 'handle', {})
    assert kept(harness) == []


def test_a_suspended_resource_takes_no_signal(harness):
    stack = create(harness)
    for number in (1, 2):
        signal(harness, stack, {'id': number})
    harness.run()
    harness.acted(stack, 'suspend')
    with pytest.raises(errors.NotSupported, match=r'Signal resource during SUSPEND is not supported\.'):
        signal(harness, stack)
    harness.acted(stack, 'resume')
    signal(harness, stack)


def test_whoever_waits_for_the_answer_sees_the_metadata(harness):
    stack = create(harness)
    answer = harness.signals.resource_signal(harness.context, {'stack_id': stack}, 'handle', {'id': 'a'}, True)
    assert list(answer) == ['a']
    assert signal(harness, stack, {'id': 'b'}) is None


def test_other_transports_are_refused_when_the_handle_is_made(harness):
    stack = create(harness, changed('handle', signal_transport='ZAQAR_SIGNAL'))
    assert 'signal_transport ZAQAR_SIGNAL needs another service' in harness.stack(stack).status_reason
