"""A cloud in memory for the tests of types."""

from __future__ import annotations

import pytest

from tests.fake_cloud.cloud import CLOUD


@pytest.fixture
def cloud():
    """The cloud, with nothing in it but what some resources need, in the eyes of a worker that knows nothing of it."""
    from convergence_openstack.cloud import NAMES
    from convergence_openstack.task import SHOWN

    CLOUD.clear()
    NAMES.clear()
    SHOWN.clear()
    return CLOUD
