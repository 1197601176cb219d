"""From a goal to a traversal: which rows are used, what is unchanged, which nodes are written."""

from dataclasses import replace

import pytest

from convergence.core.choosing import choose, unchanged
from convergence.core.digest import digest
from convergence.core.effects import (
    EndTraversal,
    InsertResources,
    InsertStack,
    InsertTemplate,
    InsertTraversal,
    UpdateResources,
    UpdateStack,
)
from convergence.core.model import Action, Goal, Hook, NodeStatus, Output, Phase, Status, TraversalStatus
from convergence.core.plan import plan
from tests.core.build import (
    NOW,
    RUNNING,
    STACK,
    TRAVERSAL,
    definition,
    definitions,
    events,
    of_kind,
    only,
    plan_view,
    planner,
    request,
    row,
)


def planned(wanted, *rows, stack=STACK, traversal=None, window=64, **changes):
    """The decision on an update to what is wanted."""
    return plan(plan_view(*rows, stack=stack, traversal=traversal), stack, request(wanted, **changes), planner(window))


def nodes(decision):
    """The nodes as text: phase, what it is for, status, how many it waits for, who waits for it."""
    return [
        (node.phase.value, node.name, node.status.value, node.waiting, node.required_by)
        for node in only(decision, InsertTraversal).nodes
    ]


def chain(*names):
    """Complete rows of `names`, each built on the one before, with the digests of their last success."""
    made, outputs, wanted = [], {}, {}
    for index, name in enumerate(names):
        wanted[name] = definition(name, *names[max(0, index - 1) : index])
        outputs[name] = Output(name.upper(), f'phys-{name}')
        made.append(
            row(
                name.upper(),
                name,
                *(key.upper() for key in wanted[name].requires),
                output=outputs[name],
                digest=digest(wanted[name], outputs),
                definition=wanted[name],
            )
        )
    return wanted, made


# --- choose -----------------------------------------------------------------------------------------------------


GOOD = row('GOOD', 'r', created_at=10.0)
CASES = {
    "the goal's template above all": (
        replace(GOOD, template_id='T1', status=Status.FAILED, replaced_by='x', created_at=1.0),
        GOOD,
    ),
    'one that is of use over a failed one': (replace(GOOD, created_at=1.0), replace(GOOD, status=Status.FAILED)),
    'one that is of use over one never begun': (GOOD, replace(GOOD, action=Action.INIT, created_at=20.0)),
    'one in progress over a failed one': (
        replace(GOOD, status=Status.IN_PROGRESS, template_id='X'),
        replace(GOOD, status=Status.FAILED),
    ),
    'one made from just this definition over one not replaced': (
        replace(GOOD, replaced_by='x'),
        replace(GOOD, definition=definition('r', 'other')),
    ),
    "one not replaced over the present template's": (replace(GOOD, template_id='X'), replace(GOOD, replaced_by='x')),
    "the present template's over a newer one": (GOOD, replace(GOOD, template_id='X', created_at=20.0)),
    'the newest': (replace(GOOD, created_at=20.0), GOOD),
}


@pytest.mark.parametrize('case', CASES)
def test_the_best_row_of_a_name_is_chosen(case):
    """F055, F013: whichever comes first."""
    better, worse = (replace(found, id=key) for found, key in zip(CASES[case], ('A', 'Z'), strict=True))
    for rows in ((better, worse), (worse, better)):
        assert choose(STACK, rows, request(definitions(r='')))['r'].id == 'A'


def test_rows_that_are_equal_in_everything_are_told_apart_by_their_keys():
    """F063."""
    rows = [replace(GOOD, id=key) for key in 'ABC']
    assert choose(STACK, rows, request(definitions(r='')))['r'].id == 'C'
    assert choose(STACK, rows[::-1], request(definitions(r='')))['r'].id == 'C'


@pytest.mark.parametrize('status', Status)
def test_a_row_that_is_being_deleted_is_never_chosen(status):
    """F062."""
    doomed = replace(GOOD, action=Action.DELETE, status=status, template_id='T1')
    assert choose(STACK, [doomed], request(definitions(r=''))) == {}


