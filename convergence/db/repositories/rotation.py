"""Return True if the keys of this process fit what is stored, and sealing everything anew with the first of them."""

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
"""Rows of a table that are looked at before a process begins to work."""
BATCH = 100
"""Rows that are read at a time."""


@dataclass(slots=True)
class Rotation:
    """What came of sealing everything anew.

    :param sealed: how many values were sealed with the first key; the others were already.
    :param unopened: where a value was left alone, because no key opens it: ``table.column of its key``.
    """

    sealed: int
    unopened: list[str]


def require_fitting(engine: Engine, seal: Seal | None) -> None:
    """Refuse to work with keys that do not open what is stored, before anything is written with them.

    Keys of rows are random, so the first rows are a sample. A database without a schema has nothing to be opened.

    :raises SealedWithAnotherKey: the text says where the keys are configured.
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
    """Seal every stored value with the first key: what another key has sealed, and what is plain.

    All processes may go on meanwhile, if they have that key already: a value that one of them writes between our
    reading and our writing is left as it is.

    :raises DatabaseUnavailable: the database cannot be reached (any more); whatever was sealed stays so.
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
    """All rows of a table as they are stored, by their keys, in batches: no transaction stays open."""
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
    """A table whose keys and sealed columns are texts and numbers as they are stored."""
    names = [each.name for each in source.columns if each.primary_key or isinstance(each.type, Sealable)]
    return table(source.name, *(column(name) for name in names))  # type: ignore[return-value]
