"""Servers that receive the messages of other processes and call their handlers.

Measured behaviour of oslo.messaging: it acknowledges a message *before* it calls the handler, and it fetches all
messages from the broker even if every thread is busy. A killed process therefore loses the messages in its memory, and
one server may hold the work of all. The design answers this as follows:

* The row and the sweeper guarantee the work; a message is only a hint.
* The engine sends only a window of casts at a time.
* A handler of checks does not wait. Nodes that need a thread wait in the worker, which can release them.
* A worker that stops returns the checks that it has not begun.

Each server has threads of its own, so that a worker receives a cancel while every thread of the checks is busy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import oslo_messaging
from oslo_context.context import RequestContext
from typing_extensions import override

from convergence import errors, logs
from convergence.concurrency import Lock, ThreadEvent, start_thread
from convergence.documents import AnyJson
from convergence.rpc import messages
from convergence.rpc.client import WorkerClient
from convergence.rpc.messages import AskWorker, Cancel, CheckResource, DriftFound, Settle
from convergence.rpc.operations import OPERATIONS, EngineOperation
from convergence.rpc.shares import on_behalf_of
from convergence.rpc.transport import WAKE, Transport

LOG = logging.getLogger(__name__)

_WAKE_AGAIN_S = 0.05


class CheckHandler(Protocol):
    """The handler of checks in a worker."""

    def check_resource(self, context: RequestContext, traversal_id: str, node: int, hops: int) -> object:
        """Start the check of a node, for the project that `convergence.rpc.shares.beneficiary` names.

        Must not wait until the check has ended: it would block a thread of the server.
        """


class CancelHandler(Protocol):
    """The handler of cancels in a worker."""

    def cancel(self, context: RequestContext, stack_id: str, traversal_id: str) -> object:
        """Stop the actions of this process for the traversal. Must not wait for their end."""


class QuestionHandler(Protocol):
    """The handler of questions in a worker."""

    def answer(self, context: RequestContext, questions: str, limit_s: float) -> str:
        """Return the answer within `limit_s` seconds."""


class Exposed:
    """A method that other processes may call."""

    exposed = True

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __call__(self, context: RequestContext, /, **document: Any) -> AnyJson:
        return self._method(context, document)


class Endpoint:
    """The methods of a server by name, and the newest version of the interface that it understands."""

    def __init__(self, version: str, methods: Mapping[str, Callable[[RequestContext, dict[str, Any]], Any]]) -> None:
        self.target = oslo_messaging.Target(version=version)
        for name, method in methods.items():
            setattr(self, name, Exposed(method))


class RpcServer:
    """Base class of the servers. Call `start`, then `stop`, then `wait`.

    :param host_id: identifies this process among all processes that listen to the topic.
    :param threads: maximum number of messages that are handled at the same time.
    """

    def __init__(self, transport: Transport, topic: str, host_id: str, endpoint: Endpoint, threads: int) -> None:
        self._transport = transport
        self._name = f'{topic}@{host_id}'
        self._wake = partial(transport.wake, topic, host_id)
        self._threads = threads
        self._make = partial(transport.server, topic, host_id, endpoint)
        self._server = self._make()
        self._started = False

    def start(self) -> None:
        """Begin to listen.

        :raises MessagingUnavailable: the broker does not answer.
        """
        self._transport.ping()
        self._server.start(override_pool_size=self._threads)
        self._started = True

    def stop(self) -> None:
        """Fetch no more messages from the broker. Handlers of fetched messages still run; see `wait`."""
        listener = self._server.listener
        if listener is None:  # never started, or stopped before
            return
        receive = listener.on_incoming_callback

        def pass_on(incoming: Any) -> None:
            if incoming[0].message.get('method') != WAKE:  # it carries no work, so it needs no thread
                receive(incoming)

        listener.on_incoming_callback = pass_on
        with self._awake():
            self._server.stop()
        # oslo.messaging closes the listener at the end of `wait`. Until then the broker would send further messages
        # that this server no longer reads, and they would be lost with the connection.
        listener.cleanup()
        self._server.listener = None
        # Messages that arrived during the close are acknowledged, but oslo.messaging does not poll for them any more.
        rest = getattr(listener, '_poll_style_listener', None)
        while rest is not None and (incoming := rest.poll()):
            pass_on(incoming)

    @contextmanager
    def _awake(self) -> Iterator[None]:
        """Wake the listener repeatedly during the block: otherwise a stop waits until its next poll, some seconds."""
        over = ThreadEvent()

        def wake() -> None:
            while not over.wait(_WAKE_AGAIN_S):
                self._wake()

        start_thread(f'{self._name}:wake', wake)
        try:
            yield
        finally:
            over.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait after `stop` until the running handlers have ended. Return False if `timeout_s` seconds pass first."""
        if not self._started:
            return True
        ended = ThreadEvent()

        def close() -> None:
            try:
                self._server.wait()
            finally:
                ended.set()

        start_thread(f'{self._name}:wait', close)
        return ended.wait(timeout_s)


