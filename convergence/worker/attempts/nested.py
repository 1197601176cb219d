"""Nested stacks from a worker: it calls an engine to start or stop their operations, and reads their state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Protocol, TypeVar

from convergence.core.claim import NO_NODE, Claim
from convergence.core.handoff import Handoff
from convergence.core.model import Action, Status
from convergence.core.object_state import ADOPTED
from convergence.core.rows import Stack, Traversal
from convergence.core.upwards import TELLS
from convergence.documents import Document
from convergence.errors import ConvergenceError, OperatorError, RetryLater, UserError
from convergence.resources.contract import FinalFailure, PluginFailure, TransientFailure
from convergence.resources.nested import SILENT
from convergence.resources.nesting import NestedState, NestedStep, NestedValues
from convergence.worker.attempts.port import ExpectedOutput

LOG = logging.getLogger(__name__)

T = TypeVar('T')


_STEP = frozenset(each.name for each in fields(NestedStep))


class NestingEngine(Protocol):
    """The operations of an engine on nested stacks; see `convergence.engine.nesting.operations`."""

    def act_on_nested_stack(
        self,
        context: Any,
        resource_id: str,
        fence: int,
        step: int = 0,
        node: int | None = None,
        ends: Document | None = None,
    ) -> dict[str, Any]:
        """Start the operation of the nested stack that the row of its resource records."""

    def act_on_nested_stacks(self, context: Any, asked: Sequence[Document]) -> Sequence[Document | None]:
        """Do the same for several rows. Each request holds the arguments of `act_on_nested_stack`."""

    def cancel_nested_stack(self, context: Any, resource_id: str, fence: int) -> None:
        """Cancel the operation that a nested stack runs for its resource."""

    def read_nested_stack(self, context: Any, stack_id: str) -> dict[str, Any]:
        """Read the outputs and attributes of a nested stack."""

    def delete_nested_snapshot(self, context: Any, stack_id: str, snapshot_id: str) -> None:
        """Start to delete a snapshot of a nested stack."""


class StackStates(Protocol):
    """Reads the state of stacks."""

    def stack(self, stack_id: str) -> Stack | None:
        """A stack by its id, deleted or not."""

    def traversal(self, traversal_id: str) -> Traversal | None:
        """One operation."""


class EngineNesting:
    """The nested stacks of a worker, by way of an engine.

    :param context: makes the context of a request, from the ids of a project and of the original request.
    """

    def __init__(self, engine: NestingEngine, states: StackStates, context: Callable[[str, str], Any]) -> None:
        self._engine = engine
        self._states = states
        self._context = context

    def __call__(self, claim: Claim, expected_output: ExpectedOutput, begun: Document | None = None) -> OneNestedStack:
        """The stack that is the object of a claimed row; see `convergence.worker.attempts.port.NestingPort`."""
        row, context = claim.resource, self._context(claim.stack.project_id, claim.traversal.request_id)
        stack = OneNestedStack(self._engine, self._states, context, row.token or '', (row.id, row.fence))
        stack.is_silent = bool((row.progress or {}).get(SILENT))
        if _is_plain(claim):
            stack.offer = Handoff(row.id, (claim.traversal.id, claim.node.number))
            stack.expected_output = expected_output
        stack.begun = begun
        return stack

    def begin_together(self, claims: Sequence[tuple[Claim, ExpectedOutput]]) -> list[Document | None]:
        """See `convergence.worker.attempts.port.NestingPort`."""
        plain = [each for each in claims if _is_plain(each[0])]
        if not plain:
            return [None for _ in claims]
        first, _ = plain[0]
        context = self._context(first.stack.project_id, first.traversal.request_id)
        try:
            answers = self._engine.act_on_nested_stacks(context, [_request(*each) for each in plain])
        except ConvergenceError as error:
            LOG.debug('Starting %d nested stacks one by one: %s', len(plain), error)
            answers = []
        begun = {claim.resource.id: answer for (claim, _), answer in zip(plain, answers, strict=False)}
        return [begun.get(claim.resource.id) for claim, _ in claims]

    def lost_handoff(self, claim: Claim) -> Handoff | None:
        """See `convergence.worker.attempts.port.NestingPort`."""
        if not _is_plain(claim) or claim.resource.token is None:
            return None
        stack = self(claim, lambda: None)
        with suppress(PluginFailure):  # the answer was lost again, or another worker holds the row
            stack.act()
        return stack.handoff

    def kept(self, stack_id: str, project_id: str) -> OneNestedStack:
        """The stack with an id, to delete its snapshots. It is, or was, nested in another one."""
        return OneNestedStack(self._engine, self._states, self._context(project_id, ''), stack_id)


class OneNestedStack:
    """One nested stack; see `convergence.resources.nesting.NestedStacks`.

    :param held: key and fence of the claimed row whose object the stack is; ('', 0): no row is claimed.
    :ivar is_silent: True if its last operation is known to be for a template without outputs.
    :ivar offer: the row, if an engine may release it as soon as the stack works.
    :ivar handoff: the row, if an engine released it; see `convergence.resources.nesting.NestedStacks`.
    :ivar expected_output: if the engine may release the row; see `convergence.worker.attempts.port.NestingPort`.
    :ivar begun: the answer of an engine that has started the first step already.
    """

    def __init__(
        self, engine: NestingEngine, states: StackStates, context: Any, stack_id: str, held: tuple[str, int] = ('', 0)
    ) -> None:
        self._engine = engine
        self._states = states
        self._context = context
        self._stack_id = stack_id
        self._held = held
        self._values: NestedValues | None = None
        self.is_silent = False
        self.offer: Handoff | None = None
        self.handoff: Handoff | None = None
        self.expected_output: ExpectedOutput | None = None
        self.begun: Document | None = None

    def act(self, step: int = 0) -> NestedStep:
        """Have an engine start the operation that the row records."""
        begun, self.begun = self.begun, None
        if begun is None or step > 0:
            ends = {TELLS: self.expected_output()} if self.expected_output is not None else None
            node = self.offer.claimed_for[1] if self.offer is not None else None
            begun = _call_engine(
                lambda: self._engine.act_on_nested_stack(self._context, *self._held, step=step, node=node, ends=ends)
            )
        released = begun.get('handoff')
        self.handoff = (
            self.offer.released(released['traversal_id'], released['nodes']) if self.offer and released else None
        )
        # An engine of a later version may add keys.
        known = {key: begun[key] for key in begun.keys() & _STEP}
        self._values, step_begun = None, NestedStep(**{**known, 'handoff': self.handoff})
        self.is_silent = step_begun.is_silent
        return step_begun

    def cancel(self) -> None:
        """Have an engine cancel the operation that the stack runs for the row."""
        _call_engine(lambda: self._engine.cancel_nested_stack(self._context, *self._held))

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Have an engine delete a snapshot of the stack. Does nothing if the snapshot does not exist."""
        _call_engine(lambda: self._engine.delete_nested_snapshot(self._context, self._stack_id, snapshot_id))

    def state(self, traversal_id: str) -> NestedState:
        """The state of the stack, read from its row.

        A database server that does not show the operation yet lags behind: the stack counts as at work.
        """
        stack = self._states.stack(self._stack_id)
        is_another = stack is not None and stack.deleted_at is None and traversal_id not in ('', stack.traversal_id)
        if is_another and self._states.traversal(traversal_id) is None:
            raise TransientFailure('this server of the database shows an older state of the nested stack')
        self.is_silent = self.is_silent and not is_another
        if stack is None:
            return NestedState(is_deleted=True, is_seen=False)
        return NestedState(
            is_at_work=stack.status is Status.IN_PROGRESS,
            has_failed=stack.status is Status.FAILED,
            is_deleted=stack.deleted_at is not None,
            reason=stack.status_reason,
            traversal_id=stack.traversal_id,
        )

    def values(self) -> NestedValues:
        """The outputs and attributes of the stack; read once for each operation."""
        if self._values is None:
            values = _call_engine(lambda: self._engine.read_nested_stack(self._context, self._stack_id))
            self._values = NestedValues(**values)
        return self._values

    def output_names(self) -> tuple[str, ...]:
        """The names of its outputs. Calls no engine if the stack is known to have none."""
        return () if self.is_silent else tuple(self.values().outputs)


def _request(claim: Claim, expected_output: ExpectedOutput) -> Document:
    """The request for a row whose claim is plain: arguments of `NestingEngine.act_on_nested_stack`."""
    ends = {TELLS: expected_output()}
    return {'resource_id': claim.resource.id, 'fence': claim.resource.fence, 'node': claim.node.number, 'ends': ends}


def _is_plain(claim: Claim) -> bool:
    """Return True if an engine can store everything about the row at the start of the action.

    The success of the action must also complete the node: see `convergence.core.upwards`.
    """
    takes_over = claim.resource.data.get(ADOPTED) is not None
    keeps_nothing = claim.action is not Action.SNAPSHOT and not takes_over
    return keeps_nothing and claim.completes_node and claim.node.number != NO_NODE


def _call_engine(call: Callable[[], T]) -> T:
    """Call an engine and return its answer.

    :raises TransientFailure: no engine answers, or the call may succeed later.
    :raises FinalFailure: the engine refuses the request.
    """
    try:
        return call()
    except (RetryLater, OperatorError) as error:
        raise TransientFailure(str(error)) from error
    except UserError as error:
        raise FinalFailure(str(error)) from error
    except ConvergenceError as error:
        raise TransientFailure(str(error)) from error
