"""What an operator writes is what the code is given; what cannot be right is refused with the option's name."""

import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from convergence import config
from convergence.concurrency import Executor
from convergence.errors import ConfigurationError

ROOT = Path(__file__).parents[1]


def load(tmp_path, text='', **arguments):
    path = tmp_path / 'convergence.conf'
    path.write_text(text)
    return config.load([], process='convergence-test', conf=cfg.ConfigOpts(), config_files=[str(path)], **arguments)


def test_nothing_configured_is_one_process_with_files_under_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = load(tmp_path)
    assert settings.state_dir == tmp_path / 'convergence-data'
    assert settings.database.connection == f'sqlite:///{tmp_path}/convergence-data/convergence.sqlite'
    assert settings.transport.url == 'memory://'
    assert settings.executor is Executor.THREADING
    assert not settings.local_provider.enabled
    assert not settings.state_dir.exists()


def test_the_defaults_of_the_settings_are_those_of_the_options(tmp_path):
    """Tests and the simulator make settings without a ConfigOpts: they must not get other values."""
    settings = load(tmp_path)
    assert settings.engine == config.EngineSettings()
    assert settings.worker == config.WorkerSettings()
    assert settings.limits == config.LimitSettings()
    assert settings.transport == config.TransportSettings()
    assert settings.database == config.DatabaseSettings(settings.database.connection)


def test_values_arrive_typed_and_workers_share_the_lease(tmp_path):
    settings = load(
        tmp_path,
        """
[DEFAULT]
executor = eventlet
state_dir = /srv/convergence
[database]
connection = postgresql+psycopg2://user:secret@db/convergence
max_pool_size = 3
[engine]
lease_s = 12.5
[worker]
threads = 32
[limits]
max_stacks_per_project = -1
[local_provider]
enabled = true
programs = sh:/bin/sh,python:/usr/bin/python3
""",
    )
    assert settings.executor is Executor.EVENTLET
    assert settings.database.connection == 'postgresql+psycopg2://user:secret@db/convergence'
    assert settings.database.max_pool_size == 3
    assert settings.engine.lease_s == settings.worker.lease_s == 12.5
    assert (settings.worker.threads, settings.engine.threads) == (32, 8)
    assert settings.limits.max_stacks_per_project is None
    assert settings.local_provider == config.LocalProviderSettings(
        enabled=True,
        root=Path('/srv/convergence/local'),
        programs={'sh': Path('/bin/sh'), 'python': Path('/usr/bin/python3')},
    )


ASKED = '[local_provider]\nenabled = true\n'


@pytest.mark.parametrize(
    ('shared', 'what'),
    [
        ('', True),
        ('[api]\nauthentication = keystone\n', False),
        ('[transport]\nurl = rabbit://somewhere/\n', False),
        ('[database]\nconnection = postgresql+psycopg2://somewhere/convergence\n', False),
        ('[database]\nconnection = sqlite:////srv/convergence.sqlite\n', True),
    ],
)
def test_programs_run_by_default_only_where_nobody_else_can_ask(tmp_path, shared, what):
    """``convergence-all-in-one`` once let every member of every project of a cloud run programs as its user."""
    defaults = {('local_provider', 'enabled'): True}
    assert load(tmp_path, shared, defaults=defaults).local_provider.enabled is what
    assert load(tmp_path, shared + ASKED, defaults=defaults).local_provider.enabled
    assert load(tmp_path, shared + ASKED).local_provider.enabled


@pytest.mark.parametrize(
    ('text', 'held'),
    [
        ('[secrets]\nkeys = canary-key\n', '[secrets] keys'),
        ('[database]\nconnection = postgresql+psycopg2://u:canary@db/c\n', '[database] connection'),
        ('[keystone_authtoken]\npassword = canary\n', '[keystone_authtoken] password'),
        ('[api]\nport = 1\n', ''),
    ],
)
def test_a_file_with_secrets_that_everybody_can_read_is_named(tmp_path, text, held):
    conf = cfg.ConfigOpts()
    path = tmp_path / 'convergence.conf'
    path.write_text(text)
    config.load(['--config-file', str(path)], process='p', conf=conf)
    path.chmod(0o640)
    assert config.exposed_files(conf) == []
    path.chmod(0o644)
    found = config.exposed_files(conf)
    assert len(found) == bool(held)
    for sentence in found:
        assert str(path) in sentence and held in sentence and 'canary' not in sentence


def test_an_api_without_keystone_wants_its_token_unless_told_otherwise(tmp_path):
    made = load(tmp_path)
    assert made.api.token_file == made.state_dir / 'token'
    insecure = load(tmp_path, '[api]\ninsecure = true\n', defaults={('local_provider', 'enabled'): True})
    assert insecure.api.token_file is None
    assert not insecure.local_provider.enabled, 'everybody on the machine could run programs'
    assert load(tmp_path, '[api]\nauthentication = keystone\n').api.token_file is None