class Drain(StrEnum):
    """The treatment of a check that a worker server has fetched from the broker.

    * WORK: call the handler.
    * HOLD: keep the check until the server has left its queue.
    * GIVE_BACK: send the check to the other workers.
    """

    WORK = 'WORK'
    HOLD = 'HOLD'
    GIVE_BACK = 'GIVE_BACK'


class WorkerServer(RpcServer):
    """Receives checks. The server logs the error of a failing handler; the node stays `READY`, the sweeper retries."""

    def __init__(self, transport: Transport, host_id: str, handler: CheckHandler, *, threads: int = 2) -> None:
        endpoint = Endpoint(messages.WORKER_VERSION, {CheckResource.METHOD: self._check})
        super().__init__(transport, messages.WORKER_TOPIC, host_id, endpoint, threads)
        self._handler = handler
        self._client = WorkerClient(transport)
        self._lock = Lock()
        self._drain = Drain.WORK
        self._held: list[tuple[CheckResource, RequestContext]] = []

    @override
    def stop(self) -> None:
        """Fetch no more checks, and send the fetched checks that have not begun to the other workers."""
        with self._lock:
            self._drain = Drain.HOLD
        super().stop()
        with self._lock:
            # Only after the server has left the queue: before, it would receive the same checks again.
            self._drain = Drain.GIVE_BACK
            held, self._held = self._held, []
        for message, context in held:
            self._give_back(message, context)

    def _check(self, context: RequestContext, document: dict[str, Any]) -> None:
        message = CheckResource.decode(document)
        with self._lock:
            drain = self._drain
            if drain is Drain.HOLD:
                self._held.append((message, context))
        if drain is Drain.GIVE_BACK:
            self._give_back(message, context)
        elif drain is Drain.WORK:
            try:
                with on_behalf_of(message.project):
                    for node in (message.node, *message.more):
                        self._handler.check_resource(context, message.traversal_id, node, message.hops)
            except Exception:
                LOG.exception('%s: %s failed; the sweeper dispatches its nodes again', self._name, message)

    def _give_back(self, message: CheckResource, context: RequestContext) -> None:
        with on_behalf_of(message.project):
            nodes = (message.node, *message.more)
            self._client.check_resources(message.traversal_id, nodes, hops=message.hops, context=context)


class CancelServer(RpcServer):
    """Receives cancels, which every worker gets. It has threads of its own, so a busy worker receives them too."""

    def __init__(self, transport: Transport, host_id: str, handler: CancelHandler, *, threads: int = 2) -> None:
        endpoint = Endpoint(messages.CANCEL_VERSION, {Cancel.METHOD: self._cancel})
        super().__init__(transport, messages.CANCEL_TOPIC, host_id, endpoint, threads)
        self._handler = handler

    def _cancel(self, context: RequestContext, document: dict[str, Any]) -> None:
        message = Cancel.decode(document)
        try:
            self._handler.cancel(context, message.stack_id, message.traversal_id)
        except Exception:
            LOG.exception('%s: %s failed; the next heartbeat stops the remaining actions', self._name, message)


class QuestionServer(RpcServer):
    """Receives questions; any one worker gets each of them. It has threads of its own, which wait for resource types.

    The log of this process records failures; the caller receives only a general error.
    """

    def __init__(self, transport: Transport, host_id: str, handler: QuestionHandler, *, threads: int = 8) -> None:
        endpoint = Endpoint(messages.QUESTION_VERSION, {AskWorker.METHOD: self._answer})
        super().__init__(transport, messages.QUESTION_TOPIC, host_id, endpoint, threads)
        self._handler = handler

    def _answer(self, context: RequestContext, document: dict[str, Any]) -> str:
        try:
            message = AskWorker.decode(document)
            return self._handler.answer(context, message.questions, message.limit_s)
        except errors.ConvergenceError as error:
            LOG.warning('%s: question not answered; the preview that asked it contains less: %s', self._name, error)
            raise _expected(_plain(error)) from None
        except Exception:
            LOG.exception('%s: question not answered, request %s', self._name, context.request_id)
            raise _expected(errors.ConvergenceError('the worker failed to answer; see its log')) from None


class EngineNotices(Protocol):
    """The methods of an engine that handle casts. The server finds the methods for calls by name."""

    def settle(self, context: object, stack_id: str, traversal_id: str) -> None:
        """Settle the stack of a failed traversal: fail it or roll it back."""

    def drifted(self, context: object, stack_id: str) -> None:
        """Start the repair of drift that an observer found."""


