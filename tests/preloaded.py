"""Programs without their start: a process that has loaded what they need forks for each call.

    done = manage().run('db', 'version', directory=tmp_path, environment={…})
    with convergence().start('serve', directory=tmp_path, environment={…}, log=tmp_path / 'log') as server: …

Each call is a process of its own, with its own arguments, environment, directory and end; only its imports, most of the
time of a short program, are those of all calls. What a program does before and while it imports is no part of this: a
test of that starts the program, as `tests/functional/test_programs.py` does with each of them.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

LONG_S = 240
"""More than any call takes that is waited for; what takes longer is ended by SIGALRM."""
LOOK_S = 0.02


class Forked:
    """A process of a loaded program, as `subprocess.Popen` has it: `pid`, `returncode`, and what follows."""

    def __init__(self, loaded: Preloaded, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._loaded = loaded

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        if self.returncode is None:
            self._loaded.look()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its exit code.

        :raises subprocess.TimeoutExpired: it goes on.
        """
        ends = time.monotonic() + (LONG_S if timeout is None else timeout)
        while self.returncode is None:
            if time.monotonic() > ends:
                raise subprocess.TimeoutExpired(str(self.pid), ends)
            self._loaded.look(LOOK_S)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.send_signal(signal.SIGKILL)
        self.wait()


class Preloaded:
    """A process that has loaded some modules.

    :param modules: in order.
    """

    def __init__(self, *modules: str) -> None:
        # Entry points that are found while a module is loaded are kept for all calls, but not beyond.
        self._cache = tempfile.mkdtemp(prefix='convergence-preloaded-')
        self._process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', __spec__.name, *modules],
            cwd=Path(__file__).parents[1],
            env=os.environ | {'XDG_CACHE_HOME': self._cache},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._lock = threading.Lock()
        self._forked: dict[int, Forked] = {}
        self._read = b''
        atexit.register(self.close)

    def close(self) -> None:
        """No more calls."""
        self._process.communicate()
        shutil.rmtree(self._cache, ignore_errors=True)

    def start(self, asked: Mapping[str, Any]) -> Forked:
        """Fork once; see `_become` for what is asked."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(asked).encode() + b'\n')
            while not (begun := self._hear(None)):
                pass
        return begun[0]

    def look(self, limit_s: float = 0) -> None:
        """Hear who has ended, for so many seconds, or until somebody has."""
        with self._lock:
            self._hear(limit_s)

    def _hear(self, limit_s: float | None) -> list[Forked]:
        """Who has begun; of who has ended the exit code is noted.

        :param limit_s: for how long to wait until something is said; None: as long as it takes.
        """
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(limit_s):
                return []
        part = os.read(self._process.stdout.fileno(), 65536)
        assert part, 'the process that has loaded the programs has ended'
        *lines, self._read = (self._read + part).split(b'\n')
        begun = []
        for what, pid, code in (line.decode().split() for line in lines):
            if what == 'ended':
                self._forked.pop(int(pid)).returncode = int(code)
            else:
                begun.append(self._forked.setdefault(int(pid), Forked(self, int(pid))))
        return begun


@dataclass(frozen=True)
class PreloadedProgram:
    """One program of those that a process has loaded.

    :param entry: its function, as ``module:function``; called without arguments, it reads `sys.argv` and answers with
        the exit code.
    """

    loaded: Preloaded
    entry: str

    def start(self, *arguments: str, directory: Path | str, environment: Mapping[str, str], log: Path) -> Forked:
        """Begin; what it says goes to the end of a file."""
        return self._start(arguments, directory, environment, [log, log])

    def run(
        self, *arguments: str, directory: Path | str, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run the program once, to its end."""
        with tempfile.TemporaryDirectory() as kept:
            said = [Path(kept) / name for name in ('out', 'err')]
            code = self._start(arguments, directory, environment, said, LONG_S).wait()
            out, err = (path.read_text(encoding='utf-8', errors='backslashreplace') for path in said)
        return subprocess.CompletedProcess([self.entry, *arguments], code, out, err)

    def _start(
        self,
        arguments: tuple[str, ...],
        directory: Path | str,
        environment: Mapping[str, str],
        said: list[Path],
        limit_s: int = 0,
    ) -> Forked:
        for path in said:
            path.touch()
        asked = {'entry': self.entry, 'arguments': arguments, 'directory': str(directory), 'limit_s': limit_s}
        return self.loaded.start(asked | {'environment': dict(environment), 'said': [str(path) for path in said]})


@cache
def _convergence() -> Preloaded:
    names = ('manage', 'engine', 'worker', 'all_in_one', 'convergence', 'serve', 'wiring.api', 'wiring.engine')
    drivers = ('oslo_messaging._drivers.impl_rabbit', 'psycopg2', 'pymysql')
    return Preloaded(*(f'convergence.cmd.{name}' for name in names), 'convergence.db.schema.migration', *drivers)


def program(name: str, function: str = 'main') -> PreloadedProgram:
    """A program of ours by the name of its module, in ``convergence.cmd`` where it says no other; on system threads."""
    whole = name if '.' in name else f'convergence.cmd.{name}'
    return PreloadedProgram(_convergence(), f'{whole}:{function}')


def manage() -> PreloadedProgram:
    """``convergence-manage``."""
    return program('manage')


@cache
def openstack() -> PreloadedProgram:
    """``openstack``, as python-openstackclient and python-heatclient make it."""
    return PreloadedProgram(Preloaded('openstackclient.shell', 'tests.openstack_client'), 'openstackclient.shell:main')


def _serve() -> int:
    """Fork for each line of standard input; the child goes on as a program. Say who was started, and who has ended."""
    for each in sys.argv[1:]:
        importlib.import_module(each)
    gc.freeze()  # or each child copies what it only looks over for garbage
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    children: dict[int, int] = {}
    read = b''
    while True:
        for key, _ in selector.select():
            if key.fd != 0:
                selector.unregister(key.fd)
                os.close(key.fd)
                pid, status = os.waitpid(children.pop(key.fd), 0)
                _say('ended', pid, os.waitstatus_to_exitcode(status))
                continue
            part = os.read(0, 65536)
            if not part:
                return 0
            *lines, read = (read + part).split(b'\n')
            for line in lines:
                pid = os.fork()
                if not pid:
                    selector.close()
                    for each in children:
                        os.close(each)
                    return _become(json.loads(line))
                _say('started', pid, 0)
                children[os.pidfd_open(pid)] = pid
                selector.register(next(reversed(children)), selectors.EVENT_READ)


def _say(what: str, pid: int, code: int) -> None:
    os.write(1, f'{what} {pid} {code}\n'.encode())


def _become(asked: Mapping[str, Any]) -> int:
    signal.alarm(asked['limit_s'])
    opened = [os.open(os.devnull, os.O_RDONLY)]
    opened += [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for path in asked['said']]
    for number, descriptor in enumerate(opened):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(asked['environment'])
    os.chdir(asked['directory'])
    path = os.environ.get('PYTHONPATH', '').split(os.pathsep)
    sys.path[:0] = [each for each in path if each and each not in sys.path]
    module, _, name = asked['entry'].partition(':')
    function = getattr(importlib.import_module(module), name)
    sys.argv = [str(sys.modules[module].__file__), *asked['arguments']]
    return int(function() or 0)


if __name__ == '__main__':
    sys.exit(_serve())
