"""Suppresses repeated log lines of libraries: during an outage each thread and each attempt logs the same line.

The first line passes the filter. The filter counts further lines with the same template from the same logger. The first
one after `INTERVAL_S` seconds passes too, with the count. Known errors of connections pass without their traceback.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from typing_extensions import override

INTERVAL_S = 60.0

MOST_MESSAGES = 1000
"""Maximum number of different lines that the filter remembers, to bound its memory."""

LIBRARIES = ('amqp', 'kombu', 'oslo.messaging', 'oslo_messaging', 'oslo.db', 'oslo_db', 'sqlalchemy', 'pymysql')
"""Loggers of the libraries for the broker and the database, including their child loggers."""

CONNECTIONS = ('sqlalchemy.pool', 'oslo_db.sqlalchemy.engines', 'oslo.db.sqlalchemy.engines')
"""Loggers that log the traceback of a broken connection. The pool replaces it, and its user gets an error."""


@dataclass(slots=True)
class _Said:
    """The record of one line of a library.

    :ivar at: time when the line last passed.
    :ivar more: number of suppressed lines since then.
    """

    at: float
    more: int = 0


class Repetitions(logging.Filter):
    """Lets a line of a library pass once per `INTERVAL_S`. All handlers of a process share one filter.

    :param clock: returns seconds since any fixed moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, int, str], _Said] = {}

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the line passes. The filter decides once per line, for all handlers."""
        if not _is_of(record.name, LIBRARIES):
            return True
        decided = getattr(record, 'passes', None)
        if decided is None:
            decided = self._decide(record)
            record.passes = decided
        return bool(decided)

    def _decide(self, record: logging.LogRecord) -> bool:
        if _is_of(record.name, CONNECTIONS) and record.exc_info:
            _in_one_line(record)
        key, now = (record.name, record.levelno, str(record.msg)), self._clock()
        # Without a lock. Two threads at the same moment may both pass, or a line may be missing from the count; both
        # are harmless.
        said = self._said.get(key)
        if said is not None and now - said.at < INTERVAL_S:
            said.more += 1
            return False
        if len(self._said) > MOST_MESSAGES:
            self._said = {}
        self._said[key] = _Said(now)
        if said is not None and said.more:
            text = record.getMessage()
            record.msg, record.args = '%s (and %d times more in %.0f s)', (text, said.more, now - said.at)
        return True


@cache
def _is_of(name: str, loggers: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f'{each}.') for each in loggers)


def _in_one_line(record: logging.LogRecord) -> None:
    """Replace the traceback of a log record by the first line of its error, which names the cause."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    lines = str(error).strip().splitlines() if error is not None else []
    first = lines[0] if lines else type(error).__name__
    record.args = (record.getMessage().strip().rstrip(':'), first)
    record.msg = '%s: %s'
    record.exc_info, record.exc_text = None, None
    record.levelno, record.levelname = logging.WARNING, 'WARNING'
