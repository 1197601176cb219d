"""What clients and servers may rely on, on every transport: in memory and on RabbitMQ, native and green threads."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import Counter

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from convergence import errors
from convergence.concurrency import Executor, installed
from convergence.rpc import client as client_module
from convergence.rpc import messages
from convergence.rpc.client import EngineClient, QuestionClient, WorkerClient
from convergence.rpc.operations import OPERATIONS, EngineOperation, EventQuery, StackQuery
from convergence.rpc.server import CancelServer, Endpoint, EngineServer, QuestionServer, RpcServer, WorkerServer
from convergence.rpc.shares import beneficiary, on_behalf_of
from convergence.rpc.transport import connect

LONG_S = 60.0
"""Longer than any of this takes; reached only when something is broken."""

CONTEXT = RequestContext(
    user_id='alice',
    project_id='acme',
    roles=['member', 'reader'],
    auth_token='a-token',
    request_id='req-7',
    overwrite=False,
)
IDENTITY = {'tenant': 'acme', 'stack_name': 'web', 'stack_id': '1234', 'path': ''}


@pytest.fixture(params=['memory', 'rabbit'])
def make_transport(request, exchange):
    url = f'memory:///{exchange}' if request.param == 'memory' else request.getfixturevalue('rabbit_url')
    made = []

    def make(**options):
        transport = connect(cfg.CONF, url, prefix=exchange, **options)
        made.append(transport)
        return transport

    yield make
    for transport in made:
        transport.close()


@pytest.fixture
def transport(make_transport):
    return make_transport()


@pytest.fixture
def serve():
    """Start a server, and stop it at the end of the test if that was not done."""
    started = []

    def start(server):
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


class Checks:
    """Notes what arrives; `hold` keeps the thread busy until the test lets it go."""

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.arrived: queue.Queue = queue.Queue()
        self.ended: queue.Queue = queue.Queue()
        self.hold = hold

    def check_resource(self, context, traversal_id, node, hops=0):
        self.arrived.put((context, traversal_id, node))
        if self.hold is not None:
            assert self.hold.wait(LONG_S)
        self.ended.put(node)

    def cancel(self, context, stack_id, traversal_id):
        self.arrived.put((context, stack_id, traversal_id))

    def next(self):
        return self.arrived.get(timeout=LONG_S)


class NarrowerError(errors.InvalidTemplateReference):
    """An error that only this engine knows."""


PROBLEMS = (
    errors.Problem('there is no resource "web"', errors.Place(7, 3, 'web.yaml', ('resources', 'db', 'links', 0))),
    errors.Problem('a ☂ without a place'),
    errors.Problem('this\nneeds two lines', errors.Place(1, 1)),
)


class Engine:
    """A service with some of the operations."""

    def __init__(self) -> None:
        self.settled: queue.Queue = queue.Queue()
        self.release = threading.Event()

    def identify_stack(self, context, stack_name):
        raise errors.EntityNotFound('Stack', stack_name)

    def show_stack(self, context, stack_identity, resolve_outputs=True):
        return [{**stack_identity, 'resolved': resolve_outputs, 'asked_by': context.project_id}]

    def create_stack(self, context, stack_name, template, params=None, files=None, args=None):
        return {'name': stack_name, 'size': len(template), 'params': params, 'files': files, 'args': args}

    def update_stack(self, context, stack_identity, template, **rest):
        raise errors.InvalidTemplateReference('template, line 7, column 3: there is no resource "web"')

    def preview_update_stack(self, context, stack_identity, template, **rest):
        raise NarrowerError(PROBLEMS)

    def delete_stack(self, context, stack_identity):
        assert self.release.wait(LONG_S)

    def list_stacks(self, context, query):
        return [{'limit': query.limit, 'tags': query.tags, 'show_nested': query.show_nested}]

    def list_events(self, context, stack_identity, query):
        return [{'filters': query.filters, 'depth': query.nested_depth}]

    def get_template(self, context, stack_identity):
        raise KeyError('password=hunter2')

    def get_revision(self, context):
        return 'r1'

    def get_files(self, context, stack_identity):
        return {'not json': object()}

    def settle(self, context, stack_id, traversal_id):
        self.settled.put((stack_id, traversal_id))

    def drop_everything(self, context):
        raise AssertionError('must not be reached from outside')


def engine_client(transport, serve, **options):
    engine = Engine()
    serve(EngineServer(transport, 'engine-1', engine, **options))
    return engine, EngineClient(transport)


# --- checks ---------------------------------------------------------------------------------------------------


def test_a_check_reaches_a_worker_with_who_asked_but_without_a_token(transport, serve):
    worker = Checks()
    serve(WorkerServer(transport, 'worker-1', worker))
    assert WorkerClient(transport).check_resource('t-1', 5, context=CONTEXT)
    context, traversal_id, node = worker.next()
    assert (traversal_id, node) == ('t-1', 5)
    assert (context.user_id, context.project_id, context.roles, context.request_id) == (
        'alice',
        'acme',
        ['member', 'reader'],
        'req-7',
    )
    assert context.auth_token is None


def test_a_check_tells_for_which_project_it_is_and_so_do_those_that_follow(transport, serve):
    told: queue.Queue = queue.Queue()
    client, worker = WorkerClient(transport), Checks()

    def check(context, traversal_id, node, hops):
        told.put((node, beneficiary()))
        if node < 2:
            client.check_resource(traversal_id, node + 1)

    worker.check_resource = check
    serve(WorkerServer(transport, 'worker-1', worker))
    with on_behalf_of('acme'):
        client.check_resource('t-1', 1)
    assert [told.get(timeout=LONG_S) for _ in range(2)] == [(1, 'acme'), (2, 'acme')]
    client.check_resource('t-1', 5)
    assert told.get(timeout=LONG_S) == (5, '')


def test_checks_of_some_nodes_reach_one_worker_in_one_message(transport, serve):
    arrived: queue.Queue = queue.Queue()
    for name in ('worker-1', 'worker-2'):
        worker = Checks()
        worker.check_resource = lambda context, traversal_id, node, hops, name=name: arrived.put((name, node))
        serve(WorkerServer(transport, name, worker))
    assert WorkerClient(transport).check_resources('t-1', [5, 6, 7])
    received = [arrived.get(timeout=LONG_S) for _ in range(3)]
    assert [node for _, node in received] == [5, 6, 7]
    assert len({name for name, _ in received}) == 1


def test_checks_are_spread_over_the_workers_and_each_arrives_once(transport, serve):
    arrived: queue.Queue = queue.Queue()
    for name in ('worker-1', 'worker-2'):
        worker = Checks()
        worker.check_resource = lambda context, traversal_id, node, hops, name=name: arrived.put((name, node))
        serve(WorkerServer(transport, name, worker))
    client = WorkerClient(transport)
    for node in range(40):
        assert client.check_resource('t-1', node)
    received = [arrived.get(timeout=LONG_S) for _ in range(40)]
    assert Counter(node for _, node in received) == Counter(range(40))
    assert {name for name, _ in received} == {'worker-1', 'worker-2'}


def test_a_server_works_on_as_many_messages_at_a_time_as_it_has_threads(transport, serve):
    hold = threading.Event()
    worker = Checks(hold)
    serve(WorkerServer(transport, 'worker-1', worker, threads=2))
    client = WorkerClient(transport)
    for node in range(5):
        client.check_resource('t-1', node)
    worker.next()
    worker.next()
    # A third would have to arrive before the first two are let go.
    with pytest.raises(queue.Empty):
        worker.arrived.get(timeout=0.2)
    hold.set()
    assert sorted(worker.ended.get(timeout=LONG_S) for _ in range(5)) == [0, 1, 2, 3, 4]


def test_a_failing_handler_is_logged_and_the_server_goes_on(transport, serve, caplog):
    class Broken(Checks):
        def check_resource(self, context, traversal_id, node, hops=0):
            super().check_resource(context, traversal_id, node, hops)
            if node == 1:
                raise ValueError('broken worker')

    worker = Broken()
    server = serve(WorkerServer(transport, 'worker-1', worker, threads=1))
    client = WorkerClient(transport)
    for node in (1, 2):
        client.check_resource('t-1', node)
    assert [worker.next()[2], worker.next()[2]] == [1, 2]
    server.stop()
    assert server.wait(LONG_S)
    assert 'broken worker' in caplog.text
    assert 'the sweeper dispatches its nodes again' in caplog.text


def test_a_check_that_nobody_ever_listened_for_vanishes(transport, serve):
    client = WorkerClient(transport)
    assert client.check_resource('t-1', 1)
    worker = Checks()
    serve(WorkerServer(transport, 'worker-1', worker))
    client.check_resource('t-1', 2)
    assert worker.next()[2] == 2


def test_checks_wait_for_the_next_worker_once_there_was_one(transport, serve):
    first = serve(WorkerServer(transport, 'worker-1', Checks()))
    first.stop()
    assert first.wait(LONG_S)
    client = WorkerClient(transport)
    for node in range(3):
        assert client.check_resource('t-1', node)
    worker = Checks()
    serve(WorkerServer(transport, 'worker-2', worker))
    assert sorted(worker.next()[2] for _ in range(3)) == [0, 1, 2]


def test_a_worker_that_stops_gives_back_what_it_has_not_begun(make_transport, serve):
    transport, hold = make_transport(), threading.Event()
    stopping, other = Checks(hold), Checks()
    server = serve(WorkerServer(transport, 'worker-1', stopping, threads=1))
    client = WorkerClient(make_transport())
    for node in range(6):
        client.check_resource('t-1', node)
    assert stopping.next()[2] == 0
    server.stop()
    serve(WorkerServer(make_transport(), 'worker-2', other))
    hold.set()
    assert server.wait(LONG_S)
    assert sorted(other.next()[2] for _ in range(5)) == [1, 2, 3, 4, 5]
    assert stopping.ended.get(timeout=LONG_S) == 0
    assert stopping.arrived.empty()


def test_wait_tells_whether_the_work_has_ended(transport, serve):
    hold = threading.Event()
    worker = Checks(hold)
    server = serve(WorkerServer(transport, 'worker-1', worker))
    WorkerClient(transport).check_resource('t-1', 1)
    worker.next()
    server.stop()
    assert not server.wait(0)
    hold.set()
    assert server.wait(LONG_S)
    assert worker.ended.get(timeout=LONG_S) == 1


# --- cancel ---------------------------------------------------------------------------------------------------


def test_a_cancel_reaches_every_worker_while_all_their_threads_are_busy(transport, serve):
    hold, workers = threading.Event(), []
    client = WorkerClient(transport)
    for number in range(3):
        worker = Checks(hold)
        workers.append((worker, Checks()))
        serve(WorkerServer(transport, f'worker-{number}', worker, threads=1))
        serve(CancelServer(transport, f'worker-{number}', workers[-1][1]))
    for node in range(9):
        client.check_resource('t-1', node)
    for worker, _ in workers:
        worker.next()
    assert client.cancel('stack-1', 't-1', context=CONTEXT)
    for _, canceller in workers:
        context, stack_id, traversal_id = canceller.next()
        assert (context.project_id, stack_id, traversal_id) == ('acme', 'stack-1', 't-1')
        assert canceller.arrived.empty()
    hold.set()


def test_a_cancel_without_workers_is_nobodys_business(transport):
    assert WorkerClient(transport).cancel('stack-1', 't-1')


# --- calls ----------------------------------------------------------------------------------------------------


def test_a_call_returns_what_the_engine_answers(transport, serve):
    _, client = engine_client(transport, serve)
    assert client.show_stack(CONTEXT, IDENTITY) == [{**IDENTITY, 'resolved': True, 'asked_by': 'acme'}]
    assert client.show_stack(CONTEXT, IDENTITY, resolve_outputs=False)[0]['resolved'] is False
    assert client.get_revision(CONTEXT) == 'r1'


def test_many_callers_get_their_own_answers(transport, serve):
    _, client = engine_client(transport, serve, threads=4)
    answers = {}

    def ask(number):
        answers[number] = client.show_stack(CONTEXT, {**IDENTITY, 'stack_name': str(number)})[0]['stack_name']

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert answers == {number: str(number) for number in range(12)}


def test_arguments_that_were_not_given_are_left_to_the_engine(transport, serve):
    _, client = engine_client(transport, serve)
    answer = client.create_stack(CONTEXT, 'web', 'abc', params={'parameters': {'size': 2}})
    assert answer == {'name': 'web', 'size': 3, 'params': {'parameters': {'size': 2}}, 'files': None, 'args': None}


def test_a_template_may_be_large(transport, serve):
    _, client = engine_client(transport, serve)
    assert client.create_stack(CONTEXT, 'web', 'x' * 2_000_000)['size'] == 2_000_000


def test_filters_arrive_as_one_query(transport, serve):
    _, client = engine_client(transport, serve)
    assert client.list_stacks(CONTEXT) == [{'limit': None, 'tags': None, 'show_nested': False}]
    query = StackQuery(limit=3, tags=['a'], show_nested=True)
    assert client.list_stacks(CONTEXT, query) == [{'limit': 3, 'tags': ['a'], 'show_nested': True}]
    events = EventQuery(filters={'resource_name': 'web'}, nested_depth=2)
    assert client.list_events(CONTEXT, IDENTITY, events) == [{'filters': {'resource_name': 'web'}, 'depth': 2}]


def test_settle_reaches_one_engine(transport, serve):
    engine, client = engine_client(transport, serve)
    assert client.settle('stack-1', 't-1')
    assert engine.settled.get(timeout=LONG_S) == ('stack-1', 't-1')


def test_errors_of_the_engine_come_back_as_what_they_are(transport, serve, caplog):
    _, client = engine_client(transport, serve)
    with pytest.raises(errors.EntityNotFound) as missing:
        client.identify_stack(CONTEXT, 'nowhere')
    assert type(missing.value) is errors.EntityNotFound
    assert str(missing.value) == 'The Stack (nowhere) could not be found.'
    with pytest.raises(errors.InvalidTemplateReference) as invalid:
        client.update_stack(CONTEXT, IDENTITY, {})
    assert str(invalid.value) == 'template, line 7, column 3: there is no resource "web"'
    assert 'Traceback' not in caplog.text, "a user's mistake is no fault of the engine"


def test_all_that_is_wrong_with_a_template_comes_back_with_its_places(transport, serve):
    _, client = engine_client(transport, serve)
    with pytest.raises(errors.StackValidationFailed) as invalid:
        client.preview_update_stack(CONTEXT, IDENTITY, {})
    assert type(invalid.value) is errors.InvalidTemplateReference
    assert invalid.value.problems == PROBLEMS
    assert str(invalid.value) == str(errors.StackValidationFailed(PROBLEMS))


def test_an_unexpected_error_is_logged_there_and_tells_the_caller_where_to_look(transport, serve, caplog):
    _, client = engine_client(transport, serve)
    with pytest.raises(errors.ConvergenceError) as failed:
        client.get_template(CONTEXT, IDENTITY)
    assert type(failed.value) is errors.ConvergenceError
    assert str(failed.value) == 'get_template failed in the engine; search its log for req-7'
    assert 'KeyError' in caplog.text


def test_an_operation_that_the_engine_lacks_is_not_supported(transport, serve):
    _, client = engine_client(transport, serve)
    with pytest.raises(errors.NotSupported, match='list_services is not offered by this engine'):
        client.list_services(CONTEXT)


@pytest.mark.parametrize('method', ['drop_everything', 'target', '__init__', '_service'])
def test_nothing_else_of_the_service_can_be_reached(transport, serve, method):
    engine_client(transport, serve)
    raw = transport.client(messages.ENGINE_TOPIC, messages.ENGINE_VERSION)
    with pytest.raises(Exception, match='does not support RPC method'):
        raw.call(CONTEXT, method)


def test_arguments_of_a_newer_caller_and_missing_ones_are_refused(transport, serve, caplog):
    engine_client(transport, serve)
    raw = transport.client(messages.ENGINE_TOPIC, messages.ENGINE_VERSION)
    with pytest.raises(errors.Invalid, match='get_revision: it has no argument colour'):
        raw.call(CONTEXT, 'get_revision', colour='blue')
    for _ in range(3):
        with pytest.raises(errors.Invalid, match='stack_identity missing'):
            raw.call(CONTEXT, 'show_stack', resolve_outputs=True)
    assert caplog.text.count('show_stack: stack_identity missing') <= 1


def test_a_call_without_an_engine_fails_at_once(transport):
    with pytest.raises(errors.MessagingUnavailable, match='get_revision: no engine is listening'):
        EngineClient(transport).get_revision(CONTEXT)


def test_a_call_that_takes_too_long_says_that_it_may_still_be_carried_out(make_transport, serve):
    engine, client = engine_client(make_transport(call_timeout_s=1), serve)
    with pytest.raises(
        errors.MessagingUnavailable, match=r'delete_stack: no engine answered within 1 s. The engine may still'
    ):
        client.delete_stack(CONTEXT, IDENTITY)
    engine.release.set()


def test_a_request_over_the_limit_is_not_sent(transport, serve):
    engine_client(transport, serve)
    client = EngineClient(transport, limit_bytes=100)
    with pytest.raises(errors.RequestLimitExceeded, match=r'create_stack: the message would have .* the limit is 100'):
        client.create_stack(CONTEXT, 'web', 'x' * 100)


def test_a_newer_operation_asked_of_an_older_engine_says_who_must_be_upgraded(transport, serve, monkeypatch):
    _, old = engine_client(transport, serve)
    newer = dict(OPERATIONS, get_revision=EngineOperation('get_revision', since='1.9'))
    monkeypatch.setattr('convergence.rpc.client.OPERATIONS', newer)
    with pytest.raises(errors.OperatorError, match='upgrade engines first'):
        EngineClient(transport).get_revision(CONTEXT)
    with pytest.raises(errors.OperatorError, match=r'version cap 1.0 is too low'):
        EngineClient(transport, version_cap='1.0').get_revision(CONTEXT)
    assert old.show_stack(CONTEXT, IDENTITY)


def test_a_broker_that_answers_is_healthy(transport):
    health = transport.health()
    assert health.available
    assert 'guest:' not in health.where


# --- the other executor ---------------------------------------------------------------------------------------


@pytest.mark.skipif(installed() is not Executor.THREADING, reason='this is the other executor')
@pytest.mark.parametrize('kind', ['memory', 'rabbit'])
def test_all_of_this_on_green_threads(kind, request):
    environment = dict(os.environ)
    if kind == 'rabbit':
        environment['CONVERGENCE_TEST_RABBIT_URL'] = request.getfixturevalue('rabbit_url')
    code = (
        'from convergence.concurrency import *; install(Executor.EVENTLET); import sys, pytest;'
        f'sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "{kind}", {os.path.abspath(__file__)!r}]))'
    )
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code],
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ' passed' in done.stdout


# --- questions ------------------------------------------------------------------------------------------------


class Answers:
    """Answers questions; `hold` keeps each waiting for as long as it may take."""

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.hold = hold
        self.asked: list[tuple[str, str, float]] = []

    def answer(self, context, questions, limit_s):
        self.asked.append((context.project_id, questions, limit_s))
        if self.hold is not None:
            self.hold.wait(LONG_S)
        if questions == 'fail':
            raise KeyError('password=hunter2')
        if questions == 'sealed with another key':
            raise errors.SealedWithAnotherKey('there is no key')
        return f'answer to {questions}'


def test_a_question_is_answered_by_one_worker(transport, serve):
    workers = [Answers(), Answers()]
    for number, worker in enumerate(workers):
        serve(QuestionServer(transport, f'worker-{number}', worker))
    assert QuestionClient(transport).ask(CONTEXT, 'how are you', 5.0) == 'answer to how are you'
    assert [asked for worker in workers for asked in worker.asked] == [('acme', 'how are you', 5.0)]


def test_where_no_worker_has_ever_been_that_is_known_at_once(transport):
    with pytest.raises(errors.MessagingUnavailable, match='no worker is running that could answer'):
        QuestionClient(transport).ask(CONTEXT, 'how are you', LONG_S)


def test_a_worker_that_does_not_answer_is_waited_for_no_longer_than_was_said(transport, serve, monkeypatch):
    monkeypatch.setattr(client_module, 'ANSWER_TRAVELS_S', 0.1)
    hold = threading.Event()
    serve(QuestionServer(transport, 'worker-1', Answers(hold)))
    with pytest.raises(errors.NoAnswer, match=r'no worker answered within 0\.1 s'):
        QuestionClient(transport).ask(CONTEXT, 'how are you', 0.1)
    hold.set()


def test_a_worker_that_is_gone_is_waited_for_no_longer_than_was_said(transport, serve, monkeypatch):
    monkeypatch.setattr(client_module, 'ANSWER_TRAVELS_S', 0.1)
    server = serve(QuestionServer(transport, 'worker-1', Answers()))
    server.stop()
    assert server.wait(LONG_S)
    with pytest.raises(errors.MessagingUnavailable, match='worker'):
        QuestionClient(transport).ask(CONTEXT, 'how are you', 0.1)


def test_workers_of_before_there_were_questions_are_not_asked(transport, serve):
    """A rolling upgrade: a worker that does not know the call takes its checks, and does not even see the question."""
    worker = Checks()
    serve(WorkerServer(transport, 'worker-1', worker))
    with pytest.raises(errors.MessagingUnavailable, match='no worker is running that could answer'):
        QuestionClient(transport).ask(CONTEXT, 'how are you', LONG_S)
    assert worker.arrived.empty()


@pytest.mark.parametrize(('version', 'methods'), [('1.0', {}), ('0.9', {'answer': None})])
def test_a_worker_that_does_not_know_the_question_says_so(transport, serve, version, methods):
    serve(RpcServer(transport, messages.QUESTION_TOPIC, 'worker-1', Endpoint(version, methods), 1))
    with pytest.raises(errors.MessagingUnavailable, match='does not know the question: it has another version'):
        QuestionClient(transport).ask(CONTEXT, 'how are you', LONG_S)


def test_what_goes_wrong_with_an_answer_is_told_to_the_log_and_to_nobody_else(transport, serve, caplog):
    serve(QuestionServer(transport, 'worker-1', Answers()))
    with pytest.raises(errors.ConvergenceError) as failed:
        QuestionClient(transport).ask(CONTEXT, 'fail', LONG_S)
    assert str(failed.value) == 'the worker failed to answer; see its log'
    assert 'KeyError' in caplog.text
    with pytest.raises(errors.SealedWithAnotherKey, match='there is no key'):
        QuestionClient(transport).ask(CONTEXT, 'sealed with another key', LONG_S)


@pytest.mark.parametrize('more', [{'colour': 'red'}, {'limit_s': 'long'}, {'questions': 7}])
def test_a_question_that_says_more_than_is_understood_is_refused(transport, serve, more):
    answers = Answers()
    serve(QuestionServer(transport, 'worker-1', answers))
    raw = transport.client(messages.QUESTION_TOPIC, messages.QUESTION_VERSION)
    with pytest.raises(errors.Invalid, match='different versions'):
        raw.call(CONTEXT, 'answer', **{'questions': 'q', 'limit_s': 1.0, **more})
    assert answers.asked == []


def test_workers_take_cancels_while_they_answer(transport, serve):
    hold, cancels = threading.Event(), Checks()
    answers = Answers(hold)
    serve(QuestionServer(transport, 'worker-1', answers, threads=1))
    serve(CancelServer(transport, 'worker-1', cancels))
    asking = threading.Thread(target=QuestionClient(transport).ask, args=(CONTEXT, 'q', LONG_S))
    asking.start()
    assert WorkerClient(transport).cancel('stack-1', 't-1')
    assert cancels.next()[1:] == ('stack-1', 't-1')
    hold.set()
    asking.join(LONG_S)
