"""One installation for all tests of the API: each makes stacks of its own."""

from __future__ import annotations

import pytest

from tests.api.installation import installed


@pytest.fixture(scope='session')
def api(tmp_path_factory):
    """An installation and somebody who asks it."""
    with installed(tmp_path_factory.mktemp('api')) as made:
        yield made
