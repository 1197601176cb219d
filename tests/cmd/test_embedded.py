"""A whole installation in this process, as the demo, measurements and other tests use it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from convergence import errors
from convergence.cmd.embedded import Embedded
from convergence.concurrency import Executor
from convergence.config import (
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    Settings,
    TransportSettings,
    WorkerSettings,
)
from convergence.resources.contract import ResourceType, TransientFailure
from convergence.resources.registry import Registry

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
        with pytest.raises(TimeoutError, match=r'Stack s has not come to an end in 0\.2 s.*it'):
            embedded.wait(identity, 0.2)
        embedded.client.delete_stack(context, identity)
        embedded.wait(identity, LONG_S)


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