def test_rows_that_nobody_wants_are_not_chosen():
    assert choose(STACK, [row('X1')], request(definitions(r=''))) == {}


# --- unchanged --------------------------------------------------------------------------------------------------


def still_the_same(wanted, rows, **asked):
    """Names of what is unchanged."""
    return sorted(unchanged(Goal(wanted, asked), {each.name: each for each in rows}))


def test_what_pauses_before_an_update_is_visited_by_it():
    wanted = {'a': replace(definition('a'), hooks=(Hook.PRE_UPDATE,))}
    rows = {'a': row('A', definition=wanted['a'], digest=digest(wanted['a'], {}))}
    assert list(unchanged(Goal(wanted), rows)) == ['a']
    assert unchanged(Goal(wanted), rows, pauses=True) == {}


def test_what_was_made_from_the_same_is_unchanged():
    wanted, rows = chain('a', 'b', 'c')
    assert still_the_same(wanted, rows) == ['a', 'b', 'c']


def test_what_is_handed_on_is_looked_at_only_where_somebody_takes_it():
    """So what is stored of it need not be opened; where it cannot be read, it hinders nobody else."""
    wanted, rows = chain('a', 'b', 'c')
    without = [replace(each, output=None, damaged=('output',)) for each in rows]
    assert still_the_same(wanted, [rows[0], rows[1], without[2]]) == ['a', 'b', 'c']
    assert still_the_same(wanted, [rows[0], rows[1], without[2]], c=('x',)) == ['a', 'b']
    assert still_the_same(wanted, [rows[0], without[1], rows[2]]) == ['a']


def test_what_is_to_be_visited_is_visited_with_what_reads_it_and_nothing_else():
    wanted, rows = chain('a', 'b', 'c')
    goal, chosen = Goal(wanted), {row.name: row for row in rows}
    assert sorted(unchanged(goal, chosen, visits={'b'})) == ['a']
    assert sorted(unchanged(goal, chosen, visits={'c'})) == ['a', 'b']

    def visited(**changes):
        decision = planned(wanted, *rows, observes=True, **changes)
        updates = [node for node in only(decision, InsertTraversal).nodes if node.phase is Phase.UPDATE]
        return [node.name for node in updates if node.status is not NodeStatus.DONE]

    assert visited() == ['a', 'b', 'c']
    assert visited(visits=frozenset({'b'})) == ['b', 'c']


@pytest.mark.parametrize(
    'difference',
    [
        {'digest': 'other'},
        {'digest': None},
        {'owner': 'W'},
        {'status': Status.FAILED},
        {'status': Status.IN_PROGRESS},
        {'action': Action.INIT},
        {'output': None},
    ],
    ids=str,
)
def test_what_is_not_quite_the_same_is_visited_with_all_that_requires_it(difference):
    wanted, rows = chain('a', 'b', 'c', 'd')
    rows[1] = replace(rows[1], **difference)
    assert still_the_same(wanted, rows) == ['a']


def test_a_new_definition_is_a_change():
    wanted, rows = chain('a', 'b')
    assert still_the_same({**wanted, 'b': replace(wanted['b'], properties={'x': 1})}, rows) == ['a']


def test_a_requirement_of_another_row_or_value_is_a_change():
    wanted, rows = chain('a', 'b')
    again = replace(rows[0], id='A2', output=Output('A2', 'phys-a'))
    assert still_the_same(wanted, [again, rows[1]]) == ['a']


def test_an_attribute_that_the_row_does_not_have_is_a_reason_to_visit_it():
    wanted, rows = chain('a')
    assert still_the_same(wanted, rows, a=('x',)) == []
    has = replace(rows[0], output=replace(rows[0].output, attributes={'x': None}))
    assert still_the_same(wanted, [has], a=('x',)) == ['a']


# --- plan -------------------------------------------------------------------------------------------------------


