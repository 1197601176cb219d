"""How a process keeps house with its memory: it plans large stacks now and then, and small ones all the time."""

from __future__ import annotations

import ctypes
import gc

COLLECT_AFTER = (20_000, 20, 20)
"""After how many new objects the collector looks through the young ones, and how often through older ones."""
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""What ``mallopt`` of glibc calls what it can be told: its ``malloc.h``."""
SETTINGS = {ARENA_MAX: 1, MMAP_THRESHOLD: 1 << 18, TRIM_THRESHOLD: 1 << 20}


def collect_rarely() -> None:
    """Let the collector look through young objects more rarely, and never again through what is there now.

    What a process has when its work begins it has to its end. Nearly all that a request makes goes by itself when it is
    answered; to look through it every 700 objects took a third of what it costs to plan a large stack.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def give_back() -> None:
    """Have what is free given back to the system, before threads begin.

    By itself glibc has some memory for each thread, and keeps there what that thread needed most. All allocate in turns
    here, as the interpreter lets one at a time: they can share it. Long texts get memory of their own that goes with
    them. Other systems are left alone.
    """
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for setting, value in SETTINGS.items():
        tell(setting, value)
