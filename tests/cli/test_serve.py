"""``convergence serve``, as its user runs it, and Ctrl-C on a real terminal."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from convergence.cli.connection import local_servers, local_token
from convergence.cli.exits import Unreachable
from convergence.cmd.serve import PORT_FILE, open_port
from convergence.errors import ConfigurationError
from tests.api.installation import waiting
from tests.preloaded import program

COMMAND = (sys.executable, '-m', 'convergence.cmd.convergence')
LONG_S = 120


@pytest.fixture
def environment(tmp_path):
    """Without any server that is configured on this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('OS_', 'CONVERGENCE_'))}
    own = {'XDG_STATE_HOME': str(tmp_path / 'state'), 'XDG_CONFIG_HOME': str(tmp_path / 'config')}
    return kept | own | {'PYTHONUNBUFFERED': '1', 'PYTHONPATH': os.pathsep.join(filter(None, sys.path))}


def run(environment, directory, *arguments):
    return program('convergence').run(*arguments, directory=directory, environment=environment)


@contextmanager
def serving(environment, directory, lines=1, *options):
    """A server, loaded before, and the first lines that it says."""
    log = directory / f'said-{time.monotonic_ns()}'
    arguments = ('serve', '--port', '0', *options)
    begun = program('convergence').start(*arguments, directory=directory, environment=environment, log=log)
    with begun as server:
        while len(said := log.read_text().splitlines()) < lines and server.poll() is None:
            time.sleep(0.02)
        yield server, said


@pytest.fixture
def served(environment, tmp_path):
    """A server with its data in an own directory; it is told to end, and ends in good order."""
    with serving(environment, tmp_path) as (server, said):
        yield server, said[0]
        server.send_signal(signal.SIGINT)
        assert server.wait(LONG_S) == 0


def test_it_is_found_and_serves_its_data_alone(environment, tmp_path, served):
    server, first = served
    found = local_servers.alive(tmp_path / 'convergence-data')
    assert found.url in first and found.pid == server.pid
    below = tmp_path / 'deep' / 'below'
    below.mkdir(parents=True)
    for directory in (tmp_path, below, '/'):
        assert run(environment, directory, 'stack', 'list', '-f', 'json').stdout == '[]\n'
    second = run(environment, tmp_path, 'serve')
    assert second.returncode == 4
    assert found.url in second.stderr and 'serves' in second.stderr and '--data' in second.stderr
    server.send_signal(signal.SIGINT)
    assert server.wait(LONG_S) == 0
    gone = run(environment, tmp_path, 'stack', 'list')
    assert gone.returncode == 5 and 'convergence serve' in gone.stderr
    assert 'The server of this directory does not run' in gone.stderr
    left = list((tmp_path / 'state' / 'convergence' / 'servers').iterdir())
    assert [path.suffix for path in left] == ['.token']  # a note to which server the token belongs, without the token
    assert found.token() not in left[0].name + left[0].read_text()


def test_a_directory_is_served_at_the_same_port_as_before_where_that_is_left_open(environment, tmp_path, served):
    """Signal addresses that were handed out stay good; a port that is taken by then is not insisted on."""
    server, _ = served
    data = tmp_path / 'convergence-data'
    before = urlsplit(local_servers.alive(data).url).port
    server.send_signal(signal.SIGINT)
    assert server.wait(LONG_S) == 0
    with serving(environment, tmp_path) as (again, said):
        assert said[0].endswith(f':{before}')
        again.send_signal(signal.SIGINT)
        assert again.wait(LONG_S) == 0
    assert open_port(data, '127.0.0.1', 8004) == before
    token, secret = (data / 'token').read_text(), []
    with socket.create_server(('127.0.0.1', before)):
        for option in ((), ('--new-token',)):
            with serving(environment, tmp_path, 4, *option) as (again, said):
                assert f'The port was {before} before.' in said[3] and '--new-token' in said[3]
                secret.append(local_servers.alive(data).secret)
                (data / PORT_FILE).write_text(str(before))
                again.send_signal(signal.SIGINT)
                assert again.wait(LONG_S) == 0
            assert ((data / 'token').read_text() == token) == (option == ())
        assert len(set(secret)) == 2 and all(len(each) == 64 for each in secret)
        assert open_port(data, '127.0.0.1', 0) == 0
    (data / PORT_FILE).write_text('none')
    assert open_port(data, '127.0.0.1', 0) == 0


