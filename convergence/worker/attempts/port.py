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
    """Wait for some seconds, or until the task is cancelled. Return True if it is cancelled."""
    return task.cancelled.wait(duration_s)


def none_received(resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
    """The default of `WorkerPort.signals`."""
    return []


ExpectedOutput: TypeAlias = Callable[[], Document | None]
"""See `NestingPort`."""


class NestingPort(Protocol):
    """The nested stacks of a worker."""

    def __call__(self, claim: Claim, expected_output: ExpectedOutput, begun: Document | None = None) -> NestedStacks:
        """The stack that is the object of a claimed row.

        :param expected_output: returns the output of the resource for a complete stack without outputs, in the form of
            the database. It returns None if the output depends on the content of the stack.
        :param begun: the answer of `begin_together` for the row.
        """

    def begin_together(self, claims: Sequence[tuple[Claim, ExpectedOutput]]) -> list[Document | None]:
        """Have an engine start, in one call, the nested stacks of several claimed rows of one operation.

        :returns: for each the answer of the engine. None if the stack did not start, or if that is not known: the
            caller then starts it in a call of its own, which does no harm to a stack that runs.
        """

    def kept(self, stack_id: str, project_id: str) -> NestedStacks:
        """The stack with an id, to delete its snapshots. It is, or was, nested in another one."""

    def lost_handoff(self, claim: Claim) -> Handoff | None:
        """Return the handoff of a row whose claim is over, if an engine released it and its answer was lost."""


class NoNesting:
    """The nested stacks of a worker without an engine: there are none."""

    def __call__(self, claim: Claim, expected_output: ExpectedOutput, begun: Document | None = None) -> NestedStacks:
        """Return the stack that refuses every use."""
        return NO_STACK

    def begin_together(self, claims: Sequence[tuple[Claim, ExpectedOutput]]) -> list[Document | None]:
        """Start nothing."""
        return [None for _ in claims]

    def kept(self, stack_id: str, project_id: str) -> NestedStacks:
        """Return the stack that refuses every use."""
        return NO_STACK

    def lost_handoff(self, claim: Claim) -> Handoff | None:
        """Return None: no engine released a row."""
        return None


NO_NESTING = NoNesting()
"""The default of `WorkerPort.nested`."""


def none_of_stack(stack_id: str) -> Credentials:
    """The default of `WorkerPort.credentials`.

    :raises FinalFailure: always; this worker has no credentials.
    """
    return no_credentials()


@dataclass(frozen=True, slots=True)
class WorkerPort:
    """The part of a worker that a runner uses.

    :param record: stores facts about the object while an action runs; False: the claim is lost.
    :param escalate: stores that a repair continues as an update; False: the claim is lost.
    :param draining: True while the process drains.
    :param wanted: True if the traversal of a claim still runs.
    :param signals: the signals that some rows have received, oldest first, each with the name of the resource.
    :param wait: waits for some seconds, or until the task is cancelled; True if it is cancelled.
    :param most_bytes: maximum size of each kind of a resource's values, in bytes of JSON.
    :param nested: the nested stacks of the worker.
    :param software: the rows of software configurations and deployments.
    :param credentials: the credentials of the stack with an id, for calls on behalf of its user.
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
