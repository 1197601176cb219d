"""What processes use of a machine, as the kernel counts it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path('/proc')


@dataclass(frozen=True, slots=True)
class Watched:
    """A process.

    :param kind: what it is, such as ``worker``; those of a kind are added up.
    """

    kind: str
    pid: int


def cpu_s(processes: Iterable[Watched]) -> dict[str, float]:
    """Seconds of processor time of each kind, in user and kernel mode; 0 where the kernel does not tell."""
    seconds: dict[str, float] = {}
    for process in processes:
        seconds[process.kind] = seconds.get(process.kind, 0.0) + sum(_times(process.pid)[:2])
    return seconds


def peak_bytes(processes: Iterable[Watched]) -> dict[str, int]:
    """The most memory that a process of each kind has had since `forget_peaks`; 0 where the kernel does not tell."""
    peaks: dict[str, int] = {}
    for process in processes:
        peaks[process.kind] = max(peaks.get(process.kind, 0), _peak(process.pid))
    return peaks


def forget_peaks(processes: Iterable[Watched]) -> None:
    """Let peaks begin anew, where the kernel allows that."""
    for process in processes:
        with contextlib.suppress(OSError):
            (PROC / str(process.pid) / 'clear_refs').write_text('5')


def program_cpu_s(programs: Mapping[str, str]) -> dict[str, float]:
    """Seconds of processor time of all processes of some programs on this machine, ended ones too.

    :param programs: for each name how the kernel calls the program.
    """
    seconds = dict.fromkeys(programs, 0.0)
    names = {program: name for name, program in programs.items()}
    for directory in PROC.glob('[0-9]*'):
        with contextlib.suppress(OSError):
            name = names.get((directory / 'comm').read_text(encoding='utf-8').strip())
            if name is not None:
                # Those of its children that have ended are among its own.
                seconds[name] += sum(_times(int(directory.name)))
    return seconds


def _times(pid: int) -> tuple[float, float, float, float]:
    """User and kernel mode, of itself and of its children that have ended."""
    try:
        found = (PROC / str(pid) / 'stat').read_text(encoding='utf-8').rpartition(')')[2].split()
    except OSError:
        return 0.0, 0.0, 0.0, 0.0
    own, kernel, children, theirs = (int(found[place]) / os.sysconf('SC_CLK_TCK') for place in range(11, 15))
    return own, kernel, children, theirs


def _peak(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / 'status').read_text(encoding='utf-8').splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith('VmHWM:')), 0)
