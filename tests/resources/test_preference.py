"""Which package a resource type comes from where several of them offer it."""

from __future__ import annotations

import logging

import pytest

from convergence.resources.plugins import Offering
from convergence.resources.preference import Preference


def offers(*sources, name='Example::Net'):
    """The same type of several packages, each of which has it under its own name."""
    return [Offering(name, f'convergence-{source}' if source else 'convergence', source, source) for source in sources]


@pytest.mark.parametrize(
    ('prefer', 'chosen'),
    [
        ((), 'heat'),
        (('openstack',), 'openstack'),
        (('convergence-openstack',), 'openstack'),
        (('heat', 'openstack'), 'heat'),
        (('other', 'openstack', 'heat'), 'openstack'),
        (('other',), 'heat'),
    ],
)
@pytest.mark.parametrize('order', [('openstack', 'heat'), ('heat', 'openstack')])
def test_the_operator_decides_then_the_name(prefer, chosen, order):
    assert Preference(prefer).choose(offers(*order)) == {'Example::Net': chosen}


def test_what_is_decided_by_a_name_is_told_once_and_what_is_preferred_is_not(caplog):
    several = [offer for name in 'abcde' for offer in offers('openstack', 'heat', name=f'Example::{name}')]
    Preference().choose([*several, *offers('openstack')])
    (said,) = caplog.messages
    assert 'offer Example::a, Example::b, Example::c and 2 more: heat and openstack' in said
    assert '[plugins] prefer' in said
    caplog.clear()
    Preference(['openstack']).choose(several)
    Preference(is_silent=True).choose(several)
    assert caplog.messages == []


def test_what_convergence_itself_offers_stays_unless_another_package_is_preferred(caplog):
    both = [Offering('T', 'aaa', 'aaa', 'other'), Offering('T', 'convergence', 'convergence', 'own')]
    assert Preference().choose(both) == {'T': 'own'}
    assert Preference(['aaa']).choose(both) == {'T': 'other'}
    assert caplog.messages == []


def test_a_preferred_package_that_is_not_there_is_told(caplog):
    with caplog.at_level(logging.WARNING):
        Preference(['opnestack', 'heat', 'convergence-heat']).require_known(offers('heat'))
    (said,) = caplog.messages
    assert 'opnestack' in said and 'there are convergence-heat, heat' in said
