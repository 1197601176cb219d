"""Decisions about several stacks that come true in one transaction."""

from dataclasses import replace

from convergence.core.effects import Decision, InsertStack, NotifyNode, RequireRoom, UpdateStack
from convergence.core.nesting import joined
from tests.core.build import STACK

NEW = InsertStack(STACK)
CHANGE = UpdateStack('S', 'V', {'status_reason': 'changed'})


def test_each_stack_has_its_verdict_in_its_place():
    decided = joined([Decision('a', (CHANGE,), (('V', 1),)), None, Decision('c', (), (('W', 2),))])
    assert decided == Decision(('a', None, 'c'), (CHANGE,), (('V', 1), ('W', 2)))
    assert joined([None, None]) == Decision((None, None))


def test_new_stacks_come_first_and_the_room_that_they_take_in_their_tree_last_and_once():
    """Everybody in a tree waits for whoever has its room; with five new stacks that was locked five times."""
    other = replace(NEW, stack=replace(STACK, id='S2'))
    rooms = [RequireRoom('ROOT', more, 1000, 10) for more in (2, 3)]
    effects = joined([Decision(1, (NEW, rooms[0])), Decision(2, (other, CHANGE, rooms[1]))]).effects
    assert effects == (NEW, other, CHANGE, RequireRoom('ROOT', 5, 1000, 10))


def test_nodes_that_are_told_of_come_after_all_else_in_the_order_in_which_a_sweeper_locks_them():
    """The rows whose objects the stacks are were asked for in any order, and so are the nodes behind their window."""
    decisions = [Decision(number, (NotifyNode('V', number), CHANGE)) for number in (9, 5, 7)]
    effects = joined([*decisions, Decision(0, (RequireRoom('ROOT', 1),))]).effects
    assert effects == (*[CHANGE] * 3, *(NotifyNode('V', number) for number in (5, 7, 9)), RequireRoom('ROOT', 1))


def test_rooms_of_other_trees_or_with_other_limits_stay_apart():
    rooms = (RequireRoom('ROOT', 2, 1000), RequireRoom('ROOT', 2, None), RequireRoom('OTHER', 2, 1000))
    assert joined([Decision(0, (room,)) for room in rooms]).effects == rooms
