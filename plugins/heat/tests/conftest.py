"""A cloud in memory for the tests of types."""

from __future__ import annotations

import pytest

from plugins.heat.tests.cloud import CLOUD


@pytest.fixture
def cloud():
    """The cloud, with nothing in it but what some resources need."""
    CLOUD.clear()
    return CLOUD