def test_a_create_stores_stack_template_rows_and_graph_at_once():
    new = replace(STACK, traversal_id=None, template_id=None, last_good_template_id=None)
    decision = plan(plan_view(stack=None), new, request(definitions(a='', b='a'), Action.CREATE), planner())
    stack = only(decision, InsertStack).stack
    assert (stack.action, stack.status, stack.traversal_id, stack.template_id) == ('CREATE', 'IN_PROGRESS', 'V1', 'T1')
    assert stack.created_at == NOW
    assert only(decision, InsertTemplate).template.id == 'T1'
    made = only(decision, InsertResources).resources
    assert [(each.name, each.action, each.template_id, each.stack_id) for each in made] == [
        ('a', 'INIT', 'T1', 'S'),
        ('b', 'INIT', 'T1', 'S'),
    ]
    assert nodes(decision) == [
        ('UPDATE', 'a', 'READY', 0, (1,)),
        ('UPDATE', 'b', 'WAITING', 1, (2,)),
        ('IN_SERVICE', None, 'WAITING', 1, (3,)),
        ('COMPLETE', None, 'WAITING', 1, ()),
    ]
    traversal = only(decision, InsertTraversal).traversal
    assert (traversal.node_count, traversal.complete_number, traversal.deadline) == (4, 3, NOW + 3600)
    assert [node.name for node in decision.verdict.ready] == ['a']
    assert events(decision) == ['CREATE_IN_PROGRESS']


def test_a_change_of_nothing_writes_the_two_nodes_that_end_it():
    wanted, rows = chain('a', 'b', 'c')
    decision = planned(wanted, *rows)
    assert nodes(decision) == [('IN_SERVICE', None, 'READY', 0, (1,)), ('COMPLETE', None, 'WAITING', 1, ())]
    assert of_kind(decision, UpdateResources) == []
    assert only(decision, InsertTemplate).template.equivalent_template_id == 'T0'
    assert only(decision, InsertTraversal).traversal.unchanged == 3
    assert of_kind(decision, InsertResources) == []


def test_rows_count_as_those_of_each_template_that_has_changed_nothing_of_them():
    """F012: however many there were; a rollback comes back to them, and only what changes something writes them."""
    wanted, rows = chain('a', 'b')
    same = replace(request(wanted).template, id='T2', equivalent_template_id='T0')
    newer = replace(rows[0], id='A2', template_id='T3', created_at=9.0)
    back = replace(request(wanted, Action.ROLLBACK), template=same, is_new_template=False)
    decision = plan(plan_view(replace(rows[0], replaced_by='A2'), newer, rows[1]), STACK, back, planner())
    assert decision.verdict.row_ids == {'a': 'A', 'b': 'B'}
    assert [effect.changes for effect in of_kind(decision, UpdateResources)] == [{'replaced_by': None}]
    changed = planned({**wanted, 'b': replace(wanted['b'], properties={'x': 1})}, *rows)
    assert only(changed, InsertTemplate).template == replace(
        request(wanted).template, equivalent_template_id='T0', changed_names=('b',)
    )
    assert of_kind(changed, UpdateResources) == []


def test_a_change_of_few_writes_no_row_of_those_that_it_leaves_as_they_are():
    """F012: they count as rows of the new goal, and what is not as it wants it does not."""
    wanted, rows = chain(*'abcdefg')
    gone = row('X', name='x', template_id='T0')
    goal = {**wanted, 'g': replace(wanted['g'], properties={'x': 1}), 'new': definition('new')}
    decision = planned(goal, *rows, gone)
    assert of_kind(decision, UpdateResources) == []
    template = only(decision, InsertTemplate).template
    assert (template.equivalent_template_id, template.changed_names) == ('T0', ('g', 'new', 'x'))
    assert template.others([*rows, gone]) == [rows[-1], gone]
    changed = replace(
        rows[-1], definition=goal['g'], digest=digest(goal['g'], {'f': rows[-2].output}), template_id='T1'
    )
    assert template.is_of(changed)
    next_goal = replace(template, id='T2', equivalent_template_id=None, changed_names=())
    again = planned({**wanted, 'g': goal['g']}, *rows[:-1], changed, template=next_goal)
    template = only(again, InsertTemplate).template
    assert (template.equivalent_template_id, template.changed_names) == ('T0', ('g',))
    assert [(each.resource_ids, each.changes) for each in of_kind(again, UpdateResources)] == [
        (('G',), {'template_id': 'T2'})
    ]
    assert template.others([*rows, changed]) == [rows[-1], changed]


