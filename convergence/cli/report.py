"""The report of the demo: headings, checks, and the preview of an update beside its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from convergence.documents import Document


class ResourceOutcome(StrEnum):
    """The effect of an update on a resource."""

    KEPT = 'kept'
    UPDATED = 'updated in place'
    REPLACED = 'replaced'
    ADDED = 'added'
    REMOVED = 'removed'


_STYLES = {ResourceOutcome.KEPT: 'dim', ResourceOutcome.REPLACED: 'yellow', ResourceOutcome.REMOVED: 'yellow'}
_MARKS = {True: ('\N{CHECK MARK}', 'ok', 'green'), False: ('\N{BALLOT X}', 'NO', 'bold red')}


_ANNOUNCED = {
    'unchanged': ResourceOutcome.KEPT,
    'updated': ResourceOutcome.UPDATED,
    'replaced': ResourceOutcome.REPLACED,
    'added': ResourceOutcome.ADDED,
    'deleted': ResourceOutcome.REMOVED,
}
"""The keys in the answer of `preview_update_stack`."""


def announced(preview: Mapping[str, Iterable[Document]]) -> dict[str, ResourceOutcome]:
    """Return the effect on each resource that a preview lists, by name."""
    return {str(one['resource_name']): change for key, change in _ANNOUNCED.items() for one in preview.get(key, ())}


def happened(
    before: Iterable[Document], after: Iterable[Document], events: Iterable[Document], stack_id: str
) -> dict[str, ResourceOutcome]:
    """Return the effect that an update had on each resource, by name.

    :param before: the resources before the update; `after`: the resources when it was complete.
    :param events: the events of the update; those of the stack itself have the stack's id.
    """
    old = {str(one['resource_name']): one['physical_resource_id'] for one in before}
    new = {str(one['resource_name']): one['physical_resource_id'] for one in after}
    updated = {
        str(event['resource_name'])
        for event in events
        if event['resource_status'] == 'UPDATE_COMPLETE' and event['physical_resource_id'] != stack_id
    }
    changes: dict[str, ResourceOutcome] = {}
    for name in (*new, *(name for name in old if name not in new)):
        if name not in old:
            changes[name] = ResourceOutcome.ADDED
        elif name not in new:
            changes[name] = ResourceOutcome.REMOVED
        elif old[name] != new[name]:
            changes[name] = ResourceOutcome.REPLACED
        else:
            changes[name] = ResourceOutcome.UPDATED if name in updated else ResourceOutcome.KEPT
    return changes


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
        text = what if holds or not detail else f'{what}: {detail}'
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(' ', Text(self._drawable(mark, plain), style), Text(text))
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
