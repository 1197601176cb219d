"""Figures of ``make figures`` as a page: tables, plots, and what an installation of any size would do.

Run as ``python -m tests.bench.report``: reads docs/figures.json, adds to it what is simulated of larger installations,
writes docs/measured.rst and docs/plots/*.svg.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.charts import Line, chart
from tests.bench.costs import BROKER_CORES, DATABASE_CORES, Cost, capacity, cost_of

DOCS = Path(__file__).parents[2] / 'docs'
FIGURES, PAGE, PICTURES = DOCS / 'figures.json', DOCS / 'measured.rst', DOCS / 'plots'

WORKERS = (1, 10, 100, 1000)
REAL = ('postgresql', 'mariadb')
OPERATIONS = ('create', 'update all', 'update one', 'no-op update', 'delete')
MIB = 2**20


def page(figures: Mapping[str, Any]) -> str:
    """The page, without its pictures."""
    machine, operations = figures['machine'], figures.get('operations', [])
    parts = [
        *_titled('Measured', '=', over=True),
        '``python -m tests.bench.report`` writes this page from ``docs/figures.json``; ``make figures`` measures and writes both.',
        f'A machine of {machine["cores"]} cores with Python {machine["python"]} runs all processes and servers.',
        '`Benchmarks <benchmarks.rst>`__ explains the figures, `Performance <performance.rst>`__ the conclusions.',
        *_costs(operations),
        *_pictures(figures),
        *_capacities(operations),
        *_cells(figures),
        *_cases(figures),
    ]
    return '\n\n'.join(parts) + '\n'


def _titled(text: str, line: str, *, over: bool = False) -> list[str]:
    rule = line * len(text)
    return [f'{rule}\n{text}\n{rule}' if over else f'{text}\n{rule}']


def _costs(operations: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """A table of the operations of each installation, shape and size."""
    for installation in dict.fromkeys(each['installation'] for each in operations):
        yield from _titled(f'Operations: {installation}', '=')
        rows = [
            (
                'shape',
                'size',
                'operation',
                'resources/s',
                'of the loop',
                'engine ms',
                'worker ms',
                'database ms',
                'statements',
            )
        ]
        rows += [_row(each) for each in operations if each['installation'] == installation]
        yield _table(rows)
        peaks: dict[str, int] = {}
        for each in operations:
            for kind, size_bytes in each['took']['peak_bytes'].items() if each['installation'] == installation else ():
                peaks[kind] = max(peaks.get(kind, 0), size_bytes)
        if peaks:
            yield 'Maximum memory: ' + ', '.join(f'{kind} {size / MIB:.0f} MiB' for kind, size in peaks.items()) + '.'


def _row(each: Mapping[str, Any]) -> tuple[str, ...]:
    took, size, cost = each['took'], each['size'], cost_of(each)
    floor = each.get('floor_s')
    whole = each['operation'] in ('create', 'update all', 'delete')
    server = took.get('server') or {}
    statements = server.get('statements') or took['counts'].get('statements')
    return (
        each['shape'],
        str(size),
        each['operation'],
        f'{size / took["seconds"]:,.0f}',
        f'{floor / took["seconds"]:.2f}' if floor and whole else '',
        *(f'{1000 * part:.2f}' for part in (cost.engine, cost.worker, cost.database)),
        f'{statements / size:.2f}' if statements is not None else '',
    )


def _pictures(figures: Mapping[str, Any]) -> Iterable[str]:
    for name, (title, _) in plots(figures).items():
        yield f'.. image:: plots/{name}.svg\n   :alt: {title}'


def plots(figures: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Title and SVG of each plot for which enough was measured, by the name of its file."""
    operations, crews = figures.get('operations', []), figures.get('workers', [])
    created = [each for each in operations if each['operation'] == 'create']
    speed = [
        Line(f'{installation}, {shape}', [(each['size'], each['size'] / each['took']['seconds']) for each in some])
        for (installation, shape), some in _grouped(created, 'installation', 'shape').items()
    ]
    cpu = [
        Line(f'{installation}, {shape}', [(each['size'], 1000 * cost_of(each).worker) for each in some])
        for (installation, shape), some in _grouped(created, 'installation', 'shape').items()
        if installation in REAL
    ]
    more = [
        Line(
            f'{installation}, {operation}', [(each['workers'], each['size'] / each['took']['seconds']) for each in some]
        )
        for (installation, operation), some in _grouped(crews, 'installation', 'operation').items()
        if operation in ('create', 'delete')
    ]
    drawn = {
        'sizes': ('Resources that are created in a second, by the size of the stack', 'resources', speed),
        'cpu': ('Milliseconds of workers for each resource, by the size of the stack', 'resources', cpu),
        'workers': ('Resources in a second, by the number of workers', 'workers', more),
    }
    return {
        name: (title, chart(title, below, lines))
        for name, (title, below, given) in drawn.items()
        if (lines := [line for line in given if len(line.points) > 1])
    }


def _grouped(measured: Sequence[Mapping[str, Any]], *keys: str) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for each in measured:
        found.setdefault(tuple(each[key] for key in keys), []).append(each)
    return found


