"""What is printed between and after operations: headings, comparisons, and checks that passed or did not."""

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
    """Prints to a console, and remembers which checks failed."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.passed = 0
        self.failed: list[str] = []

    def title(self, text: str) -> None:
        """A heading."""
        self.console.print(Text(f'\n{text}', 'bold'))

    def say(self, text: str, style: str = '') -> None:
        """A sentence."""
        self.console.print(Padding(Text(text, style), (0, 0, 0, 2), expand=False))

    def space(self) -> None:
        """An empty line."""
        self.console.print()

    def check(self, what: str, holds: bool, detail: str = '') -> bool:
        """Say whether something that must be true is true.

        :param detail: what was found, shown where it is not true.
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
        """What was announced for each resource beside what came; whether all of it is the same."""
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