def test_a_rollback_comes_back_to_the_rows_of_a_goal_that_has_changed_few():
    """Not to what was there before it, though that has the id of the template that it is alike to."""
    wanted, rows = chain('a', 'b', 'c')
    goal = replace(request(wanted).template, id='T1', equivalent_template_id='T0', changed_names=('c',))
    older, newer = replace(rows[2], id='C0', created_at=99.0), replace(rows[2], template_id='T1')
    back = replace(request(wanted, Action.ROLLBACK), template=goal, is_new_template=False)
    decision = plan(plan_view(*rows[:2], older, newer), STACK, back, planner())
    assert decision.verdict.row_ids == {'a': 'A', 'b': 'B', 'c': 'C'}
    assert of_kind(decision, UpdateResources) == []


def test_a_change_of_one_writes_it_and_what_it_reads():
    wanted, rows = chain('a', 'b', 'c')
    decision = planned({**wanted, 'c': replace(wanted['c'], properties={'x': 1})}, *rows)
    assert nodes(decision) == [
        ('UPDATE', 'b', 'DONE', 0, (1,)),
        ('UPDATE', 'c', 'READY', 0, (2,)),
        ('IN_SERVICE', None, 'WAITING', 1, (3,)),
        ('COMPLETE', None, 'WAITING', 1, ()),
    ]
    read, changed, *_ = only(decision, InsertTraversal).nodes
    assert (read.output, changed.requires) == (rows[1].output, (0,))


def test_a_delete_visits_rows_only_dependents_first():
    _, rows = chain('a', 'b')
    decision = planned({}, *rows, action=Action.DELETE)
    found = {node.resource_id: node for node in only(decision, InsertTraversal).nodes if node.resource_id}
    assert {key: (node.phase, node.waiting) for key, node in found.items()} == {
        'B': (Phase.CLEANUP, 0),
        'A': (Phase.CLEANUP, 1),
    }
    assert {node.phase for node in decision.verdict.ready} == {Phase.CLEANUP}
    inserted = only(decision, InsertTraversal)
    *_, in_service, complete = inserted.nodes
    assert (in_service.phase, in_service.status, complete.waiting) == (Phase.IN_SERVICE, NodeStatus.DONE, 1)
    assert inserted.traversal.in_service_at is not None
    update = only(decision, UpdateStack)
    assert (update.traversal_id, update.changes['action'], update.changes['template_id']) == ('V0', 'DELETE', 'T0')


def test_a_rollback_comes_back_to_the_row_of_its_template():
    """F012: and clears the pointer to what was to replace it."""
    old = row('R1', 'r', replaced_by='R2', created_at=1.0)
    new = row('R2', 'r', replaces='R1', template_id='T1', created_at=2.0)
    back = request(definitions(r=''), Action.ROLLBACK)
    back = replace(back, template=replace(back.template, id='T0'), is_new_template=False)
    decision = plan(
        plan_view(old, new, stack=RUNNING, traversal=TRAVERSAL), RUNNING, replace(back, traversal_id='V2'), planner()
    )
    assert decision.verdict.row_ids == {'r': 'R1'}
    assert (('R1',), {'replaced_by': None}) in [
        (effect.resource_ids, effect.changes) for effect in of_kind(decision, UpdateResources)
    ]
    assert of_kind(decision, InsertTemplate) == []


def test_a_running_traversal_is_superseded_and_a_finished_one_left_alone():
    decision = planned({}, stack=RUNNING, traversal=TRAVERSAL)
    ended = only(decision, EndTraversal)
    assert (ended.traversal_id, ended.status, decision.verdict.superseded) == ('V1', 'SUPERSEDED', 'V1')
    over = replace(TRAVERSAL, status=TraversalStatus.FAILED)
    decision = planned({}, stack=RUNNING, traversal=over)
    assert (of_kind(decision, EndTraversal), decision.verdict.superseded) == ([], None)


