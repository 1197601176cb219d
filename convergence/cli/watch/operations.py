"""Begin an operation on a stack, and follow it if that is wished."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from convergence.cli.connection.client import StackClient
from convergence.cli.exits import ExitCode
from convergence.cli.output import ResultPrinter
from convergence.cli.watch.following import OperationStart, before, scene_of
from convergence.cli.watch.waiting import conclude, short, watch
from convergence.documents import Document

ANY = '*'
"""Whatever an operation ends in is what was wanted."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Whether and for how long to follow an operation."""

    wait: bool
    timeout_s: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Follow:
        """By the options of `waitable`."""
        return cls(bool(given['wait']) or given['wait_timeout'] is not None, given['wait_timeout'])


def followed(
    stack: StackClient,
    start: OperationStart,
    wanted: str,
    follow: Follow,
    output: ResultPrinter,
    document: Callable[[], Document] | None = None,
) -> int:
    """Follow an operation that has begun to its end, and say how it went; the exit code.

    :param wanted: the state in which it is to end; `ANY`.
    :param document: what to print at the end; None: the stack.
    """
    ending = watch(stack, start, scene_of(stack, start.scene), follow.timeout_s)
    if wanted == ANY and ending is not None:
        wanted = ending.state
    return conclude(stack, ending, wanted, output, document)


def begun(
    stack: StackClient,
    begin: Callable[[], Any],
    wanted: str,
    follow: Follow,
    output: ResultPrinter,
    document: Callable[[], Document] | None = None,
) -> int:
    """Begin an operation on a stack that is there, and follow it if that is wished; the exit code.

    :param begin: asks for it.
    :param wanted: the state in which it is to end; `ANY`.
    :param document: what to print; None: the stack.
    """
    start = before(stack) if follow.wait else None
    begin()
    if start is not None:
        return followed(stack, start, wanted, follow, output, document)
    output.record(document() if document is not None else short(stack.show()))
    return ExitCode.OK
