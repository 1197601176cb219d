"""A cloud in memory for the tests of types."""

from __future__ import annotations

import pytest

from tests.fake_cloud.cloud import CLOUD


@pytest.fixture
def cloud():
    """The cloud, with nothing in it but what some resources need."""
    CLOUD.clear()
    return CLOUD
