"""Clients that send messages and requests to other processes.

Casts are hints. A cast returns True if the broker accepted it, and raises nothing while the broker is unreachable.
Calls raise the errors of `convergence.errors`, as if the engine ran in this process.
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
"""Seconds that the client waits for the answer beyond the time limit of the worker: the time on the network."""


class Caster:
    """Sends hints to one topic."""

    def __init__(self, transport: Transport, topic: str, version: str, version_cap: str | None = None) -> None:
        client = transport.client(topic, version, version_cap)
        self._transport = transport
        self._one = client.prepare()
        self._all = client.prepare(fanout=True)

    def to_one(self, message: Message, context: RequestContext | None = None) -> bool:
        """Send to one server of the topic. Return False if the broker did not accept the message."""
        return self._send(self._one, message, context)

    def to_all(self, message: Message, context: RequestContext | None = None) -> bool:
        """Send to every server of the topic. Return False if the broker did not accept the message."""
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
        """Notify one worker that a node may be ready, for the project that `beneficiary` names.

        Return False if the message was not sent; the sweeper then dispatches the node.

        :param hops: number of redeliveries: how many workers without a free thread forwarded the message.
        """
        return self._checks.to_one(messages.CheckResource(traversal_id, node, hops, beneficiary()), context)

    def check_resources(
        self, traversal_id: str, nodes: Sequence[int], *, hops: int = 0, context: RequestContext | None = None
    ) -> bool:
        """Notify one worker that several nodes of one traversal may be ready, in one message. See `check_resource`."""
        first, *more = nodes
        return self._checks.to_one(messages.CheckResource(traversal_id, first, hops, beneficiary(), more), context)

    def can_send(self) -> bool:
        """Return True if the broker accepts messages. Contacts the broker only if the last message failed."""
        outage = self._transport.outage
        if outage.over():
            return True
        if self._transport.reach() is not None:
            return False
        outage.end()
        return True

    def cancel(self, stack_id: str, traversal_id: str, *, context: RequestContext | None = None) -> bool:
        """Request that every worker stops its actions for a traversal.

        Return False if the message was not sent; workers also find the cancel in the database.
        """
        return self._cancels.to_all(messages.Cancel(stack_id, traversal_id), context)


class QuestionClient:
    """Sends questions to any one worker and waits for the answer, up to a limit that each call sets."""

    def __init__(self, transport: Transport, *, version_cap: str | None = None) -> None:
        self._transport = transport
        self._client = transport.client(messages.QUESTION_TOPIC, messages.QUESTION_VERSION, version_cap)
        # If no worker has ever listened, the call fails at once instead of after its timeout.
        self._client.transport_options = TransportOptions(at_least_once=True)

    def ask(self, context: RequestContext | None, questions: str, limit_s: float) -> str:
        """Return the answer of a worker, which must answer within `limit_s` seconds.

        :raises MessagingUnavailable: no broker, no worker that knows the call, or no answer in time.
        :raises ConvergenceError: the error that the worker raised.
        """
        document = AskWorker(questions, limit_s).encode()
        self._transport.prepare_call()
        try:
            target = self._client.prepare(timeout=limit_s + ANSWER_TRAVELS_S)
            return str(target.call(context, AskWorker.METHOD, **document))
        except MessagingTimeout:
            raise errors.NoAnswer(f'no worker answered within {limit_s:g} s') from None
        except MessageUndeliverable:
            raise errors.MessagingUnavailable('no worker is running that could answer') from None
        except (RemoteError, RPCVersionCapError) as error:
            kind = getattr(error, 'exc_type', type(error).__name__)
            known = kind in ('NoSuchMethod', 'UnsupportedVersion', 'RPCVersionCapError')
            why = 'does not know the question: it has another version' if known else f'failed to answer ({kind})'
            raise errors.MessagingUnavailable(f'the worker {why}') from None
        except errors.ConvergenceError as error:
            raise _local(error) from None
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            raise self._transport.unavailable(error) from None


class RpcCaller:
    """Sends a request to any one engine and waits for the answer.

    :param limit_bytes: maximum size of a request, with its template and files.
    :param version_cap: newest version of the engine's interface to use while older engines still run.
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
        # If no engine has ever created the queue, the call fails at once instead of after its timeout.
        client.transport_options = TransportOptions(at_least_once=True)
        self._versions = {each.since: client.prepare(version=each.since) for each in OPERATIONS.values()}

    def call(self, context: RequestContext, name: str, /, **arguments: Any) -> AnyJson:
        """Request the operation `name` of `convergence.rpc.operations.OPERATIONS` and return its answer.

        :raises ConvergenceError: the error that the engine raised, with its class, text and fields.
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
    """A remote engine: one method per operation (see `convergence.rpc.engine_api`), and the casts to engines."""

    def settle(self, stack_id: str, traversal_id: str, *, context: RequestContext | None = None) -> bool:
        """Cast to one engine that a traversal may have ended.

        Return False if the message was not sent; the sweeper then finds the traversal.
        """
        return self._casts.to_one(messages.Settle(stack_id, traversal_id), context)

    def drifted(self, stack_id: str, *, context: RequestContext | None = None) -> bool:
        """Cast to one engine that an observer found drift.

        Return False if the message was not sent; the sweeper then finds the drift.
        """
        return self._casts.to_one(messages.DriftFound(stack_id), context)


def _local(remote: errors.ConvergenceError) -> errors.ConvergenceError:
    """Return the error as the engine raised it: without the additions of the transport to its text and class."""
    for kind in type(remote).__mro__:
        if kind.__module__ == errors.__name__:
            return cast('errors.ConvergenceError', kind(*remote.args, **remote.kwargs))
    return remote
