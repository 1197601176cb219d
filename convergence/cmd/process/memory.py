"""How a process keeps house with its memory: it plans large stacks now and then, and small ones all the time."""

from __future__ import annotations

import ctypes
import gc

COLLECT_AFTER = (20_000, 20, 20)
"""After how many new objects the collector looks through the young ones, and how often through older ones."""
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Numbers of the options of ``mallopt``, from ``malloc.h`` of glibc."""
SETTINGS = {ARENA_MAX: 1, MMAP_THRESHOLD: 1 << 18, TRIM_THRESHOLD: 1 << 20}


def collect_rarely() -> None:
    """Make the garbage collector run less often, and never on the objects that exist now.

    Objects that exist at the start live until the end. Reference counts free nearly all objects of a request when it is
    answered; a collection every 700 objects took a third of the time to plan a large stack.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def give_back() -> None:
    """Make glibc return free memory to the system. Call this before threads start.

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
