"""The local provider: real effects, kept inside one directory."""

from __future__ import annotations

import http.server
import os
import signal
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from convergence.core.model import Action
from convergence.errors import ConfigurationError, StackValidationFailed
from convergence.resources.builtin.local import launch
from convergence.resources.builtin.local.directory import Directory
from convergence.resources.builtin.local.file import File
from convergence.resources.builtin.local.http_check import HttpCheck
from convergence.resources.builtin.local.process import Process
from convergence.resources.builtin.local.process_table import is_running, stop
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.local.sandbox import READ_LIMIT_BYTES, Sandbox
from convergence.resources.contract import Done, FinalFailure, InProgress, NotAsWanted, ObjectNotFound
from convergence.testing.fixture import pause
from tests.resources.calls import Row
from tests.resources.clock import Clock


@pytest.fixture
def provider(tmp_path):
    return LocalProvider(tmp_path / 'root')


def made(row):
    row.poll(row.store(row.kind.create(row.call())), Action.CREATE, pause)
    return row


def read(path):
    return Path(path).read_text(encoding='utf-8')


def removed(row):
    row.poll(row.store(row.kind.delete(row.call())), Action.DELETE, pause)


# --- nothing leaves the root ----------------------------------------------------------------------------------


@pytest.mark.parametrize('path', ['/etc/x', '../x', 'a/../../x', '..', '', '.', 'a\0b', '.convergence/lock'])
@pytest.mark.parametrize('kind', [File, Directory])
def test_a_path_that_leaves_the_root_is_refused_before_anything_happens(kind, path, provider):
    with pytest.raises(StackValidationFailed):
        Row(kind(provider), {'path': path}).call()


def test_symbolic_links_are_not_followed(provider, tmp_path):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (provider.root / 'link').symlink_to(outside)
    (provider.root / 'inner').mkdir()
    (provider.root / 'also').symlink_to(provider.root / 'inner')
    for kind, properties in (
        (File(provider), {'path': 'link/x'}),
        (File(provider), {'path': 'x', 'directory': 'link'}),
        (File(provider), {'path': 'also/x'}),
        (Directory(provider), {'path': 'link/x'}),
        (Process(provider), {'program': 'python', 'directory': 'link'}),
    ):
        row = Row(kind, properties)
        with pytest.raises(FinalFailure, match='symbolic link'):
            kind.create(row.call())
    assert list(outside.iterdir()) == []


def test_a_link_put_in_place_of_a_directory_protects_what_it_points_to(provider, tmp_path):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'precious').write_text('')
    row = made(Row(Directory(provider), {'path': 'd', 'force': True}))
    (provider.root / 'd').rmdir()
    (provider.root / 'd').symlink_to(outside)
    row.kind.delete(row.call())
    assert (outside / 'precious').exists()


def test_what_was_not_made_here_is_not_touched(provider):
    (provider.root / 'mine').write_text('precious')
    (provider.root / 'home').mkdir()
    with pytest.raises(FinalFailure, match='not made by this provider'):
        made(Row(File(provider), {'path': 'mine', 'content': 'other'}))
    with pytest.raises(FinalFailure, match='not made by this provider'):
        made(Row(Directory(provider), {'path': 'home'}))
    for kind, path in ((File(provider), 'mine'), (Directory(provider), 'home')):
        with pytest.raises(ObjectNotFound):
            kind.delete(Row(kind, {'path': path}).call())
    assert (provider.root / 'mine').read_text() == 'precious'
    assert (provider.root / 'home').is_dir()


def test_a_path_of_another_resource_is_refused_and_named(provider):
    made(Row(File(provider), {'path': 'x'}, name='first'))
    with pytest.raises(FinalFailure, match='belongs to the file first of the stack stack'):
        made(Row(File(provider), {'path': 'x'}, name='second', token='token-2'))
    with pytest.raises(FinalFailure, match='belongs to the file first'):
        made(Row(Directory(provider), {'path': 'x'}, name='third', token='token-3'))


def test_a_replacement_takes_the_path_over_and_the_old_one_leaves_it_alone(provider):
    old = made(Row(File(provider), {'path': 'x', 'content': 'old'}, token='token-1'))
    new = made(Row(File(provider), {'path': 'x', 'content': 'new'}, token='token-2'))
    with pytest.raises(ObjectNotFound):
        old.kind.delete(old.call())
    with pytest.raises(FinalFailure):
        old.kind.update(old.call())
    assert (provider.root / 'x').read_text() == 'new'
    removed(new)
    assert not (provider.root / 'x').exists()


