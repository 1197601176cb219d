"""Write the tables of docs/failures.rst from the figures of a run.

    make chaos ARGUMENTS="--json figures.json"
    python -m tests.chaos.tables figures.json

Each table stands between ``.. figures: NAME`` and ``.. end of figures``. A table of whose part the run has no figures
stays as it is; the text around the tables is nobody's but the author's.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / 'docs' / 'failures.rst'
DATABASES = {'postgresql': 'PostgreSQL', 'mariadb': 'MariaDB'}
NOT_RUN = 'not run'
_PLACE = re.compile(r'(?ms)^\.\. figures: (?P<name>[a-z]+)\n\n.*?(?=^\.\. end of figures$)')

Figures = Mapping[str, Any]
"""What a run has written: by part and database, such as ``kinds mariadb``."""
Rows = list[Sequence[object]]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A simple table of reStructuredText."""
    lines = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rule = '  '.join('=' * width for width in widths)
    texts = ['  '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return '\n'.join([rule, texts[0], rule, *texts[1:], rule, ''])


def _by_database(figures: Figures, part: str, cells: Callable[[Any], Sequence[object]]) -> Rows:
    """A row for each database that the part ran with."""
    found = [(title, figures.get(f'{part} {database}')) for database, title in DATABASES.items()]
    return [(title, *cells(each)) for title, each in found if each is not None]


def _seconds(value: float) -> str:
    return f'{value:.1f} s'


def _kinds(figures: Figures) -> str:
    head = ('Database', 'Tried', 'Workers killed', 'Made twice', 'Forgotten', 'Reported', 'Longest until settled')
    rows = _by_database(
        figures,
        'kinds',
        lambda each: (
            each['cases'],
            sum(times for who, times in each['deaths'].items() if who.startswith('worker')),  # each with its exit code
            each['doubles'],
            each['orphans'],
            each['told'],
            _seconds(each['longest_s']),
        ),
    )
    return table(head, rows) if rows else ''


def _crashes(figures: Figures) -> str:
    head = ('Database', 'Pairs', 'Tried', 'Died', 'Same end', 'Median delay', 'Longest delay')
    rows = _by_database(
        figures,
        'crashes',
        lambda each: (
            each['trials'],
            each['run'],
            each['killed'],
            each['same_end'],
            _seconds(each['median_delay_s']),
            _seconds(each['longest_delay_s']),
        ),
    )
    return table(head, rows) if rows else ''


def _cancel(figures: Figures) -> str:
    head = ('Database', 'Stack ended after', 'All released after', 'Next update', 'Replaced by it')
    rows = _by_database(
        figures,
        'cancel',
        lambda each: (
            _seconds(each['ended_s']),
            _seconds(each['free_s']),
            _seconds(each['update_s']),
            each['replaced'],
        ),
    )
    return table(head, rows) if rows else ''


def _side_by_side(first: str, columns: Mapping[str, Mapping[str, object]]) -> str:
    """A row for each thing that any database has a figure of, a column for each database."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [(name, *(column.get(name, NOT_RUN) for column in columns.values())) for name in names]
    return table((first, *columns), rows) if rows else ''


def _columns(
    figures: Figures, part: str, column: Callable[[Any], Mapping[str, object]]
) -> dict[str, Mapping[str, object]]:
    found = {title: figures.get(f'{part} {database}') for database, title in DATABASES.items()}
    return {title: column(each) for title, each in found.items() if each is not None}


def _outages(figures: Figures) -> str:
    def column(each: Any) -> dict[str, object]:
        return {outage['name']: _seconds(outage['settled_s']) for outage in each['outages']}

    return _side_by_side('Outage', _columns(figures, 'outages', column))


def _storm(figures: Figures) -> str:
    def column(each: Any) -> dict[str, object]:
        faults = {name[:1].upper() + name[1:]: count for name, count in sorted(each['faults'].items())}
        counted = {'Seed': each['seed'], 'Updates': each['updates'], 'Objects made': each['made']}
        return {**counted, **faults, 'At rest after': _seconds(each['calm_s'])}

    return _side_by_side('', _columns(figures, 'storm', column)) if _columns(figures, 'storm', column) else ''


def _messages(figures: Figures) -> str:
    runs = {title: figures.get(f'messages {database}') for database, title in DATABASES.items()}
    found = {title: {(each['share'], each['operation']): each for each in run} for title, run in runs.items() if run}
    asked = [(title, *key) for title, run in found.items() for key in run]
    operations = dict.fromkeys((title, operation) for title, _, operation in asked)
    shares = sorted({share for _, share, _ in asked})

    def cell(title: str, share: float, operation: str) -> str:
        each = found[title].get((share, operation))
        return NOT_RUN if each is None else f'{each["seconds"]:.1f}'

    head = ('Lost', *(f'{operation}, {title}' for title, operation in operations))
    rows = [(f'{share:.0%}', *(cell(title, share, operation) for title, operation in operations)) for share in shares]
    return table(head, rows) if rows else ''


def _clusters(figures: Figures) -> str:
    runs = [each for name, each in figures.items() if name.startswith('clusters ') and isinstance(each, dict)]
    rows = [
        (each['name'], trouble, _seconds(longest)) for each in runs for trouble, longest in each['longest_s'].items()
    ]
    return table(('Cluster', 'Trouble', 'Longest until settled'), rows) if rows else ''


TABLES: dict[str, Callable[[Figures], str]] = {
    'kinds': _kinds,
    'outages': _outages,
    'clusters': _clusters,
    'crashes': _crashes,
    'messages': _messages,
    'cancel': _cancel,
    'storm': _storm,
}
"""What draws each table; an empty text where the run has no figures of it."""


def places(page: str) -> list[str]:
    """The names of the tables of a page."""
    return [found['name'] for found in _PLACE.finditer(page)]


def renewed(page: str, figures: Figures) -> str:
    """The page with the tables that the figures are of."""

    def draw(found: re.Match[str]) -> str:
        drawn = TABLES[found['name']](figures)
        return f'.. figures: {found["name"]}\n\n{drawn}\n' if drawn else found[0]

    return _PLACE.sub(draw, page)


if __name__ == '__main__':
    PAGE.write_text(renewed(PAGE.read_text(encoding='utf-8'), json.loads(Path(sys.argv[1]).read_text())), 'utf-8')
