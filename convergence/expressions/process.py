"""A pool of processes that evaluate expressions. It replaces a process that an expression has ended."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convergence.concurrency import Lock, Semaphore
from convergence.core.model import Json
from convergence.template import EvaluationFailed
from convergence.template.limits import Budget

SCRIPT = Path(__file__).with_name('child.py')
STEPS_PER_S = 2_500_000
"""Steps per second of processor time, for the step limit of a template."""

MOST_PROCESSES = 16
"""Maximum number of processes. Further callers wait for the first idle one."""

IDLE = 2
"""Maximum number of idle processes to keep."""

START_S = 0.5
"""Seconds of processor time to charge for starting a replacement process."""


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """The limits of one expression.

    :param cpu_s: seconds of processor time.
    :param wall_s: seconds until the answer is due, regardless of processor time.
    :param memory_bytes: address space of the process.
    :param answer_bytes: size of the value as JSON.
    :param iterations: maximum number of items in a loop of the expression.
    :param quota_bytes: maximum size of a collection that the expression creates.
    """

    cpu_s: float = 1.0
    wall_s: float = 60.0
    memory_bytes: int = 512 * 1024 * 1024
    answer_bytes: int = 1024 * 1024
    iterations: int = 200
    quota_bytes: int = 10_000


class Evaluator:
    """Evaluates expressions, one at a time in each process, so that users do not wait for expressions of others.

    The pool starts a process when it needs one and none is idle.

    :param most: maximum number of processes.
    """

    def __init__(self, limits: ExpressionLimits = ExpressionLimits(), most: int = MOST_PROCESSES) -> None:
        self._limits = limits
        self._places = Semaphore(most)
        self._lock = Lock()
        self._idle: list[_Place] = []

    def evaluate(self, expression: str, data: Json, budget: Budget) -> Json:
        """Return the value of an expression in which ``$.data`` is `data`.

        :raises EvaluationFailed: the expression is wrong, fails, or takes too much; the text says which.
        :raises RequestLimitExceeded: all expressions of the template together take too long.
        """
        budget.spend_steps(1, 'yaql')  # An exhausted budget starts no process.
        left_s = (budget.steps_left + 1) / STEPS_PER_S
        cpu_s = min(self._limits.cpu_s, left_s)
        request = f'{cpu_s:.6f} '.encode() + json.dumps({'expression': expression, 'data': data}).encode() + b'\n'
        try:
            answer = self._answer(request)
        except EvaluationFailed:
            # The process ended without reporting its usage, so its full limit is charged. Otherwise a template of many
            # such expressions would keep a thread busy for minutes.
            budget.use_up_steps(int((cpu_s + START_S) * STEPS_PER_S))
            if left_s < self._limits.cpu_s:
                budget.spend_steps(1, 'yaql')  # The limit of the expression was not the cause.
            raise
        budget.spend_steps(int(answer.get('cpu_s', 0.0) * STEPS_PER_S), 'yaql')
        error = answer.get('error')
        if error == 'memory':
            budget.use_up_steps(int(START_S * STEPS_PER_S))
            raise _too_much('memory_bytes', f'{self._limits.memory_bytes} bytes of memory')
        if error is not None:
            raise EvaluationFailed(f'yaql: the expression cannot be evaluated: {answer["text"]}')
        value: Json = answer['value']
        return value

    def close(self) -> None:
        """End the idle processes. The next expression starts another one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for place in idle:
            place.end()

    def _answer(self, request: bytes) -> dict[str, Any]:
        """Send a request to a process, and return its answer.

        :raises EvaluationFailed: the expression takes too much; the process was ended.
        """
        with self._places:
            with self._lock:
                place = self._idle.pop() if self._idle else _Place(self._limits)
            try:
                return place.ask(request)
            finally:
                with self._lock:
                    kept = len(self._idle) < IDLE
                    if kept:
                        self._idle.append(place)
                if not kept:
                    place.end()


