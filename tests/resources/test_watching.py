"""What the local types tell of by themselves: processes that end, files and directories that change."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid

import pytest

from convergence.concurrency import Executor
from convergence.resources.builtin.local import path_watching
from convergence.resources.builtin.local.directory import Directory
from convergence.resources.builtin.local.file import File
from convergence.resources.builtin.local.launch import start_of
from convergence.resources.builtin.local.process import Process
from convergence.resources.builtin.local.process_table import stop
from convergence.resources.builtin.local.provider import LocalProvider
from tests.resources.calls import Row
from tests.resources.clock import Clock

LONG_S = 30.0


@pytest.fixture
def provider(tmp_path):
    return LocalProvider(tmp_path / 'root')


@pytest.fixture
def watched():
    """Has a type watched; gives the watcher, and what it has told of."""
    watchers = []

    def watch(kind, *physical_ids):
        told = set()
        watcher = kind.watcher(told.add)
        watchers.append(watcher)
        watcher.watch(physical_ids)
        return watcher, told

    yield watch
    for watcher in watchers:
        watcher.close()


def eventually(told, expected):
    """What was told, as soon as that is what is expected."""
    ends = time.monotonic() + LONG_S
    while told != expected and time.monotonic() < ends:
        time.sleep(0.01)
    return told


def sleeper(provider):
    """The id of a process of the provider, which sleeps."""
    given = {'program': 'python', 'arguments': ['-c', 'import time; time.sleep(600)']}
    row = Row(Process(provider, Clock()), given, name=str(uuid.uuid4()), token=str(uuid.uuid4()))
    row.store(row.kind.create(row.call()))
    return row.subject.physical_id


def test_a_process_that_ends_is_told_of_once_whoever_watches_it_and_no_other_one(provider, watched):
    first, second = sleeper(provider), sleeper(provider)
    try:
        watcher, told = watched(Process(provider), first, second)
        _, elsewhere = watched(Process(provider), first)
        stop(first, signal.SIGKILL)
        assert eventually(told, {first}) == eventually(elsewhere, {first})
        watcher.watch([second])
        stop(second, signal.SIGKILL)
        assert eventually(told, {first, second}) == {first, second}
        assert elsewhere == {first}
    finally:
        stop(first, signal.SIGKILL)
        stop(second, signal.SIGKILL)


def test_a_process_that_ended_before_it_was_watched_is_told_of_and_those_of_others_are_not(provider, watched):
    ended = sleeper(provider)
    stop(ended, signal.SIGKILL)
    with subprocess.Popen(['sleep', '600']) as foreign:
        other = f'{foreign.pid}:{start_of(foreign.pid)}'
        _, told = watched(Process(provider), other, '1:never', ended)
        foreign.kill()
    assert eventually(told, {ended}) == {ended}


def test_whoever_has_no_descriptors_left_for_processes_says_so_and_tells_of_others(
    provider, watched, monkeypatch, caplog
):
    first, usual = sleeper(provider), os.pidfd_open
    monkeypatch.setattr(os, 'pidfd_open', lambda pid: (_ for _ in ()).throw(OSError(24, 'Too many open files')))
    watcher, told = watched(Process(provider), first)
    ends = time.monotonic() + LONG_S
    while 'Too many open files' not in caplog.text and time.monotonic() < ends:
        time.sleep(0.01)
    monkeypatch.setattr(os, 'pidfd_open', usual)
    second = sleeper(provider)
    for each in (first, second):
        stop(each, signal.SIGKILL)
    watcher.watch([first, second])
    assert eventually(told, {second}) == {second}


CHANGES = {
    'it is written to': lambda path: path.write_text('else'),
    'something is put in its place': lambda path: path.with_suffix('.new').rename(path),
    'its mode is changed': lambda path: path.chmod(0o600),
    'it is removed': lambda path: path.unlink(),
    'it is moved away': lambda path: path.rename(path.with_name('other')),
    'its directory is moved away': lambda path: path.parent.rename(path.parent.with_name('else')),
    'its directory is removed': lambda path: shutil.rmtree(path.parent),
}


@pytest.mark.parametrize('change', CHANGES.values(), ids=CHANGES)
def test_a_file_to_which_something_happens_is_told_of(provider, watched, change):
    directory = provider.root / 'd'
    directory.mkdir()
    for name in ('f', 'f.new', 'beside'):
        (directory / name).write_text('x')
    _, told = watched(File(provider), 'd/f', 'd/beside')
    assert (directory / 'f').read_text() == 'x', 'whoever reads changes nothing'
    change(directory / 'f')
    assert 'd/f' in eventually(told, {'d/f', 'd/beside'} if not directory.exists() else {'d/f'})
    assert ('d/beside' in told) == (not directory.exists())


def test_on_green_threads_files_are_only_looked_at(provider, monkeypatch):
    monkeypatch.setattr(path_watching, 'installed', lambda: Executor.EVENTLET)
    assert [kind(provider).watcher(print) for kind in (File, Directory)] == [None, None]


def test_a_directory_that_goes_is_told_of_and_what_goes_on_in_it_is_not(provider, watched):
    for name in ('a', 'b'):
        (provider.root / name).mkdir()
    watcher, told = watched(Directory(provider), 'a', 'b', 'never made')
    assert eventually(told, {'never made'}) == {'never made'}, 'what is gone already is told of'
    (provider.root / 'a' / 'f').write_text('x')
    (provider.root / 'b').rmdir()
    assert eventually(told, {'never made', 'b'}) == {'never made', 'b'}
    watcher.watch([])
    watcher.watch(['a'])
    (provider.root / 'a' / 'f').unlink()
    (provider.root / 'a').rmdir()
    assert 'a' in eventually(told, {'never made', 'b', 'a'})
