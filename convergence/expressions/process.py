"""Keeps the process that evaluates expressions, and replaces it when one was too much for it."""

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

from convergence.concurrency import Lock
from convergence.core.model import Json
from convergence.template import EvaluationFailed
from convergence.template.limits import Budget

SCRIPT = Path(__file__).with_name('child.py')
STEPS_PER_S = 1_000_000
"""What a second of processor time counts in the steps that a whole template may take."""

START_S = 0.5
"""Seconds of processor time that another process costs after one that wanted too much memory."""


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
    """Evaluates expressions, one at a time. The process is started when the first one comes."""

    def __init__(self, limits: ExpressionLimits = ExpressionLimits()) -> None:
        self._limits = limits
        self._lock = Lock()
        self._child: _Child | None = None

    def evaluate(self, expression: str, data: Json, budget: Budget) -> Json:
        """The value of an expression in which ``$.data`` is `data`.

        :raises EvaluationFailed: the expression is wrong, fails, or costs too much; the text says which.
        :raises RequestLimitExceeded: all expressions of the template together take too long.
        """
        budget.spend_steps(1, 'yaql')  # nothing is begun when nothing is left
        request = json.dumps({'expression': expression, 'data': data}).encode() + b'\n'
        try:
            with self._lock:
                answer = self._ask(request)
        except EvaluationFailed:
            # Its process is gone and tells no more what was spent: all that it could. Without it a template of many
            # such expressions would keep everybody waiting for minutes.
            budget.spend_steps(int(self._limits.cpu_s * STEPS_PER_S), 'yaql')
            raise
        budget.spend_steps(int(answer.get('cpu_s', 0.0) * STEPS_PER_S), 'yaql')
        error = answer.get('error')
        if error == 'memory':
            budget.spend_steps(int(START_S * STEPS_PER_S), 'yaql')
            raise self._too_much('memory_bytes', f'{self._limits.memory_bytes} bytes of memory')
        if error is not None:
            raise EvaluationFailed(f'yaql: the expression cannot be evaluated: {answer["text"]}')
        value: Json = answer['value']
        return value

    def close(self) -> None:
        """End the process. The next expression starts another one."""
        with self._lock:
            self._end()

    def _ask(self, request: bytes) -> dict[str, Json | float]:  # type: ignore[valid-type]
        child = self._ready()
        try:
            line = child.ask(request, self._limits.wall_s, self._limits.answer_bytes)
            answer = json.loads(line)
        except TimeoutError:
            self._end()
            raise self._too_much('wall_s', f'{self._limits.wall_s:g} s') from None
        except OverflowError:
            self._end()
            raise self._too_much('answer_bytes', f'{self._limits.answer_bytes} bytes for its value') from None
        except (OSError, ValueError):
            ended_by = self._end()
            if ended_by == -signal.SIGPROF:
                raise self._too_much('cpu_s', f'{self._limits.cpu_s:g} s of processor time') from None
            raise EvaluationFailed(
                f'yaql: the process that evaluates expressions ended (status {ended_by}); the expression costs too much'
            ) from None
        if answer.get('error') == 'memory':
            self._end()
        return answer

    def _ready(self) -> _Child:
        """A process that listens. One that died while nobody needed it is replaced."""
        child = self._child
        if child is not None and not child.is_usable():
            self._end()
            child = None
        if child is None:
            child = self._child = _Child(self._limits)
            try:
                child.ask(b'', self._limits.wall_s, self._limits.answer_bytes)
            except (OSError, OverflowError):
                self._end()
                raise EvaluationFailed('yaql: the process that evaluates expressions does not start.') from None
        return child

    def _end(self) -> int | None:
        """End the process; with what status it ended."""
        child, self._child = self._child, None
        return child.end() if child is not None else None

    def _too_much(self, limit: str, allowed: str) -> EvaluationFailed:
        return EvaluationFailed(f'yaql: the expression needs more than {allowed}; the limit is {limit}.')


class _Child:
    """The process, and the connection to it."""

    def __init__(self, limits: ExpressionLimits) -> None:
        self._pid = os.getpid()
        self._connection, theirs = socket.socketpair()
        arguments = [sys.executable, '-I', str(SCRIPT), json.dumps(sys.path), json.dumps(asdict(limits))]
        with theirs:
            self._process = subprocess.Popen(
                arguments, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
