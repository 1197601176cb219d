"""A whole installation in this process, as the demo, measurements and other tests use it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from convergence import errors
from convergence.cmd.embedded import Embedded, OperationSuperseded
from convergence.concurrency import Executor
from convergence.config import (
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    SecretSettings,
    Settings,
    TransportSettings,
    WorkerSettings,
)
from convergence.db.schema.sealing import new_key
from convergence.resources.attributes import attr
from convergence.resources.contract import Change, Done, FinalFailure, ResourceType, TransientFailure
from convergence.resources.registry import Registry
from convergence.resources.schema import prop
from convergence.rpc.client import QuestionClient

LONG_S = 60.0


def settings(directory: Path, url: str | None = None, workers: int = 2) -> Settings:
    """Everything below `directory`, and quick."""
    return Settings(
        host='here',
        executor=Executor.THREADING,
        state_dir=directory,
        database=DatabaseSettings(url or f'sqlite:///{directory}/convergence.sqlite', max_retries=0),
        transport=TransportSettings(),
        engine=EngineSettings(sweep_interval_s=0.1),
        worker=WorkerSettings(workers=workers, poll_interval_min_s=0.01, poll_interval_max_s=0.05),
        limits=LimitSettings(),
        local_provider=LocalProviderSettings(True, directory / 'local', {}),
    )


def template(type_name: str = 'Convergence::Local::File', **properties) -> str:
    """One resource, called `it`."""
    resource = {'type': type_name, 'properties': properties}
    return json.dumps({'heat_template_version': '2018-08-31', 'resources': {'it': resource}})


@dataclass(frozen=True)
class NoProperties:
    """Nothing to say."""


def test_a_stack_lives_in_it(tmp_path):
    with Embedded(settings(tmp_path)) as embedded:
        context = embedded.context('p')
        identity = embedded.client.create_stack(context, 's', template(path='f', content='one'))
        shown = embedded.wait(identity, LONG_S)
        assert (shown['stack_action'], shown['stack_status']) == ('CREATE', 'COMPLETE')
        assert (tmp_path / 'local' / 'f').read_text() == 'one'
        services = embedded.client.list_services(context)
        assert sorted(each['binary'] for each in services) == [
            'convergence-engine',
            'convergence-worker',
            'convergence-worker',
        ]
        embedded.client.delete_stack(context, identity)
        assert embedded.wait(identity, LONG_S)['stack_action'] == 'DELETE'
        assert not (tmp_path / 'local' / 'f').exists()


def test_what_it_knew_is_there_when_it_comes_back(tmp_path):
    """And what was in progress goes on."""
    with Embedded(settings(tmp_path)) as embedded:
        waiting = template('OS::Heat::TestResource', wait_secs=1)
        identity = embedded.client.create_stack(embedded.context('p'), 's', waiting)
    with Embedded(settings(tmp_path)) as embedded:
        assert embedded.wait(identity, LONG_S)['stack_status'] == 'COMPLETE'
        assert len(embedded.client.list_services(embedded.context('p'))) == 3


def test_two_in_one_process_do_not_hear_each_other(tmp_path):
    with Embedded(settings(tmp_path / 'one')) as one, Embedded(settings(tmp_path / 'two')) as two:
        identities = [
            each.client.create_stack(each.context('p'), 's', template(path='f', content=text))
            for each, text in ((one, 'first'), (two, 'second'))
        ]
        for each, identity in zip((one, two), identities, strict=True):
            assert each.wait(identity, LONG_S)['stack_status'] == 'COMPLETE'
            assert each.client.count_stacks(each.context('p')) == 1
    assert (tmp_path / 'one/local/f').read_text() == 'first'
    assert (tmp_path / 'two/local/f').read_text() == 'second'


def test_waiting_in_vain_says_for_what(tmp_path):
    with Embedded(settings(tmp_path)) as embedded:
        context = embedded.context('p')
        forever = template('OS::Heat::TestResource', action_wait_secs={'create': 1000})
        identity = embedded.client.create_stack(context, 's', forever)
        with pytest.raises(TimeoutError, match=r'Stack s has not finished within 0\.2 s.*it'):
            embedded.wait(identity, 0.2)
        embedded.client.delete_stack(context, identity)
        embedded.wait(identity, LONG_S)


def test_waiting_ends_when_another_operation_supersedes_the_awaited_one(tmp_path):
    with Embedded(settings(tmp_path)) as embedded:
        first, second = embedded.context('p'), embedded.context('p')
        forever = template('OS::Heat::TestResource', action_wait_secs={'create': 1000})
        identity = embedded.client.create_stack(first, 's', forever)
        embedded.client.delete_stack(second, identity)
        with pytest.raises(OperationSuperseded, match=r'DELETE .* superseded the operation on the stack s\.') as raised:
            embedded.wait(identity, LONG_S, request_id=first.request_id)
        assert raised.value.successor['request_id'] == second.request_id
        assert embedded.wait(identity, LONG_S, request_id=second.request_id)['stack_action'] == 'DELETE'


def test_the_result_of_an_operation_stays_its_result_when_a_later_one_begins(tmp_path):
    with Embedded(settings(tmp_path)) as embedded:
        first = embedded.context('p')
        identity = embedded.client.create_stack(first, 's', template('OS::Heat::TestResource'))
        embedded.wait(identity, LONG_S, request_id=first.request_id)
        embedded.client.delete_stack(embedded.context('p'), identity)
        shown = embedded.wait(identity, LONG_S, request_id=first.request_id)
        assert (shown['stack_action'], shown['stack_status']) == ('CREATE', 'COMPLETE')
        assert embedded.wait(identity, LONG_S)['stack_action'] == 'DELETE'


@pytest.mark.parametrize('database_url', ['postgresql', 'mariadb'], indirect=True)
def test_only_sqlite_is_migrated_unasked(tmp_path, database_url):
    with pytest.raises(errors.DatabaseUnavailable, match='convergence-manage db sync'):
        Embedded(settings(tmp_path, database_url))


def test_it_cannot_be_used_after_its_end(tmp_path):
    with Embedded(settings(tmp_path)) as embedded:
        pass
    with pytest.raises(RuntimeError, match='closed'):
        embedded.client.get_revision(embedded.context('p'))


class Busy(ResourceType[NoProperties]):
    """Never has time."""

    Properties = NoProperties
    asked: ClassVar[list[str]] = []

    def create(self, call):
        """Try again."""
        self.asked.append(call.name)
        raise TransientFailure('busy just now')


def test_the_operator_says_how_often_a_passing_failure_is_met(tmp_path):
    Busy.asked.clear()
    made = settings(tmp_path, workers=1)
    made = replace(made, worker=replace(made.worker, transient_attempts=3))
    with Embedded(made, types=Registry({'Test::Busy': Busy()})) as embedded:
        identity = embedded.client.create_stack(embedded.context('p'), 's', template('Test::Busy'))
        shown = embedded.wait(identity, LONG_S)
    assert shown['stack_status'] == 'FAILED'
    assert 'busy just now' in shown['stack_status_reason']
    assert Busy.asked == ['it'] * 3


def test_what_is_wrong_with_a_template_is_told_with_lines(tmp_path):
    wrong = """heat_template_version: 2018-08-31
