"""Long actions that wait in their rows, with no thread anywhere."""

import signal

import pytest

from tests.functional.cloud import template

DATABASE = 'mariadb'
OPTIONS = {'park_after_s': 0}
PROCESSES = {'engines': 1, 'workers': 2}


def test_a_parked_action_outlives_the_workers_that_began_it(cluster, name):
    stack = cluster.create(name, template(slow={'value': 's', 'until': name}, last={'after': ['slow']}))
    cluster.called(name, 'slow', 'made')
    for worker in cluster.workers:
        worker.send(signal.SIGTERM)
    for worker in cluster.workers:
        assert worker.wait() == 0, worker.text()
    cluster.fill(**PROCESSES)
    assert stack.state() == 'CREATE_IN_PROGRESS'
    cluster.cloud.open(name)
    assert stack.ended() == 'CREATE_COMPLETE'
    assert cluster.cloud.values(name) == {'slow': 's', 'last': ''}
    assert len(cluster.cloud.journal(name, 'slow', 'create')) == 1


@pytest.mark.long
def test_more_actions_are_waited_for_than_there_are_threads(cluster, name):
    resources = {f'r{number}': {'until': name} for number in range(40)}
    stack = cluster.create(name, template(**resources))
    for resource in resources:
        cluster.called(name, resource, 'made')
    quick = cluster.create(f'{name}-quick', template(a={}))
    assert quick.ended() == 'CREATE_COMPLETE'
    assert stack.state() == 'CREATE_IN_PROGRESS'
    cluster.cloud.open(name)
    assert stack.ended() == 'CREATE_COMPLETE'


@pytest.mark.long
def test_a_rollback_goes_on_from_a_parked_action(cluster, name):
    stack = cluster.create(name, template(a={'value': 'one'}))
    assert stack.ended() == 'CREATE_COMPLETE'
    stack.update(template(a={'value': 'two', 'until': name}))
    cluster.called(name, 'a', 'update')
    stack.cancel(rollback=True)
    cluster.cloud.open(name)
    assert stack.ended() == 'ROLLBACK_COMPLETE'
    assert cluster.cloud.values(name) == {'a': 'one'}


@pytest.mark.long
def test_a_parked_action_is_cancelled_like_any_other(cluster, name):
    stack = cluster.create(name, template(a={'value': 'one'}))
    assert stack.ended() == 'CREATE_COMPLETE'
    stack.update(template(a={'value': 'two', 'until': name}))
    cluster.called(name, 'a', 'update')
    stack.cancel(rollback=True)
    try:
        assert stack.ended() == 'ROLLBACK_COMPLETE'
    finally:
        cluster.cloud.open(name)


@pytest.mark.long
def test_a_parked_create_is_deleted_at_once(cluster, name):
    stack = cluster.create(name, template(slow={'until': name}, next={'after': ['slow']}))
    cluster.called(name, 'slow', 'made')
    stack.delete()
    assert stack.ended() == 'DELETE_COMPLETE'
    assert cluster.cloud.by_name(name) == {}
