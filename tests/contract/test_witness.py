"""A database that goes back, and clocks that differ: noticed by every process, told once, with the time it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from convergence.core.claim import Claim, Step
from convergence.core.model import Action, NodeStatus, Phase, Status
from convergence.core.rows import Node, Resource
from convergence.db.connections.counting import count
from convergence.db.repositories.roster import Roster
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.repositories.witness import CHECK_EVERY, DatabaseState, LostCommits, Witness, lost
from convergence.db.schema.models import DUTY, METADATA, SERVICE
from convergence.db.statements.store import Store
from convergence.worker.upkeep.result_journal import SURE_AFTER, ResultJournal
from tests.harness import Harness

LEASE_S = 10.0


class Watch:
    """The clock of a process, set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(engine: Any) -> Store:
    """A store with two processes that are known."""
    store = Store(engine, interval_s=0.0)
    for name in ('A', 'B'):
        Roster(store).register(name, 'worker', 'host', '1', LEASE_S)
    return store


def saved(store: Store) -> dict[str, list[Any]]:
    """All rows, as a standby has them that receives nothing from now on."""
    with store.reading() as connection:
        return {
            table.name: [dict(row._mapping) for row in connection.execute(table.select())]
            for table in METADATA.sorted_tables
        }


def restore(store: Store, rows: dict[str, list[Any]]) -> None:
    """That standby is what everybody uses now."""
    with store.writing() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(table.delete())
            if rows[table.name]:
                connection.execute(table.insert(), rows[table.name])
        connection.commit()


class Losses(list[LostCommits]):
    """What a witness has told of."""

    def after(self, act: Callable[[], object]) -> LostCommits | None:
        """What it has told of meanwhile."""
        told = len(self)
        act()
        assert len(self) <= told + 1
        return self[-1] if len(self) > told else None


def beaten(witness: Witness, told: Losses) -> LostCommits | None:
    """One heartbeat of a process that is known."""
    return told.after(lambda: witness.beat({}) or pytest.fail('the process is not known'))


def test_a_database_that_has_lost_commits_is_noticed_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    told = Losses()
    witness = Witness(store, 'A', LEASE_S, told.append)
    assert [beaten(witness, told) for _ in range(2)] == [None, None]
    standby = saved(store)
    assert [beaten(witness, told) for _ in range(3)] == [None, None, None]
    restore(store, standby)
    loss = beaten(witness, told)
    assert told == [loss]
    assert loss is not None and loss.since is not None and loss.since <= loss.until
    assert [beaten(witness, told) for _ in range(3)] == [None, None, None]
    errors = [record.getMessage() for record in caplog.records if record.levelname == 'ERROR']
    assert len(errors) == 1
    assert 'has lost commits made between 20' in errors[0]


def test_a_process_whose_own_heartbeat_was_not_lost_sees_it_by_the_sweeps(store: Store) -> None:
    witness, sweeps = Witness(store, 'A', LEASE_S), Sweeps(store)
    sweeps.take_duty('sweeper', 'E', 5.0)
    assert witness.check() is None
    standby = saved(store)
    sweeps.take_duty('sweeper', 'E', 5.0)
    assert witness.check() is None
    restore(store, standby)
    assert witness.check() is not None


def test_a_process_that_is_forgotten_and_comes_back_is_no_loss(store: Store) -> None:
    told = Losses()
    witness = Witness(store, 'A', LEASE_S, told.append)
    for _ in range(3):
        beaten(witness, told)
    Roster(store).leave('A')
    assert not witness.beat({})
    Roster(store).register('A', 'worker', 'host', '1', LEASE_S)
    assert beaten(witness, told) is None
    assert beaten(witness, told) is None


@pytest.mark.parametrize('beats', range(1, CHECK_EVERY + 2))
def test_a_process_that_registers_again_after_a_stall_has_lost_nothing(
    store: Store, caplog: pytest.LogCaptureFixture, beats: int
) -> None:
    """Another process removed it, at whatever moment: its heartbeats are counted from 0 again."""
    told = Losses()
    witness = Witness(store, 'A', LEASE_S, told.append)
    for _ in range(beats):
        beaten(witness, told)
    Roster(store).leave('A')
    assert not witness.beat({})
    Roster(store).register('A', 'worker', 'host', '1', LEASE_S)
    for _ in range(CHECK_EVERY + 2):
        assert beaten(witness, told) is None
    assert caplog.records == []


def test_a_check_before_the_row_was_removed_does_not_count(store: Store) -> None:
    """On MariaDB the check reads the row, and another server removes it before the heartbeat."""
    told = Losses()
    witness = Witness(store, 'A', LEASE_S, told.append)
    for _ in range(3):
        beaten(witness, told)
    witness.check()
    Roster(store).leave('A')
    Roster(store).register('A', 'worker', 'host', '1', LEASE_S)
    witness._count(False)
    assert [beaten(witness, told) for _ in range(3)] == [None, None, None]


