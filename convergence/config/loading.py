"""Reads the configuration and makes the settings from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, TypeAlias

from oslo_config import cfg

from convergence import __version__, logs
from convergence.concurrency import Executor
from convergence.config.deriving import options_of, values_of
from convergence.errors import ConfigurationError
from convergence.settings import (
    ApiSettings,
    CredentialSettings,
    DatabaseSettings,
    EngineSettings,
    GeneralSettings,
    LimitSettings,
    LocalProviderSettings,
    NotificationSettings,
    ObserverSettings,
    PluginSettings,
    SecretSettings,
    TransportSettings,
    WorkerSettings,
)

RECORDS: Mapping[str, type[Any]] = {
    'DEFAULT': GeneralSettings,
    'database': DatabaseSettings,
    'secrets': SecretSettings,
    'transport': TransportSettings,
    'engine': EngineSettings,
    'worker': WorkerSettings,
    'limits': LimitSettings,
    'api': ApiSettings,
    'credentials': CredentialSettings,
    'notifications': NotificationSettings,
    'observer': ObserverSettings,
    'local_provider': LocalProviderSettings,
    'plugins': PluginSettings,
}
"""The record of each section of the configuration file."""

OPTIONS: Mapping[str, list[cfg.Opt]] = {section: options_of(record) for section, record in RECORDS.items()}
"""All options by section."""

TOKEN_FILE = 'token'
"""Name of the file in the state directory that holds the token of an API without Keystone."""

Defaults: TypeAlias = Mapping[tuple[str, str], object]
"""Defaults of one process that differ, by (group, option)."""


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
    credentials: CredentialSettings = field(default_factory=CredentialSettings)
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    observer: ObserverSettings = field(default_factory=ObserverSettings)
    plugins: PluginSettings = field(default_factory=PluginSettings)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """All options by group, for ``oslo-config-generator``."""
    return [(group, list(options)) for group, options in OPTIONS.items()]


def register(conf: cfg.ConfigOpts) -> None:
    """Register all options, and those of logging, with `conf`. Repeated calls are harmless."""
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

    :param argv: arguments without the program's name; ``--config-file`` and the options of logging are valid.
    :param process: name of the program, for ``--help`` and to find its own file beside ``convergence.conf``.
    :param conf: stays filled: oslo.messaging and oslo.log read their own options from it.
    :param config_files: instead of those in the usual directories (``~/.convergence``, ``/etc/convergence``, …).
    :param defaults: replace the documented defaults in this process; a configured value still wins.
    :raises ConfigurationError: a file cannot be read or a value is invalid; the text names it.
    :raises SystemExit: the command line is invalid, or contains ``--help``.
    """
    register(conf)
    for (group, name), value in (defaults or {}).items():
        conf.set_default(name, value, group=None if group == 'DEFAULT' else group)
    try:
        conf(
            list(argv),
            project='convergence',
            prog=process,
            version=f'{process} {__version__}\n',
            default_config_files=config_files,
        )
        return settings(conf)
    except cfg.Error as error:
        raise ConfigurationError(f'The configuration cannot be used: {_wrong_value(conf) or error}') from error


_NOT_VALID = re.compile(r"from (?:LocationInfo\(.*detail='(?P<place>[^']*)'\) )?is not valid: (?P<why>.*)", re.DOTALL)


def _wrong_value(conf: cfg.ConfigOpts) -> str:
    """Return the option whose value is invalid, with its place and the reason: oslo.config names no section.

    Empty if the fault is another one.
    """
    for group, options in OPTIONS.items():
        for option in options:
            try:
                (conf if group == 'DEFAULT' else conf[group])[option.name]
            except cfg.ConfigSourceValueError as error:
                found = _NOT_VALID.search(str(error))
                if found is not None:
                    return f'[{group}] {option.name}{_in(found["place"])}: {found["why"]}'
            except cfg.Error:
                return ''
    return ''


def _in(place: str | None) -> str:
    return f' in {place}' if place else ''


def unknown_options(conf: cfg.ConfigOpts) -> list[str]:
    """Return a sentence for each unknown option in the configuration files of a filled `conf`.

    Sections of libraries are not checked: their options become known only when they are used.
    """
    problems = []
    for path in conf.config_file or ():
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(str(path), sections).parse()
        for group, options in OPTIONS.items():
            known = [option.dest for option in options]
            old = {each.name for option in options for each in option.deprecated_opts}
            if group != 'DEFAULT':
                problems += [
                    f'{path}: [{group}] {name} is not known and has no effect{_meant(name, known)}'
                    for name in sections.get(group, {})
                    if name.replace('-', '_') not in old and name.replace('-', '_') not in conf[group]
                ]
    return problems


def exposed_files(conf: cfg.ConfigOpts) -> list[str]:
    """Return a sentence for each configuration file of a filled `conf` that holds secrets and that every account can
    read.
    """
    problems = []
    for path in conf.config_file or ():
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(str(path), sections).parse()
        held = [f'[{group}] {name}' for group, names in sections.items() for name in names if _is_secret(group, name)]
        if held and Path(path).stat().st_mode & 0o006:
            problems.append(
                f'{path} holds {", ".join(held)} and can be read or written by every account of this machine; make it '
                '0600 or 0640'
            )
    return problems


