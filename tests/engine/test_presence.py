"""Processes without a database of their own are known through an engine."""

from __future__ import annotations

import pytest

from convergence import errors
from convergence.engine.sweeper.presence import Presences
from tests.harness import Harness


def kinds(harness: Harness) -> list[tuple[str, str, dict]]:
    """Who is known besides the workers of the harness."""
    return [(each.id, each.kind, dict(each.load)) for each in harness.roster.services() if each.kind != 'worker']


def test_an_api_is_known_from_its_first_beat_until_it_leaves(harness: Harness) -> None:
    presences = Presences(harness.roster)
    presences.service_beat(harness.context, 'a', 'api', 'host', '1', 30.0)
    presences.service_beat(harness.context, 'a', 'api', 'host', '1', 30.0, {'threads': 4, 'busy': 1})
    assert kinds(harness) == [('a', 'api', {'threads': 4, 'busy': 1})]
    presences.service_leave(harness.context, 'a')
    assert kinds(harness) == []


def test_nobody_signs_a_worker_off_or_poses_as_one(harness: Harness) -> None:
    presences = Presences(harness.roster)
    (worker, _) = harness.workers
    presences.service_leave(harness.context, worker.id)
    assert worker.id in {each.id for each in harness.roster.services()}
    with pytest.raises(errors.Invalid, match='of kind worker keeps its own row'):
        presences.service_beat(harness.context, 'x', 'worker', 'host', '1', 30.0)
