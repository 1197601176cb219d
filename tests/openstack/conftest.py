"""Fixtures: the control plane, where it runs, and Convergence before it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openstack.layout import VARIABLE
from tests.services import SERVICES, Missing

WHOSE = {'heat': 'heat', 'openstack': 'openstack'}
"""Packages by the names of their manifests, with what each needs."""

pytest.register_assert_rewrite('tests.openstack.installation')


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the sweep of crashes be thorough, and choose whose types are tried out."""
    parser.addoption('--every-request', action='store_true', help='kill workers at requests that only read, too')
    parser.addoption('--types', default='heat', choices=WHOSE, help='the package whose types are tried out')


@pytest.fixture(scope='session')
def control_plane(request):
    """The control plane that runs."""
    reason = _missing(request.config.getoption('--types'))
    if reason:
        SERVICES.missing['openstack'] = reason
        pytest.skip(reason)
    from tests.openstack.control_plane import ControlPlane
    from tests.openstack.layout import Layout

    try:
        plane = ControlPlane(Layout.here(Path(os.environ[VARIABLE])))
    except Missing as missing:
        pytest.skip(str(missing))
    plane.processes.require()
    return plane


def _missing(types: str) -> str:
    if VARIABLE not in os.environ:
        return 'no control plane was started: make openstack'
    if importlib.util.find_spec(WHOSE[types]) is None:
        return f'{WHOSE[types]} is not installed: make openstack'
    return ''


@pytest.fixture(scope='module')
def installation(control_plane, request, tmp_path_factory) -> Iterator:
    """Convergence, with as many processes as the module says in `PROCESSES`."""
    from tests.openstack.installation import installed

    processes = {**getattr(request.module, 'PROCESSES', {}), 'types': request.config.getoption('--types')}
    with installed(control_plane.layout, tmp_path_factory.mktemp('installation'), **processes) as made:
        yield made
        left = made.ended()
    assert not left, left


@pytest.fixture
def user(installation):
    """Somebody with an empty project of his own, which is empty at the end."""
    one = installation.user()
    yield one
    assert one.things() == {}
