"""What types tell of is looked at at once; what they leave out is looked at when it is time."""

import threading
import time

import pytest

from convergence.core.observation import ObservationSource, ObservedState
from convergence.dispatch import Dispatcher
from convergence.errors import DatabaseUnavailable
from convergence.observer.watching import NotificationReader, Waker, WatchService
from convergence.resources.contract import InProgress
from tests.harness import Harness, things
from tests.observing import Observing

LONG_S = 30.0
TYPE = 'Test::Thing'


@pytest.fixture
def harness():
    return Harness(None)


class Watched:
    """A type whose objects are watched: tells of what a test says.

    :ivar wanted: what is to be watched, by watcher.
    """

    def __init__(self, fails=()):
        self.tell = lambda physical_id: None
        self.wanted, self.closed, self.begun = frozenset(), False, 0
        self.fails = list(fails)

    def watcher(self, tell):
        self.tell, self.begun = tell, self.begun + 1
        return self

    def watch(self, physical_ids):
        if self.fails:
            raise self.fails.pop(0)
        self.wanted = frozenset(physical_ids)

    def close(self):
        self.closed = True


class Setting:
    """A stack whose objects are observed, all of them seen, and due again in a long time."""

    def __init__(self, harness, names='ab', **watched):
        self.harness, self.observing, self.type = harness, Observing(harness), Watched(**watched)
        self.stack_id = harness.create(things(list(names)))
        harness.run()
        self.observing.look()
        self.hurried = threading.Event()
        ports = harness.ports
        waking = Waker(ports.store, Dispatcher(ports.store, harness.messages, harness.new_id))
        self.watching = WatchService(ports.watched, ports.observations, {TYPE: self.type}, self.hurried.set, waking)

    def physical_id(self, name):
        return next(row.physical_id for row in self.harness.reader.resources(self.stack_id) if row.name == name)

    def observed_at(self):
        """Who looks now looks at these, and why."""
        before = {name: each.observed_at for name, each in self.observing.known(self.stack_id).items()}
        self.observing.look()
        after = self.observing.known(self.stack_id)
        return {name: each.source for name, each in after.items() if each.observed_at != before[name]}


def test_what_is_told_of_is_due_at_once_and_nothing_else_is(harness):
    setting = Setting(harness)
    setting.watching.refresh()
    assert setting.type.wanted == {setting.physical_id('a'), setting.physical_id('b')}
    del harness.reality.objects[setting.physical_id('a')]
    assert setting.observed_at() == {}, 'it is not time yet'
    setting.type.tell(setting.physical_id('a'))
    setting.type.tell('of somebody else')
    assert setting.watching.deliver() == 1
    assert setting.hurried.is_set()
    assert setting.observed_at() == {'a': ObservationSource.NOTIFICATION}
    assert setting.observing.known(setting.stack_id)['a'].found is ObservedState.GONE
    assert (setting.watching.deliver(), setting.observed_at()) == (0, {})


def test_what_is_told_of_while_somebody_looks_is_looked_at_again(harness):
    setting = Setting(harness, 'a')
    rows = setting.observing.rows
    rows.request([setting.stack_id], ObservationSource.REQUEST)
    (leased,) = rows.lease('A', 10, 1000.0)
    setting.watching.refresh()
    setting.type.tell(setting.physical_id('a'))
    setting.watching.deliver()
    assert rows.lease('B', 10, 1000.0) == [], 'somebody looks already'
    assert leased.observation.holder == 'A'
    assert setting.observing.known(setting.stack_id)['a'].requested_by is ObservationSource.NOTIFICATION


def test_what_is_told_of_while_its_stack_is_busy_is_looked_at_when_that_rests(harness):
    setting = Setting(harness, 'a')
    setting.watching.refresh()
    harness.update(setting.stack_id, things(['a'], 'new'))
    setting.type.tell(setting.physical_id('a'))
    setting.watching.deliver()
    assert setting.observing.observer.turn() == 0, 'nobody can compare it now'
    harness.run()
    setting.observing.schedule()
    assert setting.observed_at() == {'a': ObservationSource.NOTIFICATION}


def test_a_parked_action_is_polled_at_once_when_its_object_is_told_of_and_a_spurious_word_does_no_harm(harness):
    setting = Setting(harness, 'a')
    setting.watching.refresh()
    busy = [InProgress({'round': number}, poll_after_s=1e6) for number in range(3)]
    harness.reality.once['update', 'a'] = [lambda call: busy[0]]
    harness.reality.once['poll', 'a'] = [lambda call: busy[1]]
    harness.update(setting.stack_id, things(['a'], 'new'))
    deliver_all(harness)
    assert harness.state(setting.stack_id) == 'UPDATE_IN_PROGRESS'
    assert harness.messages.checks == [], 'it waits in its row'
    for state in ('UPDATE_IN_PROGRESS', 'UPDATE_COMPLETE'):
        setting.type.tell(setting.physical_id('a'))
        assert setting.watching.deliver() == 1
        assert len(harness.messages.checks) == 1
        deliver_all(harness)
        assert harness.state(setting.stack_id) == state
    setting.type.tell(setting.physical_id('a'))
    setting.watching.deliver()
    assert harness.messages.checks == [], 'nothing waits for it'


