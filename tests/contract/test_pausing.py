"""An engine without a database takes no requests until it is back: others answer meanwhile. On every transport."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext

from convergence import errors
from convergence.rpc.client import EngineClient
from convergence.rpc.server import EngineServer
from convergence.rpc.transport import Transport, connect

CONTEXT = RequestContext(user_id='alice', project_id='acme', overwrite=False)


class Engine:
    """Answers with its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_revision(self, context: object) -> str:
        """Who has answered."""
        return self.name


@pytest.fixture(params=['memory', 'rabbit'])
def transport(request: pytest.FixtureRequest, exchange: str) -> Iterator[Transport]:
    """A transport of each kind."""
    url = f'memory:///{exchange}' if request.param == 'memory' else request.getfixturevalue('rabbit_url')
    made = connect(cfg.CONF, url, prefix=exchange, call_timeout_s=5.0)
    yield made
    made.close()


@pytest.fixture
def engines(transport: Transport) -> Iterator[list[EngineServer]]:
    """Two engines, at work."""
    started = [EngineServer(transport, name, Engine(name)) for name in 'ab']
    for server in started:
        server.start()
    yield started
    for server in started:
        server.stop()


def answers(transport: Transport, times: int = 12) -> set[Any]:
    """Who answers."""
    client = EngineClient(transport)
    return {client.get_revision(CONTEXT) for _ in range(times)}


def test_a_paused_engine_takes_no_requests_and_takes_them_again(
    transport: Transport, engines: list[EngineServer]
) -> None:
    assert answers(transport) == {'a', 'b'}
    for _ in range(2):
        engines[0].pause()
        engines[0].pause()
        assert answers(transport) == {'b'}
        engines[0].resume()
        engines[0].resume()
        assert answers(transport) == {'a', 'b'}


def test_an_engine_that_was_stopped_is_not_resumed(transport: Transport, engines: list[EngineServer]) -> None:
    engines[0].pause()
    engines[0].stop()
    engines[0].resume()
    assert answers(transport) == {'b'}


def test_where_no_engine_is_left_the_client_is_told_to_ask_again(
    transport: Transport, engines: list[EngineServer]
) -> None:
    for server in engines:
        server.pause()
    with pytest.raises(errors.RetryLater):
        answers(transport, 1)
