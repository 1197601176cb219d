"""Flame graphs: in which functions processes spend their time."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from convergence.errors import ConfigurationError
from tests.bench.watching import Watched

RATE_HZ = 100
"""Samples of each process in a second."""


def require_profiler() -> str:
    """The program that looks into processes.

    :raises ConfigurationError: it is not installed.
    """
    beside = Path(sys.executable).with_name('py-spy')
    found = str(beside) if beside.exists() else shutil.which('py-spy')
    if found is None:
        raise ConfigurationError("--profile needs py-spy: pip install --editable '.[bench]'")
    return found


@contextlib.contextmanager
def profiled(processes: Sequence[Watched], directory: Path | None, title: str) -> Iterator[None]:
    """Draw what processes do meanwhile, one file for each; nothing where there is no directory.

    :raises ConfigurationError: the profiler is not installed.
    """
    if directory is None:
        yield
        return
    program = require_profiler()
    directory.mkdir(parents=True, exist_ok=True)
    recorders = []
    for number, process in enumerate(processes, 1):
        path = directory / f'{title}-{process.kind}-{number}.svg'
        command = [program, 'record', '--pid', str(process.pid), '--output', str(path), '--rate', str(RATE_HZ)]
        recorders.append(subprocess.Popen([*command, '--nonblocking'], stdout=subprocess.DEVNULL))
    try:
        yield
    finally:
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)  # it writes what it has, and ends
        for recorder in recorders:
            recorder.wait()
