"""Stacks act for their users after a request is over, and with nothing that outlives them."""

from __future__ import annotations

import pytest

from convergence.credentials.model import Method
from tests.credentials.installation import cloud, lending

ANN, BEN = 'ann: member,reader', 'ben: member'


@pytest.fixture(scope='module', params=[Method.TRUSTS, Method.APPLICATION_CREDENTIALS])
def installation(request, tmp_path_factory):
    """An installation whose stacks have credentials, made in each of the two ways."""
    with lending(tmp_path_factory.mktemp('lending'), request.param) as made:
        yield made


@pytest.fixture
def lent(installation):
    """As at its beginning."""
    installation.cloud.told.clear()
    installation.identity.requests.clear()
    assert installation.kept == 0
    return installation


def test_a_stack_acts_for_its_user_and_what_it_acts_with_goes_last(lent):
    path = lent.create('s', {'a': cloud(), 'b': cloud()})
    assert lent.cloud.by('create') == [ANN, ANN]
    assert lent.kept == 1
    assert lent.update(path, {'a': cloud('changed')})['stack_status'] == 'COMPLETE'
    assert (lent.cloud.by('update'), lent.cloud.by('delete'), lent.kept) == ([ANN], [ANN], 1)
    asked = len(lent.identity.requests)
    assert lent.removal.turn() == 0
    assert len(lent.identity.requests) == asked
    assert lent.delete(path)['stack_status'] == 'COMPLETE'
    assert lent.cloud.by('delete') == [ANN, ANN]
    assert lent.kept == 1
    assert lent.removal.turn() == 1
    assert lent.kept == 0