def test_a_process_may_have_other_defaults_but_the_operator_has_the_last_word(tmp_path):
    defaults = {('local_provider', 'enabled'): True, ('DEFAULT', 'host'): 'embedded'}
    assert load(tmp_path, defaults=defaults).local_provider.enabled
    assert load(tmp_path, defaults=defaults).host == 'embedded'
    assert not load(tmp_path, '[local_provider]\nenabled = false\n', defaults=defaults).local_provider.enabled


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('[worker]\nthreads = many\n', 'threads'),
        ('[worker]\nthreads = 0\n', 'threads'),
        ('[DEFAULT]\nexecutor = fork\n', 'executor'),
        ('[engine]\nlease_s = 5\nheartbeat_interval_s = 5\n', 'lease_s'),
        ('[worker]\npoll_interval_min_s = 31\n', 'poll_interval_min_s'),
        ('[local_provider]\nprograms = sh:bin/sh\n', 'programs'),
        ('[local_provider]\ncheck_addresses = 127.0.0.1\n', 'check_addresses'),
        ('[local_provider]\ncheck_addresses = 127.0.0.1:99999\n', 'check_addresses'),
        ('threads = 3\n[worker', 'convergence.conf'),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(tmp_path, text, named):
    with pytest.raises(ConfigurationError, match=named):
        load(tmp_path, text)


def test_a_value_that_is_wrong_is_named_with_its_section_and_file(tmp_path):
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path, '[worker]\nthreads = many\n')
    assert f'[worker] threads in {tmp_path / "convergence.conf"}: ' in str(raised.value)
    assert 'LocationInfo' not in str(raised.value)


def test_a_missing_file_is_named():
    with pytest.raises(ConfigurationError, match=r'absent\.conf'):
        config.load(['--config-file', '/nowhere/absent.conf'], process='p', conf=cfg.ConfigOpts())


@pytest.mark.parametrize(
    ('section', 'old', 'new'),
    [
        ('worker', 'nodes_in_a_row', 'max_inline_nodes'),
        ('engine', 'nodes_in_a_message', 'max_batch_nodes'),
        ('engine', 'creation_settles_s', 'create_ambiguity_s'),
        ('credentials', 'settles_s', 'orphan_grace_s'),
    ],
)
def test_an_old_name_of_an_option_still_works(tmp_path, section, old, new):
    conf = cfg.ConfigOpts()
    path = tmp_path / 'convergence.conf'
    path.write_text(f'[{section}]\n{old} = 7\n')
    settings = config.load(['--config-file', str(path)], process='p', conf=conf)
    assert getattr(getattr(settings, section), new) == 7
    assert config.unknown_options(conf) == []


def test_a_worker_shares_the_options_of_the_engine(tmp_path):
    settings = load(tmp_path, '[engine]\nmax_batch_nodes = 3\ncreate_ambiguity_s = 4\n')
    assert (settings.worker.max_batch_nodes, settings.worker.create_ambiguity_s) == (3, 4.0)


def test_secrets_are_in_no_representation(tmp_path):
    made = load(tmp_path, '[secrets]\nkeys = canary\n[transport]\nurl = rabbit://u:canary@mq/\n')
    assert 'canary' not in repr(made)


def test_every_option_explains_itself():
    unexplained = [
        f'[{group}] {option.name}' for group, options in config.list_opts() for option in options if not option.help
    ]
    assert unexplained == []


def test_no_url_is_ever_logged(tmp_path, caplog):
    """`log_opt_values` is what people call to see their configuration."""
    import logging

    conf = cfg.ConfigOpts()
    path = tmp_path / 'c.conf'
    path.write_text(
        '[database]\nconnection = mysql+pymysql://u:hunter2@db/c\n[transport]\nurl = rabbit://u:hunter2@mq/\n'
    )
    config.load([], process='p', conf=conf, config_files=[str(path)])
    with caplog.at_level(logging.DEBUG):
        conf.log_opt_values(logging.getLogger('convergence.test'), logging.DEBUG)
    assert 'database.connection' in caplog.text
    assert 'hunter2' not in caplog.text


def test_the_sample_is_current(tmp_path):
    """If this fails: `make config`, and commit the result."""
    written = tmp_path / 'sample'
    subprocess.run(
        [
            str(Path(sys.executable).with_name('oslo-config-generator')),
            '--config-file',
            'etc/convergence/generator.conf',
            '--output-file',
            str(written),
        ],
        cwd=ROOT,
        check=True,
    )
    assert (ROOT / 'etc/convergence/convergence.conf.sample').read_text() == written.read_text()


def test_an_option_that_nobody_knows_is_named_with_the_one_that_was_meant(tmp_path):
    path = tmp_path / 'convergence.conf'
    path.write_text('[engine]\nsweep_intervall_s = 3\n[worker]\nthreads = 2\n[a_library]\nanything = 1\n')
    conf = cfg.ConfigOpts()
    config.load([], process='convergence-test', conf=conf, config_files=[str(path)])
    (problem,) = config.unknown_options(conf)
    assert problem.endswith('[engine] sweep_intervall_s is not known and has no effect; is sweep_interval_s meant?')
    assert str(path) in problem


def test_nothing_is_said_about_what_is_known(tmp_path):
    path = tmp_path / 'convergence.conf'
    path.write_text((ROOT / 'etc' / 'convergence' / 'convergence.conf.sample').read_text())
    conf = cfg.ConfigOpts()
    config.load([], process='convergence-test', conf=conf, config_files=[str(path)])
    assert config.unknown_options(conf) == []


def test_a_part_takes_the_slice_of_the_settings_that_it_has_fields_for():
    from convergence.settings.declaring import slice_of
    from convergence.worker.attempts.attempt import PollPolicy

    settings = config.WorkerSettings(park_after_s=7.0)
    assert PollPolicy(**slice_of(PollPolicy, settings)) == PollPolicy(park_after_s=7.0)
    with pytest.raises(AssertionError, match='two records'):
        slice_of(config.EngineSettings, settings, config.EngineSettings())
