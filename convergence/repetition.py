"""Says once what libraries repeat: during an outage each thread and each attempt has the same to say.

The first line passes. Further ones with the same template, from the same logger, are counted; the next that comes after
`INTERVAL_S` passes too and says how many there were. What is known to be no fault of ours loses its traceback.
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
"""So many different lines are remembered."""

LIBRARIES = ('amqp', 'kombu', 'oslo.messaging', 'oslo_messaging', 'oslo.db', 'oslo_db', 'sqlalchemy', 'pymysql')
"""Loggers of those that talk to the broker and the database, with all below them."""

CONNECTIONS = ('sqlalchemy.pool', 'oslo_db.sqlalchemy.engines', 'oslo.db.sqlalchemy.engines')
"""Loggers that show the traceback of a connection that broke. It is replaced, and whoever used it is told."""


@dataclass(slots=True)
class _Said:
    """What a library has said.

    :ivar at: when it was last shown.
    :ivar more: how often since.
    """

    at: float
    more: int = 0


class Repetitions(logging.Filter):
    """Lets a line of a library pass once in `INTERVAL_S`. One of them serves all handlers of a process.

    :param clock: seconds, from any moment on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, int, str], _Said] = {}

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is shown. Decided once, however many handlers ask."""
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
        # Without a lock: of two threads at the same moment both may pass, or one may not be counted. That does no harm.
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
    """The error without the way that it came; a line more would not tell more."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    lines = str(error).strip().splitlines() if error is not None else []
    first = lines[0] if lines else type(error).__name__
    record.args = (record.getMessage().strip().rstrip(':'), first)
    record.msg = '%s: %s'
    record.exc_info, record.exc_text = None, None
    record.levelno, record.levelname = logging.WARNING, 'WARNING'
