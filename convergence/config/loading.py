"""Reads the configuration and makes the settings from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeAlias

from oslo_config import cfg

from convergence import __version__, logs
from convergence.concurrency import Executor
from convergence.config import api, database, engine, general, limits, local_provider, secrets, transport, worker
from convergence.config.api import ApiSettings
from convergence.config.database import DatabaseSettings
from convergence.config.engine import EngineSettings
from convergence.config.limits import LimitSettings
from convergence.config.local_provider import LocalProviderSettings
from convergence.config.secrets import SecretSettings
from convergence.config.transport import TransportSettings
from convergence.config.worker import WorkerSettings
from convergence.errors import ConfigurationError

OPTIONS: Mapping[str, list[cfg.Opt]] = {
    'DEFAULT': general.OPTIONS,
    'database': database.OPTIONS,
    'secrets': secrets.OPTIONS,
    'transport': transport.OPTIONS,
    'engine': engine.OPTIONS,
    'worker': worker.OPTIONS,
    'limits': limits.OPTIONS,
    'api': api.OPTIONS,
    'local_provider': local_provider.OPTIONS,
}
"""All options by group, which is the section of the configuration file."""

_SHARED = ('sweep_interval_s', 'heartbeat_interval_s', 'lease_s', 'dispatch_window')
"""Options of the engine that hold for workers too, so that they cannot differ."""

Defaults: TypeAlias = Mapping[tuple[str, str], object]
"""Defaults that a process wants to differ, by (group, option)."""


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
    api: ApiSettings = field(default_factory=ApiSettings)
    secrets: SecretSettings = field(default_factory=SecretSettings)


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
        conf(
            list(argv), project='convergence', prog=process, version=f'{process} {__version__}\n',
            default_config_files=config_files,
        )  # fmt: skip
        return settings(conf)
    except cfg.Error as error:
        raise ConfigurationError(f'The configuration cannot be used: {error}') from error


def unknown_options(conf: cfg.ConfigOpts) -> list[str]:
    """What the configuration files of a filled `conf` say in vain: a sentence for each option that nobody knows.

    Sections of libraries are left alone: their options become known only when they are used.
    """
    problems = []
    for path in conf.config_file or ():
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(str(path), sections).parse()
        for group, options in OPTIONS.items():
            known = [option.dest for option in options]
            if group != 'DEFAULT':
                problems += [
                    f'{path}: [{group}] {name} is not known and has no effect{_meant(name, known)}'
                    for name in sections.get(group, {})
                    if name.replace('-', '_') not in conf[group]
                ]
    return problems


def _meant(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f'; is {near[0]} meant?' if near else ''


def settings(conf: cfg.ConfigOpts) -> Settings:
    """The settings that a filled `conf` amounts to.

    :raises ConfigurationError: two options contradict each other.
    """
    state_dir = Path(conf.state_dir).expanduser().absolute()
    shared = {name: conf.engine[name] for name in _SHARED}
    connection = conf.database.connection or f'sqlite:///{state_dir / "convergence.sqlite"}'
    made = Settings(
        host=conf.host,
        executor=Executor(conf.executor),
        state_dir=state_dir,
        database=DatabaseSettings(**_own(conf.database, database.OPTIONS) | {'connection': connection}),
        transport=TransportSettings(**_own(conf.transport, transport.OPTIONS)),
        engine=EngineSettings(**_own(conf.engine, engine.OPTIONS)),
        worker=WorkerSettings(**_own(conf.worker, worker.OPTIONS), **shared),
        limits=LimitSettings(**_limits(_own(conf.limits, limits.OPTIONS))),
        local_provider=LocalProviderSettings(
            enabled=conf.local_provider.enabled,
            root=Path(conf.local_provider.root or state_dir / 'local').expanduser().absolute(),
            programs={name: Path(path) for name, path in conf.local_provider.programs.items()},
        ),
        api=ApiSettings(**_texts(_own(conf.api, api.OPTIONS))),
        secrets=SecretSettings(
            keys=tuple(conf.secrets['keys']),
            key_file=Path(conf.secrets.key_file).expanduser().absolute() if conf.secrets.key_file else None,
        ),
    )
    _check(made)
    return made


def _own(group: Mapping[str, Any], options: Sequence[cfg.Opt]) -> dict[str, Any]:
    """The values of our own options: a library may have registered more in the same group."""
    return {option.dest: group[option.dest] for option in options}


def _texts(values: dict[str, Any]) -> dict[str, Any]:
    """An empty text for what is not set."""
    return {name: '' if value is None else value for name, value in values.items()}


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
    if made.api.max_followers >= made.api.threads:
        raise ConfigurationError(
            f'[api] max_followers ({made.api.max_followers}) must be less than threads ({made.api.threads}), or those '
            'who follow events keep everybody else out.'
        )
    if made.api.authentication == 'noauth' and not _is_loopback(made.api.host):
        raise ConfigurationError(
            f'[api] host is {made.api.host}, and with authentication = noauth the API may listen on this machine only '
            '(127.0.0.1, ::1 or localhost). Use authentication = keystone to let others in.'
        )
    if made.secrets.keys and made.secrets.key_file is not None:
        raise ConfigurationError('[secrets] keys and key_file are both set; the keys must be in one place.')
    for name, path in made.local_provider.programs.items():
        if not path.is_absolute():
            raise ConfigurationError(f'[local_provider] programs: {name} must be an absolute path, not {path}.')


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'
