"""Lines of figures, none wider than a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.bench.operations import Measurement

if TYPE_CHECKING:
    from tests.bench.served import Answered

_MEASURED = '{:<6} {:>5} {:<12} {:>7} {:>8} {:>7} {:>10} {:>7} {:>8}'
_COUNTED = ('statements', 'commits', 'messages')
_SERVER = '{:<6} {:>5} {:<12} {:>10} {:>6} {:>6} {:>8} {:>9} {:>7}'

MEASURED = (
    f'{"per resource:":>64}\n'
    f'{_MEASURED.format("shape", "size", "operation", "seconds", "number/s", "CPU ms", *_COUNTED)}'
)
"""What stands above `measured`."""

SERVER = f'{"per resource, as the server counts:":>64}\n' + _SERVER.format(
    'shape', 'size', 'operation', 'statements', 'writes', 'waits', 'wait ms', 'deadlocks', 'log kB'
)
"""What stands above `server_line`. Deadlocks are those of the whole operation."""


def measured(each: Measurement) -> str:
    """What an operation took."""
    took, size = each.took, each.size
    counts = (f'{took.counts[kind] / size:.2f}' for kind in _COUNTED)
    speed, cpu_ms = f'{size / took.seconds:.0f}', f'{1000 * took.own_cpu_s / size:.2f}'
    return _MEASURED.format(each.shape, size, each.operation, f'{took.seconds:.2f}', speed, cpu_ms, *counts)


def server_line(each: Measurement) -> str:
    """What the database server counted; a dash for what it does not count."""
    server, size = each.took.server, each.size
    assert server is not None

    def part(value: float | None, digits: int) -> str:
        return '-' if value is None else f'{value / size:.{digits}f}'

    figures = (
        part(server.statements, 2),
        part(server.writes, 2),
        part(server.lock_waits, 2),
        part(server.lock_wait_ms, 2),
        '-' if server.deadlocks is None else f'{server.deadlocks:.0f}',
        part(None if server.log_bytes is None else server.log_bytes / 1000, 2),
    )
    return _SERVER.format(each.shape, size, each.operation, *figures)


def mib(found: Sequence[Measurement]) -> str:
    """The most memory that each kind of process has had."""
    peaks: dict[str, int] = {}
    for each in found:
        for kind, size_bytes in each.took.peak_bytes.items():
            peaks[kind] = max(peaks.get(kind, 0), size_bytes)
    return ', '.join(f'{kind} {size_bytes / 2**20:.0f} MiB' for kind, size_bytes in peaks.items())


def answered(request: str, each: Answered) -> str:
    """How a kind of request was answered."""
    return (
        f'{request:<14}{1000 * each.median_s:8.1f} ms (slowest {1000 * each.slowest_s:.1f} ms)'
        f'{each.per_second:8.0f} requests/s'
    )