@pytest.mark.parametrize(
    ('root', 'programs'), [('relative', {}), ('/tmp', {'x': 'bin/x'}), ('/tmp', {'x': '/no/such/program'})]
)
def test_a_configuration_that_cannot_work_is_refused(root, programs):
    with pytest.raises(ConfigurationError):
        LocalProvider(root, programs)


OUTSIDE = [
    '../../../../../../etc/passwd',
    '/etc/passwd',
    '.convergence/lock',
    '../../dev/zero',
    'a\nb',
    '\u202e',
    'x' * 250,
]


@pytest.mark.parametrize('physical_id', OUTSIDE)
@pytest.mark.parametrize('kind', [File, Directory])
def test_an_id_that_leaves_the_root_is_refused_whatever_is_there(kind, physical_id, provider):
    """``external_id`` and adoption name objects without a property that could be checked."""
    row = Row(kind(provider), {'path': 'x'})
    row.subject = replace(row.subject, physical_id=physical_id)
    with pytest.raises(FinalFailure, match='cannot be used'):
        row.kind.observe(row.call())
    with pytest.raises(FinalFailure, match='cannot be used'):
        row.attribute('path')
    with pytest.raises(ObjectNotFound):
        row.kind.delete(row.call())


@pytest.mark.parametrize(
    'path', ['a\nb', '\x1b[31mred', '\u202egpj.exe', 'x' * 250, 'ä' * 130, '/'.join(['d' * 200] * 6)]
)
def test_a_name_that_lies_or_does_not_fit_is_refused_with_a_reason(path, provider):
    with pytest.raises(StackValidationFailed, match=r'must not contain|more than') as caught:
        Row(File(provider), {'path': path}).call()
    assert str(caught.value).isprintable() or path not in str(caught.value)


