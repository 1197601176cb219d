"""The five operations on a stack, of every shape and size, and with more or fewer workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.installations import BenchmarkInstallation, Took, opened
from tests.bench.profiling import profiled
from tests.bench.shapes import template

OPERATIONS = ('create', 'no-op update', 'update one', 'update all', 'delete')


@dataclass(frozen=True, slots=True)
class Measurement:
    """One operation on one stack."""

    installation: str
    workers: int
    shape: str
    size: int
    operation: str
    took: Took


def operations(installation: BenchmarkInstallation, shape: str, size: int, workers: int) -> Iterator[Measurement]:
    """Create a stack, update it with the same template, with one and with all resources changed, and delete it.

    :param workers: how many there are, for what is measured to tell.
    :raises ConvergenceError: an operation failed.
    """
    client, context = installation.client, installation.context
    source, changed = template(shape, size), range(size)
    one, every = template(shape, size, changed[-1:]), template(shape, size, changed[:-1])
    identity: dict[str, Any] = {}
    begins: tuple[Callable[[], object], ...] = (
        lambda: identity.update(client.create_stack(context, f'{shape}-{size}', source)),
        lambda: client.update_stack(context, identity, source),
        lambda: client.update_stack(context, identity, one),
        lambda: client.update_stack(context, identity, every),
        lambda: client.delete_stack(context, identity),
    )
    for operation, begin in zip(OPERATIONS, begins, strict=True):
        took = installation.operate(operation, identity, begin)
        yield Measurement(installation.name, workers, shape, size, operation, took)


def warm_up(installation: BenchmarkInstallation) -> None:
    """Have imports, connections and prepared statements behind us."""
    list(operations(installation, 'flat', 20, 0))


def each_shape(name: str, cases: list[tuple[str, int]], profiles: Path | None) -> Iterator[Measurement]:
    """Measure these shapes and sizes.

    :param profiles: where flame graphs of all processes are written; None: nowhere.
    """
    with opened(name) as installation:
        warm_up(installation)
        with profiled(installation.processes(), profiles, name):
            for shape, size in cases:
                yield from operations(installation, shape, size, workers_of(installation))


def each_crew(name: str, size: int, crews: tuple[int, ...]) -> Iterator[Measurement]:
    """Measure a flat stack with more and more worker processes."""
    with opened(name, workers=crews[0]) as installation:
        for workers in crews:
            if installation.launcher is not None:
                installation.launcher.fill(1, workers)
            warm_up(installation)
            yield from operations(installation, 'flat', size, workers)


def workers_of(installation: BenchmarkInstallation) -> int:
    """How many there are."""
    return 1 if installation.launcher is None else len(installation.launcher.workers)
