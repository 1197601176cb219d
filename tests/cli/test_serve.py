"""``convergence serve``, as its user runs it, and Ctrl-C on a real terminal."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from convergence.cli import notices
from tests.api.installation import waiting

COMMAND = (sys.executable, '-m', 'convergence.cmd.convergence')
LONG_S = 120


@pytest.fixture
def environment(tmp_path):
    """Without any server that is configured on this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('OS_', 'CONVERGENCE_'))}
    own = {'XDG_STATE_HOME': str(tmp_path / 'state'), 'XDG_CONFIG_HOME': str(tmp_path / 'config')}
    return kept | own | {'PYTHONUNBUFFERED': '1', 'PYTHONPATH': os.pathsep.join(filter(None, sys.path))}


def run(environment, directory, *arguments):
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )


@pytest.fixture
def served(environment, tmp_path):
    """A server with its data in an own directory; it is told to end, and ends in good order."""
    with subprocess.Popen(
        [*COMMAND, 'serve', '--port', '0'], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        first = server.stdout.readline()
        try:
            yield server, first
        finally:
            if server.poll() is None:
                server.send_signal(signal.SIGINT)
            assert server.wait(LONG_S) == 0


def test_it_is_found_and_serves_its_data_alone(environment, tmp_path, served):
    server, first = served
    notice = notices.alive(tmp_path / 'convergence-data')
    assert notice.url in first and notice.pid == server.pid
    below = tmp_path / 'deep' / 'below'
    below.mkdir(parents=True)
    for directory in (tmp_path, below, '/'):
        assert run(environment, directory, 'stack', 'list', '-f', 'json').stdout == '[]\n'
    second = run(environment, tmp_path, 'serve')
    assert second.returncode == 4
    assert notice.url in second.stderr and 'serves' in second.stderr and '--data' in second.stderr
    server.send_signal(signal.SIGINT)
    assert server.wait(LONG_S) == 0
    gone = run(environment, tmp_path, 'stack', 'list')
    assert gone.returncode == 5 and 'convergence serve' in gone.stderr
    assert list((tmp_path / 'state' / 'convergence' / 'servers').iterdir()) == []


def test_the_notice_of_a_server_that_died_is_not_believed(tmp_path):
    data = tmp_path / 'convergence-data'
    with notices.claimed(data), pytest.raises(notices.AlreadyServed), notices.claimed(data):
        pass
    left = notices.Notice('http://127.0.0.1:9', 1, str(data), '1')
    with notices.claimed(data), notices.posted(left, tmp_path / 'copies'):
        assert notices.find(tmp_path, tmp_path / 'none') == [left]
        assert notices.find(tmp_path.parent, tmp_path / 'copies') == [left]
    (data / notices.NAME).write_text(json.dumps({'url': left.url, 'pid': 1, 'data': str(data), 'version': '1'}))
    assert notices.find(tmp_path, tmp_path / 'none') == []


def test_ctrl_c_leaves_the_operation_running_and_says_how_to_follow_it(environment, tmp_path, served):
    (tmp_path / 'slow.json').write_text(json.dumps(waiting(600)))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(COMMAND[0], [*COMMAND, 'stack', 'create', 'slow', '-t', 'slow.json', '--wait'],
                  environment | {'TERM': 'xterm', 'COLUMNS': '120'})  # fmt: skip
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
    assert run(environment, tmp_path, 'stack', 'cancel', 'slow', '--wait').returncode == 0
