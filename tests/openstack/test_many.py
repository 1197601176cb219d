"""Many stacks at once, with several engines and workers."""

from __future__ import annotations

import time

import pytest

from tests.openstack.templates import twelve

PROCESSES = {'engines': 2, 'workers': 3}
pytestmark = pytest.mark.timeout(1800)
PEOPLE, STACKS = 2, 5


def test_ten_stacks_live_side_by_side(installation):
    users = [installation.user() for _ in range(PEOPLE)]
    names = [f's{number}' for number in range(STACKS)]
    began = time.monotonic()

    def told(what: str) -> None:
        print(f'{what} after {time.monotonic() - began:.0f} s', flush=True)

    stacks = [user.create(name, twelve(name)) for user in users for name in names]
    for stack in stacks:
        stack.ended('CREATE_COMPLETE')
    told('created')
    things = users[0].things()
    assert things.items() >= {'networks': STACKS, 'servers': STACKS, 'volumes': STACKS, 'floating IPs': STACKS}.items()
    assert users[1].things() == things
    changed = {'network': {'name': 'changed'}, 'server': {'metadata': {'of': 'yours'}}, 'volume': {'size': 2}}
    before = [stack.ids() for stack in stacks]
    for stack in stacks:
        stack.update(twelve(stack.name, **changed))
    for stack in stacks:
        stack.ended('UPDATE_COMPLETE')
    told('updated')
    assert [stack.ids() for stack in stacks] == before
    assert [user.things() for user in users] == [things, things]
    for stack in stacks:
        stack.user.ask('DELETE', stack.path)
    for stack in stacks:
        stack.ended('DELETE_COMPLETE')
    told('deleted')
    assert [user.things() for user in users] == [{}, {}]
