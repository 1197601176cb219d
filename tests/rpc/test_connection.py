"""A broker that is away, wrong, comes and goes: what the process is told, and for how long it is held up."""

from __future__ import annotations

import contextlib
import logging
import queue
import select
import socket
import threading
from urllib.parse import urlsplit, urlunsplit

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_messaging._drivers import amqpdriver, impl_rabbit

from convergence.errors import ConfigurationError, MessagingUnavailable, NotOffered
from convergence.rpc import transport as transport_module
from convergence.rpc.client import EngineClient, WorkerClient
from convergence.rpc.server import EngineServer, WorkerServer
from convergence.rpc.transport import connect

LONG_S = 60.0
NOBODY = 'rabbit://alice:hunter2@127.0.0.1:1/prod'


class Proxy:
    """Stands between us and the broker, and can be cut."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port or 5672)
        self._listener = socket.create_server(('127.0.0.1', 0))
        self._port = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._refusing = False
        host = f'127.0.0.1:{self._port}'
        self.url = urlunsplit(('rabbit', f'{parts.username}:{parts.password}@{host}', parts.path, '', ''))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection; new ones are served."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for each in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Break every connection and take no more."""
        with self._lock:
            self._refusing = True
        self.cut()

    def allow(self) -> None:
        """Take connections again."""
        self._refusing = False

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            with self._lock:
                if self._refusing:
                    near.close()
                    continue
                far = socket.create_connection(self._server)
                self._pairs.append((near, far))
            threading.Thread(target=self._pump, args=(near, far), daemon=True).start()

    @staticmethod
    def _pump(near: socket.socket, far: socket.socket) -> None:
        with near, far, contextlib.suppress(OSError):
            while True:
                for ready in select.select([near, far], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    (far if ready is near else near).sendall(data)


class Checks:
    def __init__(self) -> None:
        self.arrived: queue.Queue = queue.Queue()

    def check_resource(self, context, traversal_id, node, hops=0):
        self.arrived.put(node)


@pytest.fixture
def open_transport():
    """Connect, and close at the end of the test."""
    opened = []

    def open_one(url, **options):
        opened.append(connect(cfg.CONF, url, **options))
        return opened[-1]

    yield open_one
    for transport in opened:
        transport.close()


@pytest.fixture
def no_waiting(monkeypatch):
    """Repeat at once."""
    waited = []
    monkeypatch.setattr(transport_module, 'sleep', waited.append)
    return waited


def test_a_broker_that_is_not_there_is_asked_a_few_times_and_named_without_its_password(no_waiting, caplog):
    with caplog.at_level(logging.WARNING, 'convergence'), pytest.raises(MessagingUnavailable) as away:
        connect(cfg.CONF, NOBODY, attempts=4)
    assert len(no_waiting) == 3
    assert sum(no_waiting) < 30
    text = str(away.value)
    assert text.startswith('The message broker at rabbit://127.0.0.1:1/prod does not answer: ')
    assert text.endswith('Start it, or correct [transport] url.')
    assert '\n' not in text
    assert 'Attempt 3 of 4' in caplog.text
    assert 'hunter2' not in text + caplog.text


def test_a_broker_that_refuses_us_is_not_asked_again(rabbit_url, no_waiting, caplog):
    parts = urlsplit(rabbit_url)
    url = urlunsplit(('rabbit', f'nobody:hunter2@{parts.hostname}:{parts.port or 5672}', parts.path, '', ''))
    with pytest.raises(
        MessagingUnavailable, match=r'refuses the connection.*Check user, password and virtual host'
    ) as no:
        connect(cfg.CONF, url)
    assert no_waiting == []
    assert 'hunter2' not in str(no.value) + caplog.text


@pytest.mark.parametrize('url', ['carrier-pigeon://host:hunter2@x/', 'hunter2', 'rabbit://alice:hunter2@host:port/'])
def test_a_url_that_cannot_be_used_is_not_shown(url):
    with pytest.raises(ConfigurationError, match=r'\[transport\] url: the URL is not valid') as wrong:
        connect(cfg.CONF, url)
    assert 'hunter2' not in str(wrong.value)


def test_a_configuration_of_ones_own_is_refused():
    with pytest.raises(ConfigurationError, match=r'global oslo_config\.cfg\.CONF'):
        connect(cfg.ConfigOpts(), 'memory://')


def test_installations_with_different_prefixes_do_not_hear_each_other(open_transport, exchange):
    url, ours, theirs = f'memory:///{exchange}', Checks(), Checks()
    servers = []
    for prefix, checks in (('ours', ours), ('theirs', theirs)):
        servers.append(WorkerServer(open_transport(url, prefix=prefix), 'worker-1', checks))
        servers[-1].start()
    WorkerClient(open_transport(url, prefix='ours')).check_resource('t-1', 1)
    assert ours.arrived.get(timeout=LONG_S) == 1
    assert theirs.arrived.empty()
    for server in servers:
        server.stop()


def test_casts_into_an_outage_say_so_once_and_do_not_wait_each_time(open_transport, exchange, monkeypatch, caplog):
    transport = open_transport(f'memory:///{exchange}')
    client, tried = WorkerClient(transport), []

    def fail(*_, **__):
        tried.append(True)
        raise OSError('broken pipe to hunter2')

    broker = transport._transport._driver.broker
    now = [1000.0]
    monkeypatch.setattr(transport_module.time, 'monotonic', lambda: now[0])
    transport._secrets.append('hunter2')
    with caplog.at_level(logging.INFO, 'convergence'):
        with monkeypatch.context() as patch:
            patch.setattr(broker, 'publish', fail)
            assert [client.check_resource('t-1', node) for node in range(50)] == [False] * 50
            assert len(tried) == 1
            now[0] += transport_module.PAUSE_S + 1
            assert not client.check_resource('t-1', 50)
            assert len(tried) == 2
        now[0] += transport_module.PAUSE_S + 1
        assert client.check_resource('t-1', 51)
        assert client.check_resource('t-1', 52)
    assert caplog.text.count('does not answer') == 1
    assert caplog.text.count('answers again; 51 messages to workers were lost') == 1
    assert 'hunter2' not in caplog.text


def test_a_cut_connection_is_replaced_without_losing_the_service(open_transport, rabbit_url, exchange):
    proxy, checks = Proxy(rabbit_url), Checks()
    server = WorkerServer(open_transport(rabbit_url, prefix=exchange), 'worker-1', checks)
    server.start()
    client = WorkerClient(open_transport(proxy.url, prefix=exchange))
    assert client.check_resource('t-1', 1)
    assert checks.arrived.get(timeout=LONG_S) == 1
    proxy.cut()
    assert client.check_resource('t-1', 2)
    assert checks.arrived.get(timeout=LONG_S) == 2
    server.stop()


def test_a_listener_that_works_does_not_look_up_all_the_time(open_transport, rabbit_url, exchange, monkeypatch):
    for_s, consume = [], impl_rabbit.Connection.consume

    def noted(connection, timeout=None):
        for_s.append(timeout)
        return consume(connection, timeout)

    monkeypatch.setattr(impl_rabbit.Connection, 'consume', noted)
    transport, checks = open_transport(rabbit_url, prefix=exchange), Checks()
    server, engine = WorkerServer(transport, 'worker-1', checks), EngineServer(transport, 'engine-1', object())
    server.start()
    engine.start()
    client = WorkerClient(transport)
    for number in range(5):
        assert client.check_resource('t-1', number)
        assert checks.arrived.get(timeout=LONG_S) == number
        with pytest.raises(NotOffered):
            EngineClient(transport).get_revision(RequestContext(overwrite=False))
    server.stop()
    engine.stop()

    assert len(for_s) >= 15  # two servers, and whoever waits for answers
    assert min(for_s) == transport_module.LOOKS_UP_AFTER_S


def test_a_server_that_hears_nothing_stops_at_once(open_transport, rabbit_url, exchange, monkeypatch):
    listening = {'heartbeat_timeout_threshold': 1200, 'heartbeat_rate': 1}  # by itself it looks up after ten minutes
    monkeypatch.setattr(amqpdriver, 'ACK_REQUEUE_EVERY_SECONDS_MIN', 600.0)
    monkeypatch.setattr(transport_module, 'LOOKS_UP_AFTER_S', 600.0)
    transport, checks = open_transport(rabbit_url, prefix=exchange), Checks()
    for name, value in listening.items():
        cfg.CONF.set_override(name, value, group='oslo_messaging_rabbit')
    try:
        server, other = (WorkerServer(transport, host, checks) for host in ('worker-1', 'worker-2'))
        server.start()
        other.start()
    finally:
        for name in listening:
            cfg.CONF.clear_override(name, group='oslo_messaging_rabbit')

    stopping = threading.Thread(target=server.stop, daemon=True)
    stopping.start()
    stopping.join(LONG_S)

    assert not stopping.is_alive()
    assert WorkerClient(transport).check_resource('t-1', 1)
    assert checks.arrived.get(timeout=LONG_S) == 1  # the other one goes on
    other.stop()


def test_a_broker_that_goes_away_fails_casts_quietly_and_calls_clearly(
    open_transport, rabbit_url, exchange, monkeypatch, caplog
):
    monkeypatch.setattr(transport_module, 'PAUSE_S', 0.0)
    proxy = Proxy(rabbit_url)
    transport = open_transport(proxy.url, prefix=exchange)
    worker, engine = WorkerClient(transport), EngineClient(transport)
    assert worker.check_resource('t-1', 1)
    proxy.refuse()
    assert not worker.check_resource('t-1', 2)
    assert not transport.health().available
    with pytest.raises(MessagingUnavailable, match='does not answer'):
        engine.get_revision(RequestContext(overwrite=False))
    proxy.allow()
    assert worker.check_resource('t-1', 3)
    assert transport.health().available
    with pytest.raises(MessagingUnavailable, match='no engine is listening'):
        engine.get_revision(RequestContext(overwrite=False))
    assert urlsplit(rabbit_url).password + '@' not in caplog.text
