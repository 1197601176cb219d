"""Starts a program detached and leaves a record of it, before the program can do anything.

Runs as a script of its own, so that the engine never forks itself and the program is no child of the engine: it
survives the engine. The process that becomes the program writes the record, so the program never runs without one.
Needs nothing but the standard library.

Standard input: one JSON object, see `Launch`. Standard output: empty, or the reason why the program could not be
started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import NoReturn, TypedDict


class Launch(TypedDict):
    """The program to start.

    `directory_fd` and `log_fd` are inherited descriptors; `record` is the absolute path of a file that must not exist
    yet and will hold ``{"pid": …, "start": …, "port": …, "project_id": …}``.
    """

    executable: str
    arguments: list[str]
    environment: dict[str, str]
    directory_fd: int
    log_fd: int
    record: str
    port: int
    project_id: str


def start_of(pid: int) -> str | None:
    """Return the start time of the process `pid`, in a form that no other process with that number ever has.

    None if there is no such process, or only a zombie.
    """
    if not os.path.exists('/proc/self/stat'):
        return _start_by_ps(pid)
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            # The second field is the program's name in parentheses, which may contain anything.
            fields = file.read().rpartition(')')[2].split()
        with open('/proc/sys/kernel/random/boot_id', encoding='utf-8') as file:
            boot = file.read()[:8]
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, ticks_since_boot = fields[0], fields[19]
    return None if state in 'ZXx' else f'{ticks_since_boot}-{boot}'


def _start_by_ps(pid: int) -> str | None:
    command = ['ps', '-o', 'stat=,lstart=', '-p', str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return None if not answer or answer[0].startswith('Z') else '-'.join(answer[1:]).replace(':', '.')


def main() -> int:
    """Start the program that standard input describes; 0 when it runs."""
    launch: Launch = json.load(sys.stdin)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _become(launch, writing)
    os.close(writing)
    with os.fdopen(reading, encoding='utf-8') as report:
        # Ends when the program starts: the other end of the pipe closes itself then.
        problem = report.read()
    sys.stdout.write(problem)
    return 1 if problem else 0


def _become(launch: Launch, report: int) -> NoReturn:
    try:
        os.setsid()
        os.fchdir(launch['directory_fd'])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(launch['log_fd'], 1)
        os.dup2(launch['log_fd'], 2)
        for descriptor in (launch['directory_fd'], launch['log_fd']):
            os.set_inheritable(descriptor, False)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # The interpreter ignores them; programs expect not to.
            signal.signal(ignored, signal.SIG_DFL)
        _record(launch)
        os.execve(launch['executable'], [launch['executable'], *launch['arguments']], launch['environment'])
    except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run in the child
        os.write(report, str(error).encode() or b'it could not be started')
    os._exit(1)


def _record(launch: Launch) -> None:
    given = {'port': launch['port'], 'project_id': launch['project_id']}
    record = {'pid': os.getpid(), 'start': start_of(os.getpid()), **given}
    temporary = f'{launch["record"]}.{os.getpid()}'
    with open(temporary, 'x', encoding='utf-8') as file:
        json.dump(record, file)
    try:
        os.link(temporary, launch['record'])  # Unlike a rename it fails where a record exists.
    finally:
        os.unlink(temporary)


if __name__ == '__main__':
    sys.exit(main())