def state(beats: int, beat_at: float, newest: float, now: float) -> DatabaseState:
    return DatabaseState(now, beats, beat_at, 9, newest, newest)


def test_a_loss_begins_at_the_own_heartbeat_that_is_left_and_ends_now() -> None:
    """A promotion takes minutes, and other processes are back before this one."""
    last = state(50, 999.0, 999.5, 1000.0)
    assert lost(last, state(46, 994.0, 1094.5, 1095.0), 95.0) == LostCommits(994.0, 1095.0)
    assert lost(last, state(49, 994.0, 998.0, 1001.0), 5.0) == LostCommits(994.0, 1005.0)
    assert lost(last, state(50, 999.0, 1004.0, 1005.0), 5.0) is None


def test_a_commit_whose_answer_was_lost_is_no_loss(store: Store) -> None:
    told = Losses()
    witness = Witness(store, 'A', LEASE_S, told.append)
    for _ in range(3):
        Roster(store).beat('A')
        assert beaten(witness, told) is None


def test_a_heartbeat_tells_of_the_process_and_is_one_statement_where_the_database_can_tell_that_all_is_as_expected(
    store: Store,
) -> None:
    witness, sent = Witness(store, 'A', LEASE_S), Counter[str]()
    witness.beat({})
    stop = count(store.engine, lambda kind: sent.update([kind]))
    with store.reading():
        pass
    sent.clear()
    assert witness.beat({'busy': 3})
    costs = {'postgresql': (1, 0), 'mysql': (1, 1), 'sqlite': (2, 1)}
    assert (sent['statements'], sent['commits']) == costs[store.engine.dialect.name]
    stop()
    (told,) = (each.load for each in Roster(store).services() if each.id == 'A')
    assert told == {'busy': 3, 'database': witness.server}
    assert bool(witness.server) is (store.engine.dialect.name != 'sqlite')


def test_a_process_looks_at_everything_with_every_sixth_heartbeat_at_least(store: Store) -> None:
    witness, sent, costs = Witness(store, 'A', LEASE_S), Counter[str](), []
    stop = count(store.engine, lambda kind: sent.update([kind]))
    for _ in range(2 * CHECK_EVERY + 1):
        sent.clear()
        assert witness.beat({})
        costs.append(sent['statements'])
    stop()
    often = {'postgresql': [1] * CHECK_EVERY, 'mysql': [1] * (CHECK_EVERY - 1) + [2], 'sqlite': [2] * CHECK_EVERY}
    assert costs[1:] == 2 * often[store.engine.dialect.name]


@pytest.mark.parametrize('beats', range(1, CHECK_EVERY + 2))
def test_with_each_heartbeat_it_is_noticed_that_sweeps_are_lost(store: Store, beats: int) -> None:
    """Also of those that a heartbeat has seen which looked at nothing else."""
    told, sweeps = Losses(), Sweeps(store)
    witness = Witness(store, 'A', LEASE_S, told.append)
    for _ in range(beats):
        sweeps.take_duty('sweeper', 'E', 5.0)
        beaten(witness, told)
    with store.writing() as connection:
        connection.execute(update(DUTY).where(DUTY.c.name == 'sweeper').values(turns=DUTY.c.turns - 1))
        connection.commit()
    assert beaten(witness, told) is not None
    assert [beaten(witness, told) for _ in range(CHECK_EVERY)] == [None] * CHECK_EVERY


@pytest.mark.parametrize('beats', range(1, CHECK_EVERY + 2))
def test_with_each_heartbeat_it_is_noticed_that_own_heartbeats_are_lost(store: Store, beats: int) -> None:
    told = Losses()
    witness = Witness(store, 'A', LEASE_S, told.append)
    for _ in range(beats + 1):
        standby = saved(store)
        beaten(witness, told)
    with store.writing() as connection:
        (was,) = (row['beats'] for row in standby[SERVICE.name] if row['id'] == 'A')
        connection.execute(update(SERVICE).where(SERVICE.c.id == 'A').values(beats=was))
        connection.commit()
    assert beaten(witness, told) is not None  # one heartbeat is enough
    assert beaten(witness, told) is None


@pytest.mark.parametrize('by_s', [-LEASE_S * 0.6, LEASE_S * 0.6])
def test_with_each_heartbeat_it_is_noticed_that_the_clock_has_jumped(
    store: Store, caplog: pytest.LogCaptureFixture, by_s: float
) -> None:
    watch = Watch()
    witness = Witness(store, 'A', LEASE_S, clock=watch)
    for _ in range(CHECK_EVERY + 2):
        assert witness.beat({})
        assert caplog.records == []
        watch.now -= by_s
        assert witness.beat({})
        assert [record.getMessage()[:37] for record in caplog.records] == ['The clock of the database has jumped ']
        caplog.clear()


