"""What operations cost: commits, statements and messages, which no machine makes slower or quicker."""

from itertools import pairwise

import pytest
from sqlalchemy import event

from convergence.core.digest import digest
from convergence.core.effects import InsertTraversal, UpdateResources
from convergence.core.model import Action, Definition, Goal, Output, Status
from convergence.core.observation import ObservationSource
from convergence.core.plan import plan
from convergence.core.request import Planner, Request
from convergence.core.rows import Resource, Stack, Template
from convergence.core.views import PlanView
from convergence.db.connections.counting import count
from convergence.db.records import Keep
from convergence.db.repositories.sweeps import Sweeps
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.drift.observation_schedule import ObservationScheduler
from convergence.engine.reads.stacks import StackReads
from convergence.template.limits import Limits
from tests.engine.test_nested import CHILD, create, nested, update
from tests.harness import Harness, emptied, things
from tests.observing import Observing


class Counted:
    """Commits and statements while it is open, as the driver sends them; what begins a transaction is no statement.

    A look whether a connection is there is a statement.
    """

    def __init__(self, engine):
        self.engine, self.commits, self.statements = engine, 0, 0

    def __enter__(self):
        self._stop = count(self.engine, self._note)
        with self.engine.connect() as connection:  # what a new connection costs is not counted
            connection.exec_driver_sql('SELECT 1')
        self.commits = self.statements = 0
        return self

    def __exit__(self, *raised):
        self._stop()

    def _note(self, kind):
        self.commits += kind == 'commits'
        self.statements += kind == 'statements'


def chain(size):
    """Each requires the one before."""
    names = [f'n{number}' for number in range(size)]
    return {name: {'value': 'x', 'after': names[max(0, number - 1) : number]} for number, name in enumerate(names)}


def independent(size):
    """None requires another."""
    return things([f'n{number}' for number in range(size)])


def cost_of(harness, resources, operation):
    """Commits and statements from the first message to the last."""
    stack = harness.create(resources, name=f's{len(resources)}')
    if operation != 'create':
        harness.run(limit=5000)
    if operation == 'delete':
        harness.delete(stack)
    elif operation == 'update':
        harness.update(stack, {name: {**resource, 'value': 'y'} for name, resource in resources.items()})
    with Counted(harness.engine) as counted:
        harness.run(limit=5000)
    assert harness.state(stack) == f'{operation.upper()}_COMPLETE'
    return counted.commits, counted.statements


@pytest.mark.parametrize(
    ('operation', 'shape', 'sizes'),
    [
        ('create', independent, (20, 80, 320)),
        ('create', chain, (20, 40, 80)),
        ('update', independent, (20, 40, 80)),
        ('update', chain, (20, 40, 80)),
        ('delete', independent, (20, 40, 80)),
        ('delete', chain, (20, 40, 80)),
    ],
)
def test_a_resource_costs_the_same_in_a_large_stack(engine, operation, shape, sizes):
    """F143, F145, F147: at most three commits and fourteen statements for each, and no more of them among many.

    PostgreSQL takes several at once.

    What is counted is what each further resource costs; the end of a traversal costs the same for all. All stacks are
    larger than the window of bounded dispatch, behind which a resource may cost one statement more.
    """
    harness = Harness(engine, window=8)
    costs = [cost_of(harness, shape(size), operation) for size in sizes]
    further = []
    for (fewer, less), (more, larger) in pairwise(zip(sizes, costs, strict=True)):
        further.append([(above - below) / (more - fewer) for below, above in zip(less, larger, strict=True)])
    (commits, statements), among_many = further
    assert commits <= 3.0
    assert statements <= (5.1 if engine.dialect.name == 'postgresql' else 9.1)
    assert among_many[0] <= commits
    assert among_many[1] <= statements


def test_a_link_of_a_chain_that_a_worker_goes_on_with_costs_no_message(engine):
    """It is claimed by the transaction that makes it ready: a commit less than one of which a worker is told.

    What it gets from the one before is known there, and is not read: a statement less. And its row and its node are
    read in one.
    """
    costs = []
    for max_inline_nodes in (1, 100):
        harness = Harness(engine, max_inline_nodes=max_inline_nodes)
        costs.append((*cost_of(harness, chain(20), 'create'), harness.messages.sent))
        emptied(engine)
    (commits, statements, _), (fewer, less, _) = costs
    assert (commits - fewer, statements - less) == (19, 38)
    assert [sent for _, _, sent in costs] == [20, 1]


