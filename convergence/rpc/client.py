"""What one process asks of another.

Casts are hints: they answer whether they were handed to the broker, and never raise because it is away. Calls raise
the errors of `convergence.errors`, as if the engine were in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from oslo_context.context import RequestContext
from oslo_messaging import MessageUndeliverable, MessagingTimeout, RemoteError, TransportOptions
from oslo_messaging.rpc.client import RPCVersionCapError

from convergence import errors
from convergence.documents import AnyJson
from convergence.rpc import messages
from convergence.rpc.engine_api import EngineApi
from convergence.rpc.messages import AskWorker, Message
from convergence.rpc.operations import OPERATIONS
from convergence.rpc.shares import beneficiary
from convergence.rpc.transport import Transport, describe_failure

ANSWER_TRAVELS_S = 2.0
"""For how long an answer to a question may be on its way when the time of its worker is over."""


class Caster:
    """Sends hints to one topic."""

    def __init__(self, transport: Transport, topic: str, version: str, version_cap: str | None = None) -> None:
        client = transport.client(topic, version, version_cap)
        self._transport = transport
        self._one = client.prepare()
        self._all = client.prepare(fanout=True)

    def to_one(self, message: Message, context: RequestContext | None = None) -> bool:
        """Send to one server of the topic. False: it could not be sent."""
        return self._send(self._one, message, context)

    def to_all(self, message: Message, context: RequestContext | None = None) -> bool:
        """Send to every server of the topic. False: it could not be sent."""
        return self._send(self._all, message, context)

    def _send(self, target: Any, message: Message, context: RequestContext | None) -> bool:
        document = message.encode()
        outage = self._transport.outage
        if outage.pausing():
            return False
        try:
            self._transport.hand_over(partial(target.cast, context, message.METHOD, **document), message.METHOD)
        except RPCVersionCapError as error:
            messages.refuse(message.METHOD, f'not sent, the version cap is {error.version_cap}')
            return False
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            outage.begin(str(self._transport.unavailable(error)))
            return False
        outage.end()
        return True


class WorkerClient:
    """Wakes and stops workers."""

    def __init__(self, transport: Transport, *, version_cap: str | None = None) -> None:
        self._transport = transport
        self._checks = Caster(transport, messages.WORKER_TOPIC, messages.WORKER_VERSION, version_cap)
        self._cancels = Caster(transport, messages.CANCEL_TOPIC, messages.CANCEL_VERSION, version_cap)

    def check_resource(
        self, traversal_id: str, node: int, hops: int = 0, *, context: RequestContext | None = None
    ) -> bool:
        """Tell one worker that a node may be ready, on behalf of `beneficiary`. False: not sent, the sweeper will.

        :param hops: number of redeliveries: how often workers without a free thread have forwarded that.
        """
        return self._checks.to_one(messages.CheckResource(traversal_id, node, hops, beneficiary()), context)

    def check_resources(
        self, traversal_id: str, nodes: Sequence[int], *, hops: int = 0, context: RequestContext | None = None
    ) -> bool:
        """The same of some nodes of one traversal, in one message."""
        first, *more = nodes
        return self._checks.to_one(messages.CheckResource(traversal_id, first, hops, beneficiary(), more), context)

    def can_send(self) -> bool:
        """Whether the broker takes messages; it is asked only where it did not the last time."""
        outage = self._transport.outage
        if outage.over():
            return True
        if self._transport.reach() is not None:
            return False
        outage.end()
        return True

    def cancel(self, stack_id: str, traversal_id: str, *, context: RequestContext | None = None) -> bool:
        """Tell every worker to stop what it does for a traversal. False: not sent; the database says so anyway."""
        return self._cancels.to_all(messages.Cancel(stack_id, traversal_id), context)


class QuestionClient:
    """Asks any one worker, and waits for the answer no longer than for a time that is said each time."""

    def __init__(self, transport: Transport, *, version_cap: str | None = None) -> None:
        self._transport = transport
        self._client = transport.client(messages.QUESTION_TOPIC, messages.QUESTION_VERSION, version_cap)
        # Where no worker has ever listened that is known at once.
        self._client.transport_options = TransportOptions(at_least_once=True)

    def ask(self, context: RequestContext | None, questions: str, limit_s: float) -> str:
        """The answer of a worker, which has `limit_s` seconds for it.

        :raises MessagingUnavailable: no broker, no worker that knows the call, or no answer in time.
        :raises ConvergenceError: what the worker raised.
        """
        document = AskWorker(questions, limit_s).encode()
        self._transport.prepare_call()
        try:
            target = self._client.prepare(timeout=limit_s + ANSWER_TRAVELS_S)
            return str(target.call(context, AskWorker.METHOD, **document))
        except MessagingTimeout:
            raise errors.NoAnswer(f'no worker has answered within {limit_s:g} s') from None
        except MessageUndeliverable:
            raise errors.MessagingUnavailable('there is no worker that could be asked') from None
        except (RemoteError, RPCVersionCapError) as error:
            kind = getattr(error, 'exc_type', type(error).__name__)
            known = kind in ('NoSuchMethod', 'UnsupportedVersion', 'RPCVersionCapError')
            why = 'does not know the question: it is of another version' if known else f'has failed with it ({kind})'
            raise errors.MessagingUnavailable(f'the worker that was asked {why}') from None
        except errors.ConvergenceError as error:
            raise _local(error) from None
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            raise self._transport.unavailable(error) from None


class RpcCaller:
    """Asks any one engine and waits for the answer.

    :param limit_bytes: largest request, with template and files.
    :param version_cap: newest engine version to speak while older engines still run.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        limit_bytes: int = messages.CALL_LIMIT_BYTES,
        version_cap: str | None = None,
    ) -> None:
        self._transport = transport
        self._limit_bytes = limit_bytes
        self._casts = Caster(transport, messages.ENGINE_TOPIC, messages.ENGINE_VERSION, version_cap)
        client = transport.client(messages.ENGINE_TOPIC, messages.ENGINE_VERSION, version_cap)
        # A queue that no engine ever made is known at once; without this the caller would wait for its timeout.
        client.transport_options = TransportOptions(at_least_once=True)
        self._versions = {each.since: client.prepare(version=each.since) for each in OPERATIONS.values()}

    def call(self, context: RequestContext, name: str, /, **arguments: Any) -> AnyJson:
        """Carry out the operation `name` of `convergence.rpc.operations.OPERATIONS`.

        :raises ConvergenceError: what the engine raised, by class, with its text and all that it carries.
        :raises MessagingUnavailable: no broker, no engine, or no answer in time.
        :raises RequestLimitExceeded: the request is too large.
        """
        operation = OPERATIONS[name]
        document = operation.encode(arguments, self._limit_bytes)
        self._transport.prepare_call()
        try:
            return self._versions[operation.since].call(context, name, **document)
        except errors.ConvergenceError as error:
            raise _local(error) from None
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            raise describe_failure(self._transport, error, name) from None


class EngineClient(RpcCaller, EngineApi):
    """Everything that can be asked of an engine, as its methods; see `convergence.rpc.engine_api`."""

    def settle(self, stack_id: str, traversal_id: str, *, context: RequestContext | None = None) -> bool:
        """Tell an engine that a traversal may have ended. A cast; False: not sent, the sweeper will notice."""
        return self._casts.to_one(messages.Settle(stack_id, traversal_id), context)

    def drifted(self, stack_id: str, *, context: RequestContext | None = None) -> bool:
        """Tell an engine that an object was found changed. A cast; False: not sent, the sweeper will notice."""
        return self._casts.to_one(messages.DriftFound(stack_id), context)


def _local(remote: errors.ConvergenceError) -> errors.ConvergenceError:
    """The error that the engine raised, without the traces that the transport adds to its text and its class."""
    for kind in type(remote).__mro__:
        if kind.__module__ == errors.__name__:
            return cast('errors.ConvergenceError', kind(*remote.args, **remote.kwargs))
    return remote
