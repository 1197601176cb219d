"""One installation for the tests of each module of the API: each test makes stacks of its own."""

from __future__ import annotations

import pytest

from tests.api.installation import installed
from tests.receiver import receiving


@pytest.fixture(scope='module')
def api(tmp_path_factory):
    """An installation and somebody who asks it.

    No longer than for a module: it sweeps five times a second, beside whatever else its process has to test.
    """
    with installed(tmp_path_factory.mktemp('api')) as made:
        yield made


@pytest.fixture
def receiver():
    """A server that webhooks tell."""
    with receiving() as made:
        yield made
