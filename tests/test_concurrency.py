"""Groups, pools, stopping and killing. The whole file also runs on green threads, in a process of its own."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from convergence.concurrency import (
    Executor,
    Group,
    GroupStopped,
    Lock,
    Pool,
    Task,
    TaskKilled,
    TaskOutcome,
    ThreadEvent,
    has_input,
    install,
    installed,
    sleep,
)
from convergence.errors import ConfigurationError

LONG_S = 30.0
"""Longer than any of this takes; reached only when something is broken."""

OUTPUT = {'capture_output': True, 'text': True, 'timeout': 120}


def _only_on(executor: Executor) -> Callable[[Callable[[], None]], object]:
    """A test of one executor exists only there: this file runs on both, see `test_all_of_this_on_green_threads`."""
    return lambda test: test if installed() is executor else None


green, native = _only_on(Executor.EVENTLET), _only_on(Executor.THREADING)


def run_green(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run python code with eventlet installed first."""
    code = f'from convergence.concurrency import *; install(Executor.EVENTLET); {";".join(arguments)}'
    return subprocess.run([sys.executable, '-W', 'ignore', '-c', code], check=False, **OUTPUT)


def test_tasks_of_a_group_run_at_the_same_time():
    meeting, group = threading.Barrier(3), Group('stack')
    tasks = [group.spawn(lambda task: meeting.wait(LONG_S)) for _ in range(3)]
    assert group.wait(LONG_S) == ()
    assert [task.outcome for task in tasks] == [TaskOutcome.DONE] * 3


def test_a_failing_task_keeps_its_error_and_leaves_the_others_alone(caplog):
    group = Group('stack')

    def fail(task: Task) -> None:
        raise ValueError('broken plugin')

    failed, good = group.spawn(fail), group.spawn(lambda task: None)
    assert group.wait(LONG_S) == ()
    assert failed.outcome is TaskOutcome.FAILED
    assert str(failed.error) == 'broken plugin'
    assert good.outcome is TaskOutcome.DONE
    assert 'broken plugin' in caplog.text


def test_stop_asks_every_task_and_a_stopped_group_takes_no_more():
    group, seen = Group('stack'), []

    def work(task: Task, number: int) -> None:
        assert task.cancelled.wait(LONG_S)
        seen.append(number)

    for number in (1, 2):
        group.spawn(work, number)
    group.stop()
    assert group.wait(LONG_S) == ()
    assert sorted(seen) == [1, 2]
    with pytest.raises(GroupStopped, match='stack was stopped'):
        group.spawn(work, 3)
    with pytest.raises(GroupStopped), group.enter('late'):
        raise AssertionError('must not be entered')


def test_wait_names_the_tasks_that_did_not_end():
    group, release = Group('stack'), ThreadEvent()

    def stuck(task: Task) -> None:
        release.wait(LONG_S)

    task = group.spawn(stuck)
    assert group.wait(0) == (task,)
    assert group.tasks == (task,)
    release.set()
    assert group.wait(LONG_S) == ()


def test_the_current_thread_can_be_a_task():
    group = Group('stack')
    with group.enter('check') as task:
        assert group.tasks == (task,)
        group.stop()
        assert task.cancelled.is_set()
    assert task.outcome is TaskOutcome.DONE
    assert group.wait(LONG_S) == ()


def test_an_error_in_the_current_thread_passes_through():
    group = Group('stack')
    with pytest.raises(KeyError), group.enter('check') as task:
        raise KeyError('row')
    assert task.outcome is TaskOutcome.FAILED
    assert group.tasks == ()


def test_no_killable_part_begins_once_the_grace_period_is_over():
    group, over, reached = Group('stack'), ThreadEvent(), []

    def work(task: Task) -> None:
        over.wait(LONG_S)
        reached.append('database')
        with task.killable():
            reached.append('plugin')

    task = group.spawn(work)
    task.end_grace()
    over.set()
    assert group.wait(LONG_S) == ()
    assert reached == ['database']
    assert task.outcome is TaskOutcome.KILLED
    assert task.error is None


def test_whether_there_is_something_to_read_is_known_without_waiting():
    here, there = socket.socketpair()
    assert not has_input(here.fileno())
    there.sendall(b'a')
    assert has_input(here.fileno())
    here.recv(1)
    assert not has_input(here.fileno())
    there.close()
    assert has_input(here.fileno()), 'that the other end is closed is to be read, too'
    here.close()


@green
def test_a_task_in_a_plugin_is_killed_after_the_grace_period():
    group, inside = Group('stack'), ThreadEvent()

    def work(task: Task) -> None:
        with task.killable():
            inside.set()
            sleep(LONG_S * 10)

    task = group.spawn(work)
    assert inside.wait(LONG_S)
    group.stop(grace_s=0)
    assert group.wait(LONG_S) == ()
    assert task.outcome is TaskOutcome.KILLED


def test_what_a_call_waits_for_is_closed_when_it_is_cancelled():
    group, closed, waiting, seen = Group('stack'), ThreadEvent(), ThreadEvent(), []

    def work(task: Task) -> None:
        with task.killable():
            task.on_cancel(lambda: seen.append('of a call that has ended'))
        with task.killable():
            task.on_cancel(lambda: 1 / 0)
            task.on_cancel(closed.set)
            waiting.set()
            assert closed.wait(LONG_S)
            task.on_cancel(lambda: seen.append('at once'))

    task = group.spawn(work)
    assert waiting.wait(LONG_S)
    group.stop(grace_s=LONG_S)
    assert group.wait(LONG_S) == ()
    assert (task.outcome, seen) == (TaskOutcome.DONE, ['at once'])


