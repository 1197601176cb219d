"""What every database does with credentials of stacks: none that a stack needs goes, and all others do."""

import threading

import pytest
from sqlalchemy import delete, insert, text, update

from convergence import errors
from convergence.credentials.model import CredentialsStatus, Method, StoredCredentials
from convergence.db.repositories.credentials import CredentialRows
from convergence.db.schema.models import SNAPSHOT_ITEM, STACK
from convergence.db.scopes import NewStack
from convergence.engine.sweeper.tasks import SweepOptions
from tests.harness import Harness, hot

THING = {'it': {'type': 'Test::Thing', 'value': 'x'}}
INNER = {'it': {'type': 'Test::Thing', 'properties': {'value': 'x'}}}
ITEM = {'snapshot_id': 'S', 'resource_id': 'R', 'name': 'it', 'type': 'T', 'properties': {}, 'data': {}, 'kept': {}}


@pytest.fixture
def harness(engine):
    return Harness(engine)


@pytest.fixture
def rows(harness):
    return CredentialRows(harness.store, again_s=0.0)


def plan(rows, id_='C'):
    """Credentials that are about to be made; what a request brings of them."""
    content = {'secret': 'canary-81', 'roles': ['member']}
    rows.plan(StoredCredentials(id_, 'p', 'ann', Method.TRUSTS, CredentialsStatus.PLANNED, content))
    return {'id': id_, 'made': {'trust_id': f'T-{id_}'}}


def create(harness, credentials, resources=THING, **more):
    identity = harness.stacks.create_stack(harness.context, 's', hot(resources), credentials=credentials, **more)
    harness.run()
    return identity


def unwanted(rows):
    """Those that are to go now, however young they are."""
    rows.drop_unwanted(-1.0, 10)
    return [each.id for each in rows.take_unwanted(10)]


def test_what_a_stack_has_stays_until_the_stack_and_all_that_it_has_left_are_gone(harness, rows):
    identity = create(harness, plan(rows))
    assert rows.one('C').content == {'secret': 'canary-81', 'roles': ['member'], 'trust_id': 'T-C'}
    assert (rows.one('C').stack_id, rows.of_stack(identity['stack_id'])) == (identity['stack_id'], 'C')
    harness.stacks.delete_stack(harness.context, identity)
    assert unwanted(rows) == []
    harness.run()
    with harness.engine.begin() as connection:
        connection.execute(insert(SNAPSHOT_ITEM), {**ITEM, 'stack_id': identity['stack_id']})
    assert unwanted(rows) == []
    with harness.engine.begin() as connection:
        connection.execute(delete(SNAPSHOT_ITEM))
    assert unwanted(rows) == ['C']
    assert unwanted(rows) == []  # one who removes them is enough
    taken = rows.one('C')
    rows.not_yet(taken, 'Keystone is away')
    assert (rows.one('C').attempts, rows.one('C').reason) == (1, 'Keystone is away')
    assert unwanted(rows) == ['C']
    rows.forget('C')
    assert rows.one('C') is None


def test_what_was_replaced_goes_when_nothing_runs_with_it_any_more(harness, rows):
    identity = create(harness, plan(rows))
    harness.stacks.update_stack(harness.context, identity, hot({}), credentials=plan(rows, 'D'))
    assert rows.of_stack(identity['stack_id']) == 'D'
    assert unwanted(rows) == []
    harness.run()
    assert unwanted(rows) == ['C']
    with pytest.raises(errors.ActionInProgress, match='Another request has updated'):
        harness.stacks.update_stack(harness.context, identity, hot({}), credentials={'id': 'C'})
    harness.stacks.update_stack(harness.context, identity, hot({}), credentials={'id': 'D'})


def test_what_no_stack_got_goes_after_a_while_and_no_stack_gets_it_then(harness, rows):
    brought = plan(rows)
    assert rows.drop_unwanted(60.0, 10) == 0
    assert unwanted(rows) == ['C']
    with pytest.raises(errors.ActionInProgress):
        create(harness, brought)
    # Between the two transactions of a request that stood still for very long.
    harness.store.before(NewStack, lambda: rows.drop_unwanted(-1.0, 10))
    with pytest.raises(errors.ActionInProgress):
        create(harness, plan(rows, 'D'))
    assert harness.reader.stack_named('p', 's') is None


def test_a_stack_that_gets_them_and_who_removes_them_do_not_pass_each_other(harness, rows):
    """Whatever comes first: a stack has them and they stay, or they go and no stack has them."""
    for number in range(6):
        brought, refused = plan(rows, f'C{number}'), []
        other = threading.Thread(target=rows.drop_unwanted, args=(-1.0, 10))
        try:
            other.start()
            harness.stacks.create_stack(harness.context, f's{number}', hot({}), credentials=brought)
        except errors.ActionInProgress as error:
            refused.append(error)
        other.join()
        stays = rows.one(f'C{number}').status is CredentialsStatus.MADE
        assert stays == (harness.reader.stack_named('p', f's{number}') is not None) == (not refused)


def test_what_is_nested_has_those_of_the_root_and_keeps_them_when_it_stays_alone(harness, rows):
    inner = {'heat_template_version': '2018-08-31', 'resources': INNER}
    nested = {'n': {'type': 'OS::Heat::Stack', 'deletion_policy': 'retain', 'template': str(inner)}}
    identity = create(harness, plan(rows), nested)
    child = next(row for row in harness.reader.resources(identity['stack_id'])).physical_id
    assert harness.stack(child).credentials_id is None
    assert rows.of_stack(child) == 'C'
    harness.stacks.delete_stack(harness.context, identity)
    harness.run()
    harness.sweep_tasks(SweepOptions()).released_nested()
    assert harness.stack(child).parent_id is None
    assert (harness.stack(child).credentials_id, unwanted(rows)) == ('C', [])
    with harness.engine.begin() as connection:  # as long as nobody has let go of it
        held = {'credentials_id': None, 'root_id': identity['stack_id']}
        connection.execute(update(STACK).where(STACK.c.id == child).values(**held))
    assert unwanted(rows) == []
    harness.stacks.delete_stack(harness.context, {'stack_id': child})
    harness.run()
    assert unwanted(rows) == ['C']


def test_a_row_that_cannot_be_read_hides_nothing_else(harness, rows):
    """F089, F187"""
    identity = create(harness, plan(rows))
    with harness.engine.begin() as connection:
        connection.execute(text("UPDATE credentials SET content = 'gAAAA-damaged'"))
    found = rows.one('C')
    assert found.content is None
    with pytest.raises(errors.CredentialsRefused, match='cannot be read'):
        assert found.readable
    harness.stacks.delete_stack(harness.context, identity)
    harness.run()
    assert unwanted(rows) == ['C']
