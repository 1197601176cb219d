"""``convergence-manage doctor`` and ``orphans``: what is wrong with an installation, and what no row knows."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from convergence import errors
from convergence.cmd.manage import keys as manage_keys
from convergence.cmd.manage import orphans as manage_orphans
from convergence.cmd.manage.orphans import orphans, unclaimed
from convergence.db.connections.database import connect
from convergence.db.repositories.health import Level, examine
from convergence.db.repositories.reads.inspection import Claims
from convergence.db.repositories.roster import Roster
from convergence.db.schema import migration
from convergence.db.schema.sealing import Seal, apply_seal, new_key
from convergence.db.statements.store import Store
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.contract import Call, Item
from convergence.resources.registry import Registry
from tests.engine.test_left_behind import deleted_but
from tests.harness import Harness
from tests.preloaded import manage
from tests.reality import Thing

TWO = Claims(frozenset({'object-1'}), frozenset({'token-2'}))


class Listed(Thing):
    """A type that knows what exists.

    :ivar items: what the service lists, call by call; the last one again and again.
    """

    items: list[list[Item]]

    def inventory(self) -> Iterable[Item]:
        """What the service lists."""
        return self.items.pop(0) if len(self.items) > 1 else self.items[0]


class Broken(Thing):
    """A type whose service is away."""

    def inventory(self) -> Iterable[Item]:
        """It cannot be asked."""
        raise OSError('no route to the service')


@pytest.fixture
def database(database_url: str) -> Any:
    """A database with the newest schema."""
    engine = connect(database_url)
    migration.sync(engine)
    yield engine
    engine.dispose()


ONLY_SQLITE = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


def test_what_a_row_names_by_id_or_by_token_is_claimed() -> None:
    digest = '0b3b97fa66886c5688ee4ae80ec0c3c2'
    items = [Item('object-1'), Item('object-2', 'token-2'), Item('object-3', None, 'n'), Item('object-4', digest)]
    assert [item.physical_id for item in unclaimed(items, TWO)] == ['object-3', 'object-4']
    stored = hashlib.sha256(b'token-2').hexdigest()
    assert unclaimed([Item('object-5', stored)], TWO) == []


def _shown(harness: Harness, capsys: pytest.CaptureFixture[str], **types: Any) -> tuple[int, Any, str]:
    code = orphans(argparse.Namespace(format='json'), harness.engine, Registry(types))
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


@ONLY_SQLITE
def test_objects_without_a_row_are_listed(database: Any, capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness(database)
    stack = harness.created({'a': 'x'})
    listed = Listed(harness.reality)
    mine = Item(harness.row(stack, 'a').physical_id or '')
    listed.items = [[mine]]
    known = {'listed': listed, 'Test::Thing': Thing(harness.reality)}
    code, shown, _ = _shown(harness, capsys, **known)
    assert (code, shown['orphans'], shown['silent']) == (0, [], ['Test::Thing'])
    listed.items = [[mine, Item('object-9', 'token-9', 'of nobody')]]
    code, shown, _ = _shown(harness, capsys, listed=listed)
    assert code == 1
    assert shown['orphans'] == [
        {'type': 'listed', 'physical_id': 'object-9', 'name': 'of nobody', 'token': 'token-9'},
    ]
    assert orphans(argparse.Namespace(format='table'), database, Registry({'listed': listed})) == 1
    assert 'listed  object-9     of nobody  token-9' in capsys.readouterr().out


@ONLY_SQLITE
def test_where_it_is_not_possible_to_look_there_is_no_all_clear(
    database: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = Harness(database)
    harness.created({'a': 'x'})
    listed = Listed(harness.reality)
    listed.items = [[]]
    code, shown, _ = _shown(harness, capsys, listed=listed)
    assert (code, shown['unknown']) == (1, ['Test::Thing'])
    code, shown, _ = _shown(harness, capsys, **{'Test::Thing': Thing(harness.reality)})
    assert (code, shown['asked'], shown['unknown']) == (1, [], [])
    assert orphans(argparse.Namespace(format='table'), database, Registry({'listed': listed})) == 1
    assert 'Test::Thing stands in rows and is not installed here' in capsys.readouterr().err
    assert orphans(argparse.Namespace(format='table'), database, Registry({'Test::Thing': Thing(harness.reality)})) == 1
    told = capsys.readouterr()
    assert 'nothing is known' in told.err
    assert 'No object without a row' not in told.out


@ONLY_SQLITE
def test_an_object_that_is_deleted_meanwhile_is_no_orphan(database: Any, capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness(database)
    listed = Listed(harness.reality)
    listed.items = [[Item('object-9')], []]
    assert _shown(harness, capsys, listed=listed)[0] == 0


@ONLY_SQLITE
def test_a_type_that_cannot_be_asked_is_told_and_the_others_are_asked(
    database: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = Harness(database)
    listed = Listed(harness.reality)
    listed.items = [[]]
    code, shown, _ = _shown(harness, capsys, broken=Broken(harness.reality), listed=listed)
    assert code == 1
    assert shown['failed'] == {'broken': 'no route to the service'}
    assert shown['asked'] == ['listed']


@ONLY_SQLITE
def test_the_local_types_tell_what_they_have_made(
    database: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files and directories whose rows are gone, as after a backup was restored."""
    types = Registry.builtin(local=LocalProvider(tmp_path / 'local'))
    kind = types.get('Convergence::Local::File')
    properties = kind.Properties(path='hello.txt', content='hello')
    kind.create(Call(properties, 'f', 'site', 'stack', 'p', 'row', 'the-token'))
    assert orphans(argparse.Namespace(format='json'), database, types) == 1
    (found,) = json.loads(capsys.readouterr().out)['orphans']
    assert (found['type'], found['physical_id'], found['name']) == ('Convergence::Local::File', 'hello.txt', 'site/f')
    assert (
        manage_orphans.unclaimed([Item('other', found['token'])], Claims(frozenset(), frozenset({'the-token'}))) == []
    )