@green
def test_a_call_that_stores_something_is_killed_when_that_is_stored():
    group, release, storing, stored = Group('stack'), ThreadEvent(), ThreadEvent(), []

    def work(task: Task) -> None:
        with task.killable():
            with task.protected():
                storing.set()
                release.wait(LONG_S)
                stored.append(True)
            stored.append('and went on')

    task = group.spawn(work)
    assert storing.wait(LONG_S)
    task.end_grace()
    release.set()
    assert group.wait(LONG_S) == ()
    assert (stored, task.outcome) == ([True], TaskOutcome.KILLED)


@green
def test_the_current_green_thread_is_killed_and_goes_on_behind_the_block():
    group, after, inside = Group('stack'), ThreadEvent(), ThreadEvent()

    def serve() -> None:
        with group.enter('check') as task, task.killable():
            inside.set()
            sleep(LONG_S * 10)
        after.set()

    threading.Thread(target=serve, daemon=True).start()
    assert inside.wait(LONG_S)
    group.stop(grace_s=0)
    assert after.wait(LONG_S)


@green
def test_a_task_outside_a_killable_part_is_not_killed():
    group, release, outside, committed = Group('stack'), ThreadEvent(), ThreadEvent(), []

    def work(task: Task) -> None:
        with task.killable():
            pass
        outside.set()
        release.wait(LONG_S)
        committed.append(True)

    task = group.spawn(work)
    assert outside.wait(LONG_S)
    task.end_grace()
    assert group.wait(0) == (task,)
    release.set()
    assert group.wait(LONG_S) == ()
    assert committed == [True]


@native
def test_a_stuck_native_thread_is_replaced_and_counted():
    pool, release, inside = Pool(1, 'workers'), ThreadEvent(), ThreadEvent()
    group = Group('stack', pool)

    def stuck(task: Task) -> None:
        inside.set()
        release.wait(LONG_S)

    group.spawn(stuck)
    assert inside.wait(LONG_S)
    assert pool.idle == 0
    group.stop(grace_s=0)
    done = ThreadEvent()
    pool.submit(done.set)
    assert done.wait(LONG_S), 'the pool has no thread for new work'
    assert pool.lost == 1
    assert pool.drain(LONG_S)
    release.set()
    assert group.wait(LONG_S) == ()


@native
def test_what_becomes_of_one_stuck_task_does_not_keep_the_others_waiting(caplog):
    pool, release, inside, seen = Pool(2, 'workers'), ThreadEvent(), threading.Barrier(3), []
    both = ThreadEvent()

    def see_to(task: Task) -> None:
        assert pool.lost == 2, 'each has lost its thread before anybody is told'
        seen.append(task)
        if len(seen) == 2:
            both.set()
        raise KeyError('row')

    def stuck(task: Task) -> None:
        inside.wait(LONG_S)
        release.wait(LONG_S)

    group = Group('stack', pool, see_to)
    tasks = [group.spawn(stuck) for _ in range(2)]
    inside.wait(LONG_S)
    group.stop(grace_s=0)
    assert both.wait(LONG_S)
    assert seen == tasks
    release.set()
    assert group.wait(LONG_S) == ()


def test_a_pool_runs_no_more_than_its_threads_at_a_time():
    pool, lock, now, most = Pool(2, 'workers'), Lock(), [0], [0]

    def work() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        sleep(0)
        with lock:
            now[0] -= 1

    for _ in range(50):
        pool.submit(work)
    assert pool.drain(LONG_S)
    assert 1 <= most[0] <= 2
    assert now == [0]


def test_a_pool_counts_idle_threads_and_survives_errors(caplog):
    pool, release, inside = Pool(2, 'workers'), ThreadEvent(), ThreadEvent()
    assert pool.idle == 2

    def hold() -> None:
        inside.set()
        release.wait(LONG_S)

    pool.submit(hold)
    assert inside.wait(LONG_S)
    assert pool.idle == 1
    broken = ThreadEvent()

    def fail() -> None:
        broken.set()
        raise SystemExit('plugin calls exit')

    pool.submit(fail)
    assert broken.wait(LONG_S)
    assert not pool.drain(0), 'one call still runs'
    with pytest.raises(RuntimeError, match='being drained'):
        pool.submit(hold)
    release.set()
    assert pool.drain(LONG_S)
    assert 'plugin calls exit' in caplog.text


def test_a_pool_needs_a_thread():
    with pytest.raises(ValueError, match='at least one thread'):
        Pool(0)


def test_a_lock_excludes_and_gives_up_in_time():
    lock = Lock()
    with lock:
        assert not lock.acquire(timeout_s=0)
    assert lock.acquire()
    lock.release()


def test_task_killed_is_not_caught_by_except_exception():
    assert not issubclass(TaskKilled, Exception)


def test_the_executor_cannot_change():
    other = Executor.EVENTLET if installed() is Executor.THREADING else Executor.THREADING
    install(installed())
    with pytest.raises(ConfigurationError, match='executor'):
        install(other)


def test_eventlet_must_come_before_the_libraries_it_patches():
    code = 'import kombu; from convergence.concurrency import *; install(Executor.EVENTLET)'
    late = subprocess.run([sys.executable, '-c', code], check=False, **OUTPUT)
    assert late.returncode != 0
    assert 'eventlet must be installed before kombu is imported' in late.stderr


@native
def test_all_of_this_on_green_threads():
    done = run_green(
        'import sys, pytest',
        f'sys.exit(pytest.main(["-v", "-p", "no:cacheprovider", {os.path.abspath(__file__)!r}]))',
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'passed' in done.stdout
    assert 'test_a_task_in_a_plugin_is_killed_after_the_grace_period PASSED' in done.stdout