def test_a_pipe_a_socket_and_a_device_are_not_waited_for(provider):
    os.mkfifo(provider.root / 'pipe')
    row = Row(File(provider), {'path': 'pipe'})
    with pytest.raises(FinalFailure, match='no regular file'):
        row.kind.observe(row.call())
    with pytest.raises(FinalFailure, match='no regular file'):
        Sandbox(provider.root).open_log('pipe')
    if os.geteuid() != 0:
        pytest.skip('only root can make a device; the rest was tested')
    try:
        os.mknod(provider.root / 'zero', stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip('this container has no devices; the rest was tested')
    with pytest.raises(FinalFailure, match='no regular file'):
        Sandbox(provider.root).read('zero')


def test_a_file_that_is_replaced_by_a_pipe_while_we_look_is_not_waited_for(provider, monkeypatch):
    os.mkfifo(provider.root / 'pipe')
    (provider.root / 'file').write_text('')
    regular = os.stat(provider.root / 'file')
    monkeypatch.setattr(os, 'stat', lambda *arguments, **options: regular)
    with pytest.raises(FinalFailure, match='no regular file'):
        Sandbox(provider.root).read('pipe')


def test_a_file_is_read_up_to_a_limit(provider):
    with open(provider.root / 'sparse', 'wb') as file:
        file.truncate(READ_LIMIT_BYTES + 1)
    with pytest.raises(FinalFailure, match='not read'):
        Sandbox(provider.root).read('sparse')


# --- files and directories ------------------------------------------------------------------------------------


def test_a_file_has_its_content_and_permissions_and_changes_in_place(provider):
    directory = made(Row(Directory(provider), {}, name='d', token='d'))
    row = made(Row(File(provider), {'path': 'f', 'directory': directory.subject.physical_id, 'content': 'ä'}))
    path = row.attribute('path')
    assert read(path) == 'ä'
    assert os.stat(path).st_mode & 0o777 == 0o644
    row.properties = {**row.properties, 'content': 'b', 'mode': '0600'}
    row.kind.update(row.call())
    assert read(path) == 'b'
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert row.kind.observe(row.call()).properties == {'content': 'b', 'mode': '0600'}
    assert os.listdir(directory.attribute('path')) == ['f']


def test_a_file_that_somebody_removed_is_deleted_all_the_same(provider):
    row = made(Row(File(provider), {'path': 'f'}))
    (provider.root / 'f').unlink()
    with pytest.raises(ObjectNotFound):
        row.kind.observe(row.call())
    with pytest.raises(ObjectNotFound):
        row.kind.delete(row.call())


def test_a_directory_must_be_there_first(provider):
    with pytest.raises(FinalFailure, match='Directory first'):
        made(Row(File(provider), {'path': 'no/f'}))
    with pytest.raises(FinalFailure, match='Directory first'):
        made(Row(Directory(provider), {'path': 'no/d'}))


def test_a_directory_with_something_in_it_is_kept_unless_forced(provider):
    row = made(Row(Directory(provider), {'path': 'd'}))
    (provider.root / 'd' / 'precious').write_text('')
    with pytest.raises(FinalFailure, match=r'not empty: precious.*force'):
        row.kind.delete(row.call())
    assert (provider.root / 'd' / 'precious').exists()
    row.properties = {'path': 'd', 'force': True}
    assert row.kind.delete(row.call()) == Done()
    assert not (provider.root / 'd').exists()


# --- processes ------------------------------------------------------------------------------------------------

SLEEP = ['-S', '-c', 'import time; time.sleep(600)']


@pytest.fixture
def process(provider):
    """Makes process rows; kills by their ids what a failed test leaves."""
    rows = []

    def make(clock=None, token='token-1', **properties):
        kind = Process(provider, clock) if clock else Process(provider)
        rows.append(Row(kind, {'program': 'python', 'arguments': SLEEP, **properties}, token=token))
        return rows[-1]

    yield make
    for row in rows:
        if row.subject.physical_id:
            stop(row.subject.physical_id, signal.SIGKILL)


def until(condition):
    """Wait for what is bound to happen; the limit of the whole test ends it otherwise."""
    while not condition():
        pause(0.01)


def test_a_process_outlives_the_one_that_started_it(provider):
    script = (
        'import sys; sys.path.insert(0, sys.argv[2])\n'
        'from tests.resources.calls import Row\n'
        'from convergence.resources.builtin.local.process import Process\n'
        'from convergence.resources.builtin.local.provider import LocalProvider\n'
        'import pathlib\n'
        f'row = Row(Process(LocalProvider(pathlib.Path(sys.argv[1]))), {{"program": "python", "arguments": {SLEEP}}})\n'
        'print(row.kind.create(row.call()).physical_id)\n'
    )
    repository = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    done = subprocess.run(
        [sys.executable, '-c', script, str(provider.root), repository], capture_output=True, text=True, check=True
    )
    row = Row(Process(provider), {'program': 'python', 'arguments': SLEEP})
    found = row.store(row.kind.find(row.call()))
    assert found.physical_id == done.stdout.strip()
    assert is_running(found.physical_id)
    removed(row)
    assert not is_running(found.physical_id)


def test_a_port_is_chosen_told_and_exported(process, provider):
    program = 'import os, sys; print(os.environ["PORT"], sys.argv[1], flush=True); import time; time.sleep(600)'
    row = made(process(arguments=['-c', program, 'http://${PORT}/']))
    port = row.attribute('port')
    until(lambda: '\n' in read(row.attribute('log')))
    assert read(row.attribute('log')) == f'{port} http://{port}/\n'
    assert row.attribute('url') == f'http://127.0.0.1:{port}'
    assert row.attribute('pid') == int(row.subject.physical_id.split(':')[0])
    removed(row)


def test_the_engines_environment_is_not_handed_down(process, monkeypatch):
    monkeypatch.setenv('DATABASE_PASSWORD', 'secret')
    program = 'import os; print(sorted(os.environ), flush=True); import time; time.sleep(600)'
    row = made(process(arguments=['-c', program], environment={'MINE': '1'}))
    until(lambda: '\n' in read(row.attribute('log')))
    printed = read(row.attribute('log'))
    assert 'MINE' in printed
    assert 'DATABASE_PASSWORD' not in printed
    removed(row)


def test_a_number_that_was_given_to_another_process_is_never_killed(process):
    other = subprocess.Popen([sys.executable, *SLEEP])
    try:
        row = process()
        row.subject = replace(row.subject, physical_id=f'{other.pid}:another-start')
        with pytest.raises(ObjectNotFound):
            row.kind.delete(row.call())
        stop(row.subject.physical_id, signal.SIGKILL)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_process_that_ignores_the_request_is_killed_when_its_time_is_up(process):
    clock = Clock()
    program = (
        'import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)\n'
        'import time; time.sleep(600)'
    )
    row = made(process(clock, arguments=['-c', program], stop_timeout_s=5))
    until(lambda: read(row.attribute('log')) == '1\n')
    answer = row.kind.delete(row.call())
    clock.advance(4.9)
    answer = row.kind.poll(row.call(), Action.DELETE, answer.progress)
    assert isinstance(answer, InProgress)
    assert is_running(row.subject.physical_id)
    clock.advance(0.2)
    answer = row.kind.poll(row.call(), Action.DELETE, answer.progress)
    until(lambda: not is_running(row.subject.physical_id))
    assert row.kind.poll(row.call(), Action.DELETE, answer.progress) == Done()


def test_a_program_that_ends_at_once_fails_and_names_its_log(process):
    row = process(arguments=['-c', 'raise SystemExit(3)'])
    answer = row.store(row.kind.create(row.call()))
    until(lambda: not is_running(row.subject.physical_id))
    with pytest.raises(FinalFailure, match=r'ended at once; see its log .*\.log') as caught:
        row.kind.poll(row.call(), Action.CREATE, answer.progress)
    assert caught.value.physical_id == row.subject.physical_id
    with pytest.raises(ObjectNotFound):
        row.kind.delete(row.call())


def test_only_allowed_programs_run(process, provider):
    with pytest.raises(FinalFailure, match='bash is not allowed here; allowed: python'):
        made(process(program='bash'))
    not_executable = provider.root / 'text'
    not_executable.write_text('no program')
    kind = Process(LocalProvider(provider.root, {'text': str(not_executable)}))
    with pytest.raises(FinalFailure, match='text cannot be started'):
        made(Row(kind, {'program': 'text'}))
    assert kind.find(Row(kind, {'program': 'text'}).call()) is None


def test_a_process_that_died_is_seen_and_made_anew(process):
    row = made(process())
    first = row.subject.physical_id
    stop(first, signal.SIGKILL)
    until(lambda: not is_running(first))
    assert row.kind.find(row.call()) is None
    with pytest.raises(ObjectNotFound):
        row.kind.observe(row.call())
    assert made(row).subject.physical_id != first
    removed(row)


def test_its_log_stays_in_its_directory_and_goes_with_it(process, provider):
    directory = made(Row(Directory(provider), {'path': 'd'}, name='d', token='d'))
    row = made(process(directory='d'))
    removed(row)
    assert [name.endswith('.log') for name in os.listdir(provider.root / 'd')] == [True]
    removed(directory)
    assert not (provider.root / 'd').exists()


def test_a_process_has_a_start_and_what_is_no_process_has_none():
    assert launch.start_of(os.getpid()) == launch.start_of(os.getpid()) is not None
    child = subprocess.Popen([sys.executable, '-S', '-c', ''], stdout=subprocess.PIPE)
    child.stdout.read()
    until(lambda: launch.start_of(child.pid) is None)  # It has ended, and nobody has collected it yet.
    child.wait()
    assert launch.start_of(child.pid) is None


def test_a_process_that_was_not_started_here_is_not_looked_at_and_not_ended(provider):
    """Adoption and ``external_id`` name processes by number and start, which everybody on the machine can see."""
    with subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, start_new_session=True) as other:
        row = Row(Process(provider), {'program': 'python', 'stop_timeout_s': 0})
        row.subject = replace(row.subject, physical_id=f'{other.pid}:{launch.start_of(other.pid)}')
        with pytest.raises(ObjectNotFound):
            row.kind.observe(row.call())
        with pytest.raises(ObjectNotFound):
            row.kind.delete(row.call())
        assert other.poll() is None
        other.communicate(b'\n')
        assert other.returncode == 0


