"""Which process of this machine one is, and whether another one has ended: told by what Linux knows of both."""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path('/proc/sys/kernel/random/boot_id')
_NAMESPACE = Path('/proc/self/ns/pid')
_GONE = 'ZX'
"""States of a process all of whose threads have ended, and which its parent has not asked about yet."""


def mark() -> str | None:
    """What tells this process from all others, anywhere and at any time; None where the system does not say.

    It names the run of the kernel, the namespace of process ids (containers on one machine have several), the process
    id and, as those are given out again, when the process began.
    """
    here, began = _here(), _began(os.getpid())
    return None if here is None or began is None else f'{here}/{os.getpid()}/{began}'


def has_ended(other: str) -> bool:
    """Whether the process with a mark has certainly ended. False as well where that cannot be seen from here."""
    here, _, process = other.partition('/')
    pid, _, began = process.partition('/')
    if here != _here() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and somebody else's
    found = _began(int(pid))
    return found is not None and found != began


def _here() -> str | None:
    try:
        return f'{_BOOT.read_text().strip()}:{os.readlink(_NAMESPACE)}'
    except OSError:
        return None


def _began(pid: int) -> str | None:
    """When a process began, in ticks since the system did; empty if it has ended, None if that cannot be seen."""
    try:
        known = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    state, *more = known.rpartition(')')[2].split()  # the name, in parentheses, may have anything in it
    return '' if state in _GONE else more[18]