class _Place:
    """A slot for one process. The caller has exclusive use of it."""

    def __init__(self, limits: ExpressionLimits) -> None:
        self._limits = limits
        self._child: _Child | None = None

    def ask(self, request: bytes) -> dict[str, Any]:
        """Send a request, and return the answer.

        :raises EvaluationFailed: the expression takes too much; the process was ended.
        """
        child = self._ready()
        try:
            line = child.ask(request, self._limits.wall_s, self._limits.answer_bytes)
            answer: dict[str, Any] = json.loads(line)
        except TimeoutError:
            self.end()
            raise _too_much('wall_s', f'{self._limits.wall_s:g} s') from None
        except OverflowError:
            self.end()
            raise _too_much('answer_bytes', f'{self._limits.answer_bytes} bytes for its value') from None
        except (OSError, ValueError):
            ended_by = self.end()
            if ended_by == -signal.SIGPROF:
                raise _too_much('cpu_s', f'{self._limits.cpu_s:g} s of processor time') from None
            raise EvaluationFailed(
                f'yaql: the process that evaluates expressions ended (status {ended_by}); the expression costs too much'
            ) from None
        if answer.get('error') == 'memory':
            self.end()
        return answer

    def _ready(self) -> _Child:
        """Return a running process. A process that died while idle is replaced."""
        child = self._child
        if child is not None and not child.is_usable():
            self.end()
            child = None
        if child is None:
            child = self._child = _Child(self._limits)
            try:
                child.ask(b'', self._limits.wall_s, self._limits.answer_bytes)
            except (OSError, OverflowError):
                self.end()
                raise EvaluationFailed('yaql: the process that evaluates expressions does not start.') from None
        return child

    def end(self) -> int | None:
        """End the process, and return its exit status."""
        child, self._child = self._child, None
        return child.end() if child is not None else None


def _too_much(limit: str, allowed: str) -> EvaluationFailed:
    return EvaluationFailed(f'yaql: the expression needs more than {allowed}; the limit is {limit}.')


INHERITED = ('PATH', 'LD_LIBRARY_PATH', 'LANG', 'LC_ALL', 'TZ')
"""The variables that the process inherits. Others may hold passwords, and expressions are untrusted."""


class _Child:
    """The process, and the connection to it."""

    def __init__(self, limits: ExpressionLimits) -> None:
        self._pid = os.getpid()
        self._connection, theirs = socket.socketpair()
        arguments = [sys.executable, '-I', str(SCRIPT), json.dumps(sys.path), json.dumps(asdict(limits))]
        with theirs:
            self._process = subprocess.Popen(
                arguments,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in INHERITED if name in os.environ},
            )

    def is_usable(self) -> bool:
        """True if the process is running and is a child of this process, not of the parent before a fork."""
        return self._pid == os.getpid() and self._process.poll() is None

    def ask(self, request: bytes, timeout_s: float, most_bytes: int) -> bytes:
        """Send a request, and return the line of its answer.

        :raises OSError: the process has ended; `TimeoutError` if it does not answer.
        :raises OverflowError: the answer is too long.
        """
        self._connection.settimeout(timeout_s)
        self._connection.sendall(request)
        answer = bytearray()
        while not answer.endswith(b'\n'):
            part = self._connection.recv(65_536)
            if not part:
                raise ConnectionError('the process has ended')
            answer += part
            if len(answer) > most_bytes:
                raise OverflowError
        return bytes(answer)

    def end(self) -> int | None:
        """Close the connection, kill the process and wait for its end."""
        self._connection.close()
        if self._pid != os.getpid():
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A process that has ended already keeps its status.
            self._process.wait(0.1)
        self._process.kill()
        return self._process.wait()


@functools.cache
def evaluator() -> Evaluator:
    """Return the evaluator of this process."""
    shared = Evaluator()
    atexit.register(shared.close)
    return shared
