"""A worker answers what engines ask of types, in time, and whatever the types do."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, replace

import pytest

from convergence.core.model import Change
from convergence.errors import SealedWithAnotherKey
from convergence.resources.attributes import attr
from convergence.resources.contract import FinalFailure, ResourceType, TransientFailure
from convergence.resources.invocation import CallAccess
from convergence.resources.questions import QuestionKind, TypeQuestion, TypeReply, questions_of, replies_of, told
from convergence.resources.schema import prop, secret
from convergence.worker.answering import NEWER, UNREACHED, Answering, SealedAnswers
from convergence.worker.attempts.port import none_of_stack
from tests.harness import Harness
from tests.reality import Thing

LONG_S = 60.0


@dataclass(frozen=True)
class Wanted:
    text: str = prop('', update_allowed=True)
    password: str = secret(prop('', update_allowed=True))


@dataclass(frozen=True)
class Live:
    clock: int = attr(live=True)
    broken: int = attr(live=True)


class Talking(ResourceType[Wanted]):
    """Does what the text of a question says.

    :ivar closed: set when what a call waits for was closed.
    """

    Properties, Attributes = Wanted, Live
    release, closed, seen = threading.Event(), threading.Event(), []

    def create(self, call):
        """Nobody does."""

    def validate(self, call):
        """In all the ways."""
        self.seen.append(call)
        match call.properties.text:
            case 'impossible':
                raise FinalFailure(f'there is no such thing, {call.properties.password}')
            case 'away':
                raise TransientFailure('the service is away')
            case 'broken':
                raise KeyError(call.properties.password)
            case 'acts':
                call.credentials().session()
            case 'records':
                call.record('an id')
            case 'writes':
                call.software.keep_config('c', 'n', 'g', {})
            case 'hangs':
                call.on_cancel(self.closed.set)
                assert self.release.wait(LONG_S)

    def plan(self, call):
        """What is said."""
        self.seen.append(call)
        return {'same': Change.NONE, 'other': Change.REPLACE, 'odd': 'odd'}.get(call.properties.text)

    def attribute(self, call, name):
        """Of its object."""
        self.seen.append(call)
        if name == 'broken':
            raise ConnectionError('no route')
        return f'{name} of {call.physical_id}'


class Acting:
    """Credentials whose session is all there is."""

    def session(self):
        """Acts."""


@pytest.fixture
def harness():
    found = Harness(None)
    found.registry._types['Test::Talking'] = Talking()
    Talking.seen.clear()
    Talking.release.clear()
    Talking.closed.clear()
    yield found
    Talking.release.set()


def answering(harness, *, credentials=none_of_stack, **options):
    access = CallAccess(harness.reader.signals, harness.ports.software, credentials)
    return Answering(harness.registry, harness.reader, access, **options)


def question(text='', asked=QuestionKind.VALIDATE, **more):
    given = {'properties': {'text': text, 'password': 'hunter2'}, **more}
    return TypeQuestion(asked, 'Test::Talking', 't', '', 's', 'p', **given)


def test_a_type_says_whether_there_can_be_such_a_thing(harness):
    asked = [question('possible'), question('impossible'), question('away'), question('broken')]
    possible, impossible, away, broken = answering(harness).answer(asked, LONG_S)
    assert possible == TypeReply(is_known=True)
    assert (impossible.is_known, impossible.refusal) == (True, 'there is no such thing, ******')
    assert (away.is_known, away.reason, away.refusal) == (False, 'the service is away', '')
    assert not broken.is_known and broken.reason.startswith('KeyError')


def test_nothing_secret_is_in_a_reply_or_in_the_log(harness, caplog):
    caplog.set_level(logging.DEBUG)
    replies = answering(harness).answer([question('impossible'), question('broken')], LONG_S)
    assert 'hunter2' not in told(replies) and 'hunter2' not in caplog.text
    hidden = question('from a parameter', secrets=('from a parameter',))
    assert 'from a parameter' not in repr(replace(hidden, secrets=()))


def test_a_type_that_hangs_is_told_and_the_others_are_heard_in_time(harness):
    asked = [question('hangs'), question('possible'), question('hangs')]
    hung, possible, _ = answering(harness, grace_s=0.1).answer(asked, 0.2)
    assert (hung, possible) == (UNREACHED, TypeReply(is_known=True))
    assert Talking.closed.wait(LONG_S), 'its connection is closed'


def test_where_too_many_calls_do_not_end_no_more_are_made(harness):
    desk = answering(harness, threads=2, grace_s=0.0)
    desk.answer([question('hangs'), question('hangs')], 0.1)
    while desk._pool.lost < 2:
        threading.Event().wait(0.01)
    made = len(Talking.seen)
    (reply,) = desk.answer([question('possible')], LONG_S)
    assert 'calls that do not end' in reply.reason and len(Talking.seen) == made
    Talking.release.set()
    while desk._pool.lost:
        threading.Event().wait(0.01)
    assert desk.answer([question('possible')], LONG_S) == [TypeReply(is_known=True)]


def test_what_waits_for_a_thread_is_not_begun_when_its_time_is_over(harness):
    desk = answering(harness, threads=1, grace_s=LONG_S)
    assert desk.answer([question('hangs'), question('late')], 0.1) == [UNREACHED, UNREACHED]
    Talking.release.set()
    assert desk.answer([question('possible')], LONG_S) == [TypeReply(is_known=True)]
    assert [call.properties.text for call in Talking.seen] == ['hangs', 'possible']


def test_what_this_worker_does_not_know_is_not_known(harness):
    stranger = replace(question(), type='Test::Nowhere')
    newer = json.loads(told([question()]))[0]
    texts = [{**newer, 'asked': 'SING'}, {**newer, 'colour': 'red'}]
    desk = answering(harness)
    assert desk.answer([stranger], LONG_S)[0].reason == 'the worker has no resource type Test::Nowhere'
    assert desk.answer(questions_of(json.dumps(texts)), LONG_S) == [NEWER, NEWER]


def test_an_object_is_asked_about_with_what_its_row_says(harness):
    stack_id = harness.created({'t': {'type': 'Test::Thing', 'value': 'x'}})
    row = harness.row(stack_id, 't')

    class Planned(Thing):
        def plan(self, call):
            asked.append((call.previous.value, call.properties.value, call.physical_id, call.token))
            return {'same': Change.NONE}.get(call.properties.value)

    asked: list[tuple[str, str, str, str]] = []
    harness.registry._types['Test::Thing'] = Planned(harness.reality)
    wanted = TypeQuestion(
        QuestionKind.PLAN, 'Test::Thing', 't', stack_id, 's', 'p', resource_id=row.id, properties={'value': 'same'}
    )
    replies = answering(harness).answer([wanted, replace(wanted, properties={'value': 'y'})], LONG_S)
    assert [each.change for each in replies] == [Change.NONE, None]
    assert [each.is_known for each in replies] == [True, False]
    assert sorted(asked) == [('x', 'same', row.physical_id, row.token), ('x', 'y', row.physical_id, row.token)]
    read = replace(wanted, asked=QuestionKind.READ, attributes=('value', 'nothing'))
    (reply,) = answering(harness).answer([read], LONG_S)
    assert reply.attributes['value'] == 'x'
    others = [replace(wanted, project_id='another'), replace(wanted, resource_id='gone')]
    for reply in answering(harness).answer(others, LONG_S):
        assert reply == TypeReply(reason='the resource does not exist any more')


def test_what_cannot_be_read_of_an_object_does_not_keep_the_rest_away(harness):
    stack_id = harness.created({'t': {'type': 'Test::Thing', 'value': 'x'}})
    row = harness.row(stack_id, 't')
    harness.registry._types['Test::Thing'] = Talking()
    read = TypeQuestion(
        QuestionKind.READ, 'Test::Thing', 't', stack_id, 's', 'p', resource_id=row.id, attributes=('broken', 'clock')
    )
    (reply,) = answering(harness).answer([read], LONG_S)
    assert reply.attributes == {'clock': f'clock of {row.physical_id}'}
    assert (reply.is_known, reply.reason) == (False, 'ConnectionError: no route')


def test_a_stack_that_is_there_is_acted_for(harness):
    acted = []

    def credentials(stack_id):
        acted.append(stack_id)
        return Acting()

    def lent(credentials_id, project_id):
        acted.append((credentials_id, project_id))
        return Acting()

    desk = answering(harness, credentials=credentials, lent=lent)
    replies = desk.answer([question('acts', acts_as='stack-1'), question('acts', credentials_id='c')], LONG_S)
    assert replies == [TypeReply(is_known=True)] * 2
    assert sorted(map(str, acted)) == ["('c', 'p')", 'stack-1']


def test_for_want_of_credentials_nothing_is_known(harness):
    """The creation will have some: that there are none yet says nothing about it."""
    new, there = answering(harness).answer([question('acts'), question('acts', acts_as='stack-1')], LONG_S)
    assert (new.is_known, new.wants_credentials) == (False, True)
    assert (there.is_known, there.wants_credentials) == (False, False)


def test_a_question_writes_nothing(harness):
    replies = answering(harness).answer([question('writes'), question('records')], LONG_S)
    assert [each.is_known for each in replies] == [False, False], 'that is the fault of the type, and no refusal'
    assert harness.ports.software.config('p', 'c') is None


def test_questions_and_replies_travel_sealed(harness):
    def close(text):
        return text[::-1]

    def opened(text):
        if text == 'of another key':
            raise SealedWithAnotherKey('no key')
        return text[::-1]

    desk = SealedAnswers(answering(harness), close, opened)
    answer = desk.answer(None, close(told([question('possible')])), LONG_S)
    assert replies_of(opened(answer)) == [TypeReply(is_known=True)]
    with pytest.raises(SealedWithAnotherKey):
        desk.answer(None, 'of another key', LONG_S)


@pytest.mark.parametrize('text', ['', '{}', '[1]', '[{"is_known": true, "change": "DANCE"}]'])
def test_what_is_no_reply_is_refused(text):
    with pytest.raises(ValueError, match=r'.'):
        replies_of(text)


def test_a_reply_of_a_newer_worker_is_read_as_far_as_it_is_understood():
    document = {**json.loads(told([TypeReply(is_known=True, change=Change.REPLACE)]))[0], 'mood': 'good'}
    assert replies_of(json.dumps([document])) == [TypeReply(is_known=True, change=Change.REPLACE)]
