"""Every configuration option, and the settings that are made from them.

Options are for operators: names, defaults and help texts, read from files and the command line. Settings are for
code: frozen values with the right types, checked once. Only `convergence.cmd` calls `load`; everything else is
handed the settings object that concerns it and never sees a `ConfigOpts`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from oslo_config import cfg

from convergence import logs
from convergence.concurrency import Executor
from convergence.errors import ConfigurationError

GENERAL_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'host',
        default=socket.gethostname(),
        sample_default='<name of this machine>',
        help='Name under which the processes of this machine appear in the service list and in log lines.',
    ),
    cfg.StrOpt(
        'executor',
        default='threading',
        choices=[
            ('threading', 'native threads; right for nearly everybody'),
            ('eventlet', 'green threads: cheap for many waiting actions, stalled by any blocking C call'),
        ],
        help='What concurrent work runs on. Chosen once per process, at its start.',
    ),
    cfg.StrOpt(
        'state_dir',
        default='convergence-data',
        help='Directory of everything that is kept when nothing else is configured: the SQLite database and what '
        'the local provider makes. A relative path counts from the working directory.',
    ),
]

DATABASE_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'connection',
        secret=True,
        sample_default='sqlite:///<state_dir>/convergence.sqlite',
        help='URL of the database, for example postgresql+psycopg2://user:password@host/convergence or '
        'mysql+pymysql://user:password@host/convergence. Without it: an SQLite file in state_dir, which serves '
        'processes of one machine only.',
    ),
    cfg.IntOpt(
        'max_pool_size',
        default=10,
        min=1,
        help='Connections that each process keeps open; it may open as many again when all are in use.',
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        min=0,
        help='How often a process that cannot reach the database when it starts tries again before it gives up.',
    ),
    cfg.IntOpt('retry_interval', default=10, min=1, help='Seconds between two of these tries.'),
]

TRANSPORT_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'url',
        default='memory://',
        secret=True,
        help='URL of the message broker, for example rabbit://user:password@host:5672/. memory:// connects the '
        'services of one process (convergence-all-in-one) and needs no broker. How the broker is used is set by '
        'the options of oslo.messaging, such as [oslo_messaging_rabbit] ssl.',
    ),
    cfg.IntOpt(
        'response_timeout_s', default=60, min=1, help='Seconds that a caller waits for the answer of an engine.'
    ),
]

ENGINE_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt('workers', default=1, min=1, help='Engine processes that convergence-engine starts.'),
    cfg.IntOpt('threads', default=8, min=1, help='Requests that each engine process serves at the same time.'),
    cfg.FloatOpt(
        'sweep_interval_s',
        default=5.0,
        min=0.05,
        help='Seconds between two sweeps. The sweeper finds whatever a lost message or a dead process left undone, '
        'so this bounds how long anything can be late.',
    ),
    cfg.FloatOpt(
        'heartbeat_interval_s', default=5.0, min=0.05, help='Seconds between two signs of life of a process.'
    ),
    cfg.FloatOpt(
        'lease_s',
        default=30.0,
        min=0.2,
        help='Seconds without a sign of life after which a process counts as dead and its work is taken over. Must '
        'be the same everywhere, and more than twice heartbeat_interval_s. Measured by the clock of the database.',
    ),
    cfg.IntOpt(
        'dispatch_window',
        default=64,
        min=1,
        help='Nodes of one stack that may be announced to workers and not yet taken. Keeps a long backlog in the '
        'database, where nothing can be lost, and lets small stacks through beside a large one.',
    ),
]

WORKER_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt('workers', default=1, min=1, help='Worker processes that convergence-worker starts.'),
    cfg.IntOpt('threads', default=8, min=1, help='Resources that each worker process works on at the same time.'),
    cfg.FloatOpt(
        'poll_interval_min_s', default=0.2, min=0.01, help='Seconds to the first poll of an action that takes time.'
    ),
    cfg.FloatOpt(
        'poll_interval_max_s',
        default=30.0,
        min=0.01,
        help='Longest time in seconds between two polls; the interval grows up to it as an action goes on.',
    ),
    cfg.FloatOpt(
        'park_after_s',
        default=2.0,
        min=0.0,
        help='Seconds of polling after which an action is parked: it waits in its database row, holds no thread, '
        'and any worker continues it.',
    ),
    cfg.IntOpt(
        'transient_attempts',
        default=5,
        min=1,
        help='How often a call is made that fails for the moment (TransientFailure) before its resource fails.',
    ),
    cfg.FloatOpt(
        'cancel_grace_s',
        default=10.0,
        min=0.0,
        help='Seconds that a cancelled action has to stop by itself before its resource is taken away from it.',
    ),
    cfg.FloatOpt(
        'drain_timeout_s',
        default=30.0,
        min=0.0,
        help='Seconds that a worker which was told to stop waits for its running actions; what is left is handed '
        'back and continued by other workers.',
    ),
]

LIMIT_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt('max_template_bytes', default=524288, min=1, help='Largest size of a template in bytes.'),
    cfg.IntOpt('max_resources_per_stack', default=1000, min=-1, help='Most resources of one stack. -1: no limit.'),
    cfg.IntOpt('max_stacks_per_project', default=512, min=-1, help='Most stacks of one project. -1: no limit.'),
    cfg.IntOpt(
        'max_events_per_stack',
        default=1000,
        min=-1,
        help='Most events kept for one stack; the oldest are removed first. -1: no limit.',
    ),
    cfg.IntOpt(
        'stack_timeout_mins',
        default=60,
        min=1,
        help='Minutes after which an operation on a stack fails, where the request sets no limit of its own.',
    ),
]

LOCAL_PROVIDER_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Offer the resource types Convergence::Local::*, which make files and run programs on the machine of '
        'the worker. Anybody who may create stacks can then run the programs listed below.',
    ),
    cfg.StrOpt(
        'root',
        sample_default='<state_dir>/local',
        help='The only directory in which these types make anything. Use a directory of its own.',
    ),
    cfg.DictOpt(
        'programs',
        default={},
        sample_default='python:/usr/bin/python3',
        help='The programs that templates may run: name:absolute path, separated by commas. Without it: the Python '
        'interpreter of the worker, under the name python.',
    ),
]

OPTIONS: Mapping[str, list[cfg.Opt]] = {
    'DEFAULT': GENERAL_OPTIONS,
    'database': DATABASE_OPTIONS,
    'transport': TRANSPORT_OPTIONS,
    'engine': ENGINE_OPTIONS,
    'worker': WORKER_OPTIONS,
    'limits': LIMIT_OPTIONS,
    'local_provider': LOCAL_PROVIDER_OPTIONS,
}
"""All options by group, which is the section of the configuration file."""

Defaults: TypeAlias = Mapping[tuple[str, str], object]
"""Defaults that a process wants to differ, by (group, option)."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How to reach the database. `connection` is a complete URL and may hold a password: never show it."""

    connection: str
    max_pool_size: int = 10
    max_retries: int = 10
    retry_interval: int = 10


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """How to reach the broker. `url` may hold a password: never show it."""

    url: str = 'memory://'
    response_timeout_s: int = 60


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What an engine process, its dispatcher and its sweeper need to know. See the options of the same names."""

    workers: int = 1
    threads: int = 8
    sweep_interval_s: float = 5.0
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    dispatch_window: int = 64


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker process needs to know. See the options of the same names.

    `heartbeat_interval_s`, `lease_s` and `dispatch_window` are those of the engine, so that they cannot differ.
    """

    workers: int = 1
    threads: int = 8
    poll_interval_min_s: float = 0.2
    poll_interval_max_s: float = 30.0
    park_after_s: float = 2.0
    transient_attempts: int = 5
    cancel_grace_s: float = 10.0
    drain_timeout_s: float = 30.0
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    dispatch_window: int = 64


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a project may use. None: no limit."""

    max_template_bytes: int = 524288
    max_resources_per_stack: int | None = 1000
    max_stacks_per_project: int | None = 512
    max_events_per_stack: int | None = 1000
    stack_timeout_mins: int = 60


@dataclass(frozen=True, slots=True)
class LocalProviderSettings:
    """Whether and where templates may make files and run programs on this machine.

    :param programs: absolute path of each program that may be run, by name; empty leaves it to the provider.
    """

    enabled: bool
    root: Path
    programs: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is configured, for the composition root to hand on in parts.

    :param state_dir: absolute; not created yet.
    """

    host: str
    executor: Executor
    state_dir: Path
    database: DatabaseSettings
    transport: TransportSettings
    engine: EngineSettings
    worker: WorkerSettings
    limits: LimitSettings
    local_provider: LocalProviderSettings


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """All options by group, for ``oslo-config-generator``."""
    return [(group, list(options)) for group, options in OPTIONS.items()]


