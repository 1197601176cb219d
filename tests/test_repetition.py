"""What libraries repeat is shown once, counted, and told at intervals."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from convergence.repetition import INTERVAL_S, Repetitions


class Written:
    """What two handlers of a process write, on a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 1000.0
        repetitions = Repetitions(lambda: self.now)
        self.streams = [io.StringIO(), io.StringIO()]
        self.handlers = [logging.StreamHandler(stream) for stream in self.streams]
        for handler in self.handlers:
            handler.setFormatter(logging.Formatter('%(levelname)s %(message)s'))
            handler.addFilter(repetitions)

    def lines(self) -> list[str]:
        """What was written since the last time, the same by both."""
        first, second = (stream.getvalue() for stream in self.streams)
        assert first == second
        for stream in self.streams:
            stream.seek(0)
            stream.truncate()
        return first.splitlines()


@pytest.fixture
def written() -> Iterator[Written]:
    """For the loggers below ``oslo.messaging``, ``sqlalchemy`` and ``convergence``."""
    written = Written()
    loggers = [logging.getLogger(name) for name in ('oslo.messaging', 'sqlalchemy', 'convergence')]
    for logger in loggers:
        for handler in written.handlers:
            logger.addHandler(handler)
    yield written
    for logger in loggers:
        for handler in written.handlers:
            logger.removeHandler(handler)


RABBIT = logging.getLogger('oslo.messaging._drivers.impl_rabbit')


def test_an_outage_is_told_once_and_then_by_the_minute(written: Written) -> None:
    """Each connection says so twice a second, with an id of its own."""
    for second in range(100):
        for connection in (1, 2):
            RABBIT.error('[%s] the broker on %s is unreachable', connection, 'mq:5672')
        written.now += 1.0
        if second == 0:
            assert written.lines() == ['ERROR [1] the broker on mq:5672 is unreachable']
    assert written.lines() == [
        f'ERROR [1] the broker on mq:5672 is unreachable (and 119 times more in {INTERVAL_S:.0f} s)'
    ]


def test_what_is_said_in_other_words_at_another_level_or_by_others_is_another_thing(written: Written) -> None:
    RABBIT.error('unreachable')
    RABBIT.error('reset')
    RABBIT.warning('unreachable')
    logging.getLogger('oslo.messaging.other').error('unreachable')
    assert len(written.lines()) == 4


def test_our_own_lines_are_all_shown(written: Written) -> None:
    for _ in range(3):
        logging.getLogger('convergence.worker').error('failed')
    logging.getLogger('convergence.sqlalchemy').error('failed')
    assert written.lines() == ['ERROR failed'] * 4


def test_a_connection_that_broke_is_one_line_without_a_traceback(written: Written) -> None:
    """Whoever used it is told, and tries again with another one."""
    try:
        raise OSError('server closed the connection unexpectedly\n\tThis probably means that it terminated')
    except OSError:
        logging.getLogger('sqlalchemy.pool.impl.QueuePool').exception('Exception during reset or similar')
    assert written.lines() == ['WARNING Exception during reset or similar: server closed the connection unexpectedly']


def test_any_other_error_of_a_library_keeps_its_traceback(written: Written) -> None:
    try:
        raise KeyError('mistake')
    except KeyError:
        logging.getLogger('oslo.messaging.server').exception('Failed')
    assert any('Traceback' in line for line in written.lines())
