"""The programs as an operator meets them: starting, refusing to start, being told to stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.functional.cloud import template
from tests.functional.cluster import LONG_S, ROOT, Cluster, eventually
from tests.preloaded import program
from tests.services import service, unique_name

BROKEN = {
    'unreachable database': ('[database]\nconnection = postgresql://u:hunter2@127.0.0.1:{port}/c\n', 1, 'database'),
    'unreachable broker': ('[transport]\nurl = rabbit://u:hunter2@127.0.0.1:{port}/\n', 1, 'message broker'),
    'no schema': ('[database]\nconnection = sqlite:///{directory}/empty.sqlite\n', 1, 'convergence-manage db sync'),
    'unknown database': ('[database]\nconnection = oracle://u:hunter2@127.0.0.1/c\n', 2, 'oracle'),
    'a transport for one process': ('[transport]\nurl = memory://\n', 2, 'convergence-all-in-one'),
    'an impossible value': ('[engine]\nthreads = none\n', 2, 'threads'),
    'an API without a name': (
        '[api]\nhost = 0.0.0.0\nauthentication = keystone\n',
        2,
        'public_url, or allowed_hosts',
    ),
    'an open door': ('[api]\nhost = 0.0.0.0\n', 2, 'authentication = keystone'),
    'a lease too short': ('[engine]\nlease_s = 1\nheartbeat_interval_s = 1\n', 2, 'lease_s'),
}

SLOW = ('unreachable broker', 'engine')

ENGINE_FIRST = ('unreachable database', 'no schema')
"""Cases that run for both programs with each commit. They read the configuration by the same code."""


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def configuration(directory, broken: str) -> str:
    """A configuration that would work, but for one thing."""
    working = {
        'database': f'[database]\nconnection = sqlite:///{directory}/convergence.sqlite\n',
        'transport': '[transport]\nurl = rabbit://127.0.0.1/\n',
    }
    section = broken.partition(']')[0].strip('[')
    working[section] = broken
    text = ''.join(working.values())
    text = text.replace('[database]\n', '[database]\nmax_retries = 1\nretry_interval = 1\n')
    return text.format(port=closed_port(), directory=directory)


def run(module: str, *arguments: str, directory) -> subprocess.CompletedProcess[str]:
    """Run a program that is to end by itself; it has been loaded before."""
    return program(module).run(*arguments, directory=directory, environment=environment(directory))


def environment(directory) -> dict[str, str]:
    """Without what this user has configured."""
    return os.environ | {'PYTHONPATH': str(ROOT), 'HOME': str(directory)}


def run_from_scratch(module: str, *arguments: str, directory) -> subprocess.CompletedProcess[str]:
    """Run a program that is to end by itself, as an operator does it."""
    return subprocess.run(
        [sys.executable, '-m', f'convergence.cmd.{module}', *arguments],
        cwd=directory,
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )


@pytest.mark.parametrize(
    ('what', 'module'),
    # Trying to reach a broker goes on for a while, and is the same for both.
    [
        pytest.param(what, module, marks=pytest.mark.long if module == 'engine' and what not in ENGINE_FIRST else ())
        for what in BROKEN
        for module in ('engine', 'worker')
        if (what, module) != SLOW
    ],
)
def test_a_program_that_cannot_start_says_why_in_one_line(tmp_path, what, module):
    broken, code, said = BROKEN[what]
    path = tmp_path / 'convergence.conf'
    path.write_text(configuration(tmp_path, broken))
    if what == 'unreachable broker':
        assert run('manage', '--config-file', str(path), 'db', 'sync', directory=tmp_path).returncode == 0
    begun = run_from_scratch if what == 'no schema' else run
    ended = begun(module, '--config-file', str(path), directory=tmp_path)
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == code, ended.stderr
    assert last.startswith(f'convergence-{module}: ')
    assert said in last
    assert 'Traceback' not in ended.stderr
    assert 'hunter2' not in ended.stdout + ended.stderr


def test_several_processes_that_cannot_start_end_together(tmp_path):
    path = tmp_path / 'convergence.conf'
    path.write_text(configuration(tmp_path, BROKEN['no schema'][0]))
    ended = run('worker', '--config-file', str(path), '--workers', '2', directory=tmp_path)
    assert ended.returncode == 1
    assert 'convergence-manage db sync' in ended.stderr


@pytest.mark.parametrize('module', ['engine', 'worker', 'api', 'all_in_one', 'manage'])
@pytest.mark.parametrize(
    ('arguments', 'code'), [(('--no-such-option',), 2), (('--help',), 0), (('--config-file', '/nowhere/c.conf'), 2)]
)
def test_the_command_line_is_checked_and_explained(tmp_path, module, arguments, code):
    if module == 'manage' and code == 2:
        arguments = (*arguments, 'db', 'version')
    ended = (run_from_scratch if '--help' in arguments else run)(module, *arguments, directory=tmp_path)
    assert ended.returncode == code, ended.stderr
    assert 'Traceback' not in ended.stderr
    if '--help' in arguments and module in ('engine', 'worker'):
        assert '--workers N' in ended.stdout


@pytest.mark.parametrize('count', ['0', 'many'])
def test_a_number_of_workers_that_is_none_is_refused(tmp_path, count):
    ended = run('worker', '--workers', count, directory=tmp_path)
    assert ended.returncode == 2
    assert '--workers' in ended.stderr


@pytest.fixture
def small(tmp_path):
    """A cluster on SQLite and the broker, with no process yet; its programs are started as an operator does it."""
    cluster = Cluster(
        tmp_path,
        database_url=f'sqlite:///{tmp_path}/convergence.sqlite',
        rabbit_url=service('rabbit').url,
        exchange=unique_name(),
        from_scratch=True,
    )
    yield cluster
    cluster.close()


def children(process) -> set[int]:
    """The processes that a process has started and that have not ended."""
    found = set()
    for entry in os.scandir('/proc'):
        if entry.name.isdigit():
            try:
                with open(f'/proc/{entry.name}/stat') as stat:
                    _, _, rest = stat.read().rpartition(') ')
            except (FileNotFoundError, ProcessLookupError):  # it has ended since
                continue
            state, parent = rest.split()[:2]
            if int(parent) == process.pid and state != 'Z':
                found.add(int(entry.name))
    return found


def test_a_process_of_several_is_replaced_when_it_dies(small, name):
    assert small.manage('db', 'sync').returncode == 0
    small.engines.append(small.launch('engine'))
    supervisor = small.launch('worker', '--workers', '2')
    small.workers.append(supervisor)
    supervisor.ready(times=2)
    small.engines[0].ready()
    stack = small.create(name, template(held={'value': 'h', 'hold': name}))
    victim = small.called(name, 'held', 'made').pid
    assert victim in children(supervisor)
    os.kill(victim, signal.SIGKILL)
    small.cloud.open(name)
    assert stack.ended() == 'CREATE_COMPLETE'
    supervisor.ready(times=3)
    assert len(children(supervisor)) == 2
    assert supervisor.end(signal.SIGTERM) == 0, supervisor.text()
    assert children(supervisor) == set()
    assert 'worker' not in small.manage('service', 'list').stdout


def test_processes_whose_supervisor_was_killed_end_in_good_order(small):
    assert small.manage('db', 'sync').returncode == 0
    supervisor = small.launch('worker', '--workers', '2')
    supervisor.ready(times=2)
    assert small.manage('service', 'list').stdout.count(' up') == 2
    supervisor.end(signal.SIGKILL)
    eventually(lambda: supervisor.text().count('has ended') == 2, 'both workers have ended')
    assert small.manage('service', 'list').stdout.count('worker') == 0


def test_everything_in_one_process_needs_no_configuration(tmp_path):
    small = Cluster(
        tmp_path, database_url='unused', rabbit_url='memory:///unused', exchange='unused', from_scratch=True
    )
    small.configuration.write_text('[api]\nport = 0\n')  # the usual one may be taken on a machine that runs tests
    process = small.launch('all_in_one')
    process.ready()

    def kinds() -> list[str]:
        return [line.split()[0] for line in run('manage', 'service', 'list', directory=tmp_path).stdout.splitlines()]

    # The API has an engine write down that it is there.
    eventually(lambda: kinds() == ['KIND', 'api', 'engine', 'observer', 'worker'], 'all four are known')
    assert process.end(signal.SIGTERM) == 0, process.text()
    assert run('manage', 'service', 'list', directory=tmp_path).stdout.split()[-1] == 'LOAD'


def test_everything_in_one_process_serves_others_over_a_broker(small, name):
    """And leaves out the types of the local provider, for others can ask: nobody has enabled it."""
    process = small.launch('all_in_one')
    small.engines.append(process)
    process.ready()
    stack = small.create(name, template(a={'value': 'x', 'until': name}))
    small.called(name, 'a', 'made')
    assert 'Convergence::Local::File' not in small.client.list_resource_types(small.context())
    small.cloud.open(name)
    assert stack.ended() == 'CREATE_COMPLETE'
    assert process.end(signal.SIGTERM) == 0, process.text()


def test_the_configuration_of_logging_is_read_again(small):
    assert small.manage('db', 'sync').returncode == 0
    worker = small.launch('worker')
    small.workers.append(worker)
    worker.ready()
    usable = small.configuration.read_text()
    small.configuration.write_text('this is no configuration')
    worker.send(signal.SIGHUP)
    eventually(lambda: 'configuration not reloaded' in worker.text(), 'a broken file is refused')
    small.configuration.write_text(usable.replace('[DEFAULT]', '[DEFAULT]\ndebug = true'))
    worker.send(signal.SIGHUP)
    eventually(lambda: 'reloaded (debug: True)' in worker.text(), 'the new file is used')
    assert worker.running()
