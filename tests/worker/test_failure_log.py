"""What the log of a worker says of actions that did not succeed."""

from __future__ import annotations

import logging

import pytest

from convergence.resources.contract import FinalFailure
from convergence.worker.attempts import failure_log
from tests.harness import Harness
from tests.reality import fails


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing was shown yet."""
    failure_log._shown.clear()


def of(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The lines about failures."""
    return [record for record in caplog.records if record.name == failure_log.__name__]


def test_what_a_type_raises_on_purpose_is_one_line_and_no_error(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.reality.once['create', 'r'] = [fails(FinalFailure('Quota exceeded\nfor volumes'))]
    harness.create({'r': 'x'})
    harness.run()
    (record,) = of(caplog)
    assert record.getMessage() == 'CREATE of r failed: Quota exceeded for volumes'
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR or each.exc_info]


def test_what_no_type_should_raise_shows_where_it_comes_from_once(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    broken = fails(ZeroDivisionError('division by zero'))
    for name in ('a', 'b', 'c'):
        harness.reality.once['create', name] = [broken]
        harness.create({name: 'x'}, name=name)
        harness.run()
    records = of(caplog)
    assert [record.getMessage() for record in records] == [
        f'CREATE of {name} failed: ZeroDivisionError: division by zero' for name in ('a', 'b', 'c')
    ]
    assert [bool(record.exc_info) for record in records] == [True, False, False]
    assert {record.levelno for record in records} == {logging.WARNING}
