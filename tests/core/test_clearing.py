"""Objects whose name is their key: the old one goes before the new one is made, in the same row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from convergence.core.claim import MAX_CRASHES, Creation, Step
from convergence.core.effects import InsertEvents, UpdateResource
from convergence.core.model import Action, DeletionPolicy, Status
from convergence.core.replacement import begin_clearing, cleared, go_on_clearing, goes_first
from tests.core.build import DEFINITION, MADE, NODE, node_view, worker

EXCLUSIVE = replace(worker(), creation=lambda type_name: Creation(is_exclusive=True))


@pytest.mark.parametrize(
    ('old', 'goes'),
    [
        (MADE, True),
        (replace(MADE, type='Another'), False),
        (replace(MADE, action=Action.DELETE), False),
        (replace(MADE, definition=replace(DEFINITION, deletion_policy=DeletionPolicy.RETAIN)), False),
        (replace(MADE, definition=replace(DEFINITION, external_id='theirs')), False),
    ],
    ids=['made here', 'of another type', 'going already', 'to be left', 'of others'],
)
def test_the_old_object_goes_first_where_it_is_in_the_way(old, goes):
    assert goes_first(EXCLUSIVE, old, DEFINITION) is goes
    assert not goes_first(worker(), old, DEFINITION)


def test_the_row_says_that_it_is_being_cleared_before_anything_is_removed():
    view = node_view(NODE, MADE)
    decision = begin_clearing(view, EXCLUSIVE, MADE)
    update, told = decision.effects
    assert isinstance(update, UpdateResource)
    assert isinstance(told, InsertEvents)
    assert update.changes['clearing']
    assert (update.changes['action'], update.changes['status']) == (Action.UPDATE, Status.IN_PROGRESS)
    assert decision.verdict == MADE.id
    clearing = replace(MADE, **update.changes)
    claim = go_on_clearing(node_view(NODE, clearing), EXCLUSIVE, clearing).verdict
    assert claim.step is Step.CLEAR
    assert not claim.claim.completes_node
    empty = replace(clearing, **cleared(clearing))
    assert (empty.action, empty.token, empty.physical_id, empty.clearing) == (Action.INIT, None, None, False)


def test_who_kills_every_worker_while_it_is_cleared_fails():
    lethal = replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS, clearing=True, crash_count=MAX_CRASHES)
    decision = go_on_clearing(node_view(NODE, lethal), EXCLUSIVE, lethal)
    assert decision.verdict.step is Step.FAIL