def test_the_time_limit_of_the_operation_counts_from_now():
    decision = planned({}, stack_changes={'timeout_mins': 2})
    assert only(decision, InsertTraversal).traversal.deadline == NOW + 120


def test_nothing_but_a_delete_follows_a_delete_that_goes_on():
    going = replace(STACK, action=Action.DELETE, status=Status.IN_PROGRESS)
    planned({}, stack=going, action=Action.DELETE)
    with pytest.raises(AssertionError, match='DELETE_IN_PROGRESS to UPDATE_IN_PROGRESS'):
        planned({}, stack=going)
    planned({}, stack=replace(going, status=Status.FAILED))


def test_a_plan_does_not_depend_on_the_order_of_the_rows():
    """F061."""
    wanted, rows = chain('a', 'b', 'c', 'd')
    wanted['a'] = replace(wanted['a'], properties={'x': 1})
    there = planned(wanted, *rows)
    back = planned(wanted, *reversed(rows))

    def shape(decision):
        return {
            (node.phase, node.name, node.resource_id, node.waiting, len(node.required_by))
            for node in only(decision, InsertTraversal).nodes
        }

    assert shape(there) == shape(back)
    assert {node.name for node in there.verdict.ready} == {node.name for node in back.verdict.ready}


@pytest.mark.parametrize('window', [1, 3, 100])
def test_a_backlog_is_chained_so_that_a_window_of_it_is_cast(window):
    wanted = definitions(**dict.fromkeys('abcdefgh', ''))
    decision = planned(wanted, window=window)
    written = {node.number: node for node in only(decision, InsertTraversal).nodes}
    cast = [node.number for node in decision.verdict.ready]
    assert len(cast) == min(window, 8)
    reached, waiting = set(), list(cast)
    while waiting:
        number = waiting.pop()
        reached.add(number)
        waiting += [written[number].next_in_backlog] if written[number].next_in_backlog is not None else []
    assert reached == {node.number for node in written.values() if node.status is NodeStatus.READY}


def test_every_node_is_required_as_often_as_it_waits():
    wanted, rows = chain('a', 'b', 'c', 'd', 'e')
    wanted['b'] = replace(wanted['b'], properties={'x': 1})
    decision = planned(wanted, *rows, row('X1', 'x', 'C'), row('Y1', 'y', 'X1'))
    written = only(decision, InsertTraversal).nodes
    arrivals = [number for node in written if node.status is not NodeStatus.DONE for number in node.required_by]
    assert {node.number: node.waiting for node in written if node.waiting} == {
        number: arrivals.count(number) for number in set(arrivals)
    }
    assert [node.number for node in written] == list(range(len(written)))
    for node in written:
        assert node.phase is Phase.IN_SERVICE or all(number > node.number for number in node.required_by)


def test_what_was_never_begun_fails_before_what_it_would_be_built_on_is_suspended():
    """It replaces something that is still in service, and awake."""
    wanted, (first, second) = chain('a', 'b')
    new = replace(second, id='NEW', action=Action.INIT, requires=(), template_id='T1')
    decision = planned(wanted, first, replace(second, replaced_by='NEW'), new, action=Action.SUSPEND)
    found = {node.name: node for node in only(decision, InsertTraversal).nodes if node.name}
    assert (found['b'].resource_id, found['b'].status) == ('NEW', NodeStatus.READY)
    assert found['a'].waiting == 1
    assert found['a'].number in found['b'].required_by


def test_a_check_looks_at_what_could_not_be_removed():
    left = row('X1', action=Action.DELETE, status=Status.FAILED)
    replaced = row('X2', replaced_by='X1')
    decision = planned({}, left, replaced, action=Action.CHECK)
    assert [node.resource_id for node in only(decision, InsertTraversal).nodes] == ['X1', None, None]
