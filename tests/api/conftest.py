"""One installation for all tests of the API: each makes stacks of its own."""

from __future__ import annotations

import pytest

from tests.api.installation import installed
from tests.receiver import receiving


@pytest.fixture(scope='session')
def api(tmp_path_factory):
    """An installation and somebody who asks it."""
    with installed(tmp_path_factory.mktemp('api')) as made:
        yield made


@pytest.fixture
def receiver():
    """A server that webhooks tell."""
    with receiving() as made:
        yield made
