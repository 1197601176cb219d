"""``convergence-manage``: the schema of the database, the processes that are known to it, the keys of its secrets, and
what may be wrong with an installation.

Exit codes: 0: done. 1: the database cannot be reached or has another schema, ``db check`` found differences, ``secrets
rotate`` found something that no key opens, or ``doctor`` or ``orphans`` found something. 2: the command line or the
configuration is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from oslo_config import cfg

from convergence import concurrency, config, errors, logs
from convergence.cmd.manage import purge as manage_purge
from convergence.cmd.process.program import ProgramExit, complain

if TYPE_CHECKING:
    from convergence.db.connections.database import Database
    from convergence.db.records import Service

NAME = 'convergence-manage'

Command: TypeAlias = 'Callable[[argparse.Namespace, Database], ProgramExit]'
"""A command on the database that needs no keys."""
KeyCommand: TypeAlias = 'Callable[[config.Settings], ProgramExit]'
"""A command about keys."""
SettingsCommand: TypeAlias = 'Callable[[argparse.Namespace, Database, config.Settings], ProgramExit]'
"""A command on the database that reads the rest of the configuration as well."""


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command; the exit code."""
    arguments = parser().parse_args(argv)
    given = [f'--config-file={path}' for path in arguments.config_file]
    given += [f'--config-dir={path}' for path in arguments.config_dir]
    given += ['--debug'] if arguments.debug else []
    try:
        # As the programs do that have everything in one process: they have the local provider by default.
        settings = config.load(given, process=NAME, defaults={('local_provider', 'enabled'): True})
        concurrency.install(concurrency.Executor.THREADING)
        logs.set_up(cfg.CONF, NAME)
        if 'key_command' in arguments:
            key_command: KeyCommand = arguments.key_command
            return key_command(settings)
        return _with_database(arguments, settings)
    except errors.ConvergenceError as error:
        return complain(NAME, error)


def _with_database(arguments: argparse.Namespace, settings: config.Settings) -> ProgramExit:
    # Not before the executor is installed.
    from convergence.cmd.wiring.database import open_bare

    database = open_bare(settings)
    try:
        if 'settings_command' in arguments:
            with_settings: SettingsCommand = arguments.settings_command
            return with_settings(arguments, database, settings)
        command: Command = arguments.command
        return command(arguments, database)
    finally:
        database.dispose()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; `command` of its result runs the command."""
    made = argparse.ArgumentParser(
        prog=NAME,
        description='Manages the database of an installation of Convergence.',
        epilog='Exit codes: 0 done, 1 the database cannot be used or differs, 2 wrong command line or configuration.',
    )
    made.add_argument(
        '--config-file',
        action='append',
        default=[],
        metavar='PATH',
        help='configuration file, may be repeated; otherwise convergence.conf of ~/.convergence, ~, /etc/convergence, '
        '/etc',
    )
    made.add_argument(
        '--config-dir', action='append', default=[], metavar='DIR', help='directory of *.conf files, may be repeated'
    )
    made.add_argument('--debug', action='store_true', help='log more')
    areas = made.add_subparsers(metavar='AREA', required=True)
    _add_database_commands(areas.add_parser('db', help='the schema of the database'))
    _add_service_commands(areas.add_parser('service', help='the processes of the installation'))
    _add_key_commands(areas.add_parser('secrets', help='the keys that seal the secrets of the database'))
    _add_credentials_commands(areas.add_parser('credentials', help='the credentials with which stacks act for users'))
    purged = areas.add_parser('purge_deleted', help='remove the rows of stacks that were deleted long ago')
    manage_purge.add_arguments(purged)
    purged.set_defaults(command=manage_purge.purge)
    doctor = areas.add_parser(
        'doctor',
        help='check for faults that lose data or leave objects; exit 1 if there are any',
    )
    doctor.set_defaults(settings_command=examine)
    listed = areas.add_parser('orphans', help='list orphans: objects that no row names; exit 1 if there are any')
    listed.add_argument('--format', choices=('table', 'json'), default='table', help='default: table')
    listed.set_defaults(settings_command=list_orphans)
    return made


def _add_database_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    sync = commands.add_parser('sync', help='bring the schema to the newest revision, or to a given one')
    sync.add_argument(
        'revision',
        nargs='?',
        default='head',
        help='default: the newest. An older one takes steps back, "base" removes every table and all stacks with them',
    )
    sync.add_argument('--yes', action='store_true', help='downgrade without a question')
    sync.set_defaults(command=db_sync)
    version = commands.add_parser('version', help='show the revision of the schema')
    version.set_defaults(command=db_version)
    check = commands.add_parser('check', help='compare the schema with what this version needs; exit 1 if it differs')
    check.set_defaults(command=db_check)


def _add_service_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    listing = commands.add_parser('list', help='show engines and workers and whether they are alive')
    listing.set_defaults(command=service_list)
    clean = commands.add_parser('clean', help='remove dead processes that hold no claims from the list')
    clean.set_defaults(command=service_clean)


def _add_key_commands(parser: argparse.ArgumentParser) -> None:
    from convergence.cmd.manage import keys as manage_keys

    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    made = commands.add_parser('new-key', help='print a new key, for [secrets] keys or a line of the key file')
    made.set_defaults(key_command=manage_keys.new_key)
    rotate = commands.add_parser(
        'rotate',
        help='seal all secrets again with the first key while processes run; the other keys are unused afterwards',
    )
    rotate.set_defaults(key_command=manage_keys.rotate)


def _add_credentials_commands(parser: argparse.ArgumentParser) -> None:
    from convergence.cmd.manage import credentials as manage_credentials

    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    listing = commands.add_parser('list', help='show credentials that Keystone refuses or that wait for removal')
    listing.set_defaults(command=manage_credentials.troubled)
    forget = commands.add_parser('forget', help='stop removing credentials, because you have removed them in Keystone')
    forget.add_argument('id', help='as "list" shows it')
    forget.set_defaults(command=manage_credentials.forget)


# --- db -------------------------------------------------------------------------------------------------------


def db_sync(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Bring the schema to a revision. Steps back, which remove tables, need a yes, and processes that have ended.

    :raises Invalid: there is no such revision.
    """
    from convergence.db.schema import migration

    before = migration.version(database)
    if migration.goes_back(database, arguments.revision):
        _require_nobody(database)
        if not (arguments.yes or _agreed(arguments.revision)):
            print('Nothing was changed.')
            return ProgramExit.FAILED
    after = migration.sync(database, arguments.revision)
    if before == after:
        print(f'The schema is at {_revision(after)} already.')
    else:
        print(f'The schema was at {_revision(before)}, now it is at {_revision(after)}.')
    return ProgramExit.OK


