"""Where the questions of other processes arrive.

What oslo.messaging does with a message, measured: it acknowledges *before* it hands the message on, and takes
everything that the broker has, however many threads are busy. A message in the memory of a killed process is lost, and
one server may sit on the work of all. So the guarantee is the row and the sweeper; the engine keeps only a window of
casts outstanding; a handler of checks does not wait, so that what waits for a thread does so where the worker can take
it back; and a worker that is told to stop gives back the checks that it has not begun.

Each server has threads of its own: a cancel is heard while every thread of the checks is busy.
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
    """What a worker does with a check."""

    def check_resource(self, context: RequestContext, traversal_id: str, node: int, hops: int) -> object:
        """Have the node looked at, on behalf of `convergence.rpc.shares.beneficiary`.

        Must not wait for that: what waits for a thread must not wait in the server.
        """


class CancelHandler(Protocol):
    """What a worker does with a cancel."""

    def cancel(self, context: RequestContext, stack_id: str, traversal_id: str) -> object:
        """Stop what runs here for the traversal. Must not wait for it to end."""


class QuestionHandler(Protocol):
    """What a worker does with questions."""

    def answer(self, context: RequestContext, questions: str, limit_s: float) -> str:
        """The answer, after `limit_s` seconds at the latest."""


class Exposed:
    """A method that may be called from outside."""

    exposed = True

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __call__(self, context: RequestContext, /, **document: Any) -> AnyJson:
        return self._method(context, document)


class Endpoint:
    """The methods that a server offers, by name, and the newest version that it understands."""

    def __init__(self, version: str, methods: Mapping[str, Callable[[RequestContext, dict[str, Any]], Any]]) -> None:
        self.target = oslo_messaging.Target(version=version)
        for name, method in methods.items():
            setattr(self, name, Exposed(method))


class RpcServer:
    """Base of the servers: `start`, then `stop`, then `wait`.

    :param host_id: names this process among those that listen to the topic.
    :param threads: how many messages are worked on at a time.
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
        """Take no more messages from the broker. What was taken is still worked on; see `wait`."""
        listener = self._server.listener
        if listener is None:  # never started, or stopped before
            return
        receive = listener.on_incoming_callback

        def pass_on(incoming: Any) -> None:
            if incoming[0].message.get('method') != WAKE:  # for that no thread is begun any more
                receive(incoming)

        listener.on_incoming_callback = pass_on
        with self._awake():
            self._server.stop()
        # oslo.messaging would close it at the end of `wait`. Until then the broker goes on sending us what we no longer
        # read, and it would be lost with the connection.
        listener.cleanup()
        self._server.listener = None
        # What arrived while it was being closed is acknowledged too, but oslo.messaging does not look any more.
        rest = getattr(listener, '_poll_style_listener', None)
        while rest is not None and (incoming := rest.poll()):
            pass_on(incoming)

    @contextmanager
    def _awake(self) -> Iterator[None]:
        """Meanwhile the listener looks up again and again: oslo.messaging waits for it to do so by itself."""
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
        """After `stop`: wait for the work to end. False when it had not within `timeout_s` seconds."""
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
    """What a worker server does with a check that it took from the broker."""

    WORK = 'WORK'
    HOLD = 'HOLD'
    GIVE_BACK = 'GIVE_BACK'


class WorkerServer(RpcServer):
    """Receives checks. A failing handler is logged; the node stays `READY` and the sweeper tries again."""

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
        """Take no more checks, and give those that were taken but not begun to the other workers."""
        with self._lock:
            self._drain = Drain.HOLD
        super().stop()
        with self._lock:
            # Not before the queue was left: they would come straight back.
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
                LOG.exception('%s: %s failed, the sweeper will repeat it', self._name, message)

    def _give_back(self, message: CheckResource, context: RequestContext) -> None:
        with on_behalf_of(message.project):
            nodes = (message.node, *message.more)
            self._client.check_resources(message.traversal_id, nodes, hops=message.hops, context=context)