def _is_secret(group: str, name: str) -> bool:
    name = name.replace('-', '_')
    return name == 'password' or any(option.dest == name and option.secret for option in OPTIONS.get(group, ()))


def _meant(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f'; is {near[0]} meant?' if near else ''


def settings(conf: cfg.ConfigOpts) -> Settings:
    """Return the settings of a filled `conf`.

    :raises ConfigurationError: two options contradict each other.
    """
    filled = {name: conf if name == 'DEFAULT' else conf[name] for name in RECORDS}
    values = {name: values_of(record, filled[name], filled) for name, record in RECORDS.items()}
    general = GeneralSettings(**values['DEFAULT'])
    state_dir = Path(general.state_dir).expanduser().absolute()
    values['database']['connection'] = connection = (
        values['database']['connection'] or f'sqlite:///{state_dir / "convergence.sqlite"}'
    )
    local = values['local_provider']
    local['enabled'] = local['enabled'] and (
        _is_configured(conf, 'local_provider', 'enabled') or _is_all_local(conf, connection)
    )
    local['root'] = local['root'] or state_dir / 'local'
    local['programs'] = {name: Path(path) for name, path in local['programs'].items()}
    needs_token = conf.api.authentication == 'noauth' and not conf.api.insecure
    made = Settings(
        host=general.host,
        executor=Executor(general.executor),
        state_dir=state_dir,
        database=DatabaseSettings(**values['database']),
        transport=TransportSettings(**values['transport']),
        engine=EngineSettings(**values['engine']),
        worker=WorkerSettings(**values['worker']),
        limits=LimitSettings(**values['limits']),
        local_provider=LocalProviderSettings(**local),
        api=ApiSettings(**values['api'], token_file=state_dir / TOKEN_FILE if needs_token else None),
        secrets=SecretSettings(**values['secrets']),
        credentials=CredentialSettings(**values['credentials']),
        notifications=NotificationSettings(**values['notifications']),
        observer=ObserverSettings(**values['observer']),
        plugins=PluginSettings(**values['plugins']),
    )
    _check(made)
    return made


def _is_configured(conf: cfg.ConfigOpts, group: str, name: str) -> bool:
    """Return True if an operator has set an option, even to its default."""
    found = conf.get_location(name, group)
    return found is not None and found.location not in (cfg.Locations.opt_default, cfg.Locations.set_default)


def _is_all_local(conf: cfg.ConfigOpts, connection: str) -> bool:
    """Return True if other machines and the users of a cloud share nothing of this installation."""
    return bool(
        conf.api.authentication == 'noauth'
        and not conf.api.insecure
        and connection.partition(':')[0].partition('+')[0] == 'sqlite'
        and conf.transport.url.startswith('memory:')
    )


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
    _check_api(made.api)
    if made.secrets.keys and made.secrets.key_file is not None:
        raise ConfigurationError('[secrets] keys and key_file are both set; the keys must be in one place.')
    _check_local_provider(made.local_provider)


def _check_local_provider(made: LocalProviderSettings) -> None:
    for name, path in made.programs.items():
        if not path.is_absolute():
            raise ConfigurationError(f'[local_provider] programs: {name} must be an absolute path, not {path}.')
    for address in made.check_addresses:
        host, _, port = address.rpartition(':')
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigurationError(
                f'[local_provider] check_addresses: {address} must be host:port, for example 127.0.0.1:8080.'
            )


def _check_api(made: ApiSettings) -> None:
    """Refuse values of the API that are each allowed but not together."""
    if made.authentication == 'noauth' and not _is_loopback(made.host):
        raise ConfigurationError(
            f'[api] host is {made.host}, and with authentication = noauth the API may listen on this machine only '
            '(127.0.0.1, ::1 or localhost). Use authentication = keystone to let others in.'
        )
    if _is_everywhere(made.host) and not made.public_url and not made.allowed_hosts:
        raise ConfigurationError(
            f'[api] host is {made.host}, so the API cannot know under which name clients reach it, and links in its '
            'answers must not depend on the Host header of a request. Set public_url, or allowed_hosts.'
        )
    if made.key_file and not made.cert_file:
        raise ConfigurationError('[api] key_file is set and cert_file is not; HTTPS needs the certificate too.')
    if made.max_buffered_bytes < made.max_body_bytes or made.max_client_buffered_bytes < made.max_body_bytes:
        raise ConfigurationError(
            f'[api] max_buffered_bytes ({made.max_buffered_bytes}) and max_client_buffered_bytes '
            f'({made.max_client_buffered_bytes}) must not be less than max_body_bytes ({made.max_body_bytes}).'
        )
    for each in made.trusted_proxies:
        try:
            ip_network(each, strict=False)
        except ValueError:
            raise ConfigurationError(
                f'[api] trusted_proxies: {each} is neither an address nor a network such as 192.0.2.0/28.'
            ) from None


def _is_everywhere(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'
