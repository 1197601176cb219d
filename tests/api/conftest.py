"""One installation for all tests of the API: each test creates stacks of its own."""

from __future__ import annotations

import pytest

from tests.api.installation import installed
from tests.receiver import receiving


@pytest.fixture(scope='package')
def api(tmp_path_factory):
    """An installation and a client of it.

    It ends with this package: it sweeps five times a second, and would take time from the tests of other packages.
    """
    with installed(tmp_path_factory.mktemp('api')) as made:
        yield made


@pytest.fixture
def receiver():
    """A server that webhooks tell."""
    with receiving() as made:
        yield made
