"""``make sockets``: holds a server up with hundreds of slow sockets, and measures how others are answered meanwhile.

It starts a server of its own on SQLite, or takes the one at ``--url``. The exit code is 1 where a client waited longer
than ``--bound`` for an answer, or got none.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.sockets.hostile import KINDS, Hostile, Target

PATIENCE_S = 15.0


@dataclass
class Figures:
    """How other clients fared."""

    kind: str
    token: str = ''
    waited_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def worst_s(self) -> float:
        """The longest that an answer took."""
        return max(self.waited_s, default=float('inf'))


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog='python -m tests.sockets', description=__doc__)
    parser.add_argument('--url', help='of a server; none: one is started')
    parser.add_argument('--count', type=int, default=500, help='sockets of each kind')
    parser.add_argument('--time', type=float, default=60.0, help='seconds for each kind')
    parser.add_argument('--bound', type=float, default=1.0, help='seconds that an answer may take')
    parser.add_argument('--only', choices=KINDS, action='append', help='kinds of sockets; may be repeated')
    parser.add_argument('--source', default='', help='address from which the slow sockets come, such as 127.0.0.2')
    parser.add_argument('--path', action='append', help='what the other clients ask for; may be repeated')
    parser.add_argument('--post', default='/v1/p/validate', help='path of a route that reads a body')
    parser.add_argument('--get', default='/openapi.json', help='path with a long answer')
    arguments = parser.parse_args()
    paths = arguments.path or ['/health/live', '/v1/p/stacks']
    with contextlib.ExitStack() as stack:
        url, token = (arguments.url, '') if arguments.url else stack.enter_context(server())
        target = Target(url, arguments.post, arguments.get, arguments.source)
        all_figures = []
        for kind in arguments.only or KINDS:
            figures = Figures(kind, token)
            attack(target, figures, arguments.count, arguments.time, paths)
            all_figures.append(figures)
            print(described(figures), flush=True)
    good = all(not each.failures and each.worst_s() <= arguments.bound for each in all_figures)
    return 0 if good else 1


def attack(target: Target, figures: Figures, count: int, time_s: float, paths: list[str]) -> None:
    """Hold a server up for `time_s` seconds, ask it meanwhile, and note how that went."""
    kind = figures.kind
    with Hostile(target, kind, count) as hostile:
        hostile.wait_until_all_have_begun(10)
        ends = time.monotonic() + time_s
        while time.monotonic() < ends:
            for path in paths:
                ask(target.url + path, figures)
            time.sleep(0.2)
        figures.kind = f'{kind} ({hostile.opened} opened, {hostile.closed} closed by the server)'


def ask(url: str, figures: Figures) -> None:
    """Ask once, with a connection of its own, and note how long that took."""
    began = time.monotonic()
    try:
        request = urllib.request.Request(url, headers={'X-Auth-Token': figures.token} if figures.token else {})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            answer.read()
    except OSError as error:
        figures.failures.append(f'{url}: {error}')
    else:
        figures.waited_s.append(time.monotonic() - began)


def described(figures: Figures) -> str:
    """The figures in a line."""
    waited = figures.waited_s
    median = (
        f'median {statistics.median(waited) * 1000:.0f} ms, worst {figures.worst_s() * 1000:.0f} ms' if waited else ''
    )
    first = f'; first failure: {figures.failures[0]}' if figures.failures else ''
    return f'{figures.kind}: {len(waited)} answers {median}, {len(figures.failures)} failures{first}'


@contextlib.contextmanager
def server() -> Iterator[tuple[str, str]]:
    """The URL and the token of a server that is there for the block."""
    with tempfile.TemporaryDirectory() as directory:
        program = [sys.executable, '-m', 'convergence.cmd.convergence', 'serve', '--port', '0', '--data', directory]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            line = process.stdout.readline() if process.stdout else ''
            url = line.split()[-1] if line else ''
            if not url.startswith('http'):
                raise SystemExit(f'The server does not start: {line!r}')
            yield url, Path(directory, 'token').read_text().strip()
        finally:
            process.terminate()
            process.wait(60)


if __name__ == '__main__':
    sys.exit(main())