def _require_nobody(database: Database) -> None:
    """Make sure that no process uses the tables that are to go.

    :raises Invalid: one does.
    """
    from convergence.db.repositories.roster import Roster
    from convergence.db.statements.store import Store

    alive = [service for service in Roster(Store(database)).services() if service.is_up]
    if alive:
        named = ', '.join(f'{service.kind} {service.id} on {service.host}' for service in alive)
        raise errors.Invalid(
            f'The schema is in use by {named}. Stop them first; one that has died is out after its lease, see '
            '"convergence-manage service list".'
        )


def _agreed(revision: str) -> bool:
    """Ask the operator at the terminal.

    :raises Invalid: standard input is no terminal.
    """
    what = 'every table and all stacks in them' if revision == 'base' else 'tables and columns, and the data in them'
    if not sys.stdin.isatty():
        raise errors.Invalid(f'A step back to {revision} removes {what}. Say --yes if that is meant.')
    return input(f'A step back to {revision} removes {what}. Type yes to continue: ').strip().lower() == 'yes'


def db_version(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Show the revision."""
    from convergence.db.schema import migration

    present, newest = migration.version(database), migration.newest()
    print(f'{_revision(present)} ({"newest" if present == newest else f"newest: {newest}"})')
    return ProgramExit.OK


def db_check(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Compare the schema with the tables of this version."""
    from convergence.db.schema import migration

    present, newest = migration.version(database), migration.newest()
    differences = migration.differences(database)
    if present != newest:
        differences.insert(0, f'revision: the schema is at {_revision(present)}, this version needs {newest}')
    for difference in differences:
        print(difference)
    if differences:
        return ProgramExit.FAILED
    print(f'The schema is what this version needs ({newest}).')
    return ProgramExit.OK


def _revision(revision: str | None) -> str:
    return revision or 'no revision'


# --- service --------------------------------------------------------------------------------------------------


def service_list(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Show the known processes.

    :raises DatabaseUnavailable: the schema is another one.
    """
    from convergence.db.repositories.roster import Roster
    from convergence.db.schema.migration import require_newest
    from convergence.db.statements.store import Store

    require_newest(database)
    head = ('KIND', 'HOST', 'PID', 'ID', 'VERSION', 'STARTED', 'LAST SIGN OF LIFE', 'STATE', 'LOAD')
    rows = [head, *(_row(service) for service in Roster(Store(database)).services())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        print('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return ProgramExit.OK


def service_clean(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Forget processes that are gone. One that holds resources stays until the sweeper has taken them from it.

    :raises DatabaseUnavailable: the schema is another one.
    """
    from convergence.db.repositories.roster import Roster
    from convergence.db.schema.migration import require_newest
    from convergence.db.statements.store import Store

    require_newest(database)
    removed = Roster(Store(database)).remove_dead()
    print(f'{removed} {"process was" if removed == 1 else "processes were"} forgotten.')
    return ProgramExit.OK


# --- the whole installation -----------------------------------------------------------------------------------


def list_orphans(arguments: argparse.Namespace, database: Database, settings: config.Settings) -> ProgramExit:
    """List objects that resource types know to be ours and that no row claims."""
    from convergence.cmd.manage.orphans import orphans
    from convergence.cmd.wiring.parts import registry

    return orphans(arguments, database, registry(settings))


def examine(arguments: argparse.Namespace, database: Database, settings: config.Settings) -> ProgramExit:
    """Say what of the database, the processes and the broker may make the installation lose or leave something."""
    from convergence.cmd.manage.doctor import doctor

    return doctor(database, settings)


def _row(service: Service) -> tuple[str, ...]:
    state = 'stopped' if service.stopped else 'up' if service.is_up else 'down'
    started = datetime.fromtimestamp(service.started_at, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
    return (
        service.kind,
        service.host,
        str(service.load.get('pid', '')),
        service.id,
        service.version,
        started,
        f'{max(0.0, service.age_s):.0f} s ago',
        state,
        _load(service.load),
    )


def _load(load: Mapping[str, Any]) -> str:
    """Return the load that a process reported, without optional parts that are 0."""
    if 'threads' not in load:
        return ''
    parts = [f'{load.get("busy", 0)} of {load["threads"]} busy']
    parts += [f'{load[name]} {name}' for name in ('waiting', 'stuck') if load.get(name)]
    return ', '.join(parts)
