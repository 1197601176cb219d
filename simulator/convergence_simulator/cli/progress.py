"""The progress of ``convergence-simulate``: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console

from convergence_simulator.runs.batch import Tally
from convergence_simulator.runs.explore import Explored

LINE_EVERY_S = 10.0


class RunProgress:
    """A context in which progress is shown.

    :param time_s: the duration of all runs in seconds, or None if `total` is the end.
    :param total: maximum number of runs or states.
    :param name: the unit of `total`.
    """

    def __init__(self, console: Console, time_s: float | None, total: int, name: str = 'runs') -> None:
        self._console = console
        self._time_s = time_s
        self._began = self._told = time.monotonic()
        self._bar = bars.Progress(
            bars.TextColumn('{task.description}'),
            bars.BarColumn(),
            bars.TextColumn('{task.fields[figures]}'),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task(name, total=time_s if time_s is not None else total, figures='')

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def show(self, tally: Tally) -> None:
        """Show the number of runs so far."""
        spent_s = time.monotonic() - self._began
        figures = f'{tally.runs} runs, {tally.runs / spent_s:.0f} runs/s' if spent_s else f'{tally.runs} runs'
        self._update(spent_s if self._time_s is not None else tally.runs, figures)

    def explored(self, found: Explored) -> None:
        """Show the number of states so far."""
        self._update(found.states, f'{found.states} states, {found.runs} runs')

    def _update(self, completed: float, figures: str) -> None:
        if self._console.is_terminal:
            self._bar.update(self._task, completed=completed, figures=figures)
        elif time.monotonic() - self._told > LINE_EVERY_S:
            self._told = time.monotonic()
            self._console.print(figures)