@pytest.mark.parametrize('size', [100, 1000])
def test_accepting_a_create_costs_statements_per_thousand_resources(harness, size):
    """F146: nodes and rows are written in bulk."""
    with Counted(harness.engine) as accepted:
        harness.create(independent(size))
    assert accepted.commits == 1
    assert accepted.statements <= 15


@pytest.mark.parametrize('size', [1, 100])
def test_looking_at_what_is_as_before_costs_the_same_whatever_the_number_of_objects(harness, size):
    """Three statements to lease a batch, and two to write it."""
    stack, observing = harness.created(independent(size)), Observing(harness)
    observing.look(stack)  # what is seen for the first time is written by itself
    observing.rows.request([stack], ObservationSource.REQUEST)
    with Counted(harness.engine) as counted:
        assert observing.observer.turn() == size
    assert (counted.statements, counted.commits) == (6, 2)


def test_where_nothing_is_observed_an_observer_and_an_engine_ask_one_question_each(harness):
    harness.created(independent(20))
    observing = Observing(harness, intervals={})
    assert observing.schedule() == 0
    with Counted(harness.engine) as counted:
        assert observing.observer.turn() == 0
    assert counted.statements == 1
    harness.roster.leave('observer')
    with Counted(harness.engine) as counted:
        assert ObservationScheduler(harness.ports.observations, harness.reader, {'Test::Thing': 1.0})() == 0
    assert (counted.statements, counted.commits) == (1, 0)


def test_the_nodes_of_many_small_operations_are_removed_as_quickly_as_those_of_one(harness):
    """After an update of many nested stacks there are as many operations that are over."""
    sweeps = Sweeps(harness.store, Keep(events=1000, operations=10))
    figures = []
    for number in (1, 20):
        for each in range(number):
            harness.created(independent(2), name=f's{number}-{each}')
        with Counted(harness.engine) as counted:
            assert sweeps.purge_nodes(100) == 4 * number
        figures.append((counted.statements, counted.commits))
    assert figures[0] == figures[1]


def test_a_wide_fan_in_writes_no_more_than_its_edges(harness):
    """F143: a thousand predecessors of one node: each counts itself, nobody rewrites what the others said."""
    names = [f'n{number}' for number in range(200)]
    stack = harness.create({**things(names), 'last': {'value': 'x', 'after': names}})
    with Counted(harness.engine) as counted:
        harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert counted.statements / 201 <= 9.0


def test_an_update_costs_what_it_changes(harness):
    """One of two hundred changes: as many statements as when one of twenty does."""
    figures = []
    for size in (20, 200):
        resources = independent(size)
        stack = harness.created(resources, name=f's{size}')
        sent = harness.messages.sent
        with Counted(harness.engine) as counted:
            harness.update(stack, {**resources, 'n0': {'value': 'y'}})
            harness.run()
        assert harness.state(stack) == 'UPDATE_COMPLETE'
        assert harness.messages.sent - sent == 1
        figures.append(counted.statements)
    assert figures[0] == figures[1]


def test_a_no_op_update_of_ten_thousand_resources_visits_none():
    """Two nodes are written, those that end the traversal, and no row of a resource; nothing is cast."""
    definitions = {f'n{number}': Definition(f'n{number}', 'T') for number in range(9000)}
    definitions |= {f'm{number}': Definition(f'm{number}', 'T', requires=(f'n{number}',)) for number in range(1000)}
    outputs, rows = {}, []
    for name, definition in definitions.items():
        outputs[name] = Output(name, name)
        rows.append(
            Resource(
                name,
                's',
                name,
                'T',
                Action.CREATE,
                Status.COMPLETE,
                1.0,
                definition=definition,
                template_id='t0',
                output=outputs[name],
                digest=digest(definition, outputs),
                requires=definition.requires,
            )
        )
    stack = Stack('s', 's', 'p', Action.CREATE, Status.COMPLETE, '', 't0', 't0', None, 60, True, 0.0)
    request = Request(
        Action.UPDATE, Goal(definitions), template=Template('t1', 's', {}), is_new_template=True, traversal_id='u'
    )
    decision = plan(PlanView(2.0, stack, None, tuple(rows)), stack, request, Planner(lambda: 'e'))
    (traversal,) = [effect for effect in decision.effects if isinstance(effect, InsertTraversal)]
    assert [node.phase.value for node in traversal.nodes] == ['IN_SERVICE', 'COMPLETE']
    assert [node.phase.value for node in decision.verdict.ready] == ['IN_SERVICE']
    assert traversal.traversal.unchanged == 10_000
    assert not [effect for effect in decision.effects if isinstance(effect, UpdateResources)]


