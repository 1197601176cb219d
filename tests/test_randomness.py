"""Ids that nobody was ever given before, in however many threads and processes."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest

from convergence import randomness


def test_ids_are_random_uuids():
    made = [uuid.UUID(randomness.new_id()) for _ in range(1000)]

    assert {(each.version, each.variant) for each in made} == {(4, uuid.RFC_4122)}
    assert len(set(made)) == len(made)
    varied = [sum(each.int >> bit & 1 for each in made) for bit in range(128)]
    assert sum(count in (0, len(made)) for count in varied) == 6  # those that say what it is


def test_threads_are_never_given_the_same():
    with ThreadPoolExecutor(8) as threads:
        made = [*chain(*threads.map(lambda _: [randomness.random_bytes() for _ in range(2000)], range(8)))]

    assert len(set(made)) == 16_000
    assert {len(each) for each in made} == {randomness.SIZE}


def test_the_system_is_asked_for_many_at_once(monkeypatch):
    asked = []

    def ask(count):
        asked.append(count)
        return os.getrandom(count)

    randomness._stock.clear()
    monkeypatch.setattr(randomness.os, 'urandom', ask)

    for _ in range(512):
        randomness.random_bytes()

    assert asked == [4096, 4096]


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='processes are not forked here')
def test_a_forked_process_is_given_others():
    randomness._stock.clear()
    randomness.random_bytes()  # now there are 255 in stock
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(written, b''.join(randomness.random_bytes() for _ in range(10)))
        os._exit(0)
    os.close(written)
    with os.fdopen(read, 'rb') as pipe:
        told = pipe.read()
    os.waitpid(child, 0)

    theirs = {told[at : at + randomness.SIZE] for at in range(0, len(told), randomness.SIZE)}
    assert len(theirs) == 10
    assert theirs.isdisjoint(randomness.random_bytes() for _ in range(300))
