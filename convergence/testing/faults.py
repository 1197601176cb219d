"""Makes the functions by which a type reaches the outside fail, each call of each of them in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Any, ParamSpec, TypeVar
from unittest import mock

P = ParamSpec('P')
R = TypeVar('R')


class Moment(Enum):
    """When a call fails: before it had an effect, or after it, when only the answer is an error."""

    BEFORE = 'before'
    AFTER = 'after'


class InjectedFault(OSError):
    """Stands for any fault of an external system."""


class Boundary:
    """Counts the calls of some functions, and makes one of them fail.

    :param functions: as (owner, attribute name).
    """

    def __init__(self, functions: Sequence[tuple[Any, str]]) -> None:
        self._functions = functions
        self._fail_at: int | None = None
        self._moment = Moment.BEFORE
        self.count = 0

    @contextmanager
    def failing(self, number: int | None, moment: Moment) -> Iterator[None]:
        """While active, call `number` (from 1; None: no call) fails at `moment`."""
        self._fail_at, self._moment, self.count = number, moment, 0
        with ExitStack() as patches:
            for owner, name in self._functions:
                patches.enter_context(mock.patch.object(owner, name, self._guarded(getattr(owner, name))))
            yield

    def _guarded(self, function: Callable[P, R]) -> Callable[P, R]:
        def guarded(*arguments: P.args, **options: P.kwargs) -> R:
            self.count += 1
            failing = self.count == self._fail_at
            if failing and self._moment is Moment.BEFORE:
                raise InjectedFault('injected: the call had no effect')
            result = function(*arguments, **options)
            if failing:
                raise InjectedFault('injected: the call had its effect, the answer was lost')
            return result

        return guarded
