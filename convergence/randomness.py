"""Random bytes and ids, made from random bytes that the module fetches from the operating system in blocks.

Each call of the operating system releases the interpreter's lock. In a busy process it takes longer to get the lock
back than to make the id. All bytes still come from the system's generator, and each is used once, so they are equally
hard to guess.
"""

from __future__ import annotations

import os
from collections import deque

SIZE = 16
"""Number of bytes per result: the size of a UUID."""

_AT_ONCE = 256
"""Number of results per block: 4 KiB per call of the operating system."""

_KIND_BITS, _AT_RANDOM = 0xF << 76 | 0x3 << 62, 0x4 << 76 | 0x2 << 62
"""The version bits of a UUID, and their value for a random UUID (RFC 9562, section 5.4)."""

_stock: deque[bytes] = deque()


def random_bytes() -> bytes:
    """Return `SIZE` random bytes, fit for secrets, and no byte twice. Several threads may call it at the same time."""
    while True:
        try:
            return _stock.popleft()
        except IndexError:
            fetched = os.urandom(SIZE * _AT_ONCE)
            _stock.extend(fetched[at : at + SIZE] for at in range(0, len(fetched), SIZE))


def new_id() -> str:
    """Return a new id: a random UUID as text."""
    text = f'{int.from_bytes(random_bytes()) & ~_KIND_BITS | _AT_RANDOM:032x}'
    return f'{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}'


if hasattr(os, 'register_at_fork'):
    # Parent and child must not use the same bytes.
    os.register_at_fork(after_in_child=_stock.clear)