# --- doctor ---------------------------------------------------------------------------------------------------


def test_a_database_with_nothing_wrong_is_told_so(database: Any) -> None:
    """Servers of tests need not be durable; nothing is an error."""
    found = examine(Store(database), time.time())
    assert [each for each in found if each.level is Level.ERROR] == []


def test_processes_on_several_servers_and_from_the_future_are_found(database: Any) -> None:
    roster = Roster(Store(database))
    for name, server in (('A', 'db1:3306'), ('B', 'db2:3306')):
        roster.register(name, 'worker', f'host-{name}', '1', 10.0)
        roster.beat(name, {'database': server})
    with Store(database).writing() as connection:
        connection.exec_driver_sql("UPDATE service SET beat_at = beat_at + 60 WHERE id = 'B'")
        connection.commit()
    texts = [each.text for each in examine(Store(database), time.time())]
    assert any(
        'use 2 database servers (db1:3306: worker on host-A; db2:3306: worker on host-B)' in text for text in texts
    )
    assert any('The worker B on host-B has sent a heartbeat 60 s in the future' in text for text in texts)


def test_a_clock_that_differs_from_this_machines_is_found(database: Any) -> None:
    assert any('differ by' in each.text for each in examine(Store(database), time.time() + 60.0))


@ONLY_SQLITE
def test_what_deleted_stacks_have_left_is_found(database: Any) -> None:
    harness = Harness(database)
    stack = deleted_but(harness, 'a')
    row = harness.row(stack, 'a')
    (found,) = [each for each in examine(harness.store, harness.reader.now()) if each.level is Level.ERROR]
    assert (
        f'({stack}) was deleted, its resource a (Test::Thing, id {row.id}, physical id {row.physical_id})' in found.text
    )


