"""Fixtures: a cluster per module, which names its database in `DATABASE`, and names for stacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.services import service, unique_name

pytest.register_assert_rewrite('tests.functional.behaviour', 'tests.functional.cluster')

from tests.functional.cluster import Cluster  # noqa: E402 - its assertions are rewritten by the line before

_numbers = itertools.count(1)


@pytest.fixture(scope='module')
def shared_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster of a module; `OPTIONS` of the module are further options of `Cluster`."""
    database, broker = service(request.module.DATABASE), service('rabbit')
    url = database.create()
    try:
        cluster = Cluster(
            tmp_path_factory.mktemp('cluster'),
            database_url=url,
            rabbit_url=broker.url,
            exchange=unique_name(),
            **getattr(request.module, 'OPTIONS', {}),
        )
        try:
            synced = cluster.manage('db', 'sync')
            assert synced.returncode == 0, synced.stderr
            yield cluster
        finally:
            ended = cluster.close()
        assert [code for _, code in ended] == [0] * len(ended), ended
    finally:
        database.drop(urlsplit(url).path.lstrip('/'))


@pytest.fixture
def cluster(shared_cluster: Cluster, request: pytest.FixtureRequest) -> Cluster:
    """The cluster with all its processes at work, whatever an earlier test did to them."""
    shared_cluster.fill(**getattr(request.module, 'PROCESSES', {}))
    return shared_cluster


@pytest.fixture
def name() -> str:
    """A name for a stack, or a gate, that no other test has."""
    return f's{next(_numbers)}'