resources:
  it:
    type: OS::Heat::Value
    properties: {value: {get_param: nobody}}
  that:
    type: Nobody::Has::This
"""
    with Embedded(settings(tmp_path, workers=1)) as embedded:
        with pytest.raises(errors.StackValidationFailed) as failed:
            embedded.client.create_stack(embedded.context('p'), 's', wrong)
        assert failed.value.problems
        assert {problem.place.line for problem in failed.value.problems} <= {5, 7}


# --- questions to types ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """What the service is to do."""

    text: str = prop('', update_allowed=True)


@dataclass(frozen=True)
class Now:
    """What changes by itself."""

    clock: int = attr(live=True)


class Service(ResourceType[Said]):
    """A service that can be asked, and hangs when it is told to.

    :ivar threads: the names of those in which it was asked.
    """

    Properties, Attributes, token_enforced = Said, Now, True
    threads: ClassVar[list[str]] = []
    time: ClassVar[list[int]] = [0]
    release: ClassVar[threading.Event] = threading.Event()

    def create(self, call):
        """Made at once."""
        return Done(call.token)

    def validate(self, call):
        """By the text."""
        self.threads.append(threading.current_thread().name)
        if call.properties.text == 'hang':
            assert self.release.wait(LONG_S)
        if call.properties.text == 'impossible':
            raise FinalFailure('there is no such thing')
        if call.properties.text == 'broken':
            raise KeyError('text')

    def plan(self, call):
        """By the text."""
        return {'same': Change.NONE, 'other': Change.REPLACE}.get(call.properties.text)

    def attribute(self, call, name):
        """The time."""
        return self.time[0]


@pytest.fixture(params=['memory', 'rabbit'])
def asked(request, tmp_path, monkeypatch):
    """An installation in one process whose engine asks its worker, without a broker or over one."""
    made = settings(tmp_path, workers=1)
    made = replace(made, engine=replace(made.engine, question_timeout_s=1.0), secrets=SecretSettings((new_key(),)))
    if request.param == 'rabbit':
        made = replace(made, transport=TransportSettings(request.getfixturevalue('rabbit_url')))
    sent = []
    call = QuestionClient.ask
    monkeypatch.setattr(
        QuestionClient,
        'ask',
        lambda self, context, text, limit_s: (sent.append(text), call(self, context, text, limit_s))[1],
    )
    Service.release.clear()
    with Embedded(made, types=Registry.builtin(more={'Test::Service': Service})) as embedded:
        embedded.sent = sent
        yield embedded
        Service.release.set()


def service(text):
    return template('Test::Service', text=text)


def test_types_are_asked_over_whatever_transport_there_is(asked):
    context, client = asked.context('p'), asked.client
    identity = client.create_stack(context, 's', service('a secret word'))
    asked.wait(identity, LONG_S)
    lists = client.preview_update_stack(context, identity, service('same'))
    assert [each['resource_name'] for each in lists['unchanged']] == ['it']
    assert [
        each['resource_name'] for each in client.preview_update_stack(context, identity, service('other'))['replaced']
    ] == ['it']
    Service.time[0] = 5
    shown = client.describe_stack_resource(context, identity, 'it')
    assert shown['attributes']['clock'] == 5 and 'attributes_not_read' not in shown
    for ask in (
        lambda: client.validate_template(context, service('impossible')),
        lambda: client.preview_stack(context, 't', service('impossible')),
    ):
        with pytest.raises(errors.StackValidationFailed, match='there is no such thing'):
            ask()
    (warning,) = client.validate_template(context, service('broken'))['Warnings']
    assert 'it is not known if it can be created: KeyError' in warning['message']
    assert asked.sent and not any('text' in each or 'secret' in each for each in asked.sent), 'the broker can read it'


def test_a_type_that_hangs_keeps_nobody_waiting(asked):
    context, client = asked.context('p'), asked.client
    (warning,) = client.validate_template(context, service('hang'))['Warnings']
    assert warning['message'].endswith('the resource type did not answer in time')
    (resource,) = client.preview_stack(context, 't', service('hang'))['resources']
    assert 'did not answer in time' in resource['reason']


def test_without_a_worker_requests_are_answered_all_the_same(asked):
    context, client = asked.context('p'), asked.client
    for worker in asked._running.workers:
        worker.stop()
    (warning,) = client.validate_template(context, service('impossible'))['Warnings']
    assert 'it is not known if it can be created' in warning['message']
    (again,) = client.validate_template(context, service('impossible'))['Warnings']
    assert 'no worker answered a moment ago' in again['message']