def register(conf: cfg.ConfigOpts) -> None:
    """Make all options, and those of logging, known to `conf`. Doing it twice does no harm."""
    for group, options in OPTIONS.items():
        conf.register_opts(options, group=None if group == 'DEFAULT' else group)
    logs.register(conf)


def load(
    argv: Sequence[str],
    *,
    process: str,
    conf: cfg.ConfigOpts = cfg.CONF,
    config_files: list[str] | None = None,
    defaults: Defaults | None = None,
) -> Settings:
    """Read the command line and the configuration files.

    :param argv: arguments without the program's name; ``--config-file`` and the options of logging are understood.
    :param process: name of the program, for ``--help`` and to find its own file beside ``convergence.conf``.
    :param conf: stays filled: oslo.messaging and oslo.log read their own options from it.
    :param config_files: instead of those in the usual directories (``~/.convergence``, ``/etc/convergence``, …).
    :param defaults: replace the documented defaults in this process; a configured value still wins.
    :raises ConfigurationError: a file cannot be read or a value is wrong; the text names it.
    :raises SystemExit: the command line is wrong, or asked for help.
    """
    register(conf)
    for (group, name), value in (defaults or {}).items():
        conf.set_default(name, value, group=None if group == 'DEFAULT' else group)
    try:
        conf(list(argv), project='convergence', prog=process, default_config_files=config_files)
        return settings(conf)
    except cfg.Error as error:
        raise ConfigurationError(f'The configuration cannot be used: {error}') from error


