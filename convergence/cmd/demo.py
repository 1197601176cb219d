"""``make demo``: a small web site on this machine, created, changed and removed, each step checked.

Everything runs in this one process, on the defaults that need no other service: an SQLite file, messages in memory,
and the local provider, which makes real files and a real server. All of it lives in a new temporary directory.

Exit code: 0 if everything that was announced came true, 1 if not, 2 for a wrong command line, 130 after Ctrl-C; in
each case what was made is removed again.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import logging
import shutil
import signal
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import convergence
from convergence.cli.changes import Change, announced, happened
from convergence.cli.display import display_for, follow
from convergence.cli.progress import Progress
from convergence.cli.report import Report
from convergence.cli.stack import StackHandle
from convergence.concurrency import Executor
from convergence.config import (
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    Settings,
    TransportSettings,
    WorkerSettings,
)
from convergence.errors import ConvergenceError
from convergence.logs import LINE_FORMAT, SafeFormatter
from convergence.resources.builtin.local.process_table import is_running, stop
from convergence.resources.builtin.local.sandbox import STATE

if TYPE_CHECKING:
    from convergence.cmd.embedded import Embedded

STACK, PROJECT = 'site', 'demo'
OPERATION_LIMIT_S = 300.0
INTERRUPTED = 130
EXPECTED = {Change.KEPT, Change.UPDATED, Change.REPLACED}
"""What the two versions of the site are made to show."""


def main(argv: list[str] | None = None) -> int:
    """Run the demo; the exit code."""
    options = _arguments(argv)
    console = Console(highlight=False, force_terminal=False if options.plain else None)
    report = Report(console)
    sources = [options.examples / 'site.yaml', options.examples / 'site-update.yaml']
    if missing := [str(path) for path in sources if not path.is_file()]:
        print(f'{", ".join(missing)} not found: run this in a checkout, or name --examples DIRECTORY', file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # like Ctrl-C
    directory = Path(tempfile.mkdtemp(prefix='demo-'))
    code = 1
    try:
        code = _run(report, directory, *sources)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        _end_processes(directory / 'local')
        if code == 1:
            report.say(f'The log is {directory / "demo.log"}.')
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return code


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='convergence-demo', description='Create, change and remove a small web site on this machine.'
    )
    parser.add_argument('--plain', action='store_true', help='a line for each change, as when writing to a file')
    parser.add_argument(
        '--examples',
        type=Path,
        default=Path(convergence.__file__).parents[1] / 'examples',
        metavar='DIRECTORY',
        help='where site.yaml and site-update.yaml are',
    )
    return parser.parse_args(argv)


def settings_in(directory: Path) -> Settings:
    """The defaults for one process, with everything kept in `directory`. No configuration file is read."""
    return Settings(
        host='localhost',
        executor=Executor.THREADING,
        state_dir=directory,
        database=DatabaseSettings(f'sqlite:///{directory / "convergence.sqlite"}'),
        transport=TransportSettings(),
        engine=EngineSettings(),
        worker=WorkerSettings(workers=3, threads=4),
        limits=LimitSettings(),
        local_provider=LocalProviderSettings(enabled=True, root=directory / 'local', programs={}),
    )


def _run(report: Report, directory: Path, first: Path, second: Path) -> int:
    _log_to(directory / 'demo.log')
    from convergence.cmd.embedded import Embedded  # after the log: libraries warn while they are imported

    settings = settings_in(directory)
    report.title('A web site on this machine: made, changed and removed again')
    report.say(f'One process: 1 engine, {settings.worker.workers} workers, SQLite, messages in memory.', 'dim')
    report.say(f'All that it keeps is in {directory}.', 'dim')
    with Embedded(settings) as embedded:
        demo = Demo(report, embedded, directory / 'local')
        interrupted = False
        try:
            demo.create(first)
            demo.update(second)
            demo.delete()
        except KeyboardInterrupt:
            interrupted = True
            with contextlib.suppress(OSError):  # the terminal may be gone
                report.say('Interrupted. Removing what was made ...', 'yellow')
        except ConvergenceError as error:
            report.check('The demo comes to its end', False, str(error))
        finally:
            demo.remove()
    return INTERRUPTED if interrupted else _verdict(report)


def _verdict(report: Report) -> int:
    if report.failed:
        report.title(f'{len(report.failed)} of {report.passed + len(report.failed)} checks failed.')
        return 1
    report.title(f'All {report.passed} checks passed.')
    report.say('Next: examples/hello.yaml, README.rst, docs/plugins.rst', 'dim')
    return 0


class Demo:
    """The steps of the demo.

    :param root: directory of the local provider.
    """

    def __init__(self, report: Report, embedded: Embedded, root: Path) -> None:
        self._report = report
        self._client = embedded.client
        self._context = embedded.context(PROJECT)
        self._embedded = embedded
        self._root = root
        self._servers: list[str] = []

    # --- steps ------------------------------------------------------------------------------------------------

    def create(self, source: Path) -> None:
        """Create the stack and look at the site."""
        self._report.title(f'1  Create: {source.parent.name}/{source.name}')
        template = source.read_text(encoding='utf-8')
        stack = self._stack(self._client.create_stack(self._context, STACK, template))
        self._follow(stack, 'CREATE_COMPLETE', existing={}, since=None)
        self._show_outputs(stack, 'Hello from Convergence (first edition)')
        self._servers.append(self._server(stack))

    def update(self, source: Path) -> None:
        """Change the stack, and compare what was announced with what came."""
        self._report.title(f'2  Update: {source.parent.name}/{source.name}')
        stack, template = self._found(), source.read_text(encoding='utf-8')
        preview = announced(self._client.preview_update_stack(self._context, stack.identity, template))
        before, since = stack.resources(), stack.last_event()
        old_url = self._output(stack, 'url')
        self._client.update_stack(self._context, stack.identity, template)
        self._follow(stack, 'UPDATE_COMPLETE', existing=_types(before), since=since)
        self._report.space()
        came = happened(before, stack.resources(), stack.events(since))
        same = self._report.comparison(preview, came)
        self._report.check('What happened is what the preview had announced', same)
        whole = EXPECTED <= {*came.values()}
        self._report.check('Something was kept, something changed in place, something replaced', whole)
        self._servers.append(self._server(stack))
        old, new = self._servers[-2:]
        swapped = not is_running(old) and is_running(new)
        self._report.check(f'The old server ({_pid(old)}) has ended, a new one ({_pid(new)}) runs', swapped)
        self._report.check(f'{old_url} does not answer any more', _get(old_url) is None)
        self._show_outputs(stack, 'Good day from Convergence (second edition)')

    def delete(self) -> None:
        """Delete the stack and see that nothing is left."""
        self._report.title('3  Delete')
        stack = self._found()
        existing, since = _types(stack.resources()), stack.last_event()
        url = self._output(stack, 'url')
        self._client.delete_stack(self._context, stack.identity)
        self._follow(stack, 'DELETE_COMPLETE', existing=existing, since=since)
        running = [server for server in self._servers if is_running(server)]
        files = left_over(self._root)
        rows = [one['resource_name'] for one in stack.resources()]
        self._report.check('No resource row is left in the database', not rows, ', '.join(rows))
        self._report.check('No file is left on the disk', not files, ', '.join(files))
        self._report.check('No process is left running', not running and _get(url) is None, ', '.join(running))

    def remove(self) -> None:
        """Delete the stack if it is still there, whatever state it is in."""
        with contextlib.suppress(ConvergenceError, TimeoutError):
            stack = self._found()
            self._client.delete_stack(self._context, stack.identity)
            self._embedded.wait(stack.identity, OPERATION_LIMIT_S)

    # --- parts ------------------------------------------------------------------------------------------------

    def _stack(self, identity: dict[str, Any]) -> StackHandle:
        return StackHandle(self._client, self._context, identity)

    def _found(self) -> StackHandle:
        return self._stack(self._client.identify_stack(self._context, STACK))

    def _follow(self, stack: StackHandle, wanted: str, *, existing: Mapping[str, str], since: str | None) -> None:
        """Show the operation until it ends.

        :raises ConvergenceError: it does not end in the state `wanted`.
        """
        progress = Progress({} if wanted == 'DELETE_COMPLETE' else stack.wanted(), existing)
        display = display_for(self._report.console)
        state = follow(stack, progress, display, since=since, timeout_s=OPERATION_LIMIT_S)
        if not self._report.check(f'The stack is {state}', state == wanted):
            raise ConvergenceError(stack.state()[1])

    def _show_outputs(self, stack: StackHandle, greeting: str) -> None:
        """Print the outputs, and ask the site: its page, and the private one without and with the password."""
        self._report.space()
        self._report.outputs(stack.outputs())
        url = self._output(stack, 'url')
        secret = _password(Path(self._output(stack, 'settings_file')))
        for path, password, expected in (
            ('/', None, (200, greeting)),
            ('/private', None, (401, 'The password, please.')),
            ('/private', secret, (200, 'You know the password.')),
        ):
            answer = _get(url + path, password)
            told = ', with the password' if password else ''
            self._report.check(f'GET {path}{told}: {expected[0]} {expected[1]}', answer == expected, str(answer))

    def _output(self, stack: StackHandle, key: str) -> str:
        return str(self._client.show_output(self._context, stack.identity, key)['output_value'])

    def _server(self, stack: StackHandle) -> str:
        return next(str(one['physical_resource_id']) for one in stack.resources() if one['resource_name'] == 'server')


# --- the world ------------------------------------------------------------------------------------------------


def left_over(root: Path) -> list[str]:
    """What is below the directory of the local provider, apart from its own empty directories and its lock."""
    own = root / STATE
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob('*')
        if path not in (own, own / 'lock') and not (path.is_dir() and own in path.parents)
    )


def _types(resources: list[dict[str, Any]]) -> dict[str, str]:
    return {str(one['resource_name']): str(one['resource_type']) for one in resources}


def _pid(physical_id: str) -> str:
    return f'process {physical_id.partition(":")[0]}'


def _password(settings: Path) -> str:
    lines = settings.read_text(encoding='utf-8').splitlines()
    return next(line.partition(' = ')[2] for line in lines if line.startswith('password'))


def _get(url: str, password: str | None = None) -> tuple[int, str] | None:
    """Status and text of a page; None where nobody answers."""
    request = urllib.request.Request(url, headers={'X-Password': password} if password else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode().strip()
    except (OSError, http.client.HTTPException):
        return None


def _end_processes(root: Path) -> None:
    """The last resort, for a delete that was interrupted too: end what the local provider has started and recorded."""
    for record in (root / STATE / 'processes').glob('*.json'):
        with contextlib.suppress(OSError, ValueError, KeyError):
            known = json.loads(record.read_text(encoding='utf-8'))
            stop(f'{known["pid"]}:{known["start"]}', signal.SIGKILL)


def _log_to(path: Path) -> None:
    """Keep the screen for the demo: log lines go to a file."""
    handler = logging.FileHandler(path, encoding='utf-8')
    handler.setFormatter(SafeFormatter(logging.Formatter(LINE_FORMAT, '%Y-%m-%d %H:%M:%S')))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)


if __name__ == '__main__':
    sys.exit(main())
