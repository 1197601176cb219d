"""An update is cut off before and after each of its requests, or fails in the middle; what comes next puts all of it right."""

from __future__ import annotations

import pytest

pytest.importorskip('openstack', reason='openstacksdk is not installed')

from convergence_openstack.library import TYPES

from plugins.openstack.tests.thing import Thing
from tests.fake_cloud.halfway import cases_of, cut_off, port_made_for_server, refused

CASES = cases_of(TYPES)


@pytest.mark.parametrize('case', CASES.values(), ids=CASES)
@pytest.mark.parametrize('does', ['dies before', 'dies after'])
def test_an_update_that_was_cut_off_is_done_in_the_end(cloud, case, does):
    cut_off(Thing, cloud, case, does)


@pytest.mark.parametrize('case', [pytest.param(case, id=name) for name, case in CASES.items() if case.goes_back])
def test_an_update_that_failed_is_taken_back(cloud, case):
    refused(Thing, cloud, case)


@pytest.mark.parametrize('number', [1, 2])
def test_a_port_that_is_made_for_a_server_goes_with_it_however_far_its_creation_came(cloud, number):
    port_made_for_server(Thing, cloud, number)
