"""Expressions: what they give, what they may cost, and what is left when one was too much."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from convergence.errors import RequestLimitExceeded
from convergence.expressions import Evaluator, ExpressionLimits
from convergence.expressions.process import IDLE, INHERITED
from convergence.template import EvaluationFailed
from convergence.template.limits import STANDARD, Budget, Limits


@pytest.fixture(scope='module')
def shared():
    evaluator = Evaluator()
    yield evaluator
    evaluator.close()


def evaluate(evaluator, expression, data=None):
    return evaluator.evaluate(expression, data, Budget(STANDARD))


@pytest.mark.parametrize(
    ('expression', 'data', 'value'),
    [
        ('$.data', None, None),
        ('$.data.a', {'a': [1, {'b': None}]}, [1, {'b': None}]),
        ('$.data.where($ > 1)', [1, 2, 3], [2, 3]),
        ('$.data.select($.name).distinct()', [{'name': 'a'}, {'name': 'b'}, {'name': 'a'}], ['a', 'b']),
        ('$.data.sum()', [1, 2.5], 3.5),
        ('dict($.data.select([$.k, $.v]))', [{'k': 'x', 'v': 1}], {'x': 1}),
        ('set(1)', None, [1]),
        ('"é" + $.data', '☃', 'é☃'),
        ('$.data.len() > 0', [], False),
        ('random() = random()', None, False),
    ],
)
def test_an_expression_has_a_value(shared, expression, data, value):
    assert evaluate(shared, expression, data) == value


def test_chance_is_the_same_each_time(shared):
    assert evaluate(shared, 'random()') == evaluate(shared, 'random()')


@pytest.mark.parametrize(
    ('expression', 'text'),
    [
        ('$.data.where(', 'parse error at its end'),
        ('$.data where', 'parse error at position 7'),
        ('$.data.nothing()', 'Unknown method "nothing"'),
        ('nothing($.data)', 'Unknown function "nothing"'),
        ('now()', 'TypeError'),
        ('int($.data)', 'ValueError'),
        ('range(500).toList()', '200'),
        ('"x" * 100000', 'consumed too much memory'),
    ],
)
def test_a_wrong_expression_is_refused_without_showing_the_data(shared, expression, text):
    with pytest.raises(EvaluationFailed, match=text) as caught:
        evaluate(shared, expression, 'a secret')
    assert 'secret' not in str(caught.value)


def test_an_expression_that_does_not_end_is_ended_and_the_next_one_is_served():
    evaluator = Evaluator(ExpressionLimits(cpu_s=0.2, iterations=-1, quota_bytes=-1))
    with pytest.raises(EvaluationFailed, match=r'more than 0.2 s of processor time; the limit is cpu_s'):
        evaluate(evaluator, 'range(1000000000000).len()')
    assert evaluate(evaluator, '1 + 1') == 2
    evaluator.close()


def test_the_process_sees_nothing_of_the_environment_that_it_does_not_need(monkeypatch):
    """Passwords may stand there: oslo.config takes every option from it."""
    monkeypatch.setenv('OS_DATABASE__CONNECTION', 'postgresql://canary-4711@db/')
    evaluator = Evaluator(ExpressionLimits())
    assert evaluate(evaluator, '1 + 1') == 2
    seen = Path(f'/proc/{evaluator._idle[0]._child._process.pid}/environ')
    if not seen.exists():
        pytest.skip('this system does not show the environment of a process')
    names = {each.partition('=')[0] for each in seen.read_text().split('\0') if each}
    assert names <= {*INHERITED}
    evaluator.close()


def test_an_expression_that_wants_all_memory_does_not_get_it():
    evaluator = Evaluator(ExpressionLimits(cpu_s=60, iterations=-1, quota_bytes=-1, memory_bytes=256 * 1024 * 1024))
    with pytest.raises(EvaluationFailed, match='268435456 bytes of memory; the limit is memory_bytes'):
        evaluate(evaluator, '$.data * 2000000000', 'x')
    assert evaluate(evaluator, '1 + 1') == 2
    evaluator.close()


def test_a_value_that_is_too_large_is_not_taken():
    evaluator = Evaluator(ExpressionLimits(answer_bytes=1_000))
    with pytest.raises(EvaluationFailed, match='more than 1000 bytes for its value; the limit is answer_bytes'):
        evaluate(evaluator, '$.data', 'x' * 2_000)
    evaluator.close()


def test_expressions_share_the_steps_of_their_template(shared):
    budget = Budget(Limits(max_steps=100_000))
    with pytest.raises(RequestLimitExceeded, match='max_steps'):
        for _ in range(10_000):
            shared.evaluate('$.data.select($ * 2).sum()', list(range(150)), budget)


@pytest.mark.parametrize(
    ('limits', 'expression'),
    [
        (ExpressionLimits(cpu_s=0.1), 'range(10000000000).len()'),
        (ExpressionLimits(cpu_s=0.1, answer_bytes=100), "'a' * 1000"),
    ],
)
def test_expressions_that_end_their_process_soon_use_up_the_steps_of_their_template(limits, expression):
    evaluator = Evaluator(limits)
    budget = Budget(Limits(max_steps=300_000))
    with pytest.raises(EvaluationFailed):
        evaluator.evaluate(expression, None, budget)
    with pytest.raises(RequestLimitExceeded, match='max_steps'):
        evaluator.evaluate(expression, None, budget)
    evaluator.close()


def test_an_expression_is_given_no_more_time_than_its_template_has_left():
    evaluator = Evaluator(ExpressionLimits(cpu_s=3600, iterations=-1, quota_bytes=-1))
    with pytest.raises(RequestLimitExceeded, match='max_steps'):
        evaluator.evaluate('range(1000000000000).len()', None, Budget(Limits(max_steps=250_000)))
    assert evaluate(evaluator, '1 + 1') == 2
    evaluator.close()


def test_nobody_waits_for_the_expressions_of_others():
    evaluator = Evaluator(ExpressionLimits(cpu_s=3600, iterations=-1, quota_bytes=-1))
    budget = Budget(Limits(max_steps=10**12))
    endless = threading.Thread(
        target=pytest.raises, args=(EvaluationFailed, evaluator.evaluate, 'range(1000000000000).len()', None, budget)
    )
    assert evaluate(evaluator, '1') == 1
    busy = evaluator._idle[0]
    endless.start()
    while evaluator._idle:  # until the other one has taken the process
        time.sleep(0.01)
    assert evaluate(evaluator, '1 + 1') == 2
    assert busy not in evaluator._idle
    busy._child._process.kill()
    endless.join()
    evaluator.close()


def test_only_so_many_processes_are_there_at_a_time_and_a_few_stay():
    evaluator = Evaluator(most=3)
    threads = [threading.Thread(target=evaluate, args=(evaluator, '$.data + 1', number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(evaluator._idle) <= IDLE
    evaluator.close()
    assert not evaluator._idle


def test_a_process_that_died_while_nobody_needed_it_is_replaced():
    evaluator = Evaluator()
    assert evaluate(evaluator, '1') == 1
    process = evaluator._idle[0]._child._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert evaluate(evaluator, '2') == 2
    evaluator.close()


def test_the_process_ends_with_its_parent():
    """However the parent ends: nothing of it runs on its own exit."""
    program = textwrap.dedent(
        """
        import os, signal
        from convergence.expressions import evaluator
        from convergence.template.limits import STANDARD, Budget
        evaluator().evaluate('1', None, Budget(STANDARD))
        print(evaluator()._idle[0]._child._process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    # The child has no other copy of the pipe's writing end: its end of file says that both are gone.
    answer = subprocess.run([sys.executable, '-c', program], stdout=subprocess.PIPE, check=False)
    assert answer.returncode == -signal.SIGKILL
    pid = int(answer.stdout)
    while _runs(pid):
        os.sched_yield()


def _runs(pid):
    """Return True if a process is running, and is no zombie."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False
