"""The connection to the message broker.

`connect` makes it, once per process and after any fork. `memory://` needs no broker and reaches no further than the
process; `rabbit://user:password@host:5672/` is for several processes.
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
"""After a failed cast, how long casts are not even tried. Bounds how many threads a dead broker can hold."""

_RETRIES = 1
"""One: a connection that the broker has closed is found out by using it, the second try opens a new one."""

_RABBIT_DEFAULTS = {
    # A dead broker or link is noticed in half a minute; this is also the longest that a publish may block.
    'heartbeat_timeout_threshold': 30,
    # A listener without messages looks up this often in that time, every 3 s. One that is to stop is woken.
    'heartbeat_rate': 5,
    # Come back soon after an outage: hints that get lost meanwhile cost latency.
    'kombu_reconnect_delay': 0.2,
    'rabbit_retry_backoff': 1,
    'rabbit_interval_max': 5,
    # An answer to a caller that is gone must not hold a server thread for a minute.
    'kombu_missing_consumer_retry_timeout': 5,
    # Fanout and reply queues of dead processes vanish; a living process makes its own again.
    'rabbit_transient_queues_ttl': 600,
}

LOOKS_UP_AFTER_S = 0.2
"""Seconds after a message until a listener of the RabbitMQ driver looks up from its queue; the next are twice as many.

By itself it begins with a millisecond, and so looks up ten times in the second after a message: other threads may want
acknowledgements sent. Of ours none does, as what is called is acknowledged where it arrives. But each time takes the
interpreter's lock from the threads that work, several times over: under load that costs a tenth of a process.
"""

WAKE = 'wake'
"""Method of the messages that mean nothing; see `Transport.wake`."""

_REFUSED = ('AccessRefused', 'NotAllowed', 'AuthenticationFailure')
"""Errors of the AMQP libraries that no repetition will cure."""


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """Does the broker answer?

    :param where: the broker's address, without user and password.
    :param problem: one line, empty when the broker answers.
    """

    available: bool
    where: str
    problem: str = ''


class Outage:
    """Remembers that the broker is away: logs its beginning and its end once, and spares casts the waiting."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._lock = threading.Lock()
        self._lost = 0
        self._until: float | None = None

    def pausing(self) -> bool:
        """Did a cast fail a moment ago? Then the next one is given up at once."""
        with self._lock:
            waiting = self._until is not None and time.monotonic() < self._until
            self._lost += waiting
            return waiting

    def over(self) -> bool:
        """Has nothing failed, or been sent since?"""
        with self._lock:
            return self._until is None

    def begin(self, problem: str) -> None:
        """A cast could not be sent."""
        with self._lock:
            first = self._until is None
            self._until = time.monotonic() + PAUSE_S
            self._lost += 1
        if first:
            LOG.warning(
                '%s Wake-up messages are lost until it is back; what they were about waits for the sweeper.', problem
            )

    def end(self) -> None:
        """A cast was sent."""
        if self._until is None:
            return
        with self._lock:
            lost, self._lost, self._until = self._lost, 0, None
        LOG.info('The message broker at %s is back; %d wake-up messages were lost.', self._where, lost)


class _Woken:
    """Takes what `Transport.wake` sends."""

    target = oslo_messaging.Target(namespace=WAKE)

    @oslo_messaging.expose  # type: ignore[untyped-decorator]
    def wake(self, context: object) -> None:
        """Nothing: what there is to be seen the server sees for itself."""