class CancelServer(RpcServer):
    """Receives cancels, which go to every worker. Its threads are its own, so a busy worker hears them too."""

    def __init__(self, transport: Transport, host_id: str, handler: CancelHandler, *, threads: int = 2) -> None:
        endpoint = Endpoint(messages.CANCEL_VERSION, {Cancel.METHOD: self._cancel})
        super().__init__(transport, messages.CANCEL_TOPIC, host_id, endpoint, threads)
        self._handler = handler

    def _cancel(self, context: RequestContext, document: dict[str, Any]) -> None:
        message = Cancel.decode(document)
        try:
            self._handler.cancel(context, message.stack_id, message.traversal_id)
        except Exception:
            LOG.exception('%s: %s failed, the heartbeat will notice the work that is left', self._name, message)


class QuestionServer(RpcServer):
    """Receives questions, each of which goes to any one worker. Its threads are its own: they wait for resource types.

    What goes wrong with an answer is told in the log of this process, and to nobody else.
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
            LOG.warning('%s: a question gets no answer: %s', self._name, error)
            raise _expected(_plain(error)) from None
        except Exception:
            LOG.exception('%s: a question gets no answer, request %s', self._name, context.request_id)
            raise _expected(errors.ConvergenceError('the worker that was asked has failed; its log says why')) from None


class EngineNotices(Protocol):
    """The methods of an engine that casts reach. Calls reach its operations by name."""

    def settle(self, context: object, stack_id: str, traversal_id: str) -> None:
        """A traversal has failed: fail its stack, or roll it back."""

    def drifted(self, context: object, stack_id: str) -> None:
        """An observer has found drift that needs a repair."""


class EngineServer(RpcServer):
    """Answers each of `convergence.rpc.operations.OPERATIONS` with the method of `service` that has its name.

    An operation gets the context and its arguments by name: those the caller gave, so the method has defaults for the
    optional ones. `list_stacks`, `count_stacks` and `list_events` get their filters as one value called `query`.
    Operations without a method are refused as `NotOffered`; other methods cannot be reached.

    Errors of `convergence.errors` go to the caller without a trace in the log. Any other is a fault of ours: it is
    logged, and the caller is told where to look, not what the trace says.
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
        """Take no more requests, now or later."""
        with self._pausing:
            self._paused = False
            super().stop()

    def pause(self) -> None:
        """Take no more requests until `resume`; other engines do. Those that were taken are still answered."""
        with self._pausing:
            if self._paused or self._server.listener is None:
                return
            LOG.warning('%s: takes no more requests until the database is back', self._name)
            super().stop()
            self._paused = True
            start_thread(f'{self._name}:paused', self._server.wait)

    def resume(self) -> None:
        """After `pause`: take requests again. Else nothing happens.

        :raises MessagingUnavailable: the broker does not answer; it is still paused then.
        """
        with self._pausing:
            if not self._paused:
                return
            self._server = self._make()
            self.start()
            self._paused = False
            LOG.info('%s: takes requests again', self._name)

    @property
    def busy(self) -> int:
        """How many requests are being answered."""
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
                LOG.exception('%s failed, request %s', operation.name, context.request_id)
                text = f'{operation.name} failed in the engine; its log says why, look for {context.request_id}'
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
            LOG.exception('%s: %s failed, the sweeper will repeat it', self._name, message)

    def _drifted(self, context: RequestContext, document: dict[str, Any]) -> None:
        message = DriftFound.decode(document)
        try:
            self._service.drifted(context, message.stack_id)
        except errors.DatabaseUnavailable as error:
            LOG.info('%s: %s is left to the sweeper: %s', self._name, message, error)
        except Exception:
            LOG.exception('%s: %s failed, the sweeper will repeat it', self._name, message)


def _plain(error: errors.ConvergenceError) -> errors.ConvergenceError:
    """The error as the nearest class of `convergence.errors`: one that the other side knows and can make again.

    What has been masked while the request was served (see `convergence.logs.masking`) is masked in it.
    """
    kind = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
    kwargs = {name: logs.masked_within(value) for name, value in error.kwargs.items()}
    plain: errors.ConvergenceError = kind(logs.masked(str(error)), **kwargs)
    return plain


def _expected(error: errors.ConvergenceError) -> Exception:
    """`error` for oslo.messaging to send on: without writing a trace to the log, and without sending one."""
    expected: Exception = oslo_messaging.ExpectedException()
    expected.exc_info = (type(error), error, None)  # type: ignore[attr-defined]
    return expected
