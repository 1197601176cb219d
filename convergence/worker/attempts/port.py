"""The part of a worker that a runner uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from convergence.concurrency import Task
from convergence.core.claim import Claim
from convergence.core.handoff import Handoff
from convergence.core.results import Parked
from convergence.core.rows import ReceivedSignal
from convergence.core.software import SoftwareRowsPort
from convergence.credentials.model import Credentials
from convergence.documents import Document
from convergence.resources.calls import no_credentials
from convergence.resources.nesting import NO_STACK, NestedStacks
from convergence.resources.storable import MOST_BYTES


def wait(task: Task, duration_s: float) -> bool:
    """Wait for a while, or until the task is cancelled; whether it was."""
    return task.cancelled.wait(duration_s)


def none_received(resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
    """The default of `WorkerPort.signals`."""
    return []


ExpectedOutput: TypeAlias = Callable[[], Document | None]
"""See `NestingPort`."""


class NestingPort(Protocol):
    """The nested stacks that a worker has to do with."""

    def __call__(self, claim: Claim, expected_output: ExpectedOutput, begun: Document | None = None) -> NestedStacks:
        """The stack that is the object of a claimed row.

        :param foretell: the output of the resource for a stack that is complete and has no outputs, as it is stored;
            None: that depends on what is in the stack.
        :param begun: what `begin_together` has answered for it.
        """

    def begin_together(self, claims: Sequence[tuple[Claim, ExpectedOutput]]) -> list[Document | None]:
        """Have an engine begin, in one call, what several rows of one operation were claimed for.

        :returns: for each what has begun. None where nothing has, or where that is not known: to ask for it by itself,
            as always, does no harm.
        """

    def kept(self, stack_id: str, project_id: str) -> NestedStacks:
        """A stack that is, or was, nested in another one, and of which there may be snapshots."""

    def lost_handoff(self, claim: Claim) -> Handoff | None:
        """Return the handoff of a row whose claim is over, if an engine released it and its answer was lost."""


class NoNesting:
    """A worker that has no engine to ask about stacks."""

    def __call__(self, claim: Claim, expected_output: ExpectedOutput, begun: Document | None = None) -> NestedStacks:
        """None."""
        return NO_STACK

    def begin_together(self, claims: Sequence[tuple[Claim, ExpectedOutput]]) -> list[Document | None]:
        """Nothing."""
        return [None for _ in claims]

    def kept(self, stack_id: str, project_id: str) -> NestedStacks:
        """None."""
        return NO_STACK

    def lost_handoff(self, claim: Claim) -> Handoff | None:
        """None."""
        return None


NO_NESTING = NoNesting()
"""The default of `WorkerPort.nested`."""


def none_of_stack(stack_id: str) -> Credentials:
    """The default of `WorkerPort.credentials`.

    :raises FinalFailure: there are none.
    """
    return no_credentials()


@dataclass(frozen=True, slots=True)
class WorkerPort:
    """The part of a worker that a runner uses.

    :param record: stores what has become known while an action goes on; False: the row is not held any more.
    :param escalate: stores that a repair goes on as an update; False: the row is not held any more.
    :param draining: whether the process is about to end.
    :param wanted: whether the traversal that a row was claimed for still runs.
    :param signals: the signals that some rows have received, oldest first, each with the name of the resource.
    :param wait: waits for a while, or until the task is cancelled; whether it was.
    :param most_bytes: what a resource may store of each kind, as JSON.
    :param nested: the nested stacks that the worker has to do with.
    :param software: where software configurations and deployments are kept.
    :param credentials: those with which the stack of that id acts for its user.
    """

    record: Callable[[Claim, Parked], bool]
    escalate: Callable[[Claim], bool]
    draining: Callable[[], bool]
    wanted: Callable[[Claim], bool]
    wait: Callable[[Task, float], bool] = wait
    signals: Callable[[Sequence[str]], list[tuple[str, ReceivedSignal]]] = none_received
    most_bytes: int = MOST_BYTES
    nested: NestingPort = NO_NESTING
    software: SoftwareRowsPort | None = None
    credentials: Callable[[str], Credentials] = none_of_stack