def test_a_process_is_taken_over_within_its_project_only(provider):
    program = {'program': 'python', 'arguments': ['-c', 'import time; time.sleep(600)']}
    first = made(Row(Process(provider), program))
    adopted = Row(Process(provider), program, token='token-2', stack_id='another')
    adopted.subject = replace(adopted.subject, physical_id=first.subject.physical_id)
    foreign = Row(Process(provider), program, token='token-3')
    foreign.subject = replace(foreign.subject, physical_id=first.subject.physical_id, project_id='another')
    for ask in (foreign.kind.observe, foreign.kind.delete):
        with pytest.raises(ObjectNotFound):
            ask(foreign.call())
    assert is_running(first.subject.physical_id)
    assert adopted.attribute('port') == first.attribute('port')
    adopted.kind.observe(adopted.call())
    removed(adopted)
    assert not is_running(first.subject.physical_id)


# --- checks ---------------------------------------------------------------------------------------------------


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/away':
            self.send_response(302)
            self.send_header('Location', '/')
        else:
            self.send_response(200 if self.path.partition('?')[0] == '/' else 404)
        self.end_headers()
        self.wfile.write(b'welcome')

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope='module')
def address():
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    'properties', [{}, {'text': 'come'}, {'path': '/no', 'status': 404}, {'path': '/away', 'status': 302}]
)
def test_a_check_passes(provider, address, properties):
    provider = replace(provider, check_addresses=frozenset({address.removeprefix('http://')}))
    path = properties.pop('path', '/')
    row = Row(HttpCheck(provider, Clock()), {'url': address + path, **properties})
    assert isinstance(row.store(row.kind.create(row.call())), Done)
    assert row.attribute('passed') is True
    assert row.attribute('url') == address + path


