"""The connection to the message broker.

`connect` opens it, once per process and after any fork. `memory://` needs no broker and works within one process only;
`rabbit://user:password@host:5672/` connects several processes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oslo_messaging
import oslo_messaging.opts
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver
from oslo_messaging.rpc.client import RPCVersionCapError
from oslo_messaging.transport import RPCTransport

from convergence.concurrency import sleep
from convergence.errors import ConfigurationError, ConvergenceError, MessagingUnavailable, NoAnswer, OperatorError
from convergence.rpc.context import ContextSerializer
from convergence.rpc.memory import MemoryDriver

LOG = logging.getLogger(__name__)

MEMORY_URL = 'memory://'
CALL_TIMEOUT_S = 60.0
PAUSE_S = 5.0
"""Seconds after a failed cast in which casts fail without an attempt. Limits the threads that a dead broker blocks."""

_RETRIES = 1
"""Retries of a cast. The first attempt notices a connection that the broker has closed; the retry opens another."""

_RABBIT_DEFAULTS = {
    # The driver detects a dead broker or link after this time; a publish may block for at most the same time.
    'heartbeat_timeout_threshold': 30,
    # A listener without messages checks its state this often in that time, every 3 s. A stop wakes it.
    'heartbeat_rate': 5,
    # Reconnect soon after an outage: every hint lost meanwhile delays its node until the sweeper dispatches it.
    'kombu_reconnect_delay': 0.2,
    'rabbit_retry_backoff': 1,
    'rabbit_interval_max': 5,
    # An answer to a caller that has ended must not block a server thread for a minute.
    'kombu_missing_consumer_retry_timeout': 5,
    # The broker deletes fanout and reply queues of dead processes; a living process creates its own again.
    'rabbit_transient_queues_ttl': 600,
}

LOOKS_UP_AFTER_S = 0.2
"""Seconds that a listener of the RabbitMQ driver waits at first after a message; each further wait is twice as long.

The driver's default begins with a millisecond, so a listener wakes ten times in the second after a message, to send
acknowledgements for other threads. Convergence has no such threads: it acknowledges a message where it arrives. Each
wake-up takes the interpreter's lock from working threads several times; under load that costs a tenth of a process.
"""

WAKE = 'wake'
"""Method of the messages that only wake a listener; see `Transport.wake`."""

_REFUSED = ('AccessRefused', 'NotAllowed', 'AuthenticationFailure')
"""Errors of the AMQP libraries that a retry cannot cure."""


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """The state of the connection to the broker.

    :param available: True if the broker answers.
    :param where: the broker's address, without user and password.
    :param problem: the error in one line, empty if the broker answers.
    """

    available: bool
    where: str
    problem: str = ''


class Outage:
    """Tracks outages of the broker: logs the begin and the end of each once, and lets casts fail at once meanwhile."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._lock = threading.Lock()
        self._lost = 0
        self._until: float | None = None

    def pausing(self) -> bool:
        """Return True if a cast failed within the last `PAUSE_S` seconds, so the next one fails without an attempt."""
        with self._lock:
            waiting = self._until is not None and time.monotonic() < self._until
            self._lost += waiting
            return waiting

    def over(self) -> bool:
        """Return True if the last cast succeeded, or there was none."""
        with self._lock:
            return self._until is None

    def begin(self, problem: str) -> None:
        """Note that a cast failed, and log the first failure."""
        with self._lock:
            first = self._until is None
            self._until = time.monotonic() + PAUSE_S
            self._lost += 1
        if first:
            LOG.warning(
                '%s Messages to workers are lost until it answers; the sweeper dispatches their nodes later.', problem
            )

    def end(self) -> None:
        """Note that a cast succeeded, and log the end of an outage."""
        if self._until is None:
            return
        with self._lock:
            lost, self._lost, self._until = self._lost, 0, None
        LOG.info('The message broker at %s answers again; %d messages to workers were lost.', self._where, lost)


class _Woken:
    """Receives the messages of `Transport.wake`."""

    target = oslo_messaging.Target(namespace=WAKE)

    @oslo_messaging.expose  # type: ignore[untyped-decorator]
    def wake(self, context: object) -> None:
        """Do nothing: the arrival of the message has already woken the listener."""


