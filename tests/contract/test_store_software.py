"""What every store does with software configurations and deployments of resources."""

from dataclasses import replace

import pytest

from convergence.core.software import (
    COMPLETE,
    FAILED,
    IN_PROGRESS,
    Holder,
    ServerReport,
    SoftwareConfig,
    SoftwareDeployment,
)
from convergence.errors import LostClaim
from tests.contract.rows import FREE

CONFIG = SoftwareConfig('C', 'p', 'web', 'script', {'config': 'echo', 'inputs': [{'name': 'a', 'value': [1]}]})
DERIVED = replace(CONFIG, id='C1', deployment_id='D')
DEPLOYMENT = SoftwareDeployment('D', 'p', 'server', 'C1', {'a': 1}, action='CREATE', status=IN_PROGRESS)
MINE, LOST = Holder(FREE.id, FREE.fence), Holder(FREE.id, FREE.fence + 1)


@pytest.fixture
def rows(backend):
    backend.fill()
    return backend.software


def timeless(row):
    return None if row is None else replace(row, created_at=0.0)


def test_a_configuration_is_kept_once(rows):
    made = rows.add_config(CONFIG, MINE)
    assert timeless(made) == CONFIG
    assert rows.add_config(replace(CONFIG, name='other'), MINE) == made == rows.config('p', 'C')
    assert rows.config('another', 'C') is None
    assert rows.remove_config('p', 'C', MINE)
    assert rows.remove_config('p', 'C', MINE)
    assert rows.config('p', 'C') is None


def test_a_deployment_has_one_derived_configuration(rows):
    rows.add_config(CONFIG)
    first = rows.deploy(DEPLOYMENT, DERIVED, MINE)
    assert rows.deploy(replace(DEPLOYMENT, status=FAILED), DERIVED, MINE) == first == rows.deployment('p', 'D')
    assert not rows.remove_config('p', 'C1')
    rows.report('p', 'D', 'C1', ServerReport(COMPLETE, 'done', {'out': 1}))
    again = rows.deploy(replace(DEPLOYMENT, config_id='C2', action='UPDATE'), replace(DERIVED, id='C2'), MINE)
    assert again == rows.deployment('p', 'D')
    assert (again.config_id, again.action, again.status, again.output_values) == (
        'C2',
        'UPDATE',
        IN_PROGRESS,
        {'out': 1},
    )
    assert again.updated_at is not None
    assert rows.config('p', 'C1') is None
    assert rows.deployments('p', 'server') == [again]
    assert rows.deployments('p', 'another') == []
    assert rows.remove_deployment('p', 'D', MINE)
    assert not rows.remove_deployment('p', 'D', MINE)
    assert (rows.config('p', 'C2'), timeless(rows.config('p', 'C'))) == (None, CONFIG)


def test_only_who_is_waited_for_reports(rows):
    rows.deploy(DEPLOYMENT, DERIVED)
    assert not rows.report('p', 'D', 'C0', ServerReport(COMPLETE, 'too late'))
    assert not rows.report('another', 'D', 'C1', ServerReport(COMPLETE, 'theirs'))
    assert rows.report('p', 'D', 'C1', ServerReport(FAILED, 'why', {'out': [1]}))
    assert not rows.report('p', 'D', 'C1', ServerReport(COMPLETE, 'twice'))
    present = rows.deployment('p', 'D')
    assert (present.status, present.status_reason, present.output_values) == (FAILED, 'why', {'out': [1]})


def test_what_is_written_for_a_lost_claim_is_refused(rows):
    rows.add_config(CONFIG)
    rows.deploy(DEPLOYMENT, DERIVED)
    before = (rows.deployment('p', 'D'), rows.config('p', 'C'), rows.config('p', 'C1'))
    for write in (
        lambda: rows.add_config(replace(CONFIG, id='X'), LOST),
        lambda: rows.remove_config('p', 'C', LOST),
        lambda: rows.deploy(replace(DEPLOYMENT, config_id='C2'), replace(DERIVED, id='C2'), LOST),
        lambda: rows.report('p', 'D', 'C1', ServerReport(COMPLETE, ''), LOST),
        lambda: rows.remove_deployment('p', 'D', LOST),
        lambda: rows.add_config(replace(CONFIG, id='X'), Holder('gone', 1)),
    ):
        with pytest.raises(LostClaim):
            write()
    assert (rows.deployment('p', 'D'), rows.config('p', 'C'), rows.config('p', 'C1')) == before
    assert rows.config('p', 'X') is None
