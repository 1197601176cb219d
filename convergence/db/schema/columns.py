"""Column types: how the values of `convergence.core` look in a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol, Self

import sqlalchemy
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement
from typing_extensions import override

from convergence.db.schema.sealing import opened, seal_of
from convergence.documents import AnyJson
from convergence.errors import CannotBeRead, SealedWithAnotherKey

_ENCODER = json.JSONEncoder(separators=(',', ':'), allow_nan=False, ensure_ascii=False)


def dumps(value: Any) -> str:
    """JSON text, compact; refuses what JSON does not have (NaN, infinity)."""
    return _ENCODER.encode(value)


class Documented(Protocol):
    """A value that knows its JSON form."""

    def document(self) -> dict[str, Any]:
        """The value as JSON."""

    @classmethod
    def from_document(cls, document: AnyJson) -> Self:
        """The value that `document` was made from."""


LONG_TEXT = sqlalchemy.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def stored(value: Any, dialect: Any = None) -> str | None:
    """Return the stored text of a JSON value; NULL for None.

    With `loaded` this is the only way for structured user data (templates, properties, private data, outputs): all of
    it is
    sealed here if the engine of `dialect` has a seal. Names, reasons and physical ids are columns of their own and stay
    readable.
    """
    if value is None:
        return None
    seal = seal_of(dialect)
    text = dumps(value)
    return text if seal is None else seal.close(text)


def loaded(text: str | None, dialect: Any = None) -> AnyJson:
    """The JSON value that `stored` made `text` from, sealed or not.

    :raises SealedWithAnotherKey: the engine of `dialect` has no key for it.
    """
    return None if text is None else json.loads(opened(text, seal_of(dialect)))


class Unreadable:
    """Stands for a stored value that cannot be opened or understood."""


UNREADABLE = Unreadable()


class Sealable(sqlalchemy.types.TypeDecorator[Any]):
    """The columns whose texts are sealed; see `convergence.db.repositories.rotation`.

    :param lenient: what cannot be read is answered as `UNREADABLE`, so that one damaged value does not hide its row.
    """

    impl = LONG_TEXT
    cache_ok = True

    def __init__(self, *, lenient: bool = False) -> None:
        super().__init__()
        self.lenient = lenient

    def _read(self, value: Any, dialect: Any, understand: Callable[[Any], Any]) -> object:
        try:
            return understand(loaded(value, dialect))
        except SealedWithAnotherKey:
            if not self.lenient:
                raise
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            if not self.lenient:
                raise CannotBeRead(f'A value in the database is damaged ({type(error).__name__}).') from None
        return UNREADABLE


class JsonText(Sealable):
    """A JSON value as text.

    :param kind: what the value must be: ``dict`` where nothing but a map makes sense.
    """

    cache_ok = True

    def __init__(self, kind: type[Any] = object, *, lenient: bool = False) -> None:
        super().__init__(lenient=lenient)
        self.kind = kind

    @override
    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Return the text to store for a value of Python."""
        return stored(value, dialect)

    @override
    def process_result_value(self, value: Any, dialect: Any) -> object:
        """Return the value of Python for a stored text."""
        return self._read(value, dialect, self._understood)

    def _understood(self, document: Any) -> AnyJson:
        if document is not None and not isinstance(document, self.kind):
            raise TypeError(f'this is no {self.kind.__name__}')
        return document


class Valued(Sealable):
    """A value with a JSON form, such as a `Definition`."""

    cache_ok = True

    def __init__(self, kind: type[Documented], *, lenient: bool = False) -> None:
        super().__init__(lenient=lenient)
        self.kind = kind

    @override
    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Return the text to store for a value of Python."""
        return stored(None if value is None else value.document(), dialect)

    @override
    def process_result_value(self, value: Any, dialect: Any) -> object:
        """Return the value of Python for a stored text."""
        return self._read(value, dialect, lambda found: None if found is None else self.kind.from_document(found))


class Figures(sqlalchemy.types.TypeDecorator[Any]):
    """A JSON value that the engine itself has made, about itself: it stays readable."""

    impl = LONG_TEXT
    cache_ok = True

    @override
    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Return the text to store for a value of Python."""
        return None if value is None else dumps(value)

    @override
    def process_result_value(self, value: Any, dialect: Any) -> AnyJson:
        """Return the value of Python for a stored text."""
        return None if value is None else json.loads(value)


class Series(sqlalchemy.types.TypeDecorator[Any]):
    """A tuple of numbers or short texts."""

    impl = LONG_TEXT
    cache_ok = True

    @override
    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Return the text to store for a value of Python."""
        return dumps(list(value))

    @override
    def process_result_value(self, value: Any, dialect: Any) -> tuple[int | str, ...]:
        """Return the value of Python for a stored text."""
        return tuple(json.loads(value)) if value else ()


class Word(sqlalchemy.types.TypeDecorator[Any]):
    """A member of an enumeration, as its value."""

    impl = sqlalchemy.String(16)
    cache_ok = True

    def __init__(self, kind: type[StrEnum], length: int = 16) -> None:
        super().__init__()
        self.impl = sqlalchemy.String(length)
        self.kind = kind

    @override
    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Return the text to store for a value of Python."""
        return None if value is None else str(value)

    @override
    def process_result_value(self, value: Any, dialect: Any) -> StrEnum | None:
        """Return the value of Python for a stored text."""
        return None if value is None else self.kind(value)


class database_now(FunctionElement[float]):
    """The database's own clock, in seconds since the epoch, at the moment of the statement."""

    type = sqlalchemy.Double()
    inherit_cache = True


class asked_at(FunctionElement[float]):
    """The database's clock at the start of the statement, in seconds since the epoch.

    It is the same for every row, so an index serves comparisons with it; `database_now` would be evaluated per row.
    """

    type = sqlalchemy.Double()
    inherit_cache = True


OWN_CLOCK = 'convergence_clock'
"""Attribute of an SQLite dialect whose clock is a function of this process: its call in SQL."""


@compiles(database_now, 'sqlite')
@compiles(asked_at, 'sqlite')
def _now_in_sqlite(element: Any, compiler: Any, **kwargs: Any) -> str:
    return str(getattr(compiler.dialect, OWN_CLOCK, "((julianday('now') - 2440587.5) * 86400.0)"))


@compiles(database_now, 'postgresql')
def _now_in_postgresql(element: Any, compiler: Any, **kwargs: Any) -> str:
    return 'extract(epoch from clock_timestamp())::double precision'


@compiles(asked_at, 'postgresql')
def _asked_at_of_postgresql(element: Any, compiler: Any, **kwargs: Any) -> str:
    return 'extract(epoch from statement_timestamp())::double precision'


@compiles(database_now, 'mysql')
@compiles(database_now, 'mariadb')
def _now_in_mariadb(element: Any, compiler: Any, **kwargs: Any) -> str:
    # sysdate() moves on within a statement and a transaction, now() does not.
    return 'cast(unix_timestamp(sysdate(6)) as double)'


@compiles(asked_at, 'mysql')
@compiles(asked_at, 'mariadb')
def _asked_at_of_mariadb(element: Any, compiler: Any, **kwargs: Any) -> str:
    return 'cast(unix_timestamp(now(6)) as double)'
