"""The schema's versions: bring a database up to date, tell its version, compare it with the tables of this code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import autogenerate, command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select
from sqlalchemy.engine import Engine

import convergence
from convergence.db.schema.models import DUTY, METADATA
from convergence.errors import DatabaseUnavailable, Invalid

MIGRATIONS = Path(convergence.__file__).parent / 'migrations'

BEFORE_FIRST_RELEASE = frozenset({'0001'})
"""Revisions of schemas from before the first release. Their tables have other columns, and no migration leads on."""

DUTIES = ('sweeper', 'notifications')
"""Duties that one process does for all; each has a row in the table ``duty``."""


def _config(connection: Any = None) -> Config:
    config = Config()
    config.set_main_option('script_location', str(MIGRATIONS))
    config.attributes['connection'] = connection
    return config


def newest() -> str:
    """The revision that this code needs."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


def version(engine: Engine) -> str | None:
    """The revision of a database; None where it has no schema yet."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def sync(engine: Engine, revision: str = 'head') -> str | None:
    """Bring a database to a revision, upwards or, where an older one is named, downwards.

    :returns: the revision that it has now.
    :raises Invalid: there is no such revision.
    :raises DatabaseUnavailable: this program does not know the revision of the schema.
    """
    if revision not in ('head', 'base'):
        _require_known(revision)
    _refuse_unknown(version(engine))
    with engine.connect() as connection:
        config = _config(connection)
        if revision == 'head' or _is_newer(version(engine), revision):
            command.upgrade(config, revision)
        else:
            command.downgrade(config, revision)
        if revision == 'head':
            present = {row.name for row in connection.execute(select(DUTY.c.name))}
            rows = [{'name': name, 'holder': None, 'until': 0.0} for name in DUTIES if name not in present]
            if rows:
                connection.execute(DUTY.insert(), rows)
        connection.commit()
    return version(engine)


def goes_back(engine: Engine, revision: str) -> bool:
    """Return True if `sync` to a revision would downgrade the schema.

    :raises Invalid: there is no such revision.
    :raises DatabaseUnavailable: this program does not know the revision of the schema.
    """
    present = version(engine)
    _refuse_unknown(present)
    if present is None or revision in ('head', present):
        return False
    if revision != 'base':
        _require_known(revision)
    return revision == 'base' or not _is_newer(present, revision)


def _known() -> list[str]:
    """The revisions that this code knows, the newest first."""
    return [each.revision for each in ScriptDirectory.from_config(_config()).walk_revisions()]


def _refuse_unknown(present: str | None) -> None:
    if present in BEFORE_FIRST_RELEASE:
        raise DatabaseUnavailable(
            f'The database schema is at {present}, from before the first release, and cannot be migrated. '
            'Delete the stacks with the program that made them, create an empty database, '
            'and run "convergence-manage db sync".'
        )
    if present is not None and present not in _known():
        raise DatabaseUnavailable(
            f'The database schema is at {present}, which a newer version of this program has made. '
            'Upgrade this program, or take the schema back with the newer one.'
        )


def _require_known(revision: str) -> None:
    known = _known()
    if revision not in known:
        raise Invalid(f'There is no revision {revision} of the schema; there are {", ".join(reversed(known))}.')


def _is_newer(present: str | None, wanted: str) -> bool:
    if wanted == 'base':
        return False
    script = ScriptDirectory.from_config(_config())
    return present not in {each.revision for each in script.iterate_revisions(wanted, 'base')} or present is None


def differences(engine: Engine) -> list[str]:
    """Return the differences between a database and the tables of this code, a line each.

    :raises DatabaseUnavailable: this program does not know the revision of the schema.
    """
    _refuse_unknown(version(engine))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={'compare_type': True})
        found = autogenerate.compare_metadata(context, METADATA)
    # A column that differs comes as a list: one entry for each way in which it does.
    return [_described(each) for entry in found for each in (entry if isinstance(entry, list) else [entry])]


def _described(difference: Any) -> str:
    """A difference as Alembic tells it, as a line that names the place."""
    match difference:
        case ('add_table', table):
            return f'table {table.name} is missing'
        case ('remove_table', table):
            return f'table {table.name} is not known to this version'
        case ('add_column', _, table, column):
            return f'column {table}.{column.name} is missing'
        case ('remove_column', _, table, column):
            return f'column {table}.{column.name} is not known to this version'
        case ('add_index' | 'add_constraint' as kind, item):
            return f'{kind.removeprefix("add_")} {item.name} of table {item.table.name} is missing'
        case ('remove_index' | 'remove_constraint' as kind, item):
            return f'{kind.removeprefix("remove_")} {item.name} of table {item.table.name} is not known to this version'
        case (kind, _, table, column, _, present, wanted):
            return f'column {table}.{column}: {kind.removeprefix("modify_")} is {present!r}, {wanted!r} is needed'
    return str(difference)


def require_newest(engine: Engine) -> None:
    """Refuse to work on a schema of another version.

    :raises DatabaseUnavailable: the text says what to run.
    """
    present, wanted = version(engine), newest()
    _refuse_unknown(present)
    if present != wanted:
        raise DatabaseUnavailable(
            f'The database schema is at {present or "no version"}, this program needs {wanted}. '
            'Run "convergence-manage db sync" with the same configuration.'
        )
