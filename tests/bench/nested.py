"""What it costs that resources are in nested stacks: a tree of three levels beside a flat stack of as many resources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.bench.installations import BenchmarkInstallation, Took

EACH = 10
"""Resources of a stack on the lowest level, and stacks in one on the level above."""

LOWEST, MIDDLE = 'lowest.yaml', 'middle.yaml'
_PARAMETER = 'parameters: {value: {type: string}}'


@dataclass(frozen=True, slots=True)
class Compared:
    """One operation on a tree and on a flat stack.

    :param stacks: how many stacks the tree has.
    :param seconds: of the tree and of the flat stack.
    :param counts: the same, of statements, commits and messages, for each of the resources.
    :param cpu_ms: the same, of the processor time of engines and workers.
    """

    operation: str
    resources: int
    stacks: int
    seconds: tuple[float, float]
    counts: tuple[dict[str, float], dict[str, float]]
    cpu_ms: tuple[float, float]

    @property
    def ratio(self) -> float:
        """How many times as long the tree takes."""
        return self.seconds[0] / self.seconds[1]


def sizes(resources: int) -> tuple[int, int]:
    """How many stacks of the middle and of the lowest level hold so many resources."""
    lowest = max(1, resources // EACH)
    return max(1, lowest // EACH), lowest


@dataclass(frozen=True, slots=True)
class InRounds:
    """An operation that was compared in some rounds: what else the machine does changes the ratio of one.

    :param ratios: of all rounds, in their order.
    """

    median: Compared
    ratios: tuple[float, ...]


def in_rounds(installation: BenchmarkInstallation, resources: int, rounds: int) -> list[InRounds]:
    """For each operation the round with the median ratio; see `compare`."""
    by_operation = zip(*(list(compare(installation, resources)) for _ in range(rounds)), strict=True)
    return [
        InRounds(sorted(each, key=lambda one: one.ratio)[rounds // 2], tuple(one.ratio for one in each))
        for each in by_operation
    ]


def compare(installation: BenchmarkInstallation, resources: int) -> Iterator[Compared]:
    """Create, change and delete a tree and a flat stack, in turns; every resource changes.

    :param resources: in the lowest stacks, and in the flat one.
    :raises ConvergenceError: an operation failed.
    """
    middle, lowest = sizes(resources)
    total = middle * (lowest // middle) * EACH
    shared = 'type: {}, properties: {{value: {{get_param: value}}}}'
    files = {
        LOWEST: _template(EACH, shared.format('OS::Heat::Value')),
        MIDDLE: _template(lowest // middle, shared.format(LOWEST)),
    }
    sources = (_template(middle, shared.format(MIDDLE)), _template(total, shared.format('OS::Heat::Value')))
    # In turns, so that both have a share of whatever else goes on on the machine.
    in_turns = zip(
        *(
            _operations(installation, f'{kind}-{total}', source, with_files)
            for kind, source, with_files in zip(('nested', 'level'), sources, (files, {}), strict=True)
        ),
        strict=True,
    )
    for (operation, tree), (_, level) in in_turns:
        counts = tuple({kind: count / total for kind, count in each.counts.items()} for each in (tree, level))
        cpu_ms = (1000 * tree.own_cpu_s / total, 1000 * level.own_cpu_s / total)
        yield Compared(operation, total, 1 + middle + lowest, (tree.seconds, level.seconds), counts, cpu_ms)


def _template(count: int, body: str) -> str:
    lines = ['heat_template_version: 2018-08-31', _PARAMETER, 'resources:']
    return '\n'.join([*lines, *(f'  r{number}: {{{body}}}' for number in range(count))]) + '\n'


def _operations(
    installation: BenchmarkInstallation, name: str, source: str, files: dict[str, str]
) -> Iterator[tuple[str, Took]]:
    client, context = installation.client, installation.context
    identity: dict[str, Any] = {}

    def given(value: str) -> dict[str, Any]:
        return {'params': {'parameters': {'value': value}}, 'files': files}

    for operation, begin in (
        ('create', lambda: identity.update(client.create_stack(context, name, source, **given('one')))),
        ('update', lambda: client.update_stack(context, identity, source, **given('two'))),
        ('delete', lambda: client.delete_stack(context, identity)),
    ):
        yield operation, installation.operate(operation, identity, begin)
