"""Rotation of keys: checks that the keys of this process open the stored values, and seals all values with the first
key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table, and_, column, select, table, tuple_, update
from sqlalchemy.engine import Engine, Row

from convergence.db.connections import failures
from convergence.db.schema.columns import Sealable
from convergence.db.schema.models import METADATA, RESOURCE, TEMPLATE
from convergence.db.schema.sealing import Seal, opened
from convergence.errors import SealedWithAnotherKey

SAMPLE = 10
"""Rows of a table that are checked before a process begins to work."""
BATCH = 100
"""Rows that are read at a time."""


@dataclass(slots=True)
class Rotation:
    """Result of sealing all values with the first key.

    :param sealed: number of values sealed now; all others had the first key already.
    :param unopened: values that no key opens, left unchanged: ``table.column of its key``.
    """

    sealed: int
    unopened: list[str]


def require_fitting(engine: Engine, seal: Seal | None) -> None:
    """Refuse keys that do not open the stored values, before a process seals new values with them.

    Keys of rows are random, so the first rows are a sample. A database without a schema has nothing to check.

    :raises SealedWithAnotherKey: the text names the option with the keys.
    """
    from convergence.db.schema.migration import version  # noqa: PLC0415 - it brings Alembic, which is slow to import

    with failures.translated_errors():
        if version(engine) is None:
            return
        for source, name in ((TEMPLATE, 'content'), (RESOURCE, 'definition')):
            raw = _raw(source)
            rows = select(raw.c[name]).where(raw.c[name].is_not(None)).order_by(raw.c.id).limit(SAMPLE)
            with engine.connect().execution_options(reads_only=True) as connection:
                for row in connection.execute(rows):
                    opened(row[0], seal)


def rotate(engine: Engine, seal: Seal) -> Rotation:
    """Seal every stored value with the first key, both values sealed with another key and plain ones.

    Processes that have the key already may run meanwhile: a value that they write between the read and the write of
    this
    function stays unchanged.

    :raises DatabaseUnavailable: the database cannot be reached (any more); values sealed so far stay sealed.
    """
    done = Rotation(0, [])
    with failures.translated_errors():
        for source in METADATA.sorted_tables:
            columns = [each for each in source.columns if isinstance(each.type, Sealable)]
            if columns:
                _rotate_table(engine, seal, source, columns, done)
    return done


def _rotate_table(engine: Engine, seal: Seal, source: Table, columns: list[Column[Any]], done: Rotation) -> None:
    keys = [each.name for each in source.primary_key]
    raw = _raw(source)
    for row in _rows(engine, source, keys):
        here = row._mapping
        for name in (each.name for each in columns):
            text = here[name]
            if text is None or seal.is_up_to_date(text):
                continue
            try:
                sealed = seal.close(opened(text, seal))
            except SealedWithAnotherKey:
                done.unopened.append(f'{source.name}.{name} of {"/".join(str(here[key]) for key in keys)}')
                continue
            same = and_(*(raw.c[key] == here[key] for key in keys), raw.c[name] == text)
            with engine.begin() as connection:
                done.sealed += connection.execute(update(raw).where(same).values({name: sealed})).rowcount


def _rows(engine: Engine, source: Table, keys: list[str]) -> Iterator[Row[Any]]:
    """Yield all rows of a table in their stored form, by their keys, in batches: no transaction stays open."""
    raw = _raw(source)
    order = [raw.c[key] for key in keys]
    last: Row[Any] | None = None
    while True:
        query = select(raw).order_by(*order).limit(BATCH)
        if last is not None:
            query = query.where(tuple_(*order) > tuple_(*(last._mapping[key] for key in keys)))
        with engine.connect().execution_options(reads_only=True) as connection:
            rows = connection.execute(query).all()
        yield from rows
        if len(rows) < BATCH:
            return
        last = rows[-1]


def _raw(source: Table) -> Table:
    """Return a table whose keys and sealed columns have the types of their stored form."""
    names = [each.name for each in source.columns if each.primary_key or isinstance(each.type, Sealable)]
    return table(source.name, *(column(name) for name in names))  # type: ignore[return-value]
