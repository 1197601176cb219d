"""Keys: what is sealed, with which key, how keys are changed, and what happens when the wrong one is configured."""

from __future__ import annotations

import logging
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from oslo_config import cfg
from sqlalchemy import update

from convergence import config, errors
from convergence.cmd.manage.command import main as manage
from convergence.cmd.wiring.database import open_bare, open_database
from convergence.config import SecretSettings, Settings
from convergence.db.connections.database import connect
from convergence.db.schema import migration
from convergence.db.schema.columns import Sealable, dumps
from convergence.db.schema.models import METADATA, TEMPLATE
from convergence.db.schema.sealing import Seal, is_sealed, new_key
from tests.api.installation import settings
from tests.secrets.test_canaries import raw

CONTENT = {'template': 'canary', 'environment': {}, 'files': {}}
ROWS = 250
"""More than one batch of a rotation."""


def configured(directory: Path, url: str, *keys: str) -> Settings:
    """Settings for a database with keys."""
    made = settings(directory)
    return replace(made, database=replace(made.database, connection=url), secrets=SecretSettings(keys))


def insert(database: Any, rows: int = 1) -> None:
    """Some templates."""
    with database.begin() as connection:
        connection.execute(
            TEMPLATE.insert(),
            [
                {'id': f'{number:04}', 'stack_id': 's', 'content': CONTENT, 'summary': {}, 'changed_names': ()}
                for number in range(rows)
            ],
        )


def contents(database: Any) -> list[Any]:
    """The templates, opened."""
    with database.connect() as connection:
        return [row[0] for row in connection.execute(TEMPLATE.select().with_only_columns(TEMPLATE.c.content))]


@pytest.fixture
def url(database_url) -> str:
    """A database with tables."""
    engine = connect(database_url)
    migration.sync(engine)
    engine.dispose()
    return database_url


def manages(tmp_path: Path, url: str, *command: str, keys: str = '') -> int:
    """Run ``convergence-manage`` with a configuration file; its exit code."""
    path = tmp_path / 'convergence.conf'
    path.write_text(f'[database]\nconnection = {url}\nmax_retries = 0\n[secrets]\nkeys = {keys}\n')
    cfg.CONF.reset()
    try:
        return manage(['--config-file', str(path), *command])
    finally:
        cfg.CONF.reset()


READABLE = {
    'left_rows',
    'asked',
    'type_rules',
    'load',
    'physical_id',
    'cause',
    'names',  # of properties
    'reason',
    'required_by',
    'requires',
    'status_reason',
    'tags',
    'changed_names',  # names of resources
}
"""Names of columns for texts of any length that are not sealed: names, ids, and texts in which secrets are masked."""


def test_every_column_that_holds_what_users_send_is_sealed():
    columns = [column for table in METADATA.sorted_tables for column in table.columns]
    long = [column for column in columns if 'TEXT' in str(column.type).upper()]
    assert {column.name for column in long if not isinstance(column.type, Sealable)} <= READABLE
    assert {'content', 'properties', 'definition', 'data', 'output'} <= {
        column.name for column in long if isinstance(column.type, Sealable)
    }


def test_what_was_sealed_with_one_key_is_opened_with_several_and_sealed_anew(url, tmp_path, capsys):
    old, new = new_key(), new_key()
    database = open_database(configured(tmp_path, url, old))
    insert(database, ROWS)
    assert contents(database) == [CONTENT] * ROWS
    database.dispose()
    assert 'canary' not in raw(url)['template']
    before = raw(url)['template']
    assert manages(tmp_path, url, 'secrets', 'rotate', keys=f'{new},{old}') == 0
    assert f'{2 * ROWS} values were sealed with the first key' in capsys.readouterr().out
    assert not set(before.splitlines()) & set(raw(url)['template'].splitlines())
    database = open_database(configured(tmp_path, url, new))
    assert contents(database) == [CONTENT] * ROWS
    database.dispose()
    assert manages(tmp_path, url, 'secrets', 'rotate', keys=new) == 0
    assert '0 values were sealed' in capsys.readouterr().out


