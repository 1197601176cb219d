"""``Convergence::Local::Process``."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.local.launch import Launch
from convergence.resources.builtin.local.ownership import Owner, Ownership
from convergence.resources.builtin.local.process_table import ProcessTable, Running, is_listening, is_running, stop
from convergence.resources.builtin.local.process_watcher import CAN_WATCH, ProcessWatcher
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.local.sandbox import Sandbox, checked
from convergence.resources.builtin.waiting import Clock, physical_name, still_waiting, system_clock, wait
from convergence.resources.constraints import Range
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    InProgress,
    Item,
    ObjectNotFound,
    Observed,
    ResourceType,
    Tell,
    Watcher,
)
from convergence.resources.schema import prop

POLL_INTERVAL_S = 0.2
INHERITED = ('PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR')
"""The variables of the engine's environment that a program gets; the others may hold passwords."""


@dataclass(frozen=True)
class ProcessProperties:
    """See the descriptions of the fields."""

    program: str = prop(description='Name of a program that the operator allows, for example python.')
    arguments: list[str] = prop([], description='Arguments; ${PORT} in them stands for the port.')
    directory: str | None = prop(
        None, description='Working directory, as get_resource of a Convergence::Local::Directory gives it.'
    )
    environment: dict[str, str] = prop({}, description='Further environment variables.')
    port: int = prop(
        0,
        constraints=[Range(0, 65535)],
        description='Port on which the program will listen, in its variable PORT; 0 chooses a free one.',
    )
    stop_timeout_s: float = prop(
        10,
        update_allowed=True,
        constraints=[Range(minimum=0)],
        description='Seconds between the request to end (SIGTERM) and the end by force (SIGKILL).',
    )
    triggers: Json = prop(None, description='Any value; a change of it starts a new process.')

    def __post_init__(self) -> None:
        if self.directory is not None:
            checked(self.directory)
        if any(not name or '=' in name or '\0' in name + text for name, text in self.environment.items()):
            raise ValueError('environment has a name or a text that no environment variable can have')
        if any('\0' in argument for argument in self.arguments):
            raise ValueError('arguments must not contain the character NUL')


@dataclass(frozen=True)
class ProcessAttributes:
    """The attributes of a process."""

    pid: int = attr('Number of the process.', of=())
    port: int = attr('Port in the variable PORT of the program.', of=('port',))
    url: str = attr('http://127.0.0.1 with that port.', of=('port',))
    log: str = attr('Absolute path of the file that holds what the program printed.', of=())


