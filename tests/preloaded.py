"""Programs without their start: a process that has loaded what they need forks for each call.

    with Preloaded('convergence.cmd.manage:main', 'convergence.cmd.assembly') as manage:
        done = manage.run('db', 'version', directory=tmp_path, environment={…})

Each call is a process of its own, with its own arguments, environment, directory and end; only its imports, most of the
time of a short program, are those of all calls. What a program does before and while it imports is no part of this: a
test of that starts the program.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

LONG_S = 240
"""More than any call takes; what takes longer is ended by SIGALRM."""


class Preloaded:
    """One program, loaded.

    :param entry: its function, as ``module:function``; called without arguments, it reads `sys.argv` and answers with
        the exit code.
    :param modules: what else to load, before it.
    """

    def __init__(self, entry: str, *modules: str) -> None:
        self._entry = entry
        self._process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', __spec__.name, entry, *modules],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """No more calls."""
        self._process.communicate()

    def run(
        self, *arguments: str, directory: Path | str, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run the program once, to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as kept:
            said = [Path(kept) / name for name in ('out', 'err')]
            asked = {
                'arguments': arguments,
                'directory': str(directory),
                'environment': dict(environment),
                'said': [str(path) for path in said],
            }
            self._process.stdin.write(json.dumps(asked) + '\n')
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            out, err = (path.read_text(encoding='utf-8', errors='backslashreplace') for path in said)
        return subprocess.CompletedProcess([self._entry, *arguments], code, out, err)


def _for_all(entry: str, *modules: str) -> Preloaded:
    loaded = Preloaded(entry, *modules)
    atexit.register(loaded.close)
    return loaded


@cache
def manage() -> Preloaded:
    """``convergence-manage``, for all tests of this process."""
    return _for_all('convergence.cmd.manage:main', 'convergence.cmd.assembly', 'convergence.db.schema.migration')


@cache
def openstack() -> Preloaded:
    """``openstack``, as python-openstackclient and python-heatclient make it, for all tests of this process."""
    return _for_all('openstackclient.shell:main', 'tests.openstack_client')


def _serve(entry: str, modules: Sequence[str]) -> int:
    """Fork for each line of standard input; the child goes on as the program."""
    for each in modules:
        importlib.import_module(each)
    module, _, name = entry.partition(':')
    function = getattr(importlib.import_module(module), name)
    gc.freeze()  # or each child copies what it only looks over for garbage
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return _become(function, json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


def _become(function: Any, asked: Mapping[str, Any]) -> int:
    signal.alarm(LONG_S)
    opened = [os.open(os.devnull, os.O_RDONLY)]
    opened += [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for path in asked['said']]
    for number, descriptor in enumerate(opened):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(asked['environment'])
    os.chdir(asked['directory'])
    sys.argv = [sys.argv[0], *asked['arguments']]
    return int(function() or 0)


if __name__ == '__main__':
    sys.exit(_serve(sys.argv[1], sys.argv[2:]))
