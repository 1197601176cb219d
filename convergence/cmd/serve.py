"""``convergence serve``: engine, workers and API in one process on this machine, for first steps and small needs.

The API listens on a loopback address. One directory holds all data, and only one server at a time may use it. The
commands of this machine find the server by a file in that directory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import click
from oslo_config import cfg

from convergence import __version__, config, errors
from convergence.cli.connection import local_servers, local_token
from convergence.cli.exits import CommandFailed, Refused, UsageMistake, epilog
from convergence.config import Settings

NAME = 'convergence serve'
LOG_FILE = 'serve.log'
PORT_FILE = 'port'


@click.command(epilog=epilog())
@click.option(
    '--data',
    type=click.Path(file_okay=False, path_type=Path),
    metavar='DIRECTORY',
    help='Directory for all data. It is created if it is missing.  [default: convergence-data]',
)
@click.option(
    '--port',
    type=click.IntRange(0, 65535),
    metavar='PORT',
    help='Port of the API. 0: any free port.  [default: the last port of DIRECTORY, which keeps URLs valid; '
    'else 8004; else any free port]',
)
@click.option(
    '--config-file',
    'config_files',
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar='FILE',
    help='Configuration file. May be repeated.',
)
@click.option(
    '--insecure',
    is_flag=True,
    help='Require no token. All accounts of this machine can then use the server with your rights.',
)
@click.option('--new-token', is_flag=True, help='Change the token. Without this option, it stays the same.')
@click.option('-v', '--verbose', is_flag=True, help='Print the log instead of writing it to serve.log.')
def serve(
    data: Path | None, port: int | None, config_files: tuple[str, ...], insecure: bool, new_token: bool, verbose: bool
) -> int:
    """Run engine, workers and API in this process, until Ctrl-C.

    Needs no other service. A new directory gets a database; an existing one continues with its stacks and running
    operations. Requests must send the token in DIRECTORY/token, which only your account can read. The commands of
    "convergence" find the server and the token automatically.
    """
    settings = _settings(data, port, config_files, insecure=insecure)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(local_servers.claimed(settings.state_dir))
        except local_servers.AlreadyServed as taken:
            raise _taken(settings.state_dir, taken.server) from None
        except OSError as error:
            raise CommandFailed(
                f'{settings.state_dir} cannot be used: {error.strerror}. Choose another --data.'
            ) from None
        if new_token:
            _change_token(settings.api.token_file)
        _log_to(None if verbose else settings.state_dir / LOG_FILE)
        code = _run(settings)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # A normal exit would wait for threads that hang in a plugin.


def _settings(data: Path | None, port: int | None, config_files: tuple[str, ...], *, insecure: bool) -> Settings:
    """Return the configuration with the options of the command line.

    :raises ConfigurationError: it is invalid.
    """
    conf = cfg.CONF
    config.register(conf)
    if data is not None:
        conf.set_override('state_dir', str(data))
    if port is not None:
        conf.set_override('port', port, group='api')
    if insecure:
        conf.set_override('insecure', True, group='api')
    arguments = [part for name in config_files for part in ('--config-file', name)]
    settings = config.load(arguments, process='convergence', defaults={('local_provider', 'enabled'): True})
    if settings.api.authentication != 'noauth':
        raise errors.ConfigurationError(
            f'[api] authentication is {settings.api.authentication}; "{NAME}" supports only clients on this machine. '
            'Use convergence-all-in-one, or convergence-api.'
        )
    place = conf.get_location('port', 'api')
    usual = port is None and place is not None and place.location is cfg.Locations.opt_default
    if usual or settings.api.port == 0:
        conf.set_override('port', open_port(settings.state_dir, settings.api.host, settings.api.port), group='api')
    return config.settings(conf)


def open_port(data: Path, host: str, usual: int) -> int:
    """Return the default port: the last port of the directory, else the usual one; 0 if both are in use.

    URLs with the last port may be in use, for example for signals.
    """
    return next((each for each in (_port_before(data), usual) if each and _is_free(host, each)), 0)


def _port_before(data: Path) -> int:
    """Return 0: there was no last port."""
    try:
        text = (data / PORT_FILE).read_text(encoding='ascii').strip()
    except (OSError, ValueError):
        return 0
    return int(text) if text.isdigit() and 0 < int(text) < 2**16 else 0


def _is_free(host: str, port: int) -> bool:
    """Return True if the port is free."""
    with contextlib.closing(socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _change_token(path: Path | None) -> None:
    """Delete the token file; the API makes a new one. The caller holds the lock of the data directory."""
    if path is None:
        raise UsageMistake('--new-token has no effect on an insecure server, which has no token.')
    local_token.forget(path)


def _log_to(path: Path | None) -> None:
    """Send the log to a file, so that the terminal shows only messages for the user."""
    if path is not None:
        cfg.CONF.set_override('log_file', str(path))
        cfg.CONF.set_override('use_stderr', False)
        logging.captureWarnings(True)


def _taken(data: Path, server: local_servers.LocalServer | None) -> Refused:
    who = f'The server at {server.url} (process {server.pid})' if server else 'Another server, which is starting,'
    return Refused(f'{who} uses {data} already. Use that server, or select another directory with --data DIRECTORY.')


def _run(settings: Settings) -> int:
    from convergence.cmd import all_in_one
    from convergence.cmd.engine import STOP_S
    from convergence.cmd.process import program

    def build(settings: Settings) -> program.ProgramService:
        from convergence.cmd.embedded import Embedded
        from convergence.cmd.wiring.api import ApiProcess
        from convergence.cmd.wiring.api_address import Telling
        from convergence.cmd.wiring.observer import ObserverProcess

        embedded = Embedded(settings)
        observers = [ObserverProcess(embedded.parts, owns_parts=False)] if settings.observer.enabled else []
        secret = local_servers.new_secret()
        api = ApiProcess(replace(settings.api, secret=secret), embedded.parts.transport, stop_s=all_in_one.API_STOP_S)
        telling = Telling(embedded.parts.api, lambda: api.address)
        return all_in_one.Together(embedded, *observers, api, telling, Sign(settings, lambda: api.address, secret))

    stop_s = settings.worker.drain_timeout_s + STOP_S + all_in_one.API_STOP_S
    return program.serve(program.Program(NAME, build, stop_s=lambda settings: stop_s), settings)


class Sign:
    """Prints messages at the start and the end.

    :param address: the URL of the API when it listens.
    :param secret: with which the API proves its identity.
    """

    def __init__(self, settings: Settings, address: Callable[[], str], secret: str) -> None:
        self._data, self._address, self._token_file = settings.state_dir, address, settings.api.token_file
        self._secret = secret
        self._announced = contextlib.ExitStack()

    def start(self) -> None:
        """Publish the server for the commands of this machine, and print its URL."""
        data, url = self._data, self._address()
        token_file = str(self._token_file or '')
        server = local_servers.LocalServer(url, os.getpid(), str(data), __version__, token_file, self._secret)
        before = _port_before(data)
        self._announced.enter_context(local_servers.announced(server, local_servers.registry(os.environ)))
        with contextlib.suppress(OSError):
            (data / PORT_FILE).write_text(f'{urlsplit(url).port}\n', encoding='ascii')
        click.echo(f'Convergence {__version__} serves {url}')
        click.echo(f'Data: {data}. Stop with Ctrl-C; running operations continue at the next start.')
        if self._token_file is None:
            click.secho(
                'INSECURE: all accounts of this machine can use this server with your rights.', fg='red', bold=True
            )
        else:
            click.echo(f'Only your account has access. Other clients must send the token in {self._token_file}.')
            if before not in (0, urlsplit(url).port):
                click.echo(
                    f'The port was {before} before. Clients that still use it may send the token to another process. '
                    'To change the token, start with --new-token.'
                )
        click.echo('Try: convergence stack create hello -t examples/hello.yaml --wait')
        sys.stdout.flush()

    def stop(self) -> None:
        """Withdraw the server from the commands of this machine."""
        self._announced.close()
        with contextlib.suppress(OSError):
            click.echo(
                'Stopping: running steps finish or are handed back. Press Ctrl-C again to stop at once.', err=True
            )

    def close(self) -> None:
        """Nothing is held."""