def test_the_file_of_a_server_that_died_is_not_believed(tmp_path):
    data = tmp_path / 'convergence-data'
    with local_servers.claimed(data), pytest.raises(local_servers.AlreadyServed), local_servers.claimed(data):
        pass
    left = local_servers.LocalServer('http://127.0.0.1:9', 1, str(data), '1')
    with local_servers.claimed(data), local_servers.announced(left, tmp_path / 'copies'):
        assert local_servers.find(tmp_path) == left
        assert local_servers.running(tmp_path / 'copies') == [left]
    (data / local_servers.NAME).write_text(json.dumps({'url': left.url, 'pid': 1, 'data': str(data), 'version': '1'}))
    assert local_servers.alive(data) is None
    with pytest.raises(
        Unreachable, match='The server of this directory does not run; start it with "convergence serve"'
    ):
        local_servers.find(tmp_path)


ASK = """
import encodings.idna, os, sys, urllib.error, urllib.request
if len(sys.argv) > 4:
    os.setgroups([]); os.setgid(int(sys.argv[4])); os.setuid(int(sys.argv[4]))
    assert os.getresuid() == (int(sys.argv[4]),) * 3
request = urllib.request.Request(sys.argv[1] + '/v1/p/stacks', headers={'X-Auth-Token': sys.argv[2]})
try:
    print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
try:
    print(len(open(sys.argv[3]).read()) > 32)
except PermissionError as error:
    print(error.strerror)
"""
NOBODY = 65534


def test_another_account_of_the_machine_is_not_served(environment, tmp_path, served):
    """It reaches the port; it once became the user who had started the server."""
    found = local_servers.alive(tmp_path / 'convergence-data')
    token_file = tmp_path / 'convergence-data' / 'token'
    assert (found.token_file, token_file.stat().st_mode & 0o777) == (str(token_file), 0o600)
    arguments = [sys.executable, '-c', ASK, found.url]
    own = subprocess.run([*arguments, found.token(), token_file], capture_output=True, text=True, check=True)
    assert own.stdout == '200\nTrue\n'
    guess = subprocess.run([*arguments, 'guessed' * 6, token_file], capture_output=True, text=True, check=True)
    assert guess.stdout == '401\nTrue\n'
    if os.geteuid() != 0:
        pytest.skip('only root can act as another account; the rest was tested')
    for directory in (*token_file.parents,):  # what lies around the file is not what protects it here
        if directory.is_relative_to(tmp_path.parents[1]):
            directory.chmod(0o755)
    other = subprocess.run(
        [*arguments, '', token_file, str(NOBODY)], capture_output=True, text=True, check=False, cwd='/'
    )
    assert (other.stdout, other.stderr) == ('401\nPermission denied\n', '')


def test_a_command_finds_the_token_of_the_server_that_it_is_told_to_use(environment, tmp_path, served):
    url = local_servers.alive(tmp_path / 'convergence-data').url
    for told in ({'CONVERGENCE_ENDPOINT': url}, {'OS_ENDPOINT': f'{url}/v1/p', 'OS_AUTH_TYPE': 'none'}):
        assert run(environment | told, '/', 'stack', 'list', '-f', 'json').stdout == '[]\n'
    assert run(environment, '/', 'stack', 'list', '-f', 'json', '--endpoint', url).stdout == '[]\n'
    refused = run(environment | {'CONVERGENCE_TOKEN': 'wrong'}, '/', 'stack', 'list', '--endpoint', url)
    assert refused.returncode == 4 and 'token' in refused.stderr
    missing = run(environment | {'XDG_STATE_HOME': '/nowhere'}, '/', 'stack', 'list', '--endpoint', url)
    assert missing.returncode == 4 and 'OS_TOKEN' in missing.stderr
    both = run(environment, tmp_path / 'state', 'serve', '--insecure', '--new-token')
    assert both.returncode == 2 and 'insecure' in both.stderr


def test_an_insecure_server_says_so_and_asks_for_nothing(environment, tmp_path):
    with serving(environment, tmp_path, 4, '--insecure') as (server, said):
        try:
            url = local_servers.alive(tmp_path / 'convergence-data').url
            answer = subprocess.run(
                [sys.executable, '-c', ASK, url, '', '/dev/null'], capture_output=True, text=True, check=True
            )
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(LONG_S) == 0
    assert any('INSECURE' in line for line in said)
    assert answer.stdout.startswith('200\n')
    assert 'accepts requests without a token' in (tmp_path / 'convergence-data' / 'serve.log').read_text()
    assert not (tmp_path / 'convergence-data' / 'token').exists()


