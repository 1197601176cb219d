"""``convergence-manage`` on each database, as a person runs it."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace

import pytest
import sqlalchemy

from convergence import errors
from convergence.cmd.manage.command import main, parser
from convergence.cmd.wiring.engine import new_id
from convergence.credentials.model import CredentialsStatus, Method, StoredCredentials
from convergence.db.connections.database import connect
from convergence.db.repositories.credentials import CredentialRows
from convergence.db.repositories.roster import Roster
from convergence.db.schema import migration
from convergence.db.schema.models import RESOURCE, SERVICE, STACK
from convergence.db.schema.row_columns import stored_values
from convergence.db.statements.store import Store
from tests.contract import rows
from tests.preloaded import manage as manage_program

ONLY_SQLITE = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def database(database_url):
    """Connections to an empty database."""
    engine = connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def manage(database, capsys):
    """Carry out a command on the database; its exit code and the lines it has shown."""

    def run(*arguments: str) -> tuple[int, list[str]]:
        parsed = parser().parse_args(arguments)
        code = parsed.command(parsed, database)
        return code, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def program(tmp_path, database_url):
    """Run the program itself, with a configuration that names the database."""
    path = tmp_path / 'convergence.conf'
    path.write_text(f'[database]\nconnection = {database_url}\nmax_retries = 0\n')

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {'HOME': str(tmp_path)}
        return manage_program().run('--config-file', str(path), *arguments, directory=tmp_path, environment=environment)

    return run


def test_a_schema_is_made_compared_and_taken_back(manage):
    newest = migration.newest()
    code, differences = manage('db', 'check')
    assert code == 1
    assert 'table stack is missing' in differences
    assert manage('db', 'version') == (0, [f'no revision (newest: {newest})'])
    assert manage('db', 'sync') == (0, [f'The schema was at no revision, now it is at {newest}.'])
    assert manage('db', 'version') == (0, [f'{newest} (newest)'])
    assert manage('db', 'sync') == (0, [f'The schema is at {newest} already.'])
    assert manage('db', 'check') == (0, [f'The schema is what this version needs ({newest}).'])
    assert manage('db', 'sync', 'base', '--yes') == (0, [f'The schema was at {newest}, now it is at no revision.'])
    assert manage('db', 'version') == (0, [f'no revision (newest: {newest})'])


def test_nothing_is_removed_without_a_yes(manage, monkeypatch):
    manage('db', 'sync')
    with pytest.raises(errors.Invalid, match=r'all stacks in them\. Say --yes'):
        manage('db', 'sync', 'base')
    monkeypatch.setattr('sys.stdin.isatty', lambda: True)
    for said, code in (('', 1), ('no', 1), ('yes', 0)):
        monkeypatch.setattr('builtins.input', lambda prompt, said=said: said)
        assert manage('db', 'sync', 'base')[0] == code
    assert manage('db', 'sync', 'base')[0] == 0, 'where there is nothing nobody is asked'


def test_nothing_is_removed_under_a_process_that_is_alive(manage, database):
    manage('db', 'sync')
    roster, living = Roster(Store(database)), new_id()
    roster.register(living, 'engine', 'here', '1.0', lease_s=1000)
    with pytest.raises(errors.Invalid, match=f'in use by engine {living} on here'):
        manage('db', 'sync', 'base', '--yes')
    assert manage('db', 'check')[0] == 0
    roster.leave(living)
    assert manage('db', 'sync', 'base', '--yes')[0] == 0


@ONLY_SQLITE
def test_a_schema_of_a_newer_version_is_left_alone(program, database):
    assert program('db', 'sync').returncode == 0
    with database.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
    for command in (('db', 'sync'), ('service', 'list')):
        done = program(*command)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert 'is at 9999, which a newer version of this program has made' in line


@ONLY_SQLITE
def test_a_schema_from_before_the_first_release_is_refused_with_one_sentence(program, database):
    assert program('db', 'sync').returncode == 0
    with database.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '0001'"))
    for command in (('db', 'sync'), ('db', 'check'), ('service', 'list')):
        done = program(*command)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert 'is at 0001, from before the first release, and cannot be migrated. Delete the stacks' in line
        assert 'create an empty database, and run "convergence-manage db sync".' in line


def test_differences_are_named(manage, database):
    manage('db', 'sync')
    with database.begin() as connection:
        connection.execute(sqlalchemy.text('ALTER TABLE stack DROP COLUMN status_reason'))
        connection.execute(sqlalchemy.text('CREATE TABLE somebody_elses (number INTEGER)'))
    code, differences = manage('db', 'check')
    assert code == 1
    assert set(differences) == {
        'column stack.status_reason is missing',
        'table somebody_elses is not known to this version',
    }


def test_services_are_listed_and_the_dead_forgotten(manage, database):
    manage('db', 'sync')
    roster, living, dead = Roster(Store(database)), new_id(), new_id()
    roster.register(living, 'engine', 'here', '1.0', lease_s=1000)
    roster.register(dead, 'worker', 'there', '1.0', lease_s=1000)
    with database.begin() as connection:
        connection.execute(SERVICE.update().where(SERVICE.c.id == dead).values(beat_at=SERVICE.c.beat_at - 5000))
    code, (head, *lines) = manage('service', 'list')
    assert code == 0
    assert head.split('  ')[0] == 'KIND'
    assert [(line.split()[:3], line.split()[-1]) for line in lines] == [
        (['engine', 'here', living], 'up'),
        (['worker', 'there', dead], 'down'),
    ]
    assert manage('service', 'clean') == (0, ['1 process was forgotten.'])
    assert manage('service', 'clean') == (0, ['0 processes were forgotten.'])
    assert dead not in ''.join(manage('service', 'list')[1])


@ONLY_SQLITE
def test_the_program_reads_its_configuration_and_tells_by_its_exit_code(program, tmp_path):
    assert program('db', 'check').returncode == 1
    synced = program('db', 'sync')
    assert (synced.returncode, synced.stderr) == (0, '')
    assert (tmp_path / 'convergence.sqlite').exists()
    assert program('db', 'check').returncode == 0


@ONLY_SQLITE
def test_a_revision_that_does_not_exist_is_refused(program):
    refused = program('db', 'sync', '9999')
    assert refused.returncode == 2
    assert 'There is no revision 9999' in refused.stderr
    assert 'Traceback' not in refused.stderr


@ONLY_SQLITE
def test_stacks_that_were_deleted_long_ago_are_purged(manage, database):
    manage('db', 'sync')
    day_s, now = 86400.0, time.time()
    with database.connect() as connection:
        ages = {'old': 100 * day_s, 'older': 200 * day_s, 'other': 100 * day_s, 'new': day_s, 'alive': None}
        for name, age_s in ages.items():
            _add_stack(connection, name, 'q' if name == 'other' else 'p', None if age_s is None else now - age_s)
        _add_stack(connection, 'holds', 'p', now - 150 * day_s, object_id='thing')
        connection.commit()
    code, lines = manage('purge_deleted', '90', '--dry-run', '-b', '1')
    names = [line.split()[0] for line in lines]
    # Two were deleted at the same moment.
    assert (code, names[:2], sorted(names[2:4]), names[4:]) == (0, ['older', 'holds'], ['old', 'other'], ['3'])
    assert lines[1].endswith('stays: it has left objects, and its rows say which.')
    assert manage('purge_deleted', '90', '-p', 'q')[1] == ['1 stack removed, 1 rows.']
    assert manage('purge_deleted', '2160h')[1][-1] == '2 stacks removed, 2 rows; 1 stay.'
    assert manage('purge_deleted', '2', '-g', 'hours')[1][-1] == '1 stack removed, 1 rows; 1 stay.'
    with database.connect() as connection:
        assert set(connection.execute(sqlalchemy.select(STACK.c.name)).scalars()) == {'alive', 'holds'}
    for wrong in (['soon'], ['-1'], ['9', '-b', '0']):
        with pytest.raises((errors.Invalid, SystemExit)):
            manage('purge_deleted', *wrong)


def _add_stack(connection, name, project_id, deleted_at, object_id=None):
    stack = replace(rows.STACK, id=new_id(), name=name, project_id=project_id, deleted_at=deleted_at)
    connection.execute(STACK.insert(), stored_values(stack))
    if object_id is not None:
        resource = replace(rows.RESOURCE, id=new_id(), stack_id=stack.id, name=name, physical_id=object_id)
        connection.execute(RESOURCE.insert(), stored_values(resource))


@pytest.mark.parametrize('command', ['list', 'clean'])
def test_services_need_the_schema(program, command):
    refused = program('service', command)
    assert refused.returncode == 1
    assert 'convergence-manage db sync' in refused.stderr


@pytest.mark.parametrize('arguments', [(), ('db',), ('service',), ('db', 'drop'), ('db', 'version', 'more')])
def test_a_wrong_command_line_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert 'usage: convergence-manage' in capsys.readouterr().err


@ONLY_SQLITE
def test_credentials_that_cannot_be_removed_are_listed_and_can_be_given_up(manage, database):
    manage('db', 'sync')
    kept = CredentialRows(Store(database))
    for user in ('ann', 'ben'):
        planned = StoredCredentials(f'C-{user}', 'p', user, Method.TRUSTS, CredentialsStatus.PLANNED, {'roles': []})
        kept.plan(planned)
    kept.drop_unwanted(-1.0, 1, 'C-ann')
    kept.not_yet(kept.one('C-ann'), 'Keystone is away')
    shown = manage('credentials', 'list')
    assert (shown[0], len(shown[1])) == (0, 2)
    assert shown[1][1].split() == ['C-ann', 'REMOVING', 'trusts', 'ann', 'p', '1', 'Keystone', 'is', 'away']
    assert manage('credentials', 'forget', 'C-ann') == (0, ['The credentials C-ann are forgotten.'])
    with pytest.raises(errors.Invalid, match='No credentials C-ben are being removed'):
        manage('credentials', 'forget', 'C-ben')
