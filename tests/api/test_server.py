"""The API behind its own server: listening, being told to stop, serving while it streams."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest
import requests

from convergence import errors
from convergence.cmd.all_in_one import Together
from convergence.cmd.wiring.api import ApiProcess
from convergence.config import ApiSettings
from tests.api.installation import LONG_S, TEMPLATE, empty_conf, waiting

SETTINGS = ApiSettings(port=0, threads=4, max_followers=2)


@pytest.fixture
def serve(api):
    """Starts servers, and stops them after the test."""
    started = []

    def start(settings: ApiSettings = SETTINGS) -> ApiProcess:
        process = ApiProcess(settings, api.embedded.parts.transport, stop_s=LONG_S, conf=empty_conf())
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.stop()


def test_requests_are_served_over_a_socket(serve):
    url = f'{serve().address}/v1/sockets/stacks'
    with requests.Session() as session:
        made = session.post(url, json={'stack_name': 'over-http', 'template': TEMPLATE}, timeout=LONG_S)
        assert made.status_code == 201
        assert made.headers['Location'].startswith(url)
        shown = session.get(f'{url}/over-http', timeout=LONG_S)
        assert shown.json()['stack']['stack_name'] == 'over-http'
        pieces = (piece for piece in (b'{"template": {"heat_template_version"', b': "2018-08-31"}}'))
        checked = session.post(f'{url[:-7]}/validate', data=pieces, timeout=LONG_S)
        assert checked.status_code == 200, checked.text
        deleted = session.delete(shown.url, timeout=LONG_S)
        assert (deleted.status_code, deleted.content) == (204, b'')


def test_events_arrive_while_the_operation_goes_on(api, serve):
    process = serve()
    path = api.create('streamed', waiting(600), wait=False)
    url = f'{process.address}/v1/p/{path}'
    with requests.get(f'{url}/events?follow', stream=True, timeout=LONG_S) as stream:
        told = stream.iter_lines(decode_unicode=True)
        assert next(line for line in told if line.startswith('data: '))
        assert requests.get(url, timeout=LONG_S).json()['stack']['stack_status'] == 'CREATE_IN_PROGRESS'
        requests.delete(url, timeout=LONG_S)
        assert any('DELETE_COMPLETE' in line for line in told)


def test_probes_have_a_port_of_their_own_that_serves_nothing_else(serve):
    process = serve(replace(SETTINGS, health_port=0))
    for path in ('/health/live', '/health/ready', '/health/progress', '/healthcheck'):
        assert requests.get(f'{process.health_address}{path}', timeout=LONG_S).status_code == 200
    assert requests.get(f'{process.health_address}/v1/p/stacks', timeout=LONG_S).status_code == 404
    assert process.stop()
    with pytest.raises(requests.ConnectionError):
        requests.get(f'{process.health_address}/health/live', timeout=LONG_S)


def test_those_who_follow_are_let_go_when_the_server_stops(api, serve):
    process = serve()
    path = api.create('abandoned', waiting(600), wait=False)
    ended = threading.Event()

    def follow() -> None:
        with requests.get(f'{process.address}/v1/p/{path}/events?follow', stream=True, timeout=LONG_S) as stream:
            first.set()
            for _ in stream.iter_lines():
                pass
        ended.set()

    first = threading.Event()
    threading.Thread(target=follow, daemon=True).start()
    assert first.wait(LONG_S)
    assert process.stop()
    assert ended.wait(LONG_S)
    api.ask('DELETE', path)


def test_a_port_that_is_taken_is_named_and_nothing_is_left_running(api, serve):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = ApiProcess(replace(SETTINGS, port=port), api.embedded.parts.transport, stop_s=1.0, conf=empty_conf())
        log: list[str] = []
        with pytest.raises(errors.ConfigurationError, match=f'cannot listen on 127.0.0.1 port {port}'):
            Together(Noted(log), process).start()
    assert log == ['start', 'stop']


class Noted:
    """A service that writes down what is done to it."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def start(self) -> None:
        """Begin."""
        self.log.append('start')

    def stop(self) -> None:
        """End."""
        self.log.append('stop')

    def close(self) -> None:
        """Nothing to give back."""
