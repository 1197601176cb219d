"""Keeps the processes that evaluate expressions, and replaces one for which an expression was too much."""

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
"""What a second of processor time counts in the steps that a whole template may take; it is given no more than that."""

MOST_PROCESSES = 16
"""Processes at a time. Whoever comes when all are busy waits for the first that is not."""

IDLE = 2
"""Processes that are kept while nobody needs them."""

START_S = 0.5
"""Seconds of processor time that another process costs after one that was too much."""


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """What one expression may cost.

    :param cpu_s: seconds of processor time.
    :param wall_s: seconds until the answer has to be there, however little of them was processor time.
    :param memory_bytes: address space of the process.
    :param answer_bytes: size of the value as JSON.
    :param iterations: how many items a loop of the expression may see.
    :param quota_bytes: size of a collection that the expression makes.
    """

    cpu_s: float = 1.0
    wall_s: float = 60.0
    memory_bytes: int = 512 * 1024 * 1024
    answer_bytes: int = 1024 * 1024
    iterations: int = 200
    quota_bytes: int = 10_000


class Evaluator:
    """Evaluates expressions, each in a process that does nothing else meanwhile: nobody waits for those of others.

    A process is started when one is needed and none is idle.

    :param most: how many processes there may be at a time.
    """

    def __init__(self, limits: ExpressionLimits = ExpressionLimits(), most: int = MOST_PROCESSES) -> None:
        self._limits = limits
        self._places = Semaphore(most)
        self._lock = Lock()
        self._idle: list[_Place] = []

    def evaluate(self, expression: str, data: Json, budget: Budget) -> Json:
        """The value of an expression in which ``$.data`` is `data`.

        :raises EvaluationFailed: the expression is wrong, fails, or costs too much; the text says which.
        :raises RequestLimitExceeded: all expressions of the template together take too long.
        """
        budget.spend_steps(1, 'yaql')  # nothing is begun when nothing is left
        left_s = (budget.steps_left + 1) / STEPS_PER_S
        cpu_s = min(self._limits.cpu_s, left_s)
        request = f'{cpu_s:.6f} '.encode() + json.dumps({'expression': expression, 'data': data}).encode() + b'\n'
        try:
            answer = self._answer(request)
        except EvaluationFailed:
            # Its process is gone and tells no more what was spent: all that it could. Without it a template of many
            # such expressions would keep a thread busy for minutes.
            budget.use_up_steps(int((cpu_s + START_S) * STEPS_PER_S))
            if left_s < self._limits.cpu_s:
                budget.spend_steps(1, 'yaql')  # it was not the limit of the expression that ended it
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
        """End the processes that are idle. The next expression starts another one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for place in idle:
            place.end()

    def _answer(self, request: bytes) -> dict[str, Any]:
        """What a process says to a request.

        :raises EvaluationFailed: it costs too much; the process has been ended.
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
    """Where a process is, or will be. Whoever asks has it for himself meanwhile."""

    def __init__(self, limits: ExpressionLimits) -> None:
        self._limits = limits
        self._child: _Child | None = None

    def ask(self, request: bytes) -> dict[str, Any]:
        """What the process says to a request.

        :raises EvaluationFailed: it costs too much, and the process has been ended.
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
        """A process that listens. One that died while nobody needed it is replaced."""
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
        """End the process; with what status it ended."""
        child, self._child = self._child, None
        return child.end() if child is not None else None


def _too_much(limit: str, allowed: str) -> EvaluationFailed:
    return EvaluationFailed(f'yaql: the expression needs more than {allowed}; the limit is {limit}.')


INHERITED = ('PATH', 'LD_LIBRARY_PATH', 'LANG', 'LC_ALL', 'TZ')
"""What the process sees of the environment of this one. The rest may hold passwords, and expressions are strangers'."""


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
        """Whether it lives, and belongs to this process and not to the one that this was forked from."""
        return self._pid == os.getpid() and self._process.poll() is None

    def ask(self, request: bytes, timeout_s: float, most_bytes: int) -> bytes:
        """Send a request and wait for the line that answers it.

        :raises OSError: it is gone; `TimeoutError` if it does not answer.
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
        """Close the connection and wait for the end of the process, which is not given any choice."""
        self._connection.close()
        if self._pid != os.getpid():
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            # What has ended already keeps the status with which it did.
            self._process.wait(0.1)
        self._process.kill()
        return self._process.wait()


@functools.cache
def evaluator() -> Evaluator:
    """The evaluator of this process. It ends with it."""
    shared = Evaluator()
    atexit.register(shared.close)
    return shared
