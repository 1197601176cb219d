"""A server that somebody kills answers again: by a notification at once, and without it when it is time to look."""

from __future__ import annotations

import contextlib
import os
import signal
import urllib.error
import urllib.request

import pytest

from convergence.resources.builtin.local.process_table import ProcessTable, stop
from tests.functional.cluster import Cluster, eventually
from tests.functional.test_programs import closed_port
from tests.services import service, unique_name

SERVER = """
heat_template_version: 2018-08-31
resources:
  server:
    type: Convergence::Local::Process
    properties:
      program: python
      arguments: [-m, http.server, "${PORT}", --bind, 127.0.0.1]
      port: PORT
"""
HOW = {
    'by a notification': 'interval_s = 86400\n',  # long after the limit of the test
    'when it is time to look': 'interval_s = 1\nwatch = false\n',
}


@contextlib.contextmanager
def installed(directory, database_url):
    """A cluster on a database and the broker that runs programs of templates, with no process yet."""
    cluster = Cluster(directory, database_url=database_url, rabbit_url=service('rabbit').url, exchange=unique_name())
    cluster.observers = []
    try:
        yield cluster
    finally:
        for process in cluster.observers:
            process.end(signal.SIGKILL)
        cluster.close()
        for _, running in ProcessTable(directory / 'local').running():
            stop(running.physical_id, signal.SIGKILL)


@pytest.fixture
def small(tmp_path):
    """On SQLite."""
    with installed(tmp_path, f'sqlite:///{tmp_path}/convergence.sqlite') as cluster:
        yield cluster


@pytest.fixture
def large(tmp_path):
    """On PostgreSQL."""
    server = service('postgresql')
    url = server.create()
    try:
        with installed(tmp_path, url) as cluster:
            yield cluster
    finally:
        server.drop(url.partition('?')[0].rpartition('/')[2])


def observed(cluster, configured):
    """Start an engine, a worker and two observers."""
    with cluster.configuration.open('a') as file:
        file.write(f'[local_provider]\nenabled = true\nroot = {cluster.directory}/local\n[observer]\n{configured}')
    assert cluster.manage('db', 'sync').returncode == 0
    cluster.fill(engines=1, workers=1)
    cluster.observers = [cluster.launch('observer'), cluster.launch('observer')]
    for process in cluster.observers:
        process.ready()


def answers(url):
    """Whether a server answers there."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError, urllib.error.URLError), opener.open(url, timeout=5) as answer:
        return answer.status == 200
    return False


@pytest.mark.parametrize('configured', HOW.values(), ids=HOW)
def test_a_server_that_is_killed_answers_again(small, name, configured):
    observed(small, configured)
    port = closed_port()
    stack = small.create(name, SERVER.replace('PORT\n', f'{port}\n'), drift_policy='repair')
    assert stack.ended() == 'CREATE_COMPLETE'
    url = f'http://127.0.0.1:{port}/'
    eventually(lambda: answers(url), 'the server answers')
    killed = stack.resources()['server']['physical_resource_id']
    os.kill(int(killed.partition(':')[0]), signal.SIGKILL)
    eventually(lambda: stack.resources()['server']['physical_resource_id'] != killed, 'another one was started')
    eventually(lambda: answers(url), 'it answers again')
    assert stack.ended() == 'UPDATE_COMPLETE'
    assert [running.physical_id for _, running in ProcessTable(small.directory / 'local').running()] == [
        stack.resources()['server']['physical_resource_id']
    ]
    stack.delete()
    eventually(lambda: not answers(url), 'the server has ended')


@pytest.mark.long
@pytest.mark.parametrize('configured', HOW.values(), ids=HOW)
def test_one_of_two_observers_is_killed_and_the_other_one_goes_on(large, name, configured):
    observed(large, configured)
    port = closed_port()
    stack = large.create(name, SERVER.replace('PORT\n', f'{port}\n'), drift_policy='repair')
    assert stack.ended() == 'CREATE_COMPLETE'
    eventually(lambda: answers(f'http://127.0.0.1:{port}/'), 'the server answers')
    large.observers[0].end(signal.SIGKILL)
    killed = stack.resources()['server']['physical_resource_id']
    os.kill(int(killed.partition(':')[0]), signal.SIGKILL)
    eventually(lambda: stack.resources()['server']['physical_resource_id'] != killed, 'another one was started')
    eventually(lambda: answers(f'http://127.0.0.1:{port}/'), 'it answers again')
    assert stack.ended() == 'UPDATE_COMPLETE'
    assert [running.physical_id for _, running in ProcessTable(large.directory / 'local').running()] == [
        stack.resources()['server']['physical_resource_id']
    ]
