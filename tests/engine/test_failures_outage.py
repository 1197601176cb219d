"""After an outage of the database a worker is not taken for dead before it could show that it is alive."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from convergence import errors
from convergence.db.schema.models import SERVICE
from convergence.engine.sweeper.reach import Reach
from convergence.engine.sweeper.sweeper import Sweeper
from convergence.engine.sweeper.tasks import SweepOptions
from tests.harness import Harness, things

LEASE_S = 30.0


class Clock:
    """Goes on only when it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The clock of the engine's machine."""
    return Clock()


@pytest.fixture
def sweeper(harness: Harness, clock: Clock) -> Sweeper:
    """A sweeper that has swept a moment ago."""
    made = harness.sweeper(SweepOptions(older_than_s=-1.0, lease_s=LEASE_S, clock=clock))
    made._tasks.reach = Reach(LEASE_S, clock)
    made.sweep()
    return made


def begun(harness: Harness) -> str:
    """A stack whose resource a worker holds."""
    stack = harness.create(things('a'))
    harness.workers[0]._parts.checks._steps.begin(*harness.messages.checks.pop())
    return stack


def let_leases_run_out(harness: Harness) -> None:
    """No heartbeat was stored for a long time: the database has been away."""
    with harness.store.writing() as connection:
        connection.execute(SERVICE.update().values(beat_at=0.0))
        connection.commit()


def owner(harness: Harness, stack: str) -> str | None:
    """Who holds the resource."""
    return harness.row(stack, 'a').owner


def away(*arguments: object) -> object:
    """The database cannot be reached."""
    raise errors.DatabaseUnavailable('The database cannot be reached: refused')


def fails_for(harness: Harness, sweeper: Sweeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that does not reach the database."""
    with monkeypatch.context() as patch, pytest.raises(errors.DatabaseUnavailable):
        patch.setattr(harness.sweeps, 'take_duty', away)
        sweeper.sweep()


def test_after_an_outage_workers_have_one_lease_to_renew_theirs(harness, sweeper, clock, monkeypatch, caplog):
    stack = begun(harness)
    clock.now += LEASE_S * 2
    fails_for(harness, sweeper, monkeypatch)
    let_leases_run_out(harness)
    sweeper.sweep()
    assert owner(harness, stack) is not None
    assert 'no claim is taken from a worker for 30 s' in caplog.text
    clock.now += LEASE_S - 0.1
    sweeper.sweep()
    assert owner(harness, stack) is not None
    assert harness.roster.services()  # nor is any of them forgotten
    harness.roster.beat(owner(harness, stack))  # the worker was alive all the time
    clock.now += 0.2
    sweeper.sweep()
    assert owner(harness, stack) is not None


def test_who_does_not_renew_it_then_is_dead(harness, sweeper, clock, monkeypatch):
    stack = begun(harness)
    clock.now += LEASE_S * 2
    fails_for(harness, sweeper, monkeypatch)
    let_leases_run_out(harness)
    sweeper.sweep()
    clock.now += LEASE_S
    sweeper.sweep()
    assert owner(harness, stack) is None


def test_an_outage_that_ends_during_a_sweep_counts(harness, sweeper, clock):
    """To look for rows took until the database was back."""
    stack = begun(harness)
    expired_claims = harness.sweeps.expired_claims

    def waits(limit: int) -> object:
        clock.now += LEASE_S * 2
        return expired_claims(limit)

    let_leases_run_out(harness)
    harness.sweeps.expired_claims = waits
    sweeper.sweep()
    assert owner(harness, stack) is not None
    harness.sweeps.expired_claims = expired_claims
    sweeper.sweep()
    assert owner(harness, stack) is not None
    clock.now += LEASE_S
    sweeper.sweep()
    assert owner(harness, stack) is None


def test_an_outage_that_ends_when_a_row_is_taken_keeps_the_others(harness, sweeper, clock):
    stack = harness.create(things('ab'))
    for address in harness.messages.checks:
        harness.workers[0]._parts.checks._steps.begin(*address)
    transact, taken = harness.store.transact, []

    def waits(scope: object, decide: Callable[..., object], following: object = None) -> object:
        clock.now += LEASE_S * 2
        taken.append(scope)
        return transact(scope, decide, following)

    let_leases_run_out(harness)
    harness.store.transact = waits
    sweeper._tasks.take_over()
    assert len(taken) == 1
    assert sum(harness.row(stack, name).owner is not None for name in 'ab') == 1


def test_a_short_outage_and_a_sweep_that_comes_late_keep_no_row_from_being_taken(harness, sweeper, clock, monkeypatch):
    stack = begun(harness)
    clock.now += LEASE_S * 0.4
    fails_for(harness, sweeper, monkeypatch)
    let_leases_run_out(harness)
    sweeper.sweep()
    assert owner(harness, stack) is None
    harness.messages.checks.clear()
    other = harness.create(things('a'), 'other')
    harness.workers[0]._parts.checks._steps.begin(*harness.messages.checks.pop())
    clock.now += LEASE_S * 0.9
    let_leases_run_out(harness)
    sweeper.sweep()
    assert owner(harness, other) is None