def test_the_file_of_another_account_is_not_believed(tmp_path, monkeypatch):
    """It would lead the templates of this account, with all their secrets, to a server of the other one."""
    data = tmp_path / 'convergence-data'
    left = local_servers.LocalServer('http://127.0.0.1:9', 1, str(data), '1')
    with local_servers.claimed(data), local_servers.announced(left, tmp_path / 'copies'):
        assert local_servers.find(tmp_path) == left
        assert local_servers.running(tmp_path / 'copies') == [left]
        owner = os.geteuid()
        monkeypatch.setattr(os, 'geteuid', lambda: owner + 1)
        assert local_servers.find(tmp_path) is None
        assert local_servers.running(tmp_path / 'copies') == []


@pytest.mark.parametrize('wrong', ['empty', 'short', 'readable', 'link', 'directory', 'pipe'])
def test_a_token_that_others_know_or_guess_is_refused(tmp_path, wrong):
    path = tmp_path / 'state' / 'token'
    token = local_token.made(path)
    assert local_token.made(path) == token == local_token.known(path)
    if wrong in ('empty', 'short'):
        path.write_text('' if wrong == 'empty' else 'secret')
    elif wrong == 'readable':
        path.chmod(0o640)
    else:
        path.rename(tmp_path / 'elsewhere')
        if wrong == 'link':
            path.symlink_to(tmp_path / 'elsewhere')
        elif wrong == 'directory':
            path.mkdir()
        else:
            os.mkfifo(path, 0o600)
    with pytest.raises(ConfigurationError, match='token'):
        local_token.made(path)


def test_ctrl_c_leaves_the_operation_running_and_says_how_to_follow_it(environment, tmp_path, served):
    (tmp_path / 'slow.json').write_text(json.dumps(waiting(600)))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(
            COMMAND[0],
            [*COMMAND, 'stack', 'create', 'slow', '-t', 'slow.json', '--wait'],
            environment | {'TERM': 'xterm', 'COLUMNS': '120'},
        )
    shown = b''
    while b'slow' not in shown or b'CREATE_IN_PROGRESS' not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b'\x03')
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:
        pass  # the other end is closed
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    os.close(terminal)
    assert b'convergence stack wait slow' in shown and b'convergence stack cancel slow' in shown
    assert '└─ '.encode() in shown
    state = run(environment, tmp_path, 'stack', 'show', 'slow', '-f', 'value', '-c', 'stack_status').stdout
    assert state == 'CREATE_IN_PROGRESS\n'
    assert run(environment, tmp_path, 'stack', 'cancel', 'slow', '--now', '--wait').returncode == 0


EXAMPLE = Path(__file__).parents[2] / 'examples' / 'wait.yaml'


def test_a_program_without_a_token_completes_a_wait_condition(environment, tmp_path, served):
    """It is given an address at which it can signal; see examples/wait.yaml. No page of the server shows that address."""
    made = run(environment, tmp_path, 'stack', 'create', 'wait', '-t', str(EXAMPLE), '--wait', '--wait-timeout', '100')
    assert made.returncode == 0, (
        made.stdout + made.stderr + run(environment, tmp_path, 'stack', 'explain', 'wait').stdout
    )
    outputs = json.loads(run(environment, tmp_path, 'stack', 'show', 'wait', '-f', 'json').stdout)['outputs']
    assert json.loads({each['output_key']: each['output_value'] for each in outputs}['answer']) == {'work': 45}
    log = (tmp_path / 'convergence-data' / 'serve.log').read_text()
    assert '/signals/' in log
    assert 'cvsig_' not in log
    gone = run(environment, tmp_path, 'stack', 'delete', 'wait', '--yes', '--wait')
    assert gone.returncode == 0, gone.stderr


SCALING = EXAMPLE.with_name('scaling.yaml')


def test_a_signal_starts_another_server_which_answers(environment, tmp_path, served):
    """See examples/scaling.yaml."""
    made = run(environment, tmp_path, 'stack', 'create', 'group', '-t', str(SCALING), '--wait', '--wait-timeout', '100')
    assert made.returncode == 0, (
        made.stdout + made.stderr + run(environment, tmp_path, 'stack', 'explain', 'group').stdout
    )
    assert run(environment, tmp_path, 'stack', 'signal', 'group', 'more').returncode == 0
    urls: list[str] = []
    for _ in range(600):
        shown = json.loads(run(environment, tmp_path, 'stack', 'show', 'group', '-f', 'json').stdout)['outputs']
        urls = next(each['output_value'] for each in shown if each['output_key'] == 'urls')
        if len([url for url in urls if url]) == 2:
            break
    assert len(set(urls)) == 2
    for url in urls:
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.read() == b'Hello from the group\n'
    gone = run(environment, tmp_path, 'stack', 'delete', 'group', '--yes', '--wait')
    assert gone.returncode == 0, gone.stderr
