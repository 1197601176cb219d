"""Identifies processes of this machine, and finds out if one has ended, from data of the Linux kernel."""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path('/proc/sys/kernel/random/boot_id')
_NAMESPACE = Path('/proc/self/ns/pid')
_GONE = 'ZX'
"""States of a process whose threads have all ended and whose exit code its parent has not read yet."""


def mark() -> str | None:
    """Return a text that identifies this process among all processes; None if the system has no such data.

    It contains the id of the kernel's boot, the namespace of process ids (containers on one machine have several), the
    process id, and the start time of the process, because the system reuses process ids.
    """
    here, began = _here(), _began(os.getpid())
    return None if here is None or began is None else f'{here}/{os.getpid()}/{began}'


def has_ended(other: str) -> bool:
    """Return True if the process with a mark has certainly ended; False if it runs or is on another machine."""
    here, _, process = other.partition('/')
    pid, _, began = process.partition('/')
    if here != _here() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # the process exists and belongs to another user
    found = _began(int(pid))
    return found is not None and found != began


def _here() -> str | None:
    try:
        return f'{_BOOT.read_text().strip()}:{os.readlink(_NAMESPACE)}'
    except OSError:
        return None


def _began(pid: int) -> str | None:
    """Return the start time of a process in ticks since the boot; empty if it has ended, None if unreadable."""
    try:
        known = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    state, *more = known.rpartition(')')[2].split()  # the name, in parentheses, may contain any character
    return '' if state in _GONE else more[18]