@ONLY_SQLITE
def test_the_program_ends_with_1_if_it_finds_anything(database: Any, database_url: str, tmp_path: Path) -> None:
    path = tmp_path / 'convergence.conf'

    def run(url: str) -> subprocess.CompletedProcess[str]:
        path.write_text(f'[database]\nconnection = {database_url}\n[transport]\nurl = {url}\n')
        environment = os.environ | {'HOME': str(tmp_path)}
        return manage().run('--config-file', str(path), 'doctor', directory=tmp_path, environment=environment)

    ended = run('rabbit://u:secret@127.0.0.1:1/')
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.startswith('ERROR: The message broker at rabbit://127.0.0.1:1/ does not answer')
    assert 'secret' not in ended.stdout
    ended = run('memory://')
    assert (ended.returncode, ended.stdout) == (0, 'Nothing was found.\n')


@ONLY_SQLITE
def test_work_that_nobody_does_is_found(database: Any) -> None:
    harness = Harness(database)
    harness.created({'a': 'x'})
    with harness.store.writing() as connection:
        connection.exec_driver_sql('DELETE FROM service')
        connection.commit()

    def found() -> list[str]:
        return [each.text for each in examine(harness.store, harness.reader.now()) if 'in progress' in each.text]

    assert found() == []
    harness.create({'a': 'x'}, name='t')
    assert [text.partition(':')[0] for text in found()] == [
        '1 operation is in progress and no engine is alive',
        '1 operation is in progress and no worker is alive',
    ]
    harness.roster.register('E', 'engine', 'here', '1', 1000.0)
    assert [text.partition(':')[0] for text in found()] == ['1 operation is in progress and no worker is alive']


def _run(command: str, tmp_path: Path, database_url: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / 'convergence.conf'
    path.write_text(f'[DEFAULT]\nstate_dir = {tmp_path}\n[database]\nconnection = {database_url}\n')
    changed = os.environ | {'HOME': str(tmp_path)} | environment
    return manage().run('--config-file', str(path), *command.split(), directory=tmp_path, environment=changed)


@ONLY_SQLITE
def test_keys_that_are_missing_are_found_and_no_new_one_is_advised(
    database: Any, database_url: str, tmp_path: Path
) -> None:
    keys = tmp_path / 'keys'
    keys.write_text(new_key())
    keys.chmod(0o600)
    apply_seal(database, Seal([keys.read_text()], 'test'))
    Harness(database).created({'a': 'x'})
    ended = _run('doctor', tmp_path, database_url)
    assert (ended.returncode, 'ERROR: ' in ended.stdout, 'is missing' in ended.stdout) == (1, True, True), ended
    ended = _run('doctor', tmp_path, database_url, OS_SECRETS__KEY_FILE=str(tmp_path / 'nowhere'))
    assert (ended.returncode, 'nowhere cannot be read' in ended.stdout) == (1, True), ended
    ended = _run('secrets rotate', tmp_path, database_url, OS_SECRETS__KEY_FILE=str(keys))
    assert ended.returncode == 0, ended


def test_without_a_key_nothing_new_is_advised_where_something_is_sealed(database: Any) -> None:
    manage_keys._require_nothing_sealed(database)
    apply_seal(database, Seal([new_key()], 'test'))
    Harness(database).created({'a': 'x'})
    with pytest.raises(errors.SealedWithAnotherKey, match=r'OS_SECRETS__KEY_FILE=.* Make no new key'):
        manage_keys._require_nothing_sealed(database)


@ONLY_SQLITE
def test_orphans_are_looked_for_where_serve_would_make_them(database: Any, database_url: str, tmp_path: Path) -> None:
    ended = _run('orphans', tmp_path, database_url)
    assert (ended.returncode, ended.stdout[:29]) == (0, 'No object without a row, of 3'), ended
    ended = _run('orphans', tmp_path, database_url, OS_LOCAL_PROVIDER__ENABLED='false')
    assert (ended.returncode, 'nothing is known' in ended.stderr) == (1, True), ended
