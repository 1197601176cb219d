"""Previews, validation and shown attributes ask resource types by way of a worker, and do without where none answers."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

import pytest

from convergence import errors
from convergence.core.model import Change
from convergence.engine.preview.preview import Previews
from convergence.engine.questions.worker_questions import MOST_QUESTIONS, SILENT_S, WorkerQuestions
from convergence.engine.reads.installation import InstallationReads
from convergence.engine.reads.resources import ResourceReads
from convergence.resources.attributes import attr
from convergence.resources.contract import FinalFailure, TransientFailure
from convergence.resources.invocation import CallAccess
from convergence.resources.questions import QuestionKind, TypeQuestion, TypeReply, told
from convergence.worker.answering import Answering, SealedAnswers
from convergence.worker.attempts.port import none_of_stack
from tests.harness import Context, hot
from tests.reality import Thing

CONTEXT = Context()


@dataclass(frozen=True)
class Live:
    value: str = ''
    clock: int = attr(live=True)
    dear: int = attr(live=True, dear=True)
    password: str = attr(live=True, secret=True)


class Knowing(Thing):
    """Knows its service: `service` maps what is wanted to what it says."""

    Attributes = Live

    def __init__(self, reality):
        super().__init__(reality)
        self.service, self.asked, self.time = {}, [], 7

    def validate(self, call):
        """By the value."""
        self.asked.append(('validate', call.name, call.properties.value))
        said = self.service.get(call.properties.value)
        if isinstance(said, Exception):
            raise said

    def plan(self, call):
        """By the value."""
        self.asked.append(('plan', call.name, call.properties.value))
        said = self.service.get(call.properties.value)
        if isinstance(said, Exception):
            raise said
        return said

    def attribute(self, call, name):
        """The clock goes on."""
        if name == 'value':
            return super().attribute(call, name)
        if self.time is None:
            raise TransientFailure('the service is away')
        self.asked.append(('attribute', call.name, name))
        return {'at': self.time, 'of': name}


class Asking:
    """An engine that asks a worker which is in the same process.

    :ivar calls: how many questions each call had.
    """

    def __init__(self, harness):
        self.harness = harness
        self.kind = harness.registry._types['Test::Knowing'] = Knowing(harness.reality)
        access = CallAccess(harness.reader.signals, harness.ports.software, none_of_stack)
        self.desk = SealedAnswers(Answering(harness.registry, harness.reader, access), str, str)
        self.calls = []
        self.workers = WorkerQuestions(self.send, str, str)
        self.lost = None

    def send(self, context, questions, limit_s):
        """Over no broker."""
        assert context is CONTEXT
        self.calls.append(len(json.loads(questions)))
        if self.lost is not None:
            raise self.lost
        return self.desk.answer(context, questions, limit_s)

    def preview(self, stack_id, resources, **args):
        """What an update would do, by name."""
        previews = Previews(self.harness.reader, self.harness.registry, self.harness.stacks, workers=self.workers)
        source = resources if isinstance(resources, str) else hot(resources)
        lists = previews.preview_update_stack(CONTEXT, {'stack_id': stack_id}, source, args=args)
        return {
            each['path']: (fate, each['certainty'], each['reason']) for fate, all_ in lists.items() for each in all_
        }

    def preview_new(self, resources):
        """What a creation would make: the document."""
        previews = Previews(self.harness.reader, self.harness.registry, self.harness.stacks, workers=self.workers)
        return previews.preview_stack(CONTEXT, 'new', hot(resources))

    def validate(self, source, **options):
        """What is said of a template."""
        reads = InstallationReads(self.harness.compiler, self.harness.registry, None, '1', workers=self.workers)
        return reads.validate_template(CONTEXT, source, **options)

    def show(self, stack_id, name, *wanted):
        """A resource, as it is shown."""
        reads = ResourceReads(self.harness.reader, self.harness.compiler, workers=self.workers)
        return reads.describe_stack_resource(CONTEXT, {'stack_id': stack_id}, name, list(wanted) or None)


@pytest.fixture
def asking(harness):
    return Asking(harness)


def knowing(value, **more):
    return {'type': 'Test::Knowing', 'value': value, **more}


# --- what an update would do ----------------------------------------------------------------------------------


def test_a_dry_run_says_what_the_type_has_found_out(asking):
    names = {'a': '1', 'b': '2', 'c': '3', 'd': '4'}
    stack_id = asking.harness.created({name: knowing(value) for name, value in names.items()})
    asking.kind.service = {'same': Change.NONE, 'other': Change.REPLACE, 'set': Change.IN_PLACE}
    found = asking.preview(
        stack_id, {'a': knowing('same'), 'b': knowing('other'), 'c': knowing('set'), 'd': knowing('who knows')}
    )
    assert found == {
        'a': ('unchanged', 'certain', 'value changes; it means the same as before'),
        'b': ('replaced', 'certain', 'value changes; that needs a new object'),
        'c': ('updated', 'certain', 'value changes'),
        'd': (
            'updated',
            'possible',
            'value changes; not known if in place: its type does not know before the update runs',
        ),
    }
    assert asking.calls == [4], 'all questions of a preview travel in one call'
    assert asking.harness.reality.values() == names


def test_what_depends_on_a_resource_is_foretold_with_what_its_type_says(asking):
    def wanted(value):
        return {'a': knowing(value), 'b': {'value': 'x', 'link': {'get_resource': 'a'}}}

    stack_id = asking.harness.created(wanted('1'))
    asking.kind.service = {'same': Change.NONE, 'other': Change.REPLACE}
    assert asking.preview(stack_id, wanted('same'))['b'][:2] == ('unchanged', 'certain')
    assert asking.preview(stack_id, wanted('other'))['b'][:2] == ('updated', 'possible')


def test_an_update_that_the_service_would_refuse_is_refused_by_its_preview(asking):
    stack_id = asking.harness.created({'a': knowing('1')})
    asking.kind.service = {'huge': FinalFailure('there is no room for huge')}
    with pytest.raises(errors.StackValidationFailed, match=r'resources\.a .*there is no room for huge'):
        asking.preview(stack_id, {'a': knowing('huge')})


def test_values_that_are_not_known_yet_are_not_asked_about(asking):
    stack_id = asking.harness.created({'a': knowing('1'), 'b': knowing('2')})
    asking.kind.asked.clear()
    found = asking.preview(stack_id, {'new': 'x', 'a': knowing('2', link={'get_resource': 'new'}), 'b': knowing('2')})
    assert found['a'] == ('updated', 'possible', 'value changes')
    assert asking.kind.asked == [] and asking.calls == []


def test_who_would_be_replaced_anyway_is_asked_whether_it_can_be_made(asking):
    stack_id = asking.harness.created({'a': knowing('1', key='1')})
    asking.kind.asked.clear()
    assert asking.preview(stack_id, {'a': knowing('2', key='2')})['a'][0] == 'replaced'
    assert asking.kind.asked == [('validate', 'a', '2')]


def test_resources_of_nested_stacks_are_asked_about_in_the_same_call(asking):
    inner = hot(
        {'in': {'type': 'Test::Knowing', 'value': {'get_param': 'value'}}}, parameters={'value': {'type': 'string'}}
    )
    source = hot({'nest': {'type': 'inner.yaml', 'value': '1'}, 'top': knowing('1')})
    identity = asking.harness.stacks.create_stack(CONTEXT, 's', source, files={'inner.yaml': inner})
    asking.harness.recover()
    stack_id = str(identity['stack_id'])
    assert asking.harness.state(stack_id) == 'CREATE_COMPLETE', asking.harness.stack(stack_id).status_reason
    asking.kind.service = {'other': Change.REPLACE}
    previews = Previews(asking.harness.reader, asking.harness.registry, asking.harness.stacks, workers=asking.workers)
    changed = hot({'nest': {'type': 'inner.yaml', 'value': 'other'}, 'top': knowing('other')})
    files, args = {'inner.yaml': inner}, {'show_nested': True}
    lists = previews.preview_update_stack(CONTEXT, {'stack_id': stack_id}, changed, None, files, args)
    assert {each['path'] for each in lists['replaced']} == {'top', 'nest/in'}
    assert asking.calls == [2]


def test_a_rollback_is_foretold_with_what_types_say(asking):
    stack_id = asking.harness.created({'a': knowing('1')})
    asking.harness.update(stack_id, {'a': knowing('2'), 'broken': {'type': 'OS::Heat::TestResource', 'fail': True}})
    asking.harness.recover()
    assert asking.harness.state(stack_id) == 'UPDATE_FAILED'
    asking.kind.service = {'1': Change.REPLACE}
    previews = Previews(asking.harness.reader, asking.harness.registry, asking.harness.stacks, workers=asking.workers)
    lists = previews.preview_rollback(CONTEXT, {'stack_id': stack_id})
    assert [each['resource_name'] for each in lists['replaced']] == ['a']


# --- whether something can be made ----------------------------------------------------------------------------


def test_what_the_service_does_not_have_is_refused_by_preview_and_validation_with_its_place(asking):
    asking.kind.service = {'bad': FinalFailure('no such flavor'), 'worse': FinalFailure('no such image')}
    resources = {'a': knowing('good'), 'b': knowing('bad'), 'c': knowing('worse')}
    for ask in (lambda: asking.preview_new(resources), lambda: asking.validate(hot(resources))):
        with pytest.raises(errors.StackValidationFailed) as refused:
            ask()
        texts = [problem.message for problem in refused.value.problems]
        assert texts == ['resources.b (Test::Knowing): no such flavor', 'resources.c (Test::Knowing): no such image']
        assert all(problem.place.line for problem in refused.value.problems)
    assert asking.calls == [3, 3]


@pytest.mark.parametrize(
    ('said', 'why'),
    [(TransientFailure('the service is away'), 'the service is away'), (KeyError('x'), 'KeyError: ')],
)
def test_what_a_type_cannot_tell_is_a_warning_and_no_error(asking, said, why):
    asking.kind.service = {'x': said}
    document = asking.validate(hot({'a': knowing('x'), 'b': knowing('y')}))
    (warning,) = document['Warnings']
    assert warning['path'] == ['resources', 'a']
    assert f'it is not known if it can be created: {why}' in warning['message']
    (a, b) = asking.preview_new({'a': knowing('x'), 'b': knowing('y')})['resources']
    assert why in a['reason'] and b['reason'] == ''


def test_validation_asks_about_what_is_nested_and_about_nothing_that_is_not_known(asking):
    asking.kind.service = {'bad': FinalFailure('no such flavor')}
    parameters = {'value': {'type': 'string'}}
    inner = hot({'in': {'type': 'Test::Knowing', 'value': {'get_param': 'value'}}}, parameters=parameters)
    outer = hot({'nest': {'type': 'inner.yaml', 'value': 'bad'}})
    with pytest.raises(errors.StackValidationFailed, match='no such flavor') as refused:
        asking.validate(outer, files={'inner.yaml': inner})
    assert refused.value.problems[0].place.source == 'inner.yaml'
    asking.kind.asked.clear()
    asking.validate(inner)
    assert asking.kind.asked == []


def test_hidden_values_are_in_no_answer(asking):
    asking.kind.service = {'hunter2': TransientFailure('the service does not like hunter2')}
    source = hot(
        {'a': {'type': 'Test::Knowing', 'value': {'get_param': 'p'}}},
        parameters={'p': {'type': 'string', 'hidden': True, 'default': 'hunter2'}},
    )
    document = asking.validate(source)
    assert 'does not like' in json.dumps(document['Warnings']) and 'hunter2' not in json.dumps(document['Warnings'])


# --- attributes that are asked for ----------------------------------------------------------------------------


def test_live_attributes_are_those_of_this_moment(asking):
    stack_id = asking.harness.created({'a': knowing('1')})
    asking.kind.time = 8
    shown = asking.show(stack_id, 'a')
    assert shown['attributes']['clock'] == {'at': 8, 'of': 'clock'} and 'attributes_not_read' not in shown
    assert shown['attributes']['dear'] is None and shown['attributes']['password'] != {'at': 8, 'of': 'password'}
    asking.kind.asked.clear()
    shown = asking.show(stack_id, 'a', 'dear', 'show')
    assert shown['attributes']['dear'] == {'at': 8, 'of': 'dear'} and shown['attributes']['show'] is None
    assert sorted(name for *_, name in asking.kind.asked) == ['clock', 'dear']


def test_what_cannot_be_read_now_is_shown_as_it_was(asking):
    stack_id = asking.harness.created({'a': knowing('1')})
    asking.kind.time = None
    shown = asking.show(stack_id, 'a')
    assert shown['attributes']['clock'] == {'at': 7, 'of': 'clock'}
    assert shown['attributes_not_read'] == 'the service is away'


def test_nobody_is_asked_about_what_is_not_live(asking):
    stack_id = asking.harness.created({'b': {'value': 'x'}})
    asking.show(stack_id, 'b')
    assert asking.calls == []


# --- workers that do not answer -------------------------------------------------------------------------------

LOST = (
    errors.NoAnswer('no worker answered within 20 s'),
    errors.MessagingUnavailable('the worker does not know the question: it has another version'),
    errors.ConvergenceError('the worker failed to answer; see its log'),
    RuntimeError('whatever a driver raises'),
)


@pytest.mark.parametrize('lost', LOST, ids=lambda error: type(error).__name__)
def test_without_a_worker_everything_is_answered_as_far_as_it_is_known(asking, lost):
    stack_id = asking.harness.created({'a': knowing('1')})
    asking.lost = lost
    assert asking.preview(stack_id, {'a': knowing('2')})['a'][:2] == ('updated', 'possible')
    assert asking.preview_new({'a': knowing('1')})['resources'][0]['resource_name'] == 'a'
    assert len(asking.validate(hot({'a': knowing('1')}))['Warnings']) == 1
    shown = asking.show(stack_id, 'a')
    assert shown['attributes']['clock'] == {'at': 7, 'of': 'clock'} and shown['attributes_not_read']


def ask(workers, count=1):
    questions = [TypeQuestion(QuestionKind.READ, 'T', str(number), 's', 's', 'p') for number in range(count)]
    return workers(CONTEXT, questions)


def test_after_silence_nobody_waits_for_workers_for_a_while():
    now, calls = [0.0], []

    def send(context, questions, limit_s):
        calls.append(limit_s)
        if now[0] < SILENT_S:
            raise errors.NoAnswer('no worker answered')
        return told([TypeReply(is_known=True)])

    workers = WorkerQuestions(send, str, str, clock=lambda: now[0])
    assert ask(workers)[0].reason == 'no worker answered'
    assert ask(workers)[0].reason == 'no worker answered a moment ago' and len(calls) == 1
    now[0] = SILENT_S
    assert ask(workers) == [TypeReply(is_known=True)]


def test_only_some_requests_of_an_engine_wait_for_workers():
    arrived, release = threading.Event(), threading.Event()

    def send(context, questions, limit_s):
        arrived.set()
        assert release.wait(60.0)
        return told([TypeReply(is_known=True)])

    workers = WorkerQuestions(send, str, str, most_at_once=1)
    first: list[TypeReply] = []
    waiting = threading.Thread(target=lambda: first.extend(ask(workers)))
    waiting.start()
    assert arrived.wait(60.0)
    assert 'too many questions' in ask(workers)[0].reason
    release.set()
    waiting.join(60.0)
    assert first == [TypeReply(is_known=True)] == ask(workers)


@pytest.mark.parametrize('answer', ['', '[]', '{}', '[{"is_known": "x", "change": "DANCE"}]'])
def test_an_answer_that_makes_no_sense_is_none(answer):
    (reply,) = ask(WorkerQuestions(lambda context, questions, limit_s: answer, str, str))
    assert not reply.is_known and reply.reason == 'the answer of the worker is unreadable'


def test_a_request_asks_so_many_questions_and_no_more():
    sizes = []

    def send(context, questions, limit_s):
        sizes.append(len(json.loads(questions)))
        return told([TypeReply(is_known=True)] * sizes[-1])

    replies = ask(WorkerQuestions(send, str, str), MOST_QUESTIONS + 2)
    assert sizes == [MOST_QUESTIONS]
    assert [each.is_known for each in replies[-3:]] == [True, False, False]