def test_with_each_heartbeat_it_is_noticed_that_the_process_is_not_known_any_more(store: Store) -> None:
    witness = Witness(store, 'A', LEASE_S)
    for _ in range(CHECK_EVERY + 2):
        assert witness.beat({})
        Roster(store).leave('A')
        assert not witness.beat({})
        Roster(store).register('A', 'worker', 'host', '1', LEASE_S)
    assert witness.beat({})


def test_it_is_noticed_that_another_server_answers(store: Store) -> None:
    witness = Witness(store, 'A', LEASE_S)
    assert witness.beat({})
    here, witness.server = witness.server, 'another' if witness.server else ''
    assert witness.beat({})
    assert witness.server == here


def test_a_server_whose_clock_is_behind_is_told_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """By the heartbeat of another process, written by the clock of another server."""
    witness = Witness(store, 'A', LEASE_S)
    _beat_of_b(store, +60.0)
    for _ in range(3):
        witness.check()
    assert [record.getMessage()[:41] for record in caplog.records] == ['The clocks of the database servers differ']
    caplog.clear()
    _beat_of_b(store, -60.0)
    witness.check()
    assert caplog.records == []


def _beat_of_b(store: Store, by_s: float) -> None:
    with store.writing() as connection:
        moved = update(SERVICE).where(SERVICE.c.id == 'B').values(beat_at=SERVICE.c.beat_at + by_s)
        connection.execute(moved)
        connection.commit()


@pytest.mark.parametrize('by_s', [-60.0, 60.0])
def test_a_clock_that_jumps_is_told(store: Store, caplog: pytest.LogCaptureFixture, by_s: float) -> None:
    """As it does when another server takes over: measured against the clock of this process."""
    watch = Watch()
    witness = Witness(store, 'A', LEASE_S, clock=watch)
    witness.check()
    witness.check()
    assert caplog.records == []
    watch.now -= by_s
    witness.check()
    assert 'The clock of the database has jumped by' in caplog.text
    assert len(caplog.records) == 1


