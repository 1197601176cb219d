"""Two API processes before two engines and three workers, on RabbitMQ and PostgreSQL."""

from __future__ import annotations

import json
import re
import signal
import socket

import pytest
import requests
from convergence_simulator.real.launcher import LaunchedProcess

from tests.functional.cloud import template
from tests.functional.cluster import LONG_S, Cluster, eventually

DATABASE = 'postgresql'


@pytest.fixture
def apis(cluster: Cluster):
    """The processes, at work."""
    processes = [cluster.launch('api') for _ in range(2)]
    for process in processes:
        process.ready()
    yield processes
    for process in processes:
        if process.running():
            assert process.end(signal.SIGTERM) == 0, process.text()


@pytest.fixture
def client(cluster: Cluster):
    """Sends requests with the token that the API processes have made for their account."""

    class Token(requests.auth.AuthBase):
        def __call__(self, request):
            request.headers['X-Auth-Token'] = (cluster.directory / 'convergence-data' / 'token').read_text().strip()
            return request

    with requests.Session() as session:
        session.auth = Token()
        yield session


def address(process: LaunchedProcess) -> str:
    """Where a process listens."""
    found = eventually(lambda: re.search(r'The API listens on (\S+)', process.text()), 'the API listens')
    return f'{found[1]}/v1/functional'


def test_what_one_has_accepted_the_other_shows_when_the_first_is_killed(cluster, apis, client, name):
    first, second = (address(process) for process in apis)
    body = {'stack_name': name, 'template': json.loads(template(a={'value': 'x', 'until': name}))}
    made = client.post(f'{first}/stacks', json=body, timeout=LONG_S, headers={'Idempotency-Key': name})
    assert made.status_code == 201, made.text
    cluster.called(name, 'a', 'made')
    apis[0].end(signal.SIGKILL)
    again = client.post(f'{second}/stacks', json=body, timeout=LONG_S, headers={'Idempotency-Key': name})
    assert again.json()['stack']['id'] == made.json()['stack']['id']
    with client.get(f'{second}/stacks/{name}', timeout=LONG_S) as shown:
        assert shown.json()['stack']['stack_status'] == 'CREATE_IN_PROGRESS'
        url = shown.url
    with client.get(f'{url}/events?follow', stream=True, timeout=LONG_S) as stream:
        cluster.cloud.open(name)
        assert any(
            'CREATE_COMPLETE' in line and f'"resource_name": "{name}"' in line
            for line in stream.iter_lines(decode_unicode=True)
        )
    assert client.delete(url, timeout=LONG_S).status_code == 204


def test_a_project_sees_its_own_stacks_only_on_postgresql_too(apis, cluster, client, name):
    first = address(apis[0])
    made = client.post(f'{first}/stacks', json={'stack_name': name, 'template': template(a={})}, timeout=LONG_S)
    assert made.status_code == 201, made.text
    other = first.replace('/functional', '/another')
    assert client.get(f'{other}/stacks/{name}', timeout=LONG_S).status_code == 404
    assert client.get(f'{other}/stacks', timeout=LONG_S).json() == {'stacks': []}
    client.delete(made.headers['Location'], timeout=LONG_S)


def test_several_processes_share_one_port(cluster, client, free_port):
    usual = cluster.configuration.read_text()
    own = cluster.directory / 'shared.conf'
    own.write_text(usual.replace('[api]\nport = 0', f'[api]\nport = {free_port}\nworkers = 2'))
    program = cluster.launch('api', '--config-file', str(own))
    program.ready()
    eventually(lambda: program.text().count('The API listens on') == 2, 'both listen')
    url = f'http://127.0.0.1:{free_port}/v1/functional/stacks'
    for _ in range(10):
        assert client.get(url, timeout=LONG_S).status_code == 200
    assert program.end(signal.SIGTERM) == 0, program.text()


@pytest.fixture
def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return int(probe.getsockname()[1])


def test_the_probes_of_an_installation(apis, client):
    base = address(apis[1]).partition('/v1/')[0]
    assert client.get(f'{base}/health/ready', timeout=LONG_S).status_code == 200
    assert eventually(lambda: client.get(f'{base}/health/progress', timeout=LONG_S).json()['workers'] == 3, 'workers')
