"""docs/data-model.rst: each table and column of the database, with who writes it."""

from __future__ import annotations

import re
from itertools import pairwise

from convergence.db import scopes
from convergence.db.schema.models import METADATA
from tests.architecture.source import PACKAGE, ROOT
from tests.architecture.writers import written

PAGE = (ROOT / 'docs' / 'data-model.rst').read_text(encoding='utf-8')
SECTION = re.compile(r'^(\w+)\n=+\n', re.MULTILINE)
ROW = re.compile(r'^   \* - ``(\w+)``\n     - (.+(?:\n       .+)*)\n     - (.+(?:\n       .+)*)$', re.MULTILINE)


def described() -> dict[str, dict[str, tuple[str, list[str]]]]:
    """By table and column: what the page says of it, and which modules it names."""
    found = [*SECTION.finditer(PAGE)]
    ends = [*(match.start() for match in found[1:]), len(PAGE)]
    return {
        match[1]: {
            column: (meaning, re.findall(r'``([\w/]+)``', writers))
            for column, meaning, writers in ROW.findall(PAGE[match.end() : end])
        }
        for match, end in zip(found, ends, strict=True)
    }


def test_each_table_and_column_is_described_once_and_in_order():
    tables = {name: [column.name for column in table.columns] for name, table in METADATA.tables.items()}
    assert {name: list(columns) for name, columns in described().items()} == tables
    assert len(ROW.findall(PAGE)) == sum(len(columns) for columns in tables.values())


def test_each_column_has_a_meaning_and_writers_that_know_it():
    strange = []
    for table, columns in described().items():
        for column, (meaning, writers) in columns.items():
            assert meaning and writers, f'{table}.{column}'
            strange += [f'{table}.{column}: {writer}' for writer in writers if not knows(writer, column)]
    assert strange == [], 'these modules are not there, or name no such column'


def test_whoever_writes_a_column_in_the_core_is_named():
    columns, found = described(), written()
    assert found['resource', 'owner'] > {'core/finish'}, 'the search finds nothing any more'
    unsaid = {
        f'{table}.{column}: {", ".join(sorted(modules - set(columns[table][column][1])))}'
        for (table, column), modules in found.items()
        if modules - set(columns[table][column][1])
    }
    assert unsaid == set()


def knows(module: str, column: str) -> bool:
    """Whether a module can write a column: it names it, or is one of those that change a state by the tables."""
    path = PACKAGE / f'{module}.py'
    text = path.read_text(encoding='utf-8') if path.is_file() else ''
    by_state = column in ('action', 'status', 'status_reason') and re.search(r'\b(?:resource|stack)_state\(', text)
    return bool(by_state or re.search(rf'\b{column}\b', text))


def test_each_scope_is_described():
    named = re.findall(r'^``([A-Z]\w+)`` ', PAGE, re.MULTILINE)
    kinds = {
        name
        for name, kind in vars(scopes).items()
        if isinstance(kind, type) and issubclass(kind, scopes.Scope) and kind is not scopes.Scope
    }
    assert sorted(named) == sorted(kinds)


def test_the_order_of_the_locks_is_that_of_the_code():
    places = [PAGE.index(f'row of the **{name}**') for name in ('project', 'stack', 'traversal')]
    places = [*places[:2], PAGE.index('rows of **resources**'), places[2], PAGE.index('**sync points**')]
    assert all(one < other for one, other in pairwise(places))
    assert places[-1] < PAGE.index('row of the **tree**')
    said = ' '.join((scopes.__doc__ or '').split())
    assert 'the row of the project (for a new stack only), the stack row, then resource rows by key' in said