def test_what_was_stored_before_there_was_a_key_stays_readable_and_is_sealed_by_a_rotation(url, tmp_path):
    plain = connect(url)
    insert(plain, 3)
    plain.dispose()
    key = new_key()
    database = open_database(configured(tmp_path, url, key))
    assert contents(database) == [CONTENT] * 3
    database.dispose()
    assert manages(tmp_path, url, 'secrets', 'rotate', keys=key) == 0
    assert 'canary' not in raw(url)['template']


def test_what_was_sealed_as_a_fernet_token_is_opened_and_sealed_anew_by_a_rotation(url, tmp_path):
    key = new_key()
    engine = connect(url)
    insert(engine, 3)
    token = Fernet(key).encrypt(dumps(CONTENT).encode()).decode()
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE template SET content = '{token}'")
    engine.dispose()
    database = open_database(configured(tmp_path, url, new_key(), key))
    assert contents(database) == [CONTENT] * 3
    database.dispose()
    assert manages(tmp_path, url, 'secrets', 'rotate', keys=key) == 0
    assert token not in raw(url)['template']
    database = open_database(configured(tmp_path, url, key))
    assert contents(database) == [CONTENT] * 3
    database.dispose()


@pytest.mark.parametrize(
    'damage', [lambda text: text[:-8], lambda text: f'{text[:-9]}AAAAAAAA=', lambda text: text[:3]]
)
def test_a_damaged_text_is_opened_by_no_key(damage):
    seal = Seal([new_key(), new_key()], 'test')
    sealed = seal.close('canary')
    assert seal.open(sealed) == 'canary' and seal.is_up_to_date(sealed)
    with pytest.raises(errors.SealedWithAnotherKey, match='test'):
        seal.open(damage(sealed))
    assert not seal.is_up_to_date(damage(sealed))


def test_the_same_text_is_sealed_otherwise_each_time():
    seal = Seal([new_key()], 'test')
    sealed = {seal.close('canary') for _ in range(100)}
    assert len(sealed) == 100 and all(map(is_sealed, sealed))


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_what_no_key_opens_is_named_and_left_alone(url, tmp_path, capsys):
    lost, key = new_key(), new_key()
    database = open_database(configured(tmp_path, url, lost))
    insert(database, 2)
    database.dispose()
    before = raw(url)['template']
    assert manages(tmp_path, url, 'secrets', 'rotate', keys=key) == 1
    said = capsys.readouterr().out
    assert 'template.content of 0000' in said
    assert 'template.content of 0001' in said
    assert raw(url)['template'] == before


@pytest.mark.parametrize('keys', [(), (new_key(),)])
def test_a_process_without_the_right_key_does_not_begin_and_changes_nothing(url, tmp_path, keys):
    database = open_database(configured(tmp_path, url, new_key()))
    insert(database)
    database.dispose()
    before = raw(url)
    (tmp_path / 'convergence.sqlite.keys').unlink(missing_ok=True)
    with pytest.raises(errors.SealedWithAnotherKey) as raised:
        open_database(configured(tmp_path, url, *keys))
    wanted = '[secrets] keys' if keys or not url.startswith('sqlite') else 'convergence.sqlite.keys is missing'
    assert wanted in str(raised.value)
    assert raw(url) == before
    assert not (tmp_path / 'convergence.sqlite.keys').exists()


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_a_value_that_cannot_be_opened_is_an_error_and_is_not_overwritten(url, tmp_path):
    database, other = (open_database(configured(tmp_path, url, new_key())) for _ in range(2))
    insert(database)
    with pytest.raises(errors.SealedWithAnotherKey, match='nothing was changed'):
        contents(other)
    assert contents(database) == [CONTENT]
    database.dispose()
    other.dispose()


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_schema_and_services_are_managed_without_the_keys(url, tmp_path, capsys):
    database = open_database(configured(tmp_path, url, new_key()))
    insert(database)
    database.dispose()
    for command in (('db', 'version'), ('db', 'check'), ('db', 'sync'), ('service', 'list'), ('service', 'clean')):
        assert manages(tmp_path, url, *command, keys=new_key()) == 0, capsys.readouterr().err