def costs(operations: Sequence[Mapping[str, Any]]) -> dict[str, Cost]:
    """For each installation what a resource of the largest flat stack costs that was created there."""
    found = {}
    for installation in REAL:
        wanted = (installation, 'flat', 'create')
        flat = [each for each in operations if (each['installation'], each['shape'], each['operation']) == wanted]
        if flat:
            found[installation] = cost_of(max(flat, key=lambda each: int(each['size'])))
    return found


def _capacities(operations: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """What more workers would do, by the largest flat stack that was created on each installation."""
    for installation, cost in costs(operations).items():
        yield from _titled(f'More workers: {installation}', '=')
        yield (
            f'Computed for a database of {DATABASE_CORES} cores and a broker of {BROKER_CORES}, each worker on a core of '
            'its own: arithmetic with the costs above, not a measurement.'
        )
        rows = [
            (
                'workers',
                'they would do',
                'database: cores',
                'broker: cores',
                'full first',
                'resources/s',
                'engines: cores',
                'installations to keep them busy',
            )
        ]
        for workers in WORKERS:
            found = capacity(cost, workers)
            rows.append(
                (
                    f'{workers:,}',
                    f'{found.possible:,.0f}/s',
                    f'{found.database_cores:,.1f}',
                    f'{found.broker_cores:,.1f}',
                    found.full,
                    f'{found.reached:,.0f}',
                    f'{found.engines:,.1f}',
                    str(found.installations),
                )
            )
        yield _table(rows)


def _cells(figures: Mapping[str, Any]) -> Iterable[str]:
    """What was simulated of more workers and installations."""
    for installation, found in figures.get('cells', {}).items():
        yield from _titled(f'More installations: {installation}', '=')
        yield (
            'Simulated with the costs above, as a closed network of queues: threads wait for the core of their worker, '
            f'for one of {DATABASE_CORES} cores of the database, for a commit on the disk.'
        )
        rows = [('workers', 'installations', 'resources/s', 'of the bound', 'workers busy', 'databases busy')]
        rows += [
            (
                f'{each["workers"]:,}',
                str(each['installations']),
                f'{each["rate"]:,.0f}',
                f'{each["rate"] / each["bound"]:.2f}',
                f'{each["workers_busy"]:.0%}',
                f'{each["database_busy"]:.0%}',
            )
            for each in found
        ]
        yield _table(rows)


def _cases(figures: Mapping[str, Any]) -> Iterable[str]:
    """What was measured of other cases, a line each."""
    lines = [
        f'* {each["request"]} of {each["resources"]:,} resources: {1000 * each["seconds"]:,.0f} ms, '
        f'{each["engine_ms"]:,.0f} ms of an engine'
        for each in figures.get('requests', [])
    ]
    lines += [
        f'* {each["stacks"]} stacks of {each["each"]} at once: {each["seconds"]:,.1f} s, one of as many: {each["one_s"]:,.1f} s'
        for each in figures.get('crowd', [])
    ]
    lines += [
        f'* a small stack behind a {each["shape"]} one of {each["giant"]:,} of another project: begun after '
        f'{each["started_s"]:.2f} s, complete after {each["seconds"]:.2f} s'
        for each in figures.get('share', [])
    ]
    lines += [
        f'* {each["operation"]} of {each["resources"]:,}: {each["before"]["seconds"]:,.2f} s; beside {each["stacks"]:,} '
        f'finished stacks {each["after"]["seconds"]:,.2f} s'
        for each in figures.get('stored', [])
    ]
    lines += [
        f'* idle with {each["resources"]:,} finished resources: {sum(each["cpu_percent"].values()):.2f} % of a core in all, '
        f'{each["statements_per_s"]:.1f} statements/s'
        for each in figures.get('idle', [])
    ]
    for each in figures.get('giant', []):
        peaks = ', '.join(f'{kind} {size / MIB:.0f} MiB' for kind, size in each['took']['peak_bytes'].items())
        lines.append(
            f'* {each["operation"]} of {each["size"]:,} in one stack: {each["took"]["seconds"]:,.1f} s; {peaks}'
        )
    return [*_titled('Other cases', '='), '\n'.join(lines)] if lines else []


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ['.. list-table::', '   :header-rows: 1', '']
    for row in rows:
        lines += [f'   {"* -" if place == 0 else "  -"} {cell}'.rstrip() for place, cell in enumerate(row)]
    return '\n'.join(lines)


def main() -> int:
    """Write the page and its pictures."""
    from tests.bench.cells import series

    figures = json.loads(FIGURES.read_text(encoding='utf-8'))
    figures['cells'] = {
        installation: [asdict(each) for each in series(cost, WORKERS)]
        for installation, cost in costs(figures.get('operations', [])).items()
    }
    FIGURES.write_text(json.dumps(figures, indent=1) + '\n', encoding='utf-8')
    PAGE.write_text(page(figures), encoding='utf-8')
    PICTURES.mkdir(exist_ok=True)
    for name, (_, drawing) in plots(figures).items():
        (PICTURES / f'{name}.svg').write_text(drawing, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
