"""Services are asked whether a resource can be made before anything of it is."""

from __future__ import annotations

import pytest

from tests.harness import Harness
from tests.reality import Thing


class Checked(Thing):
    """Of a service that has no `bad` ones, and says so in a way of its own."""

    def validate(self, call):
        """Ask."""
        self.reality.journal.append(('validate', call.name))
        if call.properties.key == 'bad':
            raise RuntimeError('no such flavor: bad')


@pytest.fixture
def harness():
    found = Harness(None)
    found.registry._types['Test::Checked'] = Checked(found.reality)
    return found


def wanted(key):
    return {'c': {'type': 'Test::Checked', 'key': key}}


def done(harness):
    return [verb for verb, *_ in harness.reality.journal if verb in ('validate', 'create', 'delete')]


def test_what_is_refused_was_never_made(harness):
    stack_id = harness.create(wanted('bad'))
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    assert 'no such flavor: bad' in harness.stack(stack_id).status_reason
    assert done(harness) == ['validate'] and harness.row(stack_id, 'c').nothing_made
    harness.delete(stack_id)
    harness.run()
    assert harness.rows(stack_id) == [] and done(harness) == ['validate']


def test_a_replacement_that_is_refused_leaves_the_old_one_alone(harness):
    stack_id = harness.created(wanted('1'), disable_rollback=False)
    before = harness.row(stack_id, 'c').physical_id
    harness.update(stack_id, wanted('bad'), disable_rollback=False)
    harness.recover()
    assert harness.state(stack_id) == 'ROLLBACK_COMPLETE'
    assert (harness.row(stack_id, 'c').physical_id, done(harness)) == (before, ['validate', 'create', 'validate'])
