"""Show a stack while it converges: a table that lives on a terminal, a line for each change anywhere else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from convergence.cli.progress import Line, Mood, Progress
from convergence.cli.stack import StackHandle
from convergence.concurrency import sleep
from convergence.errors import RetryLater

STYLES = {Mood.WAITING: 'dim', Mood.BUSY: 'yellow', Mood.GOOD: 'green', Mood.BAD: 'bold red'}
IDLE, KEPT = 'waiting', 'kept'
_STATE_WIDTH = len('ROLLBACK_IN_PROGRESS')


class Display(Protocol):
    """Where the progress of an operation is shown."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; what was shown last stays."""

    def show(self, progress: Progress, changes: Sequence[Line], now_s: float, idle: str) -> None:
        """Show how things are.

        :param changes: what has changed since the last call.
        :param idle: the word for resources to which nothing has happened.
        """


class LiveTable:
    """A table that is drawn again in its place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._console = console

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, progress: Progress, changes: Sequence[Line], now_s: float, idle: str) -> None:
        """Draw the table again, with the times of now."""
        room = max(3, self._console.height - 3)
        self._live.update(table(progress, now_s, idle, room), refresh=True)


class PlainLines:
    """A line for each change, for files, pipes and logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to tidy up."""

    def show(self, progress: Progress, changes: Sequence[Line], now_s: float, idle: str) -> None:
        """Print what has changed."""
        for line in changes:
            text = f'  {now_s:6.1f} s  {progress.title(line):<14}  {line.type:<30}  {line.state}'
            self._console.print(Text(text), soft_wrap=True)


def display_for(console: Console) -> Display:
    """The display that suits where the console writes to."""
    return LiveTable(console) if console.is_terminal else PlainLines(console)


def follow(stack: StackHandle, progress: Progress, display: Display, *, since: str | None, timeout_s: float) -> str:
    """Show an operation until it has ended.

    :param since: the stack's last event before the operation.
    :returns: the state in which it ended.
    :raises RetryLater: it has not ended after `timeout_s` seconds; it goes on.
    """
    begun = time.monotonic()
    with display:
        while True:
            # In this order: a state is stored together with the events that led to it.
            state, _ = stack.state()
            now_s = time.monotonic() - begun
            has_ended = not state.endswith('_IN_PROGRESS')
            display.show(progress, progress.learn(stack.events(since), now_s), now_s, KEPT if has_ended else IDLE)
            if has_ended:
                return state
            if now_s > timeout_s:
                raise RetryLater(f'The stack {stack.name} is still {state} after {timeout_s:g} s; it goes on.')
            sleep(0.1)


def table(progress: Progress, now_s: float, idle: str, room: int) -> Table:
    """The lines as a table.

    :param room: most lines to show; where there are more, those that are done are left out first.
    """
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    shown.add_column(width=0)
    shown.add_column(no_wrap=True, min_width=min(progress.width, 24))  # so that nothing moves when a title grows
    shown.add_column(no_wrap=True, style='dim')
    shown.add_column(no_wrap=True, min_width=_STATE_WIDTH)
    shown.add_column(no_wrap=True, justify='right', min_width=7, style='dim')
    chosen = choose(progress.lines, room)
    for line in chosen:
        took_s = line.took_s(now_s)
        state = Text(line.state or idle, STYLES[line.mood])
        time_taken = '' if took_s is None else f'{took_s:.1f} s'
        shown.add_row('', Text(progress.title(line)), Text(line.type), state, time_taken)
    if len(chosen) < len(progress.lines):
        shown.add_row('', Text(f'and {len(progress.lines) - len(chosen)} more', 'dim'), '', '', '')
    return shown


def choose(lines: Sequence[Line], room: int) -> list[Line]:
    """The lines that matter most, at most `room`, in their order: those that failed, are busy, wait, are done."""
    if len(lines) <= room:
        return list(lines)
    urgency = {Mood.BAD: 0, Mood.BUSY: 1, Mood.WAITING: 2, Mood.GOOD: 3}
    ranked = sorted(range(len(lines)), key=lambda index: (urgency[lines[index].mood], index))
    return [lines[index] for index in sorted(ranked[: room - 1])]