class EngineServer(RpcServer):
    """Answers each of `convergence.rpc.operations.OPERATIONS` with the method of `service` that has its name.

    A method gets the context, and by name the arguments that the caller set; so it needs defaults for the optional
    ones. `list_stacks`, `count_stacks` and `list_events` get their filters as one value called `query`. The server
    refuses an operation without a method as `NotOffered`. Callers cannot reach other methods.

    Errors of `convergence.errors` go to the caller and not to the log. Any other error is a fault of the program: the
    server logs it with its traceback, and the caller gets an error that refers to the log.
    """

    def __init__(self, transport: Transport, host_id: str, service: EngineNotices, *, threads: int = 16) -> None:
        methods = {name: self._operation(operation) for name, operation in OPERATIONS.items()}
        endpoint = Endpoint(
            messages.ENGINE_VERSION, {**methods, Settle.METHOD: self._settle, DriftFound.METHOD: self._drifted}
        )
        super().__init__(transport, messages.ENGINE_TOPIC, host_id, endpoint, threads)
        self._service = service
        self._lock = Lock()
        self._busy = 0
        self._pausing = Lock()
        self._paused = False

    @override
    def stop(self) -> None:
        """Accept no more requests; a later `resume` has no effect."""
        with self._pausing:
            self._paused = False
            super().stop()

    def pause(self) -> None:
        """Accept no more requests until `resume`. Other engines accept them; accepted requests still get answers."""
        with self._pausing:
            if self._paused or self._server.listener is None:
                return
            LOG.warning('%s: accepting no requests until the database answers again', self._name)
            super().stop()
            self._paused = True
            start_thread(f'{self._name}:paused', self._server.wait)

    def resume(self) -> None:
        """Accept requests again after `pause`; without a pause, do nothing.

        :raises MessagingUnavailable: the broker does not answer; the server stays paused.
        """
        with self._pausing:
            if not self._paused:
                return
            self._server = self._make()
            self.start()
            self._paused = False
            LOG.info('%s: accepting requests again', self._name)

    @property
    def busy(self) -> int:
        """The number of requests in progress."""
        with self._lock:
            return self._busy

    def _operation(self, operation: EngineOperation) -> Callable[[RequestContext, dict[str, Any]], Any]:
        def serve(context: RequestContext, document: dict[str, Any]) -> AnyJson:
            with logs.masking():
                return answer(context, document)

        def answer(context: RequestContext, document: dict[str, Any]) -> AnyJson:
            try:
                method = getattr(self._service, operation.name, None)
                if method is None:
                    raise errors.NotOffered(f'{operation.name} is not offered by this engine')
                with self._counted():
                    return method(context, **operation.decode(document))
            except errors.ConvergenceError as error:
                raise _expected(_plain(error)) from None
            except Exception:
                LOG.exception(
                    'Operation %s of request %s failed; report this error', operation.name, context.request_id
                )
                text = f'{operation.name} failed in the engine; search its log for {context.request_id}'
                raise _expected(errors.ConvergenceError(text)) from None

        return serve

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1

    def _settle(self, context: RequestContext, document: dict[str, Any]) -> None:
        message = Settle.decode(document)
        try:
            self._service.settle(context, message.stack_id, message.traversal_id)
        except Exception:
            LOG.exception('%s: %s failed; the sweeper settles the stack', self._name, message)

    def _drifted(self, context: RequestContext, document: dict[str, Any]) -> None:
        message = DriftFound.decode(document)
        try:
            self._service.drifted(context, message.stack_id)
        except errors.DatabaseUnavailable as error:
            LOG.info('%s: %s skipped, the sweeper repairs the drift later: %s', self._name, message, error)
        except Exception:
            LOG.exception('%s: %s failed; the sweeper repairs the drift later', self._name, message)


def _plain(error: errors.ConvergenceError) -> errors.ConvergenceError:
    """Return the error as the nearest class of `convergence.errors`, which the caller knows and can build again.

    Masks the secrets that the request used (see `convergence.logs.masking`).
    """
    kind = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
    kwargs = {name: logs.masked_within(value) for name, value in error.kwargs.items()}
    plain: errors.ConvergenceError = kind(logs.masked(str(error)), **kwargs)
    return plain


def _expected(error: errors.ConvergenceError) -> Exception:
    """Wrap `error` so that oslo.messaging sends it to the caller without a traceback, and logs none."""
    expected: Exception = oslo_messaging.ExpectedException()
    expected.exc_info = (type(error), error, None)  # type: ignore[attr-defined]
    return expected
