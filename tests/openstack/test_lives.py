"""What users do with stacks, at real services."""

from __future__ import annotations

import pytest

from tests.openstack.templates import eight, twelve

PROCESSES = {'engines': 1, 'workers': 1}


@pytest.mark.parametrize('goal', [eight, twelve])
def test_a_stack_comes_and_goes(user, goal):
    stack = user.create('s', goal('s')).ended('CREATE_COMPLETE')
    things = user.things()
    assert things.items() >= {'networks': 1, 'servers': 1, 'volumes': 1, 'key pairs': 1}.items(), things
    stack.delete()