def test_a_key_is_made_for_sqlite_at_the_first_start_and_for_nobody_else_to_read(tmp_path):
    directory = tmp_path / 'state'
    made = settings(directory)
    for _ in range(2):
        database = open_database(made)
        migration.sync(database)
        if not contents(database):
            insert(database)
        assert contents(database) == [CONTENT]
        database.dispose()
    assert 'canary' not in raw(made.database.connection)['template']
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert files['convergence.sqlite.keys'] == files['convergence.sqlite'] == 0o600
    assert set(files.values()) == {0o600}


def test_the_keys_may_be_in_a_file(tmp_path):
    path = tmp_path / 'keys'
    path.write_text(f'# the first one seals\n{new_key()}\n\n{new_key()}\n')
    path.chmod(0o600)
    made = replace(settings(tmp_path / 'state'), secrets=SecretSettings(key_file=path))
    database = open_database(made)
    migration.sync(database)
    insert(database)
    with database.connect() as connection:
        assert is_sealed(connection.exec_driver_sql('SELECT content FROM template').scalar_one())
    database.dispose()
    assert not (tmp_path / 'state' / 'convergence.sqlite.keys').exists()


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('[secrets]\nkeys = canary', 'number 1 of 1 is not a key'),
        ('[secrets]\nkeys = canary\nkey_file = /x', 'both set'),
        ('[secrets]\nkey_file = /does/not/exist', 'key_file /does/not/exist cannot be read'),
    ],
)
def test_a_wrong_configuration_is_refused_without_repeating_a_key(tmp_path, text, complaint):
    path = tmp_path / 'c.conf'
    path.write_text(f'[DEFAULT]\nstate_dir = {tmp_path}/state\n{text}\n')
    with pytest.raises(errors.ConfigurationError) as raised:
        open_database(config.load([], process='test', conf=cfg.ConfigOpts(), config_files=[str(path)]))
    assert complaint in str(raised.value)
    assert 'canary' not in str(raised.value)


@pytest.mark.parametrize('database_url', ['postgresql'], indirect=True)
def test_a_server_without_a_key_is_used_with_a_warning(url, tmp_path, caplog):
    database = open_database(configured(tmp_path, url))
    insert(database)
    assert contents(database) == [CONTENT]
    database.dispose()
    assert 'convergence-manage secrets new-key' in caplog.text


def test_no_secret_option_shows_when_all_options_are_logged(tmp_path, caplog):
    conf, path = cfg.ConfigOpts(), tmp_path / 'c.conf'
    path.write_text(
        f'[secrets]\nkeys = {"canary" * 5}\n[database]\nconnection = postgresql://canary:canary@h/d\n'
        '[transport]\nurl = rabbit://canary:canary@h/\n'
    )
    made = config.load([], process='test', conf=conf, config_files=[str(path)])
    with caplog.at_level(logging.DEBUG):
        conf.log_opt_values(logging.getLogger('test'), logging.DEBUG)
    assert 'secrets.keys' in caplog.text
    assert 'canary' not in caplog.text
    assert 'canary' not in repr(made.secrets)


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_a_value_that_is_written_during_a_rotation_is_left_as_it_is(url, tmp_path, monkeypatch):
    from convergence.db.repositories import rotation

    old, new = new_key(), new_key()
    writer = open_database(configured(tmp_path, url, old))
    insert(writer)
    late = {**CONTENT, 'template': 'written meanwhile'}

    class Slow(Seal):
        def close(self, text: str) -> str:
            with writer.begin() as connection:
                connection.execute(update(TEMPLATE).values(content=late, summary=late))
            return super().close(text)

    engine = open_bare(configured(tmp_path, url))
    assert rotation.rotate(engine, Slow([new, old], 'test')).sealed == 0
    assert contents(writer) == [late]
    engine.dispose()
    writer.dispose()
