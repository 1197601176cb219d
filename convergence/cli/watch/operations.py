"""Starts operations on stacks, and follows them with ``--wait``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from convergence.cli.connection.client import AcceptedRequest, StackClient
from convergence.cli.exits import ExitCode
from convergence.cli.output import ResultPrinter
from convergence.cli.watch.following import OperationStart, before, operation_of, scene_of
from convergence.cli.watch.progress import Scene
from convergence.cli.watch.waiting import print_result, stack_summary, watch
from convergence.documents import Document
from convergence.followed import Followed

ANY = '*'
"""Every final state counts as success."""


@dataclass(frozen=True, slots=True)
class Follow:
    """The options ``--wait`` and ``--wait-timeout``."""

    wait: bool
    timeout_s: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Follow:
        """Return the settings from the options of `waitable`."""
        return cls(bool(given['wait']) or given['wait_timeout'] is not None, given['wait_timeout'])


def follow_creation(stack: StackClient, expected: str, follow: Follow, output: ResultPrinter) -> int:
    """Follow the first operation on a new stack to its end, and print the result. Return the exit code.

    :param expected: the expected final state.
    """
    first = Followed.of(stack.history()[-1:])
    start = OperationStart(Scene(stack.name, stack.id), None)
    return _follow(stack, first, start, expected, follow, output)


def _follow(
    stack: StackClient,
    followed: Followed,
    start: OperationStart,
    expected: str,
    follow: Follow,
    output: ResultPrinter,
    document: Callable[[], Document] | None = None,
) -> int:
    ending = watch(stack, followed, start, scene_of(stack, start.scene), follow.timeout_s)
    if expected == ANY and ending is not None:
        expected = ending.state
    return print_result(stack, ending, expected, output, document)


def start_operation(
    stack: StackClient,
    begin: Callable[[], AcceptedRequest],
    expected: str,
    follow: Follow,
    output: ResultPrinter,
    document: Callable[[], Document] | None = None,
) -> int:
    """Start an operation on an existing stack, and follow it with ``--wait``. Return the exit code.

    :param begin: sends the request.
    :param expected: the expected final state, or `ANY`.
    :param document: returns the document to print; None: the stack.
    """
    start = before(stack) if follow.wait else None
    accepted = begin()
    if start is not None:
        followed = operation_of(stack, accepted.request_id)
        return _follow(stack, followed, start, expected, follow, output, document)
    output.record(document() if document is not None else stack_summary(stack.show()))
    return ExitCode.OK
