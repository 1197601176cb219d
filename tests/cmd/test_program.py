"""One program in one process: signals, exit codes and the last resort. The service it runs is made of prints."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from convergence.cmd.process import memory
from convergence.cmd.process.memory import collect_rarely

LONG_S = 60
SCRIPT = """
import sys, threading, time
from convergence import errors
from convergence.cmd.process import program

class Service:
    def start(self): print('started', flush=True)
    def stop(self): print('stopped', flush=True)
    def close(self): print('closed', flush=True)

class Slow(Service):
    def stop(self):
        print('stopping', flush=True)
        time.sleep(1000)

class Stuck(Service):
    '''A thread of a plugin that does not end, and that the interpreter would wait for.'''
    def start(self):
        threading.Thread(target=time.sleep, args=(1000,)).start()
        print('started', flush=True)

class Broken(Service):
    def start(self): raise errors.DatabaseUnavailable('no\\n  database at postgresql://u:hunter2@db/c')

class Wrong(Service):
    def __init__(self): raise errors.ConfigurationError('[x] y is wrong')

class Mistaken(Service):
    def start(self): raise RuntimeError('a mistake of ours')

program.STOP_MARGIN_S = {margin_s}
it = program.Program('convergence-it', lambda settings: {service}(), stop_s=lambda settings: 0.0)
sys.exit(program.run(it, []))
"""


@pytest.fixture
def run(tmp_path):
    """Start the program with a service; what is left at the end is killed."""
    started = []

    def start(service: str, margin_s: float = LONG_S) -> subprocess.Popen:
        script = SCRIPT.replace('{service}', service).replace('{margin_s}', str(margin_s))
        environment = os.environ | {'PYTHONPATH': str(Path(__file__).parents[2]), 'HOME': str(tmp_path)}
        started.append(
            subprocess.Popen(
                [sys.executable, '-c', script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                env=environment,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(run, number):
    process = run('Service')
    assert process.stdout.readline() == 'started\n'
    process.send_signal(number)
    said, _ = process.communicate(timeout=LONG_S)
    assert said == 'stopped\nclosed\n'
    assert process.returncode == 0


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(run, number):
    process = run('Slow')
    assert process.stdout.readline() == 'started\n'
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == 'stopping\n'
    process.send_signal(number)
    assert process.wait(LONG_S) == -number


def test_one_that_does_not_come_to_its_end_shows_where_it_is_and_ends(run):
    process = run('Slow', margin_s=0.2)
    assert process.stdout.readline() == 'started\n'
    process.terminate()
    _, said = process.communicate(timeout=LONG_S)
    assert process.returncode == 1
    assert 'in stop' in said


def test_a_thread_that_is_stuck_does_not_keep_it_from_ending(run):
    process = run('Stuck')
    assert process.stdout.readline() == 'started\n'
    process.terminate()
    assert process.wait(LONG_S) == 0


@pytest.mark.parametrize(
    ('service', 'code', 'said'),
    [
        ('Broken', 1, 'convergence-it: no database at postgresql://u:***@db/c\n'),
        ('Wrong', 2, 'convergence-it: [x] y is wrong\n'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, service, code, said):
    process = run(service)
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == code
    assert errors == said


def test_a_mistake_of_ours_shows_where_it_is(run):
    process = run('Mistaken')
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 1
    assert 'Traceback' in errors
    assert 'a mistake of ours' in errors


def test_a_hangup_is_no_reason_to_end(run):
    process = run('Service')
    assert process.stdout.readline() == 'started\n'
    process.send_signal(signal.SIGHUP)
    for line in process.stderr:
        if 'logging configuration reloaded' in line:
            break
    process.terminate()
    assert process.wait(LONG_S) == 0


def test_the_collector_leaves_alone_what_is_there_when_work_begins():
    """To plan a stack of 10,000 resources takes a third less CPU."""
    before = gc.get_threshold()
    try:
        collect_rarely()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_free_memory_is_given_back_where_the_system_can_be_told(monkeypatch):
    told = {}
    system = types.SimpleNamespace(mallopt=told.__setitem__)
    monkeypatch.setattr(memory.ctypes, 'CDLL', lambda name: system)
    memory.give_back()
    assert told == memory.SETTINGS
    monkeypatch.setattr(memory.ctypes, 'CDLL', lambda name: object())  # as on a system with another library
    memory.give_back()
