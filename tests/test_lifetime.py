"""Whether a process of this machine has ended is seen, and of no other one is it said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from convergence import lifetime

pytestmark = pytest.mark.skipif(lifetime.mark() is None, reason='this system tells nothing of its processes')


@pytest.fixture
def other():
    """Another process, and its mark."""
    said = 'from convergence import lifetime; print(lifetime.mark(), flush=True); input()'
    with subprocess.Popen(
        [sys.executable, '-c', said], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_process_that_runs_or_is_frozen_has_not_ended(other):
    process, mark = other
    assert mark != lifetime.mark()
    assert not lifetime.has_ended(lifetime.mark())
    assert not lifetime.has_ended(mark)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    assert not lifetime.has_ended(mark)


def test_a_killed_process_has_ended_before_and_after_its_parent_has_asked_about_it(other):
    process, mark = other
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert lifetime.has_ended(mark)
    process.wait()
    assert lifetime.has_ended(mark)


def test_a_process_id_that_was_given_out_again_is_another_process():
    here, _, _ = lifetime.mark().rpartition('/')
    assert lifetime.has_ended(f'{here}/1')


@pytest.mark.parametrize(
    'elsewhere',
    [
        lambda mark: mark.replace(mark[:8], '00000000', 1),  # another machine, or this one before it was started anew
        lambda mark: mark.replace('pid:[', 'pid:[1', 1),  # another container
        lambda mark: mark.partition('/')[0],
        lambda mark: f'{mark.partition("/")[0]}/-1/5',
        lambda mark: '',
    ],
    ids=['machine', 'container', 'no process', 'no process id', 'nothing'],
)
def test_nothing_is_said_of_what_cannot_be_seen_from_here(elsewhere):
    assert not lifetime.has_ended(elsewhere(lifetime.mark()))