class Transport:
    """The connection that the clients and servers of a process share.

    :ivar where: the broker's address, without user and password.
    :ivar around_send: called for each cast with the function that sends it and its method; None: casts are sent
        directly. Tests inject failures here.
    :param prefix: first part of every topic; installations that share a broker have different prefixes.
    :param call_timeout_s: seconds that a call waits for its answer.
    """

    def __init__(self, driver_transport: Any, url: Any, prefix: str, call_timeout_s: float) -> None:
        self.where = address(url)
        self.call_timeout_s = call_timeout_s
        self.outage = Outage(self.where)
        self.around_send: Callable[[Callable[[], None], str], None] | None = None
        self._transport = driver_transport
        self._secrets = [host.password for host in url.hosts if host.password]
        self._prefix = prefix
        self._first_call = threading.Lock()
        self._may_call = False

    def server(self, topic: str, server: str, endpoint: object) -> oslo_messaging.MessageHandlingServer:
        """Return an oslo.messaging server for the exposed methods of `endpoint`, not started."""
        return oslo_messaging.get_rpc_server(
            self._transport,
            self._target(topic, server=server),
            [endpoint, _Woken()],
            serializer=ContextSerializer(),
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
        )

    def client(self, topic: str, version: str, version_cap: str | None = None) -> oslo_messaging.RPCClient:
        """Return an oslo.messaging client for a topic."""
        return oslo_messaging.get_rpc_client(
            self._transport,
            self._target(topic, version=version),
            timeout=self.call_timeout_s,
            version_cap=version_cap,
            serializer=ContextSerializer(),
            retry=_RETRIES,
            # Only calls fail if no server listens. A cast is a hint, and the sweeper replaces a lost one.
            transport_options=oslo_messaging.TransportOptions(at_least_once=False),
        )

    def hand_over(self, send: Callable[[], None], method: str) -> None:
        """Send a cast."""
        if self.around_send is None:
            send()
        else:
            self.around_send(send, method)

    def ping(self) -> None:
        """Contact the broker once, without a retry.

        :raises MessagingUnavailable: the broker does not answer or refuses the connection; the text is one line.
        """
        error = self.reach()
        if error is not None:
            raise self.unavailable(error)

    def reach(self) -> Exception | None:
        """Contact the broker once, without a retry. Return the driver's error, or None if the broker answers."""
        client = oslo_messaging.get_rpc_client(self._transport, self._target('ping'), retry=0)
        try:
            client.cast({}, 'ping')
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            return error
        return None

    def wake(self, topic: str, server: str) -> None:
        """Send an empty message to a server, so that its listener wakes at once. Raises nothing."""
        target = self._target(topic, server=server, namespace=WAKE)
        client = oslo_messaging.get_rpc_client(self._transport, target, retry=0)
        with contextlib.suppress(Exception):
            client.cast({}, WAKE)

    def health(self) -> BrokerHealth:
        """Contact the broker and return its state. Raises nothing if the broker does not answer."""
        try:
            self.ping()
        except MessagingUnavailable as error:
            return BrokerHealth(False, self.where, str(error))
        return BrokerHealth(True, self.where)

    def prepare_call(self) -> None:
        """Contact the broker before the first call of the process.

        With the first call the AMQP driver opens the connection for answers, and it would retry that without end.

        :raises MessagingUnavailable: the broker does not answer.
        """
        with self._first_call:
            if not self._may_call:
                self.ping()
                self._may_call = True

    def unavailable(self, error: Exception) -> MessagingUnavailable:
        """Return `error` as an error with a remedy for the operator and without passwords."""
        problem = ' '.join(str(error).split()) or type(error).__name__
        for secret in self._secrets:
            problem = problem.replace(secret, '***')
        if refused(error):
            return MessagingUnavailable(
                f'The message broker at {self.where} refuses the connection: {problem} '
                'Check user, password and virtual host in [transport] url.'
            )
        return MessagingUnavailable(
            f'The message broker at {self.where} does not answer: {problem}. Start it, or correct [transport] url.'
        )

    def close(self) -> None:
        """Close the connections. Stop the servers first."""
        self._transport.cleanup()

    def _target(self, topic: str, **parts: Any) -> oslo_messaging.Target:
        return oslo_messaging.Target(exchange=self._prefix, topic=f'{self._prefix}_{topic}', **parts)


def connect(
    conf: cfg.ConfigOpts,
    url: str = MEMORY_URL,
    *,
    prefix: str | None = None,
    call_timeout_s: float = CALL_TIMEOUT_S,
    attempts: int = 5,
    lock_directory: Path | None = None,
) -> Transport:
    """Connect to the message broker. Tries up to `attempts` times, for about ten seconds by default.

    :param conf: the process's global `oslo_config.cfg.CONF`; oslo.messaging fails with any other.
    :param prefix: first part of every topic; None: the option ``control_exchange`` of oslo.messaging, by default
        ``convergence``. Installations that share a virtual host need different prefixes.
    :param lock_directory: directory of the lock files with which the processes of this machine agree on names of
        queues. Used, and created, only with the option ``use_queue_manager`` of the RabbitMQ driver.
    :raises ConfigurationError: the URL is wrong, or its driver is not installed.
    :raises MessagingUnavailable: the broker answered no attempt, or it refused the connection (then without a retry).
    """
    if conf is not cfg.CONF:
        raise ConfigurationError('connect needs the global oslo_config.cfg.CONF: oslo.messaging uses it in any case')
    _set_defaults(conf)
    if lock_directory is not None and conf.oslo_messaging_rabbit.use_queue_manager:
        _keep_locks_in(conf, lock_directory)
    prefix = prefix or str(conf.control_exchange)
    parsed, driver_transport = _load(conf, url, prefix)
    transport = Transport(driver_transport, parsed, prefix, call_timeout_s)
    error: Exception | None = None
    for attempt in range(1, attempts + 1):
        error = transport.reach()
        if error is None:
            return transport
        if attempt == attempts or refused(error):
            break
        LOG.warning('%s Attempt %d of %d.', transport.unavailable(error), attempt, attempts)
        sleep(min(0.5 * 2**attempt, PAUSE_S))
    transport.close()
    assert error is not None, 'at least one attempt'
    raise transport.unavailable(error)


