"""A part of ``make chaos`` that fits among the other tests: the same, on fewer places, smaller and shorter."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import cancelling, kinds, loss, storm
from tests.chaos.crash_sweep import CrashSweep
from tests.chaos.installation import Installation, installed
from tests.chaos.operations import OPERATIONS
from tests.services import service

EVERYDAY = ('create', 'update', 'rollback', 'delete')
SAMPLE = 6


@pytest.fixture
def database() -> str:
    """The kind of database; without it, or a broker, the test is skipped."""
    service('postgresql')
    service('rabbit')
    return 'postgresql'


@pytest.fixture
def logs() -> list[str]:
    """What goes on; shown where a test fails."""
    return []


@pytest.fixture(scope='module')
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Engines and workers for all of these tests, each of which has stacks of its own: to start them takes longest."""
    service('postgresql')
    service('rabbit')
    with installed(tmp_path_factory.mktemp('chaos') / 'installation', 'postgresql', threads=5) as made:
        made.start(engines=2, workers=2)
        yield made


@pytest.mark.long
def test_a_process_may_die_at_any_place(installation, logs):
    """At some of all places, always the same ones; ``make chaos`` tries all."""
    sweep = CrashSweep(installation, logs.append, seed=1)
    trials = sweep.record([each for each in OPERATIONS if each.name in EVERYDAY])
    chosen = random.Random(1).sample(sorted(trials, key=lambda trial: (trial[1], trial[0].name)), SAMPLE)
    outcomes = sweep.run(chosen)
    assert [each for each in outcomes if each.problem] == [], '\n'.join(logs)
    assert sum(each.fired for each in outcomes) > SAMPLE // 2, '\n'.join(logs)


@pytest.mark.long
def test_what_a_lost_creation_has_made_is_found_or_told(installation, logs):
    """A type of each sort; ``make chaos`` tries all of them with everything that may be asked for next."""
    found = kinds.run(installation, logs.append, kinds.sample(1, len(kinds.KINDS)))
    assert (found.problems, found.doubles, found.orphans) == ([], 0, 0), '\n'.join(logs)
    assert found.struck == len(kinds.KINDS)


def test_a_stack_gets_done_without_any_message(installation, logs):
    found = loss.run(installation, logs.append, size=10, shares=[1.0])
    assert [each.problem for each in found] == ['', '', ''], '\n'.join(logs)


@pytest.mark.long
def test_a_cancel_ends_what_hears_nothing_and_disturbs_nobody_else(installation, logs):
    found = cancelling.run(installation, logs.append, size=10)
    assert (found.problem, found.replaced) == ('', 0), '\n'.join(logs)


@pytest.mark.long
def test_everything_may_go_wrong_at_once(database, logs):
    with tempfile.TemporaryDirectory(prefix='convergence-chaos-', ignore_cleanup_errors=True) as named:
        directory = Path(named)
        directory.chmod(0o755)  # private servers may run as another account
        with storm.surroundings(directory / 'storm', database, logs.append) as around:
            around.installation.start(engines=2, workers=2)
            found = storm.run(around, logs.append, seed=1, seconds=8, size=60)
    assert found.problems == [], '\n'.join(logs)
    assert found.faults.total() > 1, '\n'.join(logs)
