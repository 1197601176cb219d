"""The lease of a process: renewed, lost, and noticed to be lost, whatever holds a renewal up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from convergence import lifetime
from convergence.db.records import Service
from convergence.heartbeat import Heartbeat, Presence

PATIENCE_S = 60.0
FOR_EVER = 1e6


class Roster:
    """A roster that answers when and what the test says.

    :ivar answers: what the next beats answer; an exception is raised, a function called first. Then True.
    """

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.registered = 0
        self.others: list[Service] = []
        self.gone: list[str] = []
        self.left = threading.Event()
        self.beats = 0
        self.beaten = threading.Condition()

    def register(self, *row: object) -> None:
        """Somebody is there."""
        self.registered += 1

    def beat(self, service_id: str, load: object = None) -> bool:
        """Somebody is still there."""
        answer = self.answers.pop(0) if self.answers else True
        if callable(answer):
            answer = answer()
        with self.beaten:
            self.beats += 1
            self.beaten.notify_all()
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    def leave(self, service_id: str) -> None:
        """Somebody goes."""
        self.gone.append(service_id)
        self.left.set()

    def services(self) -> list[Service]:
        """Who is there."""
        return self.others

    def wait_for(self, beats: int) -> bool:
        """Wait for so many beats."""
        with self.beaten:
            return self.beaten.wait_for(lambda: self.beats >= beats, PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Callable[..., Heartbeat]]:
    """A function that starts a heartbeat, stopped at the end of the test."""
    started: list[Heartbeat] = []

    def begin(roster: Roster, lease_s: float, **callbacks: Callable[[], None]) -> Heartbeat:
        presence = Presence('i', 'worker', 'host', '1', lease_s)
        heartbeat = Heartbeat(roster, presence, 0.01, **callbacks)  # type: ignore[arg-type]
        heartbeat.start()
        started.append(heartbeat)
        return heartbeat

    yield begin
    for heartbeat in started:
        heartbeat.stop()


def test_a_lease_is_noticed_to_be_lost_while_its_renewal_is_held_up(start):
    """The database does not answer: somebody else must look at the clock."""
    answer, lost = threading.Event(), threading.Event()
    start(Roster(lambda: answer.wait(PATIENCE_S)), 0.05, on_lost=lost.set)
    assert lost.wait(PATIENCE_S)
    answer.set()


def test_a_lease_that_stays_lost_is_told_again(start):
    """Work that was begun after the first loss is not wanted either."""
    answer, told = threading.Event(), threading.Semaphore(0)
    start(Roster(lambda: answer.wait(PATIENCE_S)), 0.05, on_lost=told.release)
    for _ in range(3):
        assert told.acquire(timeout=PATIENCE_S)
    answer.set()


def test_what_follows_a_beat_does_not_hold_the_next_one_up(start):
    """It may wait for locks of the database."""
    going_on, entered, lost = threading.Event(), threading.Semaphore(0), threading.Event()

    def follow() -> None:
        entered.release()
        going_on.wait(PATIENCE_S)

    roster = Roster()
    start(roster, FOR_EVER, on_beat=follow, on_lost=lost.set)
    assert entered.acquire(timeout=PATIENCE_S)
    assert roster.wait_for(roster.beats + 5)
    assert not entered.acquire(blocking=False), 'it was begun a second time while the first was not over'
    going_on.set()
    assert entered.acquire(timeout=PATIENCE_S)
    assert not lost.is_set()


def test_errors_end_neither_the_beats_nor_what_follows_them(start):
    followed = threading.Semaphore(0)

    def follow() -> None:
        followed.release()
        raise RuntimeError('no')

    roster = Roster(RuntimeError('the database is away'), True, RuntimeError('again'))
    start(roster, FOR_EVER, on_beat=follow)
    for _ in range(3):
        assert followed.acquire(timeout=PATIENCE_S)
    assert roster.wait_for(5)


def test_who_was_declared_dead_gives_its_work_up_and_comes_back(start):
    lost = threading.Semaphore(0)
    roster = Roster(True, False)
    start(roster, FOR_EVER, on_lost=lost.release)
    assert lost.acquire(timeout=PATIENCE_S)
    assert roster.wait_for(4)
    assert roster.registered == 2
    assert not lost.acquire(blocking=False)


def test_whatever_giving_up_raises_the_process_comes_back(start):
    def fail() -> None:
        raise RuntimeError('no')

    roster = Roster(False)
    start(roster, FOR_EVER, on_lost=fail)
    assert roster.wait_for(3)
    assert roster.registered == 2


def test_whoever_stops_signs_off_and_beats_no_more(start):
    entered, answer = threading.Event(), threading.Event()

    def slow() -> bool:
        entered.set()
        return answer.wait(PATIENCE_S)

    roster = Roster(slow)
    heartbeat = start(roster, FOR_EVER, on_beat=lambda: None)
    assert entered.wait(PATIENCE_S)
    heartbeat.stop()
    assert roster.left.is_set()
    answer.set()
    assert roster.wait_for(1)
    assert roster.beats == 1


def test_whoever_starts_signs_off_those_of_its_machine_that_have_ended(start):
    """A supervisor starts another one within a second: nobody has to wait for the lease of the killed one."""
    mark = lifetime.mark()
    if mark is None:
        pytest.skip('this system tells nothing of its processes')
    ended = f'{mark.rpartition("/")[0]}/1'  # this process id, given out before
    told = {'here': {'mark': mark}, 'ended': {'mark': ended}, 'silent': {}, 'no mark': {'mark': None}}
    roster = Roster()
    roster.others = [
        Service(name, 'worker', 'host', '1', 0.0, 0.0, FOR_EVER, False, load, 0.0) for name, load in told.items()
    ]
    start(roster, FOR_EVER)
    assert roster.gone == ['ended']
