"""Random bytes, and ids made of them, read from the system in large portions.

A read from the system releases the interpreter's lock: while other threads of the process work, getting it back costs
more than the rest of an id. All bytes come from the system's generator, each is used once, so they are equally hard to
guess.
"""

from __future__ import annotations

import os
from collections import deque

SIZE = 16
"""Bytes that are given out together: as many as a UUID has."""

_AT_ONCE = 256
"""Number of draws per read from the system: 4 KiB at a time."""

_KIND_BITS, _AT_RANDOM = 0xF << 76 | 0x3 << 62, 0x4 << 76 | 0x2 << 62
"""The bits of a UUID that say how it was made, and what they say: at random (RFC 9562, section 5.4)."""

_stock: deque[bytes] = deque()


def random_bytes() -> bytes:
    """Return `SIZE` random bytes, fit for secrets and given out only once. Safe for concurrent threads."""
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
