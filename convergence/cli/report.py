"""Prints headings, comparisons and the results of checks."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from convergence.cli.changes import ResourceOutcome

_STYLES = {ResourceOutcome.KEPT: 'dim', ResourceOutcome.REPLACED: 'yellow', ResourceOutcome.REMOVED: 'yellow'}
_MARKS = {True: ('\N{CHECK MARK}', 'ok', 'green'), False: ('\N{BALLOT X}', 'NO', 'bold red')}


class Report:
    """Prints to a console and counts the checks that pass and fail."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.passed = 0
        self.failed: list[str] = []

    def title(self, text: str) -> None:
        """Print a heading."""
        self.console.print(Text(f'\n{text}', 'bold'))

    def say(self, text: str, style: str = '') -> None:
        """Print a sentence."""
        self.console.print(Padding(Text(text, style), (0, 0, 0, 2), expand=False))

    def space(self) -> None:
        """Print an empty line."""
        self.console.print()

    def check(self, what: str, holds: bool, detail: str = '') -> bool:
        """Print the result of a check, and return it.

        :param detail: the cause, printed if the check fails.
        """
        mark, plain, style = _MARKS[holds]
        if holds:
            self.passed += 1
        else:
            self.failed.append(what)
        told = what if holds or not detail else f'{what}: {detail}'
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(' ', Text(self._drawable(mark, plain), style), Text(told))
        self.console.print(line)
        return holds

    def comparison(self, announced: Mapping[str, ResourceOutcome], happened: Mapping[str, ResourceOutcome]) -> bool:
        """Print the preview beside the result for each resource. Return True if they are the same."""
        grid = _grid(columns=4)
        grid.add_row('', *(Text(head, 'dim') for head in ('', 'announced', 'happened', '')))
        for name in dict.fromkeys((*announced, *happened)):
            said, came = announced.get(name), happened.get(name)
            mark, plain, style = _MARKS[said is came]
            cells = [Text(str(each or 'nothing'), _STYLES.get(each, '') if each else 'dim') for each in (said, came)]
            grid.add_row('', Text(name), *cells, Text(self._drawable(mark, plain), style))
        self.console.print(grid)
        return dict(announced) == dict(happened)

    def _drawable(self, mark: str, plain: str) -> str:
        try:
            mark.encode(self.console.encoding)
        except UnicodeEncodeError:
            return plain
        return mark


def _grid(columns: int) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    grid.add_column(width=0)
    for _ in range(columns):
        grid.add_column()
    return grid