def hosts(conf: cfg.ConfigOpts, url: str) -> list[str]:
    """Return one URL per host that `url` names."""
    parsed = oslo_messaging.TransportURL.parse(conf, url)
    return [
        str(
            oslo_messaging.TransportURL(
                conf, parsed.transport, virtual_host=parsed.virtual_host, hosts=[host], query=parsed.query
            )
        )
        for host in parsed.hosts
    ]


def refused(error: Exception) -> bool:
    """Return True if the broker answered and refused the connection; a retry would fail again."""
    return type(error).__name__ in _REFUSED


def describe_failure(transport: Transport, error: Exception, what: str) -> ConvergenceError:
    """Return the error for the caller of a remote operation, for a failure of the messaging, not of the operation.

    :param what: name of the operation.
    """
    if isinstance(error, oslo_messaging.MessagingTimeout):
        return NoAnswer(
            f'{what}: no engine answered within {transport.call_timeout_s:g} s. '
            'The engine may still carry it out; check the result before you repeat it.'
        )
    if isinstance(error, oslo_messaging.MessageUndeliverable):
        return MessagingUnavailable(
            f'{what}: no engine is listening at {transport.where}. Start convergence-engine and repeat the request.'
        )
    if isinstance(error, RPCVersionCapError):
        return OperatorError(f'{what}: the configured version cap {error.version_cap} is too low for it, raise the cap')
    if isinstance(error, oslo_messaging.RemoteError):
        if error.exc_type in ('NoSuchMethod', 'UnsupportedVersion'):
            return OperatorError(
                f'{what}: the engine does not know this operation, it is older than its caller; upgrade engines first'
            )
        return ConvergenceError(f'{what} failed in the engine ({error.exc_type}); see its log')
    if isinstance(error, ValueError | TypeError):
        # The broker libraries raise other classes; these two come from the encoding of the message.
        return ConvergenceError(f'{what}: its arguments or its answer cannot be sent as JSON: {error}')
    return NoAnswer(f'{what}: {transport.unavailable(error)}')


def address(url: Any) -> str:
    """Return a parsed transport URL as text, without users and passwords."""
    hosts = ','.join(f'{host.hostname or "localhost"}{f":{host.port}" if host.port else ""}' for host in url.hosts)
    return f'{url.transport}://{hosts}/{url.virtual_host or ""}'


def _load(conf: cfg.ConfigOpts, url: str, prefix: str) -> tuple[Any, Any]:
    allowed = ['convergence.errors']
    try:
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        if parsed.transport == 'memory':
            # Not loaded by entry point, so that a checkout works without an installation.
            return parsed, RPCTransport(MemoryDriver(conf, parsed, prefix, allowed))
        amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = LOOKS_UP_AFTER_S
        return parsed, oslo_messaging.get_rpc_transport(conf, parsed, allowed_remote_exmods=allowed)
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure, ValueError):
        scheme = url.partition(':')[0] if isinstance(url, str) and ':' in url else 'none'
        raise ConfigurationError(
            f'[transport] url: the URL is not valid (scheme: {scheme}); '
            'write it as rabbit://user:password@host:5672/, or memory:// for a single process'
        ) from None


def _keep_locks_in(conf: cfg.ConfigOpts, directory: Path) -> None:
    """Set the directory of the lock files, unless the configuration sets one, and create it."""
    conf.import_opt('lock_path', 'oslo_concurrency.lockutils', group='oslo_concurrency')
    conf.set_default('lock_path', str(directory), group='oslo_concurrency')
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(
            f'[oslo_messaging_rabbit] use_queue_manager needs a directory for locks, but cannot create {directory}: '
            f'{error.strerror}. Set state_dir, or [oslo_concurrency] lock_path.'
        ) from error


def _set_defaults(conf: cfg.ConfigOpts) -> None:
    for group, options in oslo_messaging.opts.list_opts():
        conf.register_opts(options, group)
    conf.set_default('control_exchange', 'convergence')
    for name, value in _RABBIT_DEFAULTS.items():
        conf.set_default(name, value, group='oslo_messaging_rabbit')
