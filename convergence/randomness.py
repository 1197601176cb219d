"""Random bytes, and ids made of them, of which the system is asked for many at a time.

To ask the system is to let go of the interpreter's lock: while other threads of the process have something to do, it
costs more to get that back than all the rest of an id. What is given out comes from the system's generator all the
same, each byte once, so it can be guessed no better.
"""

from __future__ import annotations

import os
from collections import deque

SIZE = 16
"""Bytes that are given out together: as many as a UUID has."""

_AT_ONCE = 256
"""For so many times the system is asked once: for 4 KiB."""

_KIND_BITS, _AT_RANDOM = 0xF << 76 | 0x3 << 62, 0x4 << 76 | 0x2 << 62
"""The bits of a UUID that say how it was made, and what they say: at random (RFC 9562, section 5.4)."""

_stock: deque[bytes] = deque()


def random_bytes() -> bytes:
    """`SIZE` random bytes, fit for secrets, that nobody else is given. Threads may ask at the same time."""
    while True:
        try:
            return _stock.popleft()
        except IndexError:
            fetched = os.urandom(SIZE * _AT_ONCE)
            _stock.extend(fetched[at : at + SIZE] for at in range(0, len(fetched), SIZE))


def new_id() -> str:
    """An id that was never used before: a random UUID, as text."""
    text = f'{int.from_bytes(random_bytes()) & ~_KIND_BITS | _AT_RANDOM:032x}'
    return f'{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}'


if hasattr(os, 'register_at_fork'):
    # Two processes must not give out the same.
    os.register_at_fork(after_in_child=_stock.clear)
