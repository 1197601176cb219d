"""A worker is killed before and after each request that changes something; nothing may come of it but a delay.

Several stacks are at it at once, and each kill hits whatever the worker was doing for all of them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.failpoints import Do, Rule
from tests.openstack.installation import Stack, User
from tests.openstack.templates import PUBLIC_KEY, all_kinds

PROCESSES = {'engines': 1, 'workers': 3}
AT_ONCE = 3
"""Stacks that go through their lives side by side."""

KILLS = 4
"""Workers that die during one operation on them, at most: a step that takes five with it is given up."""

CHANGED: dict[str, Any] = {
    'network': {'name': 'changed'},
    'subnet': {'name': 'changed'},
    'port': {'name': 'changed'},
    'router': {'name': 'changed'},
    'server': {'metadata': {'of': 'yours'}, 'flavor': 'm1.small'},
    'volume': {'size': 2},
    'group': {'description': 'windows'},
    'pool': {'name': 'changed'},
}
"""In place."""

OTHERS: dict[str, Any] = CHANGED | {
    'spare': {'mac_address': 'fa:16:3e:00:00:60'},
    'server': {'metadata': {'of': 'yours'}, 'flavor': 'm1.small', 'availability_zone': 'nova'},
    'key': {'public_key': PUBLIC_KEY.replace('tests', 'others')},
}
"""By other objects, one of which has the address of its predecessor, one its port and one its name."""

REPLACED = {'spare', 'server'}


class Life:
    """Stacks that are created, updated, have objects replaced, and are deleted; each step with workers dying in it.

    :ivar places: before and after which requests workers may die, by operation: told by a life that nobody disturbs.
    :ivar right: those at which workers have died in operations that came to the right end.
    :ivar wrong: what came of the others.
    """

    def __init__(self, installation: Any, every_request: bool) -> None:
        self.installation, self._every = installation, every_request
        self.users: list[User] = [installation.user() for _ in range(AT_ONCE)]
        self.stacks: list[Stack] = []
        self.places: dict[str, list[str]] = {}
        self.right: dict[str, list[str]] = defaultdict(list)
        self.wrong: list[str] = []
        self._wanted: dict[str, dict[str, int]] = {}
        self._numbers = itertools.count(1)
        self._steps: dict[str, tuple[Callable[[], None], str]] = {
            'create': (self._create, 'CREATE_COMPLETE'),
            'update': (lambda: self._update(CHANGED), 'UPDATE_COMPLETE'),
            'replace': (lambda: self._update(OTHERS), 'UPDATE_COMPLETE'),
            'delete': (self._delete, 'DELETE_COMPLETE'),
        }

    def rehearse(self) -> None:
        """Find the places."""
        points = self.installation.points
        for operation in self._steps:
            seen = len(points.passed())
            self._do(operation, self.users[:1])
            self._wanted[operation] = self.users[0].things()
            passed = {place for place in points.passed(seen) if ' commit of ' not in place and ' send of ' not in place}
            self.places[operation] = sorted(
                place
                for place in passed
                if 'POST keystone' not in place and (self._every or place.split()[1] not in ('GET', 'HEAD'))
            )
            print(operation, len(self.places[operation]), 'places', flush=True)

    def live(self, places: dict[str, list[str]]) -> None:
        """Go through all operations, with other users each time; each ends as if nobody had been killed.

        What goes wrong is told, and the rest of the places of the round is left to the next ones.
        """
        self.users = [self.installation.user() for _ in range(AT_ONCE)]
        self.stacks = []
        self.users[0].ask('GET', 'stacks')  # until there is an engine again, where the last one to die was one
        for operation in self._steps:
            asked = places.get(operation, [])
            try:
                self._do(operation, self.users, asked)
                for user in self.users:
                    assert user.things() == self._wanted[operation], operation
            except AssertionError as error:
                self.wrong.append(f'{operation}: {error}; killed at {asked}')
                print('WRONG', self.wrong[-1], flush=True)
                return
            self.right[operation] += asked
            print(f'{operation}: right after', *asked, sep='\n    ', flush=True)

    def left(self) -> dict[str, list[str]]:
        """The places at which no worker has died yet in an operation that came to the right end."""
        return {
            operation: [place for place in places if place not in self.right[operation]]
            for operation, places in self.places.items()
        }

    def _do(self, operation: str, users: list[User], places: list[str] = ()) -> list[str]:  # type: ignore[assignment]
        points = self.installation.points
        before = [stack.ids() for stack in self.stacks]
        rules = [Rule(f'{next(self._numbers)}', place.replace('*', '[*]'), Do.KILL) for place in places]
        points.set(*rules)
        begin, state = self._steps[operation]
        self._acting = users
        begin()
        for stack in self.stacks:
            stack.ended(state)
        points.set()
        if operation in ('update', 'replace'):
            for stack, ids in zip(self.stacks, before, strict=True):
                now = stack.ids()
                changed = {name for name in now if now[name] != ids[name]} - {'attachment'}
                assert changed == (REPLACED if operation == 'replace' else set()), (operation, changed, places)
        missed = [rule.place for rule in rules if not points.fired(rule.name)]
        assert not missed, f'{operation}: nobody came to {missed}'
        return places

    def _create(self) -> None:
        self.stacks = [user.create('s', all_kinds('s')) for user in self._acting]

    def _update(self, changed: dict[str, Any]) -> None:
        for stack in self.stacks:
            stack.update(all_kinds('s', **changed))

    def _delete(self) -> None:
        for stack in self.stacks:
            stack.user.ask('DELETE', stack.path)


@pytest.mark.timeout(7200)
def test_a_worker_dies_at_each_request(installation, request):
    life = Life(installation, request.config.getoption('--every-request'))
    life.rehearse()
    # Each round has something of all phases. One that goes wrong leaves its places to a round more.
    rounds = -(-max(map(len, life.places.values())) // KILLS)
    for number in range(rounds + 2):
        left = life.left()
        life.live({operation: places[:: max(1, rounds - number)][:KILLS] for operation, places in left.items()})
        if not any(life.left().values()):
            break
    for operation, places in life.places.items():
        print(f'{operation}: {len(life.right[operation])} of {len(places)} places', flush=True)
    assert life.wrong == []
    assert not any(life.left().values())
