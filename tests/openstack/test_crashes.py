"""A worker is killed before and after each request that changes something; nothing may come of it but a delay.

Several stacks are at it at once, each kill hits whatever the worker was doing for all of them.
"""

from __future__ import annotations

import itertools

import pytest

from tests.chaos.failpoints import Do, Rule
from tests.openstack.templates import twelve

PROCESSES = {'engines': 1, 'workers': 2}
AT_ONCE = 4
"""Stacks, and kills, of one run."""

CHANGED = {
    'network': {'name': 'changed'},
    'subnet': {'name': 'changed'},
    'port': {'name': 'changed'},
    'router': {'name': 'changed'},
    'server': {'metadata': {'of': 'yours'}, 'flavor': 'm1.small'},
    'volume': {'size': 2},
    'group': {'description': 'windows'},
}


class Sweep:
    """Kills workers in the middle of an operation on stacks of the twelve.

    :param operation: ``create``, ``update`` or ``delete``.
    """

    def __init__(self, installation, operation: str, every_request: bool) -> None:
        self.installation, self.operation, self._every = installation, operation, every_request
        self.users = [installation.user() for _ in range(AT_ONCE)]
        self._numbers = itertools.count(1)

    def places(self) -> list[str]:
        """Before and after which requests to kill, as one stack shows that nobody disturbs."""
        points = self.installation.points
        stack = self._begin(self.users[0])
        seen = len(points.passed())
        self._do(stack)
        self._end(stack)
        self.wanted = self.users[0].things()
        passed = [place for place in points.passed(seen) if ' commit of ' not in place and ' send of ' not in place]
        wanted = [place for place in passed if self._every or place.split()[1] not in ('GET', 'HEAD')]
        self._remove(stack)
        return sorted({place for place in wanted if 'POST keystone' not in place})

    def run(self, places: list[str]) -> None:
        """Kill at places, one for each stack, and see that all ends as if nobody had been killed."""
        points = self.installation.points
        points.set()
        stacks = [self._begin(user) for user in self.users]
        rules = [
            Rule(f'{self.operation}-{next(self._numbers)}', place.replace('*', '[*]'), Do.KILL) for place in places
        ]
        points.set(*rules)
        for stack in stacks:
            self._do(stack)
        for stack in stacks:
            self._end(stack)
        points.set()
        for user, stack in zip(self.users, stacks, strict=True):
            assert user.things() == self.wanted, (places, user.things(), self.wanted)
            self._remove(stack)
        print(places, [points.fired(rule.name) for rule in rules])

    def _begin(self, user):
        if self.operation == 'create':
            return user
        return user.create('s', twelve('s')).ended('CREATE_COMPLETE')

    def _do(self, stack) -> None:
        if self.operation == 'create':
            stack.made = stack.create('s', twelve('s'))
        elif self.operation == 'update':
            stack.update(twelve('s', **CHANGED))
        else:
            stack.user.ask('DELETE', stack.path)

    def _end(self, stack) -> None:
        one = stack.made if self.operation == 'create' else stack
        one.ended(f'{self.operation.upper()}_COMPLETE')

    def _remove(self, stack) -> None:
        if self.operation != 'delete':
            one = stack.made if self.operation == 'create' else stack
            one.delete()
        user = stack if self.operation == 'create' else stack.user
        assert user.things() == {}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize('operation', ['create', 'update', 'delete'])
def test_a_worker_dies_at_each_request(installation, operation, request):
    sweep = Sweep(installation, operation, request.config.getoption('--every-request'))
    places = sweep.places()
    assert places, 'no request was seen'
    for first in range(0, len(places), AT_ONCE):
        sweep.run(places[first : first + AT_ONCE])