def grown(engine, before, after):
    """What it costs that a group of nested stacks gets other members: commits, statements and messages."""
    harness = Harness(emptied(engine), window=8)
    files = {CHILD: nested()}

    def resources(count):
        member = {'type': CHILD, 'properties': {'value': 'x'}}
        return {'group': {'type': 'OS::Heat::ResourceGroup', 'count': count, 'resource_def': member}}

    stack = create(harness, resources(before), files)
    harness.run(limit=20000)
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    told, steps = harness.messages.sent, len(harness.reality.journal)
    update(harness, stack, resources(after), files)
    with Counted(harness.engine) as counted:
        harness.run(limit=20000)
    assert harness.state(stack) == 'UPDATE_COMPLETE', harness.stack(stack).status_reason
    assert [each[0] for each in harness.reality.journal[steps:]].count('create') == after - before
    return counted.commits, counted.statements, harness.messages.sent - told


def test_a_member_more_costs_the_same_in_a_large_group(engine):
    """F124, F128, F149: none of the others is touched; each further nested stack costs what the one before has cost."""
    small, large = grown(engine, 4, 5), grown(engine, 40, 41)
    assert small == large
    one, two, three = grown(engine, 4, 5), grown(engine, 4, 6), grown(engine, 4, 7)
    further = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise((one, two, three))]
    assert further[0] == further[1]
    commits, statements, messages = further[0]
    assert (commits, statements, messages) == (7, 42, 2), 'of the stack and of the one thing in it'


def removed(engine, count):
    """What it costs to delete so many nested stacks of a thing each: commits, statements and messages."""
    harness = Harness(emptied(engine), window=16)
    children = {f'child{number}': {'type': CHILD, 'value': 'x'} for number in range(count)}
    stack = create(harness, children, {CHILD: nested()})
    harness.run(limit=20000)
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    harness.delete(stack)
    told = harness.messages.sent
    with Counted(harness.engine) as counted:
        harness.run(limit=20000)
    assert harness.state(stack) == 'DELETE_COMPLETE'
    return counted.commits, counted.statements, harness.messages.sent - told


def test_to_delete_a_nested_stack_costs_the_same_among_many(engine):
    """One request, one plan, and what is in it; nobody has to say that all is up of what wants nothing."""
    two, four, eight = (removed(engine, count) for count in (2, 4, 8))
    further = [
        tuple((b - a) / more for a, b in zip(*pair, strict=True))
        for pair, more in (((two, four), 2), ((four, eight), 4))
    ]
    assert further[0] == further[1]
    commits, statements, messages = further[0]
    assert (commits, statements, messages) == (5, 35, 1), 'of the stack and of the one thing in it'


def test_to_look_at_a_stack_reads_what_is_shown_of_its_template_and_no_more(harness):
    """However large that is, and whichever engine has compiled it."""
    stack = harness.created(independent(50))
    reader = StackReads(harness.reader, TemplateCompiler(harness.reader, harness.registry, Limits()))
    statements = []
    listened = (harness.engine, 'before_cursor_execute', lambda *said: statements.append(said[2]))
    event.listen(*listened)
    try:
        (shown,) = reader.show_stack(harness.context, {'stack_id': stack, 'stack_name': 's'}, resolve_outputs=False)
        reader.list_stacks(harness.context)
    finally:
        event.remove(*listened)
    assert shown['parameters']['OS::stack_id'] == stack
    assert [each for each in statements if 'template.content' in each or 'resource' in each.split('FROM')[1]] == []
    assert 0 < len(statements) <= 4
