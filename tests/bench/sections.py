"""The parts of the benchmark, each of which can be run alone. Each prints what it finds, and gives it for the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tests.bench.installations import EMBEDDED, described, opened
from tests.bench.operations import Measurement, each_crew, each_shape, operations, warm_up, workers_of
from tests.bench.printing import MEASURED, SERVER, answered, measured, mib, server_line

CREWS = (1, 2, 4)
"""Numbers of workers."""
SLOW_S = 60.0
"""Seconds that a slow resource takes."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What was asked for.

    :param names: of the installations.
    :param numbers: for each section how large it is to be.
    :param rounds: how often is measured what is held against something else.
    :param profiles: where flame graphs go; None: nowhere.
    """

    console: Console
    names: Sequence[str]
    shapes: Sequence[str]
    sizes: Sequence[int]
    numbers: Mapping[str, int]
    floor: bool
    profiles: Path | None
    seconds: float
    rounds: int

    @property
    def main(self) -> str:
        """The installation for what is measured on one: the first with servers, where there is one."""
        return next((name for name in self.names if name != EMBEDDED), self.names[0])

    def title(self, text: str) -> None:
        """Say what comes now."""
        self.console.print(Text(f'\n{text}', 'bold'))

    def heading(self, text: str) -> None:
        """Say what the columns are."""
        self.console.print(Text(text, 'dim'), soft_wrap=True)

    def say(self, text: str) -> None:
        """A line of figures."""
        self.console.print(text, soft_wrap=True)


Figures = list[dict[str, Any]]
"""What a section has found, as it is written to the file."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the benchmark.

    :param number: how large it is, unless something else is asked for; 0 where that is said otherwise.
    :param quick: the same for a short run.
    :param asked_only: whether it is left out unless it is asked for: it takes long.
    """

    about: str
    number: int
    quick: int
    run: Callable[[Bench, int], Figures]
    asked_only: bool = False


def _operations(bench: Bench, number: int) -> Figures:
    figures: Figures = []
    cases = [(shape, size) for size in bench.sizes for shape in bench.shapes]
    for name in bench.names:
        bench.title(f'{name}: {described(name)}')
        bench.heading(MEASURED)
        found = []
        for each in each_shape(name, cases, bench.profiles):
            found.append(each)
            bench.say(measured(each))
        if name != EMBEDDED:
            bench.heading(SERVER)
            for each in found:
                bench.say(server_line(each))
        bench.say(f'Most memory: {mib(found)}')
        floors = _floor(bench, name, cases, found) if bench.floor and name != EMBEDDED else {}
        figures += [_with_floor(each, floors) for each in found]
    return figures


_RATIOS = ('create', 'update all', 'delete')


def _floor(bench: Bench, name: str, cases: list[tuple[str, int]], found: list[Measurement]) -> dict[Any, float]:
    """Seconds of the bare loop for each shape and size."""
    from tests.bench.floor import measure

    bench.title('The bare loop on the same servers, and the part of its speed that is reached')
    titles = ('shape', 'size', 'seconds', 'number/s', *_RATIOS)
    bench.heading('{:<6} {:>5} {:>8} {:>9} {:>8} {:>11} {:>8}'.format(*titles))
    floors = {}
    for each in measure(name, cases):
        floors[each.shape, each.size] = each.seconds
        took = {one.operation: one.took.seconds for one in found if (one.shape, one.size) == (each.shape, each.size)}
        create, update, delete = (each.seconds / took[operation] for operation in _RATIOS)
        bench.say(
            f'{each.shape:<6} {each.size:5} {each.seconds:8.2f} {each.size / each.seconds:9.0f} '
            f'{create:8.2f} {update:11.2f} {delete:8.2f}'
        )
    return floors


def _with_floor(each: Measurement, floors: dict[Any, float]) -> dict[str, Any]:
    return {**asdict(each), 'floor_s': floors.get((each.shape, each.size))}


def _workers(bench: Bench, number: int) -> Figures:
    figures: Figures = []
    for name in bench.names:
        if name == EMBEDDED:
            continue
        bench.title(f'{name}: a flat stack of {number} resources with {CREWS} workers')
        bench.heading(MEASURED)
        for each in each_crew(name, number, CREWS):
            bench.say(f'{measured(each)}  {each.workers} workers')
            figures.append(asdict(each))
    return figures


def _nested(bench: Bench, number: int) -> Figures:
    from tests.bench.nested import in_rounds, sizes

    figures: Figures = []
    middle, lowest = sizes(number)
    for name in bench.names:
        bench.title(f'{name}: 1 + {middle} + {lowest} stacks beside a flat one, of {number} resources each')
        bench.heading(f'{"of a resource:":>62}')
        columns = f'{"nested":>9}{"flat":>9}{"ratio":>6}{"in all rounds":>14}{"CPU ms":>16}{"statements":>16}'
        bench.heading(f'{"":<8}{columns}')
        with opened(name) as installation:
            warm_up(installation)
            for found in in_rounds(installation, number, bench.rounds):
                each, every = found.median, f'{min(found.ratios):.2f} to {max(found.ratios):.2f}'
                nested, level = (counts['statements'] for counts in each.counts)
                bench.say(
                    f'{each.operation:<8}{each.seconds[0]:7.1f} s{each.seconds[1]:7.1f} s{each.ratio:6.2f}{every:>14}'
                    f'{each.cpu_ms[0]:7.2f} and {each.cpu_ms[1]:4.2f}{nested:7.1f} and {level:4.1f}'
                )
                figures.append({'installation': name, 'ratio': each.ratio, 'ratios': found.ratios, **asdict(each)})
    return figures


def _large(bench: Bench, number: int) -> Figures:
    from tests.bench.large import accept

    bench.title(f'A template of {number} resources, in this process')
    parts = accept(number)
    for part, seconds in parts.items():
        bench.say(f'{part:<40}{seconds:8.2f} s')
    return [{'resources': number, 'part': part, 'seconds': seconds} for part, seconds in parts.items()]


def _parked(bench: Bench, number: int) -> Figures:
    from tests.bench.parked import wait

    each_s = min(SLOW_S, bench.seconds)
    bench.title(f'{bench.main}: {number} resources that take {each_s:g} s each')
    waited = wait(bench.main, number, each_s)
    bench.say(f'{"under way at the same time, at most":<40}{waited.most:8d}')
    bench.say(f'{"until all were complete":<40}{waited.seconds:8.1f} s')
    return [asdict(waited)]


def _served(bench: Bench, number: int) -> Figures:
    from tests.bench.served import CLIENTS, serve

    bench.title(f'The API with {number} stacks, {CLIENTS} clients at once, all in this process')
    answers = serve(number)
    for what, each in answers.items():
        bench.say(answered(what, each))
    return [{'stacks': number, 'request': what, **asdict(each)} for what, each in answers.items()]


def _requests(bench: Bench, number: int) -> Figures:
    from tests.bench.requests import ask

    bench.title(f'{bench.main}: requests about one stack')
    bench.heading(f'{"resources":>9}  {"request":<24}{"answered":>12}{"CPU of an engine":>20}{"kB":>9}')
    figures: Figures = []
    with opened(bench.main) as installation:
        warm_up(installation)
        for size in sorted({max(1, number // 100), max(1, number // 10), number}):
            for each in ask(installation, size):
                bench.say(
                    f'{each.resources:9}  {each.request:<24}{1000 * each.seconds:9.1f} ms{each.engine_ms:17.1f} ms'
                    f'{each.size_bytes / 1000:9.1f}'
                )
                figures.append({'installation': bench.main, **asdict(each)})
    return figures


def _stored(bench: Bench, number: int) -> Figures:
    from tests.bench.crowd import stored

    bench.title(f'{bench.main}: with {number} finished stacks in the database, and without')
    with opened(bench.main) as installation:
        warm_up(installation)
        found = stored(installation, number, max(bench.sizes))
    for each in found:
        before, after = each.before, each.after
        bench.say(
            f'{each.operation} of {each.resources}: {before.seconds:.2f} s without, {after.seconds:.2f} s with them; '
            f'{before.counts["statements"]} and {after.counts["statements"]} statements'
        )
    return [{'installation': bench.main, **asdict(each)} for each in found]


def _crowd(bench: Bench, number: int) -> Figures:
    from tests.bench.crowd import crowd

    bench.title(f'{bench.main}: {number} stacks of {number} resources at once, and one of {number * number}')
    with opened(bench.main) as installation:
        warm_up(installation)
        found = crowd(installation, number)
    bench.say(f'{found.seconds:.1f} s and {found.one_s:.1f} s: {found.ratio:.2f} times as long')
    return [{'installation': bench.main, 'ratio': found.ratio, **asdict(found)}]


def _share(bench: Bench, number: int) -> Figures:
    from tests.bench.crowd import SMALL, behind

    bench.title(f'{bench.main}: a stack of {SMALL} behind one of {number} that belongs to another project')
    bench.heading(f'{"giant":<8}{"alone":>9}{"begun after":>14}{"complete after":>17}{"left of the giant":>20}')
    figures: Figures = []
    with opened(bench.main) as installation:
        warm_up(installation)
        for each in behind(installation, number):
            bench.say(
                f'{each.shape:<8}{each.alone_s:7.2f} s{each.started_s:12.2f} s{each.seconds:15.2f} s{each.left:20}'
            )
            figures.append({'installation': bench.main, **asdict(each)})
    return figures


def _idle(bench: Bench, number: int) -> Figures:
    from tests.bench.idle import rest

    bench.title(f'{bench.main}: nothing to do for {bench.seconds:g} s, with {number} finished resources')
    with opened(bench.main) as installation:
        found = rest(installation, number, bench.seconds)
    for kind, percent in found.cpu_percent.items():
        bench.say(f'{kind:<40}{percent:8.2f} % of a core')
    bench.say(f'{"statements, commits":<40}{found.statements_per_s:8.2f} and {found.commits_per_s:.2f} a second')
    if found.server_statements_per_s is not None:
        bench.say(f'{"statements, as the server counts":<40}{found.server_statements_per_s:8.2f} a second')
    return [{'installation': bench.main, **asdict(found)}]


def _observed(bench: Bench, number: int) -> Figures:
    from tests.bench.observed import EVERY_S, MANY, observe

    bench.title(f'An observer of {number} files, and its database, in this process')
    found = observe(number)
    bench.say(f'{"processor time of a look":<40}{1000 * found.cpu_s / found.looks:8.2f} ms')
    bench.say(f'{"statements of a look":<40}{found.statements / found.looks:8.2f}')
    bench.say(f'{f"{MANY:,} objects every {EVERY_S / 60:g} minutes":<40}{100 * found.share:8.2f} % of a core')
    bench.say(f'{"nothing observed":<40}{100 * found.idle_cpu_s:8.2f} % of a core')
    return [{'share': found.share, **asdict(found)}]


def _giant(bench: Bench, number: int) -> Figures:
    bench.title(f'{bench.main}: one stack of {number} resources')
    bench.heading(MEASURED)
    found = []
    with opened(bench.main) as installation:
        warm_up(installation)
        for each in operations(installation, 'flat', number, workers_of(installation)):
            found.append(each)
            bench.say(measured(each))
            bench.say(f'       most memory: {mib([each])}')
    return [asdict(each) for each in found]


def _simulated(bench: Bench, number: int) -> Figures:
    from tests.bench.simulated import simulate

    bench.title('Simulated runs of a stack of five resources: create, update, delete')
    rates = simulate(number)
    for faults, rate in rates.items():
        bench.say(f'{faults:<40}{rate:8.0f} runs/s')
    return [{'faults': faults, 'runs_per_s': rate} for faults, rate in rates.items()]


SECTIONS: Mapping[str, Section] = {
    'operations': Section('create, update and delete, of every shape and size', 0, 0, _operations),
    'workers': Section('the same with 1, 2 and 4 workers, flat', 1000, 100, _workers),
    'nested': Section('a tree of stacks beside a flat one of as many resources', 5000, 200, _nested),
    'large': Section('compile and plan a template, in this process', 4000, 400, _large),
    'parked': Section('resources that take their time', 1000, 100, _parked),
    'served': Section('an API with so many stacks', 1000, 50, _served),
    'requests': Section('requests about a stack of so many resources', 10_000, 1000, _requests),
    'stored': Section('operations beside so many finished stacks', 10_000, 1000, _stored),
    'crowd': Section('so many stacks of so many resources at once', 100, 10, _crowd),
    'share': Section('a small stack behind one of so many resources of another project', 10_000, 500, _share),
    'idle': Section('nothing to do, with so many finished resources', 100_000, 1000, _idle),
    'observed': Section('so many files, looked at again and again', 1000, 100, _observed),
    'giant': Section('one stack of so many resources, with the memory that it needs', 50_000, 2000, _giant, True),
    'simulated': Section('simulated runs', 200, 20, _simulated),
}
"""By name, in the order in which they are run."""
