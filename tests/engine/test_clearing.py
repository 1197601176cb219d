"""Objects whose name is their key: the old one goes before another one is made."""

from __future__ import annotations

import pytest

from convergence.resources.contract import FinalFailure
from tests.harness import Harness
from tests.reality import Thing, fails


class Key(Thing):
    """There can be one."""

    delete_before_create = True

    def create(self, call):
        """Refused while there is another one."""
        if any(thing['name'] == call.name for thing in self.reality.objects.values()):
            raise FinalFailure('there is one already')
        return super().create(call)


@pytest.fixture
def harness():
    found = Harness(None)
    found.registry._types['Test::Key'] = Key(found.reality)
    return found


def wanted(key, **policy):
    return {'k': {'type': 'Test::Key', 'key': key, **policy}, 'user': {'link': {'get_resource': 'k'}}}


def done(harness, name='k'):
    return [verb for verb, each, *_ in harness.reality.journal if each == name and verb in ('create', 'delete')]


def test_the_old_object_goes_before_the_new_one_is_made_in_its_row(harness):
    stack_id = harness.created(wanted('1'))
    row = harness.row(stack_id, 'k')
    harness.update(stack_id, wanted('2'))
    harness.run()
    harness.assert_quiet()
    now = harness.row(stack_id, 'k')
    assert (harness.state(stack_id), now.id, now.properties['key']) == ('UPDATE_COMPLETE', row.id, '2')
    assert done(harness) == ['create', 'delete', 'create']
    assert now.token != row.token and now.physical_id != row.physical_id
    assert harness.row(stack_id, 'user').properties['link'] == now.physical_id
    assert harness.events(stack_id, 'k')[2:] == [
        *('DELETE_IN_PROGRESS', 'DELETE_COMPLETE', 'CREATE_IN_PROGRESS', 'CREATE_COMPLETE'),
    ]


def test_a_rollback_makes_the_old_object_again(harness):
    stack_id = harness.created(wanted('1'), disable_rollback=False)
    harness.reality.once['create', 'k'] = [fails(FinalFailure('no'))]
    harness.update(stack_id, wanted('2'), disable_rollback=False)
    harness.recover()
    assert harness.state(stack_id) == 'ROLLBACK_COMPLETE'
    assert harness.row(stack_id, 'k').properties['key'] == '1'
    assert harness.reality.names().count('k') == 1


def test_a_removal_that_fails_leaves_what_is_there_to_the_rollback(harness):
    stack_id = harness.created(wanted('1'), disable_rollback=False)
    before = harness.row(stack_id, 'k').physical_id
    harness.reality.once['delete', 'k'] = [fails(FinalFailure('in use'))]
    harness.update(stack_id, wanted('2'), disable_rollback=False)
    harness.recover()
    assert harness.state(stack_id) == 'ROLLBACK_COMPLETE'
    assert (harness.row(stack_id, 'k').physical_id, done(harness)) == (before, ['create', 'delete'])


def test_a_stack_can_be_deleted_while_an_object_is_being_removed_for_another_one(harness):
    stack_id = harness.created(wanted('1'))
    harness.update(stack_id, wanted('2'))
    harness.deliver()  # the decision
    assert harness.row(stack_id, 'k').is_cleared
    harness.delete(stack_id)
    harness.recover()
    assert harness.rows(stack_id) == [] and harness.reality.objects == {}


def test_what_is_to_stay_is_replaced_as_usual(harness):
    stack_id = harness.created(wanted('1', deletion_policy='Retain'))
    harness.update(stack_id, wanted('2', deletion_policy='Retain'))
    harness.run()
    assert harness.state(stack_id) == 'UPDATE_FAILED'
    assert 'there is one already' in harness.stack(stack_id).status_reason
    assert done(harness) == ['create']