def settings(conf: cfg.ConfigOpts) -> Settings:
    """The settings that a filled `conf` amounts to.

    :raises ConfigurationError: two options contradict each other.
    """
    state_dir = Path(conf.state_dir).expanduser().absolute()
    shared = {name: conf.engine[name] for name in ('heartbeat_interval_s', 'lease_s', 'dispatch_window')}
    database = dict(conf.database) | {
        'connection': conf.database.connection or f'sqlite:///{state_dir / "convergence.sqlite"}'
    }
    made = Settings(
        host=conf.host,
        executor=Executor(conf.executor),
        state_dir=state_dir,
        database=DatabaseSettings(**_own(database, DATABASE_OPTIONS)),
        transport=TransportSettings(**_own(conf.transport, TRANSPORT_OPTIONS)),
        engine=EngineSettings(**_own(conf.engine, ENGINE_OPTIONS)),
        worker=WorkerSettings(**_own(conf.worker, WORKER_OPTIONS), **shared),
        limits=LimitSettings(**_limits(_own(conf.limits, LIMIT_OPTIONS))),
        local_provider=LocalProviderSettings(
            enabled=conf.local_provider.enabled,
            root=Path(conf.local_provider.root or state_dir / 'local').expanduser().absolute(),
            programs={name: Path(path) for name, path in conf.local_provider.programs.items()},
        ),
    )
    _check(made)
    return made


def _own(group: Mapping[str, Any], options: Sequence[cfg.Opt]) -> dict[str, Any]:
    """The values of our own options: a library may have registered more in the same group."""
    return {option.dest: group[option.dest] for option in options}


def _limits(values: dict[str, Any]) -> dict[str, Any]:
    """None for the -1 by which an operator says "no limit"."""
    return {name: None if value == -1 else value for name, value in values.items()}


def _check(made: Settings) -> None:
    """Refuse values that are each allowed but not together."""
    if made.engine.lease_s <= 2 * made.engine.heartbeat_interval_s:
        raise ConfigurationError(
            f'[engine] lease_s ({made.engine.lease_s}) must be more than twice heartbeat_interval_s '
            f'({made.engine.heartbeat_interval_s}), or a single late sign of life counts as a death.'
        )
    if made.worker.poll_interval_min_s > made.worker.poll_interval_max_s:
        raise ConfigurationError(
            f'[worker] poll_interval_min_s ({made.worker.poll_interval_min_s}) must not exceed '
            f'poll_interval_max_s ({made.worker.poll_interval_max_s}).'
        )
    for name, path in made.local_provider.programs.items():
        if not path.is_absolute():
            raise ConfigurationError(f'[local_provider] programs: {name} must be an absolute path, not {path}.')