class Process(ResourceType[ProcessProperties]):
    """A running program on this machine; it continues when the engine stops."""

    Properties = ProcessProperties
    Attributes = ProcessAttributes
    token_enforced = True  # A token has one record, made by the program's own process before the program runs.
    set_by_service = ('port',)
    create_ambiguity_s = 5.0  # The new process records itself, and may be on its way there.

    def __init__(self, provider: LocalProvider, clock: Clock = system_clock) -> None:
        self._provider = provider
        self._clock = clock
        self._sandbox = Sandbox(provider.root)
        self._ownership = Ownership(provider.root)
        self._table = ProcessTable(provider.root)

    @override
    def create(self, call: Call[ProcessProperties]) -> Answer:
        """Start the program, then see whether it stays up."""
        with self._ownership.locked():
            running = self._table.find(call.token) or self._start(call)
        data: dict[str, Json] = {'port': running.port, 'log': _log(call)}
        return InProgress({}, running.physical_id, data, POLL_INTERVAL_S)

    @override
    def delete(self, call: Call[ProcessProperties]) -> Answer:
        """Send the process a signal to end, if the provider started it; any other process is left alone."""
        found = self._found(call) if call.physical_id is not None else self._table.find(call.token)
        physical_id = found.physical_id if found is not None else None
        if physical_id is None or not is_running(physical_id):
            self._tidy(call, physical_id)
            raise ObjectNotFound(f'the process of {call.name} does not run')
        stop(physical_id, signal.SIGTERM)
        waiting = wait(self._clock, call.properties.stop_timeout_s)
        progress = {**waiting.progress, 'process': physical_id}
        return InProgress(progress, poll_after_s=POLL_INTERVAL_S)

    @override
    def poll(self, call: Call[ProcessProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Create: does it still run? Delete: has it ended? Kills it if it was signalled long enough ago."""
        if action is not Action.DELETE:
            if not self._runs(call):
                raise FinalFailure(
                    f'the program {call.properties.program} ended at once; see its log {_log(call)}',
                    physical_id=call.physical_id,
                )
            return Done()
        physical_id = str(progress['process'])
        if not is_running(physical_id):
            self._tidy(call, physical_id)
            return Done()
        waiting = still_waiting(self._clock, progress)
        if waiting is None:
            stop(physical_id, signal.SIGKILL)
            return InProgress(progress, poll_after_s=POLL_INTERVAL_S)
        return dataclasses.replace(waiting, progress={**progress, **waiting.progress}, poll_after_s=POLL_INTERVAL_S)

    @override
    def inventory(self) -> Iterable[Item]:
        """The processes that were started here and run."""
        return [Item(each.physical_id, token) for token, each in self._table.running()]

    @override
    def find(self, call: Call[ProcessProperties]) -> Answer | None:
        """The process that was started under the token, if it runs."""
        running = self._table.find(call.token)
        return Done(running.physical_id, {'port': running.port, 'log': _log(call)}) if running else None

    @override
    def observe(self, call: Call[ProcessProperties]) -> Observed:
        """Return a healthy observation if the process runs."""
        if not self._runs(call):
            raise ObjectNotFound(f'the process of {call.name} does not run')
        return Observed(properties={'port': self._port(call)})

    @override
    def watcher(self, tell: Tell) -> Watcher | None:
        """Return a watcher that reports processes that end, if the kernel reports them."""
        return ProcessWatcher(self._table, tell) if CAN_WATCH else None

    @override
    def attribute(self, call: Call[ProcessProperties], name: str) -> Json:
        """Number, port, address or log of the process."""
        if call.physical_id is None:
            raise FinalFailure(f'{call.name} has not been started')
        if name == 'pid':
            return int(call.physical_id.partition(':')[0])
        if name == 'url':
            return f'http://127.0.0.1:{self._port(call)}'
        return self._sandbox.absolute(_log(call)) if name == 'log' else self._port(call)

    def _found(self, call: Call[ProcessProperties]) -> Running | None:
        """Return the process of the call's id, if a resource of the call's project started it."""
        return self._table.known(call.project_id, call.physical_id) if call.physical_id is not None else None

    def _runs(self, call: Call[ProcessProperties]) -> bool:
        found = self._found(call)
        return found is not None and is_running(found.physical_id)

    def _port(self, call: Call[ProcessProperties]) -> Json:
        if 'port' in call.data:
            return call.data['port']
        found = self._found(call)  # A process that was taken over: another resource has started it.
        return found.port if found is not None else None

    def _start(self, call: Call[ProcessProperties]) -> Running:
        wanted = call.properties
        executable = self._provider.programs.get(wanted.program)
        if executable is None:
            allowed = ', '.join(sorted(self._provider.programs))
            raise FinalFailure(f'the program {wanted.program} is not allowed here; allowed: {allowed}')
        if wanted.port and is_listening(wanted.port):
            raise FinalFailure(f'port {wanted.port} is in use on this machine; choose another one, or 0 for a free one')
        port = wanted.port or self._table.free_port()
        log = _log(call)
        self._ownership.claim(Owner.of(call, log, 'log'), occupied=self._sandbox.exists(log))
        directory_fd, log_fd = self._sandbox.open_directory(wanted.directory), self._sandbox.open_log(log)
        try:
            inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
            task = Launch(
                executable=executable,
                arguments=[argument.replace('${PORT}', str(port)) for argument in wanted.arguments],
                environment={**inherited, **wanted.environment, 'PORT': str(port)},
                directory_fd=directory_fd,
                log_fd=log_fd,
                record='',
                port=port,
                project_id=call.project_id,
            )
            return self._table.start(call.token, task)
        finally:
            os.close(directory_fd)
            os.close(log_fd)

    def _tidy(self, call: Call[ProcessProperties], physical_id: str | None) -> None:
        """Forget a process that has ended. Its log goes with its directory, or now if it has none."""
        if physical_id is not None:
            self._table.forget(physical_id)
        if call.properties.directory is not None:
            return
        with self._ownership.locked():
            log = _log(call)
            if self._ownership.owns(call, log):
                if self._sandbox.exists(log):
                    self._sandbox.remove_file(log)
                self._ownership.forget(log)


def _log(call: Call[ProcessProperties]) -> str:
    name = f'{physical_name(call)}.log'
    return f'{checked(call.properties.directory)}/{name}' if call.properties.directory else name
