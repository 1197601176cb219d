"""Stacks whose types a manifest describes, on workers that cannot import them."""

from __future__ import annotations

import pytest

from convergence.resources.manifest import Manifest, entry_of
from tests.harness import Harness
from tests.reality import Thing


class Broken:
    """Imports the type as long as its package is there."""

    def __init__(self, harness):
        self.is_there = False
        self.harness = harness

    def __call__(self, name):
        """As a package would."""
        if not self.is_there:
            raise ImportError('no module named cloud')
        return Thing(self.harness.reality)


@pytest.fixture
def harness():
    return Harness(None)


@pytest.fixture
def package(harness):
    found = Broken(harness)
    written = {'format': 1, 'types': {'Test::Far': entry_of(Thing(None))}}
    harness.registry._types.update(Manifest(written, found).types())
    return found


ONE = {'r': {'type': 'Test::Far', 'value': 'x'}}


def test_what_no_worker_could_make_is_deleted_at_once(harness, package):
    stack_id = harness.create(ONE)
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    assert 'cannot be imported by this worker' in harness.stack(stack_id).status_reason
    harness.delete(stack_id)
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'


def test_an_object_is_not_forgotten_because_its_type_cannot_be_imported(harness, package):
    package.is_there = True
    stack_id = harness.created(ONE)
    kinds = Manifest({'format': 1, 'types': {'Test::Far': entry_of(Thing(None))}}, package).types()
    package.is_there = False
    harness.registry._types.update(kinds)
    harness.delete(stack_id)
    harness.run()
    assert harness.state(stack_id) == 'DELETE_FAILED'
    package.is_there = True
    harness.delete(stack_id)
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    assert not harness.reality.objects