def test_a_worker_names_what_it_has_stored_in_the_time_that_is_lost(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """In its log, and in the events of the stacks that are still there."""
    harness = Harness(engine)
    stack = harness.created({'a': 'x'})
    row = harness.row(stack, 'a')
    worker = harness.workers[0]
    now = harness.reader.now()
    worker.journal.add_loss(LostCommits(now - 5.0, now))
    worker.journal.mend()
    assert not worker.journal.is_mending
    assert f'CREATE of a (Test::Thing, physical id {row.physical_id}, token {row.token}) may be lost' in caplog.text
    told = [event for event in harness.reader.events(stack) if 'has lost' in event.reason]
    assert [(event.resource_name, event.physical_id) for event in told] == [('a', row.physical_id)]
    caplog.clear()
    worker.journal.add_loss(LostCommits(now - 5000.0, now - 4000.0))
    worker.journal.mend()
    assert caplog.records == []


def test_what_belongs_to_a_stack_that_is_lost_too_is_in_the_log(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness(engine)
    stack = harness.stack(harness.created({'a': 'x'}))
    traversal = harness.reader.traversal(stack.traversal_id or '')
    assert traversal is not None
    kept = ResultJournal(
        harness.store, harness.dispatcher, harness.new_id, harness.reader.resource, harness.reader.traversal
    )
    row = Resource('R', 'gone', 'n', 'Test::Thing', Action.CREATE, Status.IN_PROGRESS, 0.0, token='T')
    node = Node('V', 0, Phase.UPDATE, NodeStatus.READY, 'n', 'R')
    lost_stack = replace(stack, id='gone')
    kept.add(Claim(Step.CREATE, Action.CREATE, row, node, lost_stack, traversal, at=5.0), 'object-1', True)
    kept.add_loss(LostCommits(None, 10.0))
    assert 'Stack gone: result of CREATE of n (Test::Thing, physical id object-1, token T) may be lost' in caplog.text
    kept.mend()
    assert (
        'Stack gone does not exist any more; check the object and delete it if it is not needed: CREATE of n'
        in caplog.text
    )
    assert not kept.is_mending


def test_a_worker_notices_itself_that_its_newest_result_is_lost(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    """What was lost between two heartbeats nobody else sees. Then its update is in doubt; a server may lag a while."""
    harness = Harness(engine)
    stack = harness.created({'a': 'x'})
    row, stored = harness.row(stack, 'a'), harness.stack(stack)
    traversal = harness.reader.traversal(stored.traversal_id or '')
    assert traversal is not None
    watch = Watch()
    kept = ResultJournal(
        harness.store,
        harness.dispatcher,
        harness.new_id,
        harness.reader.resource,
        harness.reader.traversal,
        watch,
    )
    node = Node(traversal.id, 0, Phase.UPDATE, NodeStatus.DONE, 'a', row.id)
    claimed = replace(row, action=Action.UPDATE, owner='W', fence=row.fence + 1)
    kept.add(Claim(Step.UPDATE, Action.UPDATE, claimed, node, stored, traversal, at=5.0), row.physical_id, False)
    kept.check()
    watch.now += 30.0
    kept.check()
    assert not kept.is_mending
    watch.now += 31.0
    kept.check()
    kept.mend()
    assert 'Commits of this process lost by the database' in caplog.text
    doubted = harness.row(stack, 'a')
    assert (doubted.action, doubted.status) == (Action.UPDATE, Status.FAILED)
    assert 'has lost commits' in doubted.status_reason


def journal_with(harness: Harness, watch: Watch, *claims: Claim) -> ResultJournal:
    """The journal of a worker that has just finished some actions."""
    journal = ResultJournal(
        harness.store, harness.dispatcher, harness.new_id, harness.reader.resource, harness.reader.traversal, watch
    )
    for claim in claims:
        journal.add(claim, f'object-of-{claim.resource.name}', True)
    return journal


def claimed(harness: Harness, name: str, action: Action, traversal_id: str | None = None) -> Claim:
    """A claim of a row that is not in the database, of a stack that is."""
    stack = harness.stack(harness.created({'a': 'x'}))
    traversal = harness.reader.traversal(stack.traversal_id or '')
    assert traversal is not None
    row = Resource(f'gone-{name}', stack.id, name, 'Test::Thing', action, Status.IN_PROGRESS, 0.0, token='T')
    node = Node(traversal.id, 0, Phase.UPDATE, NodeStatus.READY, name, row.id)
    traversal = replace(traversal, id=traversal_id or traversal.id)
    return Claim(Step.CREATE, action, row, node, stack, traversal, at=5.0)


def test_a_result_is_named_whose_action_began_long_before_the_loss(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    harness, watch = Harness(engine), Watch()
    journal = journal_with(harness, watch, claimed(harness, 'slow', Action.CREATE))
    watch.now += 4.0
    journal.add_loss(LostCommits(990.0, 1004.0))
    assert 'CREATE of slow (Test::Thing, physical id object-of-slow, token T) may be lost' in caplog.text
    caplog.clear()
    watch.now += 1000.0
    journal.add_loss(LostCommits(1900.0, 1904.0))
    assert caplog.records == []


@pytest.mark.parametrize(
    ('action', 'traversal_id', 'is_noticed'),
    [(Action.CREATE, 'gone', True), (Action.CREATE, None, False), (Action.DELETE, 'gone', False)],
)
def test_a_result_whose_row_and_operation_are_gone_is_lost(
    engine: Any, caplog: pytest.LogCaptureFixture, action: Action, traversal_id: str | None, is_noticed: bool
) -> None:
    """A row that is gone may have been deleted since; a deleted stack keeps its operations, until it is purged."""
    harness, watch = Harness(engine), Watch()
    journal = journal_with(harness, watch, claimed(harness, 'n', action, traversal_id))
    for _ in range(SURE_AFTER):
        journal.check()
        watch.now += 15.0
    assert ('Commits of this process lost by the database' in caplog.text) is is_noticed
    assert journal.is_mending is is_noticed


def test_a_newest_result_that_several_heartbeats_have_seen_is_not_looked_up_any_more(engine: Any) -> None:
    """Whatever loses it then loses those as well."""
    harness, looked_up = Harness(engine), Counter[str]()

    def row(resource_id: str) -> Resource | None:
        looked_up[resource_id] += 1
        return harness.reader.resource(resource_id)

    stack = harness.stack(harness.created({'a': 'x', 'b': 'x'}))
    traversal = harness.reader.traversal(stack.traversal_id or '')
    assert traversal is not None
    kept = ResultJournal(harness.store, harness.dispatcher, harness.new_id, row, harness.reader.traversal)
    for name in ('a', 'b'):
        stored = harness.row(stack.id, name)
        claim = Claim(
            Step.CREATE, Action.CREATE, stored, Node('V', 0, Phase.UPDATE, NodeStatus.READY, name), stack, traversal
        )
        kept.add(claim, stored.physical_id, True)
        for _ in range(SURE_AFTER + 3):
            kept.check()
        assert looked_up[stored.id] == SURE_AFTER