class Transport:
    """What clients and servers send through.

    :ivar where: the broker's address, without user and password.
    :ivar around_send: called instead of sending a cast, with what sends it and its method: the test run has failpoints
        there.
    :param prefix: first part of every topic; installations that share a broker have different ones.
    :param call_timeout_s: how long a call waits for its answer.
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
        """An oslo.messaging server for the exposed methods of `endpoint`, not started."""
        return oslo_messaging.get_rpc_server(
            self._transport,
            self._target(topic, server=server),
            [endpoint, _Woken()],
            serializer=ContextSerializer(),
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
        )

    def client(self, topic: str, version: str, version_cap: str | None = None) -> oslo_messaging.RPCClient:
        """An oslo.messaging client for a topic."""
        return oslo_messaging.get_rpc_client(
            self._transport,
            self._target(topic, version=version),
            timeout=self.call_timeout_s,
            version_cap=version_cap,
            serializer=ContextSerializer(),
            retry=_RETRIES,
            # Only calls are told that nobody listens. A cast is a hint: lost is lost.
            transport_options=oslo_messaging.TransportOptions(at_least_once=False),
        )

    def hand_over(self, send: Callable[[], None], method: str) -> None:
        """Send a cast."""
        if self.around_send is None:
            send()
        else:
            self.around_send(send, method)

    def ping(self) -> None:
        """Reach the broker once, without retrying.

        :raises MessagingUnavailable: it does not answer, or refuses us. One line that names it.
        """
        error = self.reach()
        if error is not None:
            raise self.unavailable(error)

    def reach(self) -> Exception | None:
        """Reach the broker once, without retrying. The driver's own error when it cannot be reached."""
        client = oslo_messaging.get_rpc_client(self._transport, self._target('ping'), retry=0)
        try:
            client.cast({}, 'ping')
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            return error
        return None

    def wake(self, topic: str, server: str) -> None:
        """Send a server what means nothing: it looks up when it comes, and else every few seconds. Raises nothing."""
        target = self._target(topic, server=server, namespace=WAKE)
        client = oslo_messaging.get_rpc_client(self._transport, target, retry=0)
        with contextlib.suppress(Exception):
            client.cast({}, WAKE)

    def health(self) -> BrokerHealth:
        """Ask the broker and say how it is. Never raises for a broker that is away."""
        try:
            self.ping()
        except MessagingUnavailable as error:
            return BrokerHealth(False, self.where, str(error))
        return BrokerHealth(True, self.where)

    def prepare_call(self) -> None:
        """Before the first call: make sure that the broker is there.

        The AMQP driver opens the connection for answers with the first call, and would retry that for ever.

        :raises MessagingUnavailable: it does not answer.
        """
        with self._first_call:
            if not self._may_call:
                self.ping()
                self._may_call = True

    def unavailable(self, error: Exception) -> MessagingUnavailable:
        """`error`, said so that an operator knows what to do and no password is shown."""
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
    """Connect to the message broker; tries `attempts` times, about ten seconds by default.

    :param prefix: first part of every topic; None: the option ``control_exchange`` of oslo.messaging, by default
        ``convergence``. Installations that share a virtual host need different ones.
    :param lock_directory: for the files by which processes of this machine agree on names of queues; only needed, and
        made, with the option ``use_queue_manager`` of the RabbitMQ driver.
    :param conf: the process's global `oslo_config.cfg.CONF`; oslo.messaging fails with any other.
    :raises ConfigurationError: the URL is wrong, or its driver is not installed.
    :raises MessagingUnavailable: the broker did not answer any time, or it refuses us (then it is asked only once).
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
    """The URL of each host that `url` names, by itself."""
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
    """Did the broker answer that it does not want us? Then repeating is of no use."""
    return type(error).__name__ in _REFUSED


def describe_failure(transport: Transport, error: Exception, what: str) -> ConvergenceError:
    """The error that the caller of a remote operation sees, for a failure that is not the operation's own.

    :param what: the operation's name.
    """
    if isinstance(error, oslo_messaging.MessagingTimeout):
        return NoAnswer(
            f'{what}: no engine answered within {transport.call_timeout_s:g} s. '
            'It may still be carried out: look before you repeat it.'
        )
    if isinstance(error, oslo_messaging.MessageUndeliverable):
        return MessagingUnavailable(
            f'{what}: no engine is listening at {transport.where}. Start convergence-engine and ask again.'
        )
    if isinstance(error, RPCVersionCapError):
        return OperatorError(f'{what}: the configured version cap {error.version_cap} is too low for it, raise the cap')
    if isinstance(error, oslo_messaging.RemoteError):
        if error.exc_type in ('NoSuchMethod', 'UnsupportedVersion'):
            return OperatorError(
                f'{what}: the engine does not know it, it is older than its caller; upgrade engines first'
            )
        return ConvergenceError(f'{what} failed in the engine ({error.exc_type}); its log says why')
    if isinstance(error, ValueError | TypeError):
        # What the libraries of brokers raise is of other classes: this is said of a message that could not be made.
        return ConvergenceError(f'{what}: its arguments or its answer cannot be sent as JSON: {error}')
    return NoAnswer(f'{what}: {transport.unavailable(error)}')


def address(url: Any) -> str:
    """A parsed transport URL as text, without users and passwords."""
    hosts = ','.join(f'{host.hostname or "localhost"}{f":{host.port}" if host.port else ""}' for host in url.hosts)
    return f'{url.transport}://{hosts}/{url.virtual_host or ""}'


def _load(conf: cfg.ConfigOpts, url: str, prefix: str) -> tuple[Any, Any]:
    allowed = ['convergence.errors']
    try:
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        if parsed.transport == 'memory':
            # Known without asking the metadata of installed packages: so a plain checkout works.
            return parsed, RPCTransport(MemoryDriver(conf, parsed, prefix, allowed))
        amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = LOOKS_UP_AFTER_S
        return parsed, oslo_messaging.get_rpc_transport(conf, parsed, allowed_remote_exmods=allowed)
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure, ValueError):
        scheme = url.partition(':')[0] if isinstance(url, str) and ':' in url else 'none'
        raise ConfigurationError(
            f'[transport] url: it cannot be used (scheme: {scheme}); '
            'it looks like rabbit://user:password@host:5672/, or memory:// for a single process'
        ) from None


def _keep_locks_in(conf: cfg.ConfigOpts, directory: Path) -> None:
    """Unless the configuration says where."""
    conf.import_opt('lock_path', 'oslo_concurrency.lockutils', group='oslo_concurrency')
    conf.set_default('lock_path', str(directory), group='oslo_concurrency')
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(
            f'[oslo_messaging_rabbit] use_queue_manager needs a directory for locks, and {directory} cannot be made: '
            f'{error.strerror}. Set state_dir, or [oslo_concurrency] lock_path.'
        ) from error


def _set_defaults(conf: cfg.ConfigOpts) -> None:
    for group, options in oslo_messaging.opts.list_opts():
        conf.register_opts(options, group)
    conf.set_default('control_exchange', 'convergence')
    for name, value in _RABBIT_DEFAULTS.items():
        conf.set_default(name, value, group='oslo_messaging_rabbit')
