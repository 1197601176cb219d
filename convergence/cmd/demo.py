"""``make demo``: creates, updates and deletes a small web site and a group of servers on this machine, with checks.

The demo runs the commands that a user types: ``convergence serve``, which needs no other service, then ``convergence
stack create --wait``, ``update`` and ``delete``. The local provider creates real files and a real server, all in a new
temporary directory.

Exit code: 0 if all checks passed, 1 if not, 2 for a wrong command line, 130 after Ctrl-C. The demo always removes its
objects.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console

import convergence
from convergence.cli.connection import local_servers
from convergence.cli.connection.client import Api, StackClient
from convergence.cli.connection.targets import Target
from convergence.cli.exits import CommandFailed, NotFound
from convergence.cli.report import Report, ResourceOutcome, announced, happened
from convergence.errors import ConvergenceError
from convergence.resources.builtin.local.process_table import is_running, stop
from convergence.resources.builtin.local.sandbox import STATE

STACK, GROUP = 'site', 'group'
OPERATION_LIMIT_S = 300.0
SERVER_LIMIT_S = 120.0
"""Seconds that a start or stop of the server may take."""
COMMAND = (sys.executable, '-m', 'convergence.cmd.convergence')
CONFIGURATION = '[worker]\nworkers = 3\nthreads = 4\n'
INTERRUPTED = 130
EXPECTED = {ResourceOutcome.KEPT, ResourceOutcome.UPDATED, ResourceOutcome.REPLACED}
"""The texts of the two versions of the site."""


def main(argv: list[str] | None = None) -> int:
    """Run the demo, and return the exit code."""
    options = _arguments(argv)
    console = Console(highlight=False, force_terminal=False if options.plain else None)
    report = Report(console)
    sources = [options.examples / name for name in ('site.yaml', 'site-update.yaml', 'scaling.yaml')]
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
    except ConvergenceError as error:
        report.check('The demo ran to its end', False, str(error))
    finally:
        _end_processes(directory / 'local')
        if code == 1:
            report.say(f'The log is {directory / "demo.log"}.')
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return code


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='convergence-demo', description='Create, update and delete a small web site on this machine.'
    )
    parser.add_argument('--plain', action='store_true', help='print a line for each change, as for a file')
    parser.add_argument(
        '--examples',
        type=Path,
        default=Path(convergence.__file__).parents[1] / 'examples',
        metavar='DIRECTORY',
        help='directory of site.yaml, site-update.yaml and scaling.yaml',
    )
    return parser.parse_args(argv)


def _run(report: Report, directory: Path, first: Path, second: Path, group: Path) -> int:
    report.title('A web site on this machine: created, updated and deleted')
    report.say('One process runs 1 engine, 3 workers and the API, with SQLite and messages in memory.', 'dim')
    report.say(f'Its data is in {directory}.', 'dim')
    interrupted = False
    with _served(report, directory) as served:
        demo = Demo(report, served.url, served.token(), directory / 'local')
        try:
            demo.create(first)
            demo.update(second)
            demo.repair()
            demo.delete()
            demo.scale(group)
        except KeyboardInterrupt:
            interrupted = True
            with contextlib.suppress(OSError):  # the terminal may be gone
                report.say('Interrupted. Deleting the stacks ...', 'yellow')
        except (ConvergenceError, CommandFailed) as error:
            report.check('The demo ran to its end', False, str(error))
        finally:
            demo.remove()
    return INTERRUPTED if interrupted else _verdict(report)


@contextlib.contextmanager
def _served(report: Report, directory: Path) -> Iterator[local_servers.LocalServer]:
    """Start ``convergence serve`` for `directory`, and return its record.

    :raises ConvergenceError: it did not start.
    """
    configuration = directory / 'demo.conf'
    configuration.write_text(CONFIGURATION, encoding='utf-8')
    _tell(report, 'serve', '--data', str(directory))
    with (directory / 'demo.log').open('w', encoding='utf-8') as log:
        # A session of its own: Ctrl-C stops the demo, which still needs the server for deletes.
        server = subprocess.Popen(
            [*COMMAND, 'serve', '--data', str(directory), '--port', '0', '--config-file', str(configuration), '-v'],
            env=os.environ | {'XDG_STATE_HOME': str(directory / 'state')},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        ends = time.monotonic() + SERVER_LIMIT_S
        while (served := local_servers.alive(directory)) is None:
            if server.poll() is not None or time.monotonic() > ends:
                raise ConvergenceError('convergence serve did not start')
            time.sleep(0.05)
        yield served
    finally:
        server.terminate()
        try:
            server.wait(SERVER_LIMIT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _tell(report: Report, *arguments: str) -> None:
    report.say(f'$ convergence {" ".join(arguments)}', 'cyan')


def _verdict(report: Report) -> int:
    if report.failed:
        report.title(f'{len(report.failed)} of {report.passed + len(report.failed)} checks failed.')
        return 1
    report.title(f'All {report.passed} checks passed.')
    report.say('Next: examples/hello.yaml, README.rst, docs/plugins.rst', 'dim')
    return 0


class Demo:
    """The steps of the demo.

    :param url: URL of the API.
    :param token: token for requests.
    :param root: directory of the local provider.
    """

    def __init__(self, report: Report, url: str, token: str, root: Path) -> None:
        self._report = report
        self._url, self._token = url, token
        self._api = Api(Target(f'{url}/v1/demo', 'the demo', lambda: token))
        self._root = root
        self._servers: list[str] = []

    # --- steps ------------------------------------------------------------------------------------------------

    def create(self, source: Path) -> None:
        """Create the stack, and request its pages."""
        self._report.title(f'1  Create: {source.parent.name}/{source.name}')
        self._type('CREATE_COMPLETE', 'create', STACK, '-t', str(source), '--wait')
        stack = self._api.stack(STACK)
        self._look_at(stack, 'Hello from Convergence (first edition)')
        self._servers.append(_server(stack))

    def update(self, source: Path) -> None:
        """Update the stack, and compare the preview with the result."""
        self._report.title(f'2  Update: {source.parent.name}/{source.name}')
        stack = self._api.stack(STACK)
        body = {'template': source.read_text(encoding='utf-8')}
        preview = announced(self._api.send('PUT', stack.at('preview'), body)['resource_changes'])
        before, since = stack.resources(), stack.last_event()
        old_url = _output(stack, 'url')
        self._type('UPDATE_COMPLETE', 'update', STACK, '-t', str(source), '--wait')
        self._report.space()
        came = happened(before, stack.resources(), stack.events(since), stack.id)
        same = self._report.comparison(preview, came)
        self._report.check('The result is that of the preview', same)
        whole = {*came.values()} >= EXPECTED
        self._report.check('Resources were kept, updated in place and replaced', whole)
        self._servers.append(_server(stack))
        old, new = self._servers[-2:]
        swapped = not is_running(old) and is_running(new)
        self._report.check(f'The old server ({_pid(old)}) has ended, a new one ({_pid(new)}) runs', swapped)
        self._report.check(f'{old_url} does not answer any more', _get(old_url) is None)
        self._look_at(stack, 'Good day from Convergence (second edition)')

    def repair(self) -> None:
        """Kill the server outside the stack, and check that a replacement answers without a command."""
        self._report.title('3  Repair: the server is killed')
        self._type('UPDATE_COMPLETE', 'drift', STACK, '--set-policy', 'repair', '--refresh')
        stack, killed = self._api.stack(STACK), self._servers[-1]
        self._report.say(f'$ kill -9 {killed.partition(":")[0]}', 'cyan')
        begun = time.monotonic()
        stop(killed, signal.SIGKILL)
        while not self._is_repaired(stack, killed) and time.monotonic() < begun + SERVER_LIMIT_S:
            time.sleep(0.05)
        took_s = time.monotonic() - begun
        self._servers.append(_server(stack))
        other = self._servers[-1] != killed and is_running(self._servers[-1])
        self._report.check(f'Another server ({_pid(self._servers[-1])}) has taken its place in {took_s:.1f} s', other)
        self._look_at(stack, 'Good day from Convergence (second edition)')

    def delete(self) -> None:
        """Delete the stack, and check that nothing is left."""
        self._report.title('4  Delete')
        stack = self._api.stack(STACK)
        url = _output(stack, 'url')
        self._type('DELETE_COMPLETE', 'delete', STACK, '--yes', '--wait')
        running = [server for server in self._servers if is_running(server)]
        files = left_over(self._root)
        rows = [str(one['resource_name']) for one in stack.resources()]
        self._report.check('No resource row is left in the database', not rows, ', '.join(rows))
        self._report.check('No file is left on the disk', not files, ', '.join(files))
        self._report.check('No process is left running', not running and _get(url) is None, ', '.join(running))

    def scale(self, source: Path) -> None:
        """Create a group, start a server by a signal, and stop the oldest by another signal."""
        self._report.title(f'5  Scale: {source.parent.name}/{source.name}')
        self._type('CREATE_COMPLETE', 'create', GROUP, '-t', str(source), '--wait')
        stack = self._api.stack(GROUP)
        (first,) = self._group_of(stack, 1)
        self._signal('more')
        both = self._group_of(stack, 2)
        self._report.check('A signal has started another server', len(both) == 2 and first in both, str(both))
        answers = [_get_when_up(url) for url in both]
        self._report.check('GET / of both: 200 Hello from the group', answers == [(200, 'Hello from the group')] * 2)
        self._signal('fewer')
        left = self._group_of(stack, 1)
        self._report.check('Another signal has ended the oldest', first not in left and _get(first) is None, str(left))
        self._type('DELETE_COMPLETE', 'delete', GROUP, '--yes', '--wait')
        files = left_over(self._root)
        self._report.check('No object of the group is left', not files and _get(left[0]) is None, ', '.join(files))

    def remove(self) -> None:
        """Delete the remaining stacks, in any state."""
        for name in (STACK, GROUP):
            with contextlib.suppress(CommandFailed):
                stack = self._api.stack(name)
                self._api.send('DELETE', stack.at())
                ends = time.monotonic() + OPERATION_LIMIT_S
                while stack.show()['stack_status'].endswith('_IN_PROGRESS') and time.monotonic() < ends:
                    time.sleep(0.1)

    # --- parts ------------------------------------------------------------------------------------------------

    def _is_repaired(self, stack: StackClient, killed: str) -> bool:
        """Return True if the stack is complete with another server."""
        return _server(stack) != killed and stack.show()['stack_status'] == 'UPDATE_COMPLETE'

    def _signal(self, policy: str) -> None:
        _tell(self._report, 'stack', 'signal', GROUP, policy)
        self._api.send('POST', self._api.stack(GROUP).at('resources', policy, 'signal'))

    def _group_of(self, stack: StackClient, size: int) -> list[str]:
        """Return the URLs of the group's servers when it is complete with so many, or after the time limit."""
        row = next(one for one in stack.resources() if one['resource_name'] == 'servers')
        nested = self._api.stack(str(row['physical_resource_id']))
        ends = time.monotonic() + SERVER_LIMIT_S
        while True:
            is_at_rest = not nested.show()['stack_status'].endswith('_IN_PROGRESS')
            told = next(each['output_value'] for each in stack.outputs() if each['output_key'] == 'urls')
            urls = [str(url) for url in told or ()]
            if (is_at_rest and len(urls) == size) or time.monotonic() > ends:
                return urls
            time.sleep(0.1)

    def _type(self, wanted: str, *arguments: str) -> None:
        """Run ``convergence stack …`` on this terminal, and check its result.

        :raises ConvergenceError: the result differs.
        """
        _tell(self._report, 'stack', *arguments)
        server = {'CONVERGENCE_ENDPOINT': self._url, 'CONVERGENCE_TOKEN': self._token, 'CONVERGENCE_PROJECT': 'demo'}
        environment = os.environ | server
        if not self._report.console.is_terminal:
            environment['TTY_COMPATIBLE'] = '0'
        self._report.console.file.flush()
        stack = self._api.stack(arguments[1]) if arguments[0] != 'create' else None
        done = subprocess.run(
            [*COMMAND, 'stack', *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode == INTERRUPTED:
            raise KeyboardInterrupt
        shown = (stack or self._api.stack(arguments[1])).show()
        state = str(shown['stack_status'])
        held = self._report.check(f'The stack is {state}', state == wanted)
        if not held or done.returncode:
            raise ConvergenceError(str(shown['stack_status_reason']))

    def _look_at(self, stack: StackClient, greeting: str) -> None:
        """Request the page of the site, and the private page without and with the password."""
        url = _output(stack, 'url')
        secret = _password(Path(_output(stack, 'settings_file')))
        for path, password, expected in (
            ('/', None, (200, greeting)),
            ('/private', None, (401, 'The password, please.')),
            ('/private', secret, (200, 'You know the password.')),
        ):
            answer = _get(url + path, password)
            told = ', with the password' if password else ''
            self._report.check(f'GET {path}{told}: {expected[0]} {expected[1]}', answer == expected, str(answer))


def _output(stack: StackClient, key: str) -> str:
    found: Mapping[str, object] = {each['output_key']: each['output_value'] for each in stack.outputs()}
    if key not in found:
        raise NotFound(f'Stack {stack.name} has no output {key}.')
    return str(found[key])


def _server(stack: StackClient) -> str:
    return next(str(one['physical_resource_id']) for one in stack.resources() if one['resource_name'] == 'server')


# --- the world ------------------------------------------------------------------------------------------------


def left_over(root: Path) -> list[str]:
    """Return the files below the directory of the local provider, except its lock."""
    own = root / STATE
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob('*')
        if path not in (own, own / 'lock') and not (path.is_dir() and own in path.parents)
    )


def _pid(physical_id: str) -> str:
    return f'process {physical_id.partition(":")[0]}'


def _password(settings: Path) -> str:
    lines = settings.read_text(encoding='utf-8').splitlines()
    return next(line.partition(' = ')[2] for line in lines if line.startswith('password'))


def _get(url: str, password: str | None = None) -> tuple[int, str] | None:
    """Return status and text of a page; None without an answer."""
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


def _get_when_up(url: str) -> tuple[int, str] | None:
    """Request a page of a server that was just started, and may not listen yet."""
    ends = time.monotonic() + SERVER_LIMIT_S
    while (answer := _get(url)) is None and time.monotonic() < ends:
        time.sleep(0.1)
    return answer


def _end_processes(root: Path) -> None:
    """End the processes that the local provider has recorded, if a delete was interrupted too."""
    for record in (root / STATE / 'processes').glob('*.json'):
        with contextlib.suppress(OSError, ValueError, KeyError):
            known = json.loads(record.read_text(encoding='utf-8'))
            stop(f'{known["pid"]}:{known["start"]}', signal.SIGKILL)


if __name__ == '__main__':
    sys.exit(main())
