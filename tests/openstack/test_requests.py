"""How much real services are asked for a stack."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.openstack.templates import twelve

pytestmark = pytest.mark.timeout(1800)

MOST = {'heat': 5, 'openstack': 3}
"""Requests a resource, on an average, from nothing to being shown, by the package that sends them."""

APART = re.compile(r' keystone |^GET \w+ /?(v[\d.]+/?)?$')
"""Tokens, and versions of services: they belong to a worker and not to a resource."""


def asked(installation) -> Counter[str]:
    """The requests so far."""
    lines = installation.requests.read_text().splitlines() if installation.requests.exists() else []
    return Counter(line for line in lines if not APART.search(line))


def test_a_stack_of_twelve_takes_few_requests(user, installation, request):
    types = request.config.getoption('--types')
    before = asked(installation)
    stack = user.create('s', twelve('s')).ended('CREATE_COMPLETE')
    sent = asked(installation) - before
    told = '\n'.join(f'{count:3} {what}' for what, count in sorted(sent.items()))
    print(f'{sent.total()} requests for 12 resources of {types}:\n{told}')
    assert sent.total() <= MOST[types] * 12, told
    stack.delete()
