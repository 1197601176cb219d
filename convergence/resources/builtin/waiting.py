"""Waits without a thread: the progress data hold the end of the wait, and any worker can poll it."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from convergence.core.model import Json
from convergence.resources.contract import Call, InProgress

Clock = Callable[[], float]
"""Seconds since the epoch. Workers compare each other's times, so it cannot be a process's own counter."""

system_clock: Clock = time.time


def wait(
    clock: Clock,
    seconds: float,
    physical_id: str | None = None,
    data: Mapping[str, Json] | None = None,
    *,
    step_s: float = math.inf,
) -> InProgress:
    """Return an answer that begins a wait. The wait is over when `still_waiting` returns None.

    :param step_s: seconds between two polls. By default there is one poll at the end: ten thousand waits cost ten
        thousand polls.
    """
    progress: dict[str, Json] = {'until': clock() + seconds, 'seconds': seconds}
    return InProgress(progress, physical_id, data, poll_after_s=min(step_s, seconds))


def still_waiting(clock: Clock, progress: Mapping[str, Json], *, step_s: float = math.inf) -> InProgress | None:
    """Return the answer to a poll during the wait; None when it is over. `step_s` is that of the beginning."""
    left_s = _number(progress['until']) - clock()
    # A clock that was set back must not make the wait longer than it was meant to be.
    if left_s > _number(progress['seconds']):
        return wait(clock, _number(progress['seconds']), step_s=step_s)
    if left_s <= 0:
        return None
    return InProgress(progress, poll_after_s=min(step_s, left_s))


def physical_name(call: Call[Any]) -> str:
    """A readable name that is the same in every call for a resource and differs from all others."""
    return f'{call.stack_name}-{call.name}-{short_token(call)}'


def short_token(call: Call[Any]) -> str:
    """Twelve characters made from the token; a creation keeps them for life."""
    return hashlib.sha256(call.token.encode()).hexdigest()[:12]


def _number(value: Json) -> float:
    assert isinstance(value, (int, float))
    return value