def deliver_all(harness):
    """Deliver what was sent, and let no time pass."""
    while harness.messages.checks:
        harness.deliver()


def test_a_watcher_begins_with_the_first_object_follows_what_is_observed_and_ends_with_the_process(harness):
    setting = Setting(harness, 'a')
    harness.delete(setting.stack_id)
    harness.run()
    setting.observing.look()
    setting.watching.refresh()
    assert setting.type.begun == 0
    setting.stack_id = harness.create(things(['c']), name='another')
    harness.run()
    setting.observing.look()
    setting.watching.refresh()
    assert setting.type.wanted == {setting.physical_id('c')}
    harness.delete(setting.stack_id)
    harness.run()
    setting.observing.look()
    setting.watching.refresh()
    assert (setting.type.wanted, setting.type.begun) == (frozenset(), 1)
    setting.watching.start()
    assert setting.watching.stop(LONG_S)
    assert setting.type.closed


def test_a_watcher_that_fails_is_told_of_once_and_asked_again(harness, caplog):
    setting = Setting(harness, 'a', fails=[OSError('no more watches'), OSError('no more watches')])
    for _ in range(3):
        setting.watching.refresh()
    assert setting.type.wanted == {setting.physical_id('a')}
    assert caplog.text.count('no more watches') == 1


def test_what_is_told_while_the_database_is_away_is_not_lost(harness, monkeypatch):
    setting = Setting(harness, 'a')
    setting.watching.refresh()
    setting.type.tell(setting.physical_id('a'))
    usual = harness.ports.watched.targets_of
    monkeypatch.setattr(setting.watching, '_watched', type('Away', (), {'targets_of': away})())
    with pytest.raises(DatabaseUnavailable):
        setting.watching.deliver()
    monkeypatch.setattr(setting.watching, '_watched', type('Back', (), {'targets_of': staticmethod(usual)})())
    assert setting.watching.deliver() == 1


def away(*_):
    """The database does not answer."""
    raise DatabaseUnavailable('away')


def test_a_database_that_is_away_is_said_once_however_often_it_is_tried(harness, monkeypatch, caplog):
    setting, tried = Setting(harness, 'a'), threading.Semaphore(0)

    def targets_of(*_):
        tried.release()
        raise DatabaseUnavailable('away')

    monkeypatch.setattr('convergence.observer.watching.PAUSE_S', 0.0)
    monkeypatch.setattr(
        setting.watching, '_watched', type('Away', (), {'targets_of': staticmethod(targets_of), 'objects': away})()
    )
    setting.watching.report(TYPE, setting.physical_id('a'))
    setting.watching.start()
    try:
        assert all(tried.acquire(timeout=LONG_S) for _ in range(4))
    finally:
        assert setting.watching.stop(LONG_S)
    assert [each.getMessage() for each in caplog.records if 'retrying' in each.getMessage()] == [
        'Watched objects cannot be read or stored, retrying: away'
    ]


class Listening:
    """A type that reads notifications, and stumbles over some."""

    def notified(self, event_type, payload):
        return [payload['id']] if event_type.startswith('thing.') else []


def test_a_notification_of_a_service_is_about_the_objects_that_its_types_find_in_it(harness):
    setting = Setting(harness)
    reader = NotificationReader({TYPE: Listening()}, setting.watching.report)
    for event_type, payload in (
        ('thing.deleted', {'id': setting.physical_id('b')}),
        ('thing.deleted', {'id': 'of somebody else'}),
        ('thing.deleted', {}),
        ('thing.deleted', 'nonsense'),
        ('other.deleted', {'id': setting.physical_id('a')}),
    ):
        reader(event_type, payload)
    assert setting.watching.deliver() == 1
    assert setting.observed_at() == {'b': ObservationSource.NOTIFICATION}


def test_a_process_that_watches_needs_nobody_to_ask(harness):
    setting = Setting(harness, 'a')
    setting.watching.start()
    try:
        ends = time.monotonic() + LONG_S
        while not setting.type.wanted and time.monotonic() < ends:
            time.sleep(0.01)
        setting.type.tell(setting.physical_id('a'))
        assert setting.hurried.wait(LONG_S)
        assert setting.observed_at() == {'a': ObservationSource.NOTIFICATION}
    finally:
        assert setting.watching.stop(LONG_S)


def test_an_observer_that_is_hurried_does_not_wait_until_it_is_time(harness):
    setting = Setting(harness, 'a')
    observing = Observing(harness, idle_s=1e6)
    observing.observer.start()
    try:
        ends = time.monotonic() + LONG_S
        setting.observing.rows.request([setting.stack_id], ObservationSource.NOTIFICATION)
        observing.observer.hurry()
        while (
            observing.known(setting.stack_id)['a'].source is not ObservationSource.NOTIFICATION
            and time.monotonic() < ends
        ):
            time.sleep(0.01)
        assert observing.known(setting.stack_id)['a'].source is ObservationSource.NOTIFICATION
    finally:
        assert observing.observer.stop(LONG_S)