@pytest.mark.parametrize(
    ('path', 'properties', 'reason'),
    [('/no', {}, 'the status is 404, not 200'), ('/', {'text': 'goodbye'}, 'does not contain the expected text')],
)
def test_a_check_goes_on_asking_and_fails_with_the_last_reason(provider, address, path, properties, reason):
    clock = Clock()
    provider = replace(provider, check_addresses=frozenset({address.removeprefix('http://')}))
    row = Row(HttpCheck(provider, clock), {'url': f'{address}{path}?token=secret', 'timeout_s': 3, **properties})
    answer = row.store(row.kind.create(row.call()))
    assert isinstance(answer, InProgress)
    with pytest.raises(FinalFailure, match=reason) as caught:
        row.poll(answer, Action.CREATE, clock.advance)
    assert 'secret' not in str(caught.value)
    assert 'goodbye' not in str(caught.value)


def test_a_server_that_is_not_there_is_the_last_reason(provider):
    clock = Clock()
    provider = replace(provider, check_addresses=frozenset({'127.0.0.1:1'}))
    row = Row(HttpCheck(provider, clock), {'url': 'http://127.0.0.1:1/', 'timeout_s': 1})
    with pytest.raises(FinalFailure, match=r'(?i)refused'):
        row.poll(row.kind.create(row.call()), Action.CREATE, clock.advance)


@pytest.mark.parametrize(
    'url', ['http://169.254.169.254/latest', 'http://127.0.0.1:1/', 'http://127.1:{port}/', 'http://[::1]:{port}/']
)
def test_only_allowed_addresses_are_asked(provider, address, url):
    """The server is there, on this machine; it is neither listed nor a process of the local provider."""
    row = Row(HttpCheck(LocalProvider(provider.root)), {'url': url.format(port=address.rpartition(':')[2])})
    with pytest.raises(FinalFailure, match='is not allowed'):
        row.kind.create(row.call())


def test_a_project_checks_its_own_processes_and_no_others(provider):
    """Not even whether their answers contain a text is for anybody else."""
    server = made(Row(Process(provider), {'program': 'python', 'arguments': ['-m', 'http.server', '${PORT}']}))
    try:
        row = Row(HttpCheck(provider, Clock()), {'url': server.attribute('url'), 'timeout_s': 1})
        assert row.kind.create(row.call()) is not None
        row.subject = replace(row.subject, project_id='another')
        with pytest.raises(FinalFailure, match='is not allowed'):
            row.kind.create(row.call())
    finally:
        removed(server)
    row.subject = replace(row.subject, project_id='project-id')
    with pytest.raises(FinalFailure, match='is not allowed'):  # the process has ended: anybody may have its port
        row.kind.create(row.call())


def test_a_process_cannot_claim_the_port_of_somebody_else(provider, address):
    """With the port it would get the right to have it checked."""
    row = Row(Process(provider), {'program': 'python', 'port': int(address.rpartition(':')[2])})
    with pytest.raises(FinalFailure, match='in use'):
        row.kind.create(row.call())


def test_addresses_of_checks_are_http_without_a_password(provider):
    with pytest.raises(StackValidationFailed):
        Row(HttpCheck(provider), {'url': 'file:///etc/passwd'}).call()
    with pytest.raises(StackValidationFailed):
        Row(HttpCheck(provider), {'url': 'http://user:password@127.0.0.1/'}).call()


# --- compared with reality ------------------------------------------------------------------------------------


def test_a_check_tells_that_content_or_permissions_changed_and_says_no_content(provider):
    row = made(Row(File(provider), {'path': 'f', 'content': 'good', 'mode': '644'}))
    row.kind.check(row.call())
    os.chmod(provider.root / 'f', 0o600)
    (provider.root / 'f').write_text('evil', encoding='utf-8')
    with pytest.raises(NotAsWanted, match=r'^content, mode of thing \(f\) changed outside of the stack$'):
        row.kind.check(row.call())


def test_a_place_into_which_nobody_can_look_is_not_said_to_be_empty(provider):
    directory = made(Row(Directory(provider), {}, name='d', token='d'))
    row = made(Row(File(provider), {'path': 'f', 'directory': directory.subject.physical_id}))
    (provider.root / directory.subject.physical_id).rename(provider.root / 'elsewhere')
    (provider.root / directory.subject.physical_id).symlink_to(provider.root / 'elsewhere')
    with pytest.raises(NotAsWanted, match='the object cannot be observed'):
        row.kind.check(row.call())
