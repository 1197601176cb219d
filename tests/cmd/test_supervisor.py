"""Several processes of a program, without the program: what the supervisor does when they end, and when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LONG_S = 60
SCRIPT = """
import os, signal, sys, time
from convergence.cmd.process.supervisor import Patience, Supervisor

def say(text):
    os.write(1, f'{text} {os.getpid()}\\n'.encode())

def until_asked(link):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, lambda *_: say('hung-up'))
    link.ready()
    say('at-work')
    while not link.orphaned():
        time.sleep(0.02)
    say('orphaned')
    return 0

def stubborn(link):
    signal.signal(signal.SIGTERM, lambda *_: say('no'))
    link.ready()
    say('at-work')
    while True:
        time.sleep(0.02)

def cannot_begin(link):
    return 7

def crashes(link):
    link.ready()
    say('at-work')
    raise RuntimeError('a mistake')

patience = Patience(restart_first_s=0.01, restart_most_s=0.04, settled_s=1000.0, stop_s={stop_s})
supervisor = Supervisor('it', {count}, {work}, reload=lambda: say('reload'), patience=patience)
sys.exit(supervisor.run())
"""


class Running:
    """A supervisor in a process of its own, and what it and its processes say."""

    def __init__(self, work: str, count: int, stop_s: float) -> None:
        self.popen = subprocess.Popen(
            [
                sys.executable,
                '-c',
                SCRIPT.replace('{work}', work).replace('{count}', str(count)).replace('{stop_s}', str(stop_s)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {'PYTHONPATH': str(Path(__file__).parents[2]), 'PYTHONUNBUFFERED': '1'},
        )

    def line(self) -> tuple[str, int]:
        """The next line: a word, and the id of the process that said it."""
        word, _, process_id = self.popen.stdout.readline().partition(' ')
        return word, int(process_id)

    def lines(self, count: int) -> list[tuple[str, int]]:
        """The next lines, sorted."""
        return sorted(self.line() for _ in range(count))

    def ended(self) -> int:
        """Its exit code."""
        return self.popen.wait(LONG_S)


@pytest.fixture
def run():
    """Start a supervisor; whatever is left at the end is killed."""
    started = []

    def start(work: str, count: int = 2, stop_s: float = LONG_S) -> Running:
        started.append(Running(work, count, stop_s))
        return started[-1]

    yield start
    for each in started:
        each.popen.kill()
        each.popen.communicate()


def alive(process_id: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f'/proc/{process_id}/stat').read_text().rpartition(') ')[2][0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_all_processes_end_with_their_supervisor(run, number):
    supervisor = run('until_asked', 3)
    processes = [process_id for _, process_id in supervisor.lines(3)]
    supervisor.popen.send_signal(number)
    assert supervisor.ended() == 0
    assert not any(alive(each) for each in processes)


def test_a_process_that_dies_is_started_anew_and_the_others_go_on(run):
    supervisor = run('until_asked')
    (_, one), (_, other) = supervisor.lines(2)
    os.kill(one, signal.SIGKILL)
    word, third = supervisor.line()
    assert word == 'at-work'
    assert third not in (one, other)
    assert alive(other)
    supervisor.popen.terminate()
    assert supervisor.ended() == 0


def test_a_process_that_keeps_crashing_is_started_again_and_again(run):
    supervisor = run('crashes', 1)
    assert len({process_id for _, process_id in supervisor.lines(5)}) == 5
    supervisor.popen.terminate()
    assert supervisor.ended() in (0, 1)
    assert 'a mistake' in supervisor.popen.stderr.read()


def test_a_process_that_cannot_even_begin_ends_them_all(run):
    supervisor = run('cannot_begin', 3)
    assert supervisor.ended() == 7


def test_a_process_that_does_not_end_is_killed_when_the_signal_is_repeated(run):
    supervisor = run('stubborn')
    processes = [process_id for _, process_id in supervisor.lines(2)]
    supervisor.popen.terminate()
    assert {word for word, _ in supervisor.lines(2)} == {'no'}
    supervisor.popen.terminate()
    assert supervisor.ended() == 1
    assert not any(alive(each) for each in processes)


def test_a_process_that_does_not_end_in_time_is_killed(run):
    supervisor = run('stubborn', stop_s=0.2)
    supervisor.lines(2)
    supervisor.popen.terminate()
    assert supervisor.ended() == 1


def test_a_hangup_is_handed_on_after_the_supervisor_has_reloaded(run):
    supervisor = run('until_asked')
    supervisor.lines(2)
    supervisor.popen.send_signal(signal.SIGHUP)
    assert supervisor.line() == ('reload', supervisor.popen.pid)
    assert {word for word, _ in supervisor.lines(2)} == {'hung-up'}
    assert supervisor.popen.poll() is None


def test_processes_notice_that_their_supervisor_is_gone(run):
    supervisor = run('until_asked')
    processes = {process_id for _, process_id in supervisor.lines(2)}
    supervisor.popen.kill()
    assert {process_id for word, process_id in supervisor.lines(2) if word == 'orphaned'} == processes


def test_many_hangups_in_a_row_lose_no_later_signal(run):
    supervisor = run('until_asked', 1)
    supervisor.line()
    for _ in range(1000):
        supervisor.popen.send_signal(signal.SIGHUP)
    supervisor.popen.terminate()
    supervisor.popen.communicate(timeout=LONG_S)
    assert supervisor.popen.returncode == 0
