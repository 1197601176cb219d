"""``convergence serve``: everything in one process on this machine, for trying things out and for small needs.

An engine, workers and the API on a loopback address. All that is kept lies in one directory, which one server at a
time may serve; the commands of this machine find it by the file that it leaves there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import click
from oslo_config import cfg

from convergence import __version__, config, errors
from convergence.cli.connection import local_servers
from convergence.cli.exits import CommandFailed, Refused, epilog
from convergence.config import Settings

NAME = 'convergence serve'
LOG_FILE = 'serve.log'
PORT_FILE = 'port'


@click.command(epilog=epilog())
@click.option(
    '--data',
    type=click.Path(file_okay=False, path_type=Path),
    metavar='DIRECTORY',
    help='Where everything is kept; made if it is not there.  [default: convergence-data]',
)
@click.option(
    '--port',
    type=click.IntRange(0, 65535),
    metavar='PORT',
    help='Where to listen; 0: any that is free. Where this is left open DIRECTORY is served at the same port as '
    'before, so that addresses stay good.  [default: 8004, or any that is free]',
)
@click.option(
    '--config-file',
    'config_files',
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar='FILE',
    help='Configuration; may be repeated.',
)
@click.option(
    '--insecure', is_flag=True, help='Ask for no token: serve everybody who is logged in to this machine, as yourself.'
)
@click.option('-v', '--verbose', is_flag=True, help='Show the log here, instead of writing it to serve.log.')
def serve(data: Path | None, port: int | None, config_files: tuple[str, ...], insecure: bool, verbose: bool) -> int:
    """Serve an engine, workers and the API in this process, until Ctrl-C.

    Needs nothing else. A new directory gets a database; one from before is taken up again, with what was going on.
    It serves your account and no other one of this machine: requests must bring the token in DIRECTORY/token, which
    only you can read. The commands of "convergence" find the server and the token by themselves.
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
        _log_to(None if verbose else settings.state_dir / LOG_FILE)
        code = _run(settings)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the interpreter would wait for threads that are stuck in a plugin


def _settings(data: Path | None, port: int | None, config_files: tuple[str, ...], *, insecure: bool) -> Settings:
    """The configuration, with the command line above it.

    :raises ConfigurationError: it cannot be used.
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
            f'[api] authentication is {settings.api.authentication}; "{NAME}" is for this machine alone. '
            'Use convergence-all-in-one, or convergence-api.'
        )
    place = conf.get_location('port', 'api')
    usual = port is None and place is not None and place.location is cfg.Locations.opt_default
    if usual or settings.api.port == 0:
        conf.set_override('port', open_port(settings.state_dir, settings.api.host, settings.api.port), group='api')
    return config.settings(conf)


def open_port(data: Path, host: str, usual: int) -> int:
    """Where to listen if nobody says it: where the directory was served last, else as usual; 0 where both are taken.

    Addresses with the port of the last time may have been handed out.
    """
    return next((each for each in (_port_before(data), usual) if each and _is_free(host, each)), 0)


def _port_before(data: Path) -> int:
    """0: that is not known."""
    try:
        text = (data / PORT_FILE).read_text(encoding='ascii').strip()
    except (OSError, ValueError):
        return 0
    return int(text) if text.isdigit() and 0 < int(text) < 2**16 else 0


def _is_free(host: str, port: int) -> bool:
    """Whether nobody listens there."""
    with contextlib.closing(socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _log_to(path: Path | None) -> None:
    """Keep the screen for what is to be read there."""
    if path is not None:
        cfg.CONF.set_override('log_file', str(path))
        cfg.CONF.set_override('use_stderr', False)
        logging.captureWarnings(True)


def _taken(data: Path, server: local_servers.LocalServer | None) -> Refused:
    who = f'The server at {server.url} (process {server.pid})' if server else 'Another server, which is just starting,'
    return Refused(f'{who} serves {data} already. Use that one, or serve another directory: --data DIRECTORY.')


def _run(settings: Settings) -> int:
    from convergence.cmd import all_in_one, program
    from convergence.cmd.engine import STOP_S

    def build(settings: Settings) -> program.ProgramService:
        from convergence.cmd.api_address import Telling
        from convergence.cmd.api_process import ApiProcess
        from convergence.cmd.embedded import Embedded
        from convergence.cmd.observing import ObserverProcess

        embedded = Embedded(settings)
        observers = [ObserverProcess(embedded.parts, owns_parts=False)] if settings.observer.enabled else []
        api = ApiProcess(settings.api, embedded.parts.transport, stop_s=all_in_one.API_STOP_S)
        telling = Telling(embedded.parts.api, lambda: api.address)
        return all_in_one.Together(embedded, *observers, api, telling, Sign(settings, lambda: api.address))

    stop_s = settings.worker.drain_timeout_s + STOP_S + all_in_one.API_STOP_S
    return program.serve(program.Program(NAME, build, stop_s=lambda settings: stop_s), settings)


class Sign:
    """Says that everything is there, and that it ends.

    :param address: the URL of the API, once it listens.
    """

    def __init__(self, settings: Settings, address: Callable[[], str]) -> None:
        self._data, self._address, self._token_file = settings.state_dir, address, settings.api.token_file
        self._announced = contextlib.ExitStack()

    def start(self) -> None:
        """Let commands of this machine find the API, and print where the API is."""
        data, url = self._data, self._address()
        server = local_servers.LocalServer(url, os.getpid(), str(data), __version__, str(self._token_file or ''))
        self._announced.enter_context(local_servers.announced(server, local_servers.registry(os.environ)))
        with contextlib.suppress(OSError):
            (data / PORT_FILE).write_text(f'{urlsplit(url).port}\n', encoding='ascii')
        click.echo(f'Convergence {__version__} serves {url}')
        click.echo(f'Data: {data}. Ctrl-C ends; what is going on is taken up again next time.')
        if self._token_file is None:
            click.secho('INSECURE: everybody who is logged in to this machine can use it, as you.', fg='red', bold=True)
        else:
            click.echo(f'It serves you alone. Other clients than "convergence" send the token in {self._token_file}.')
        click.echo('Try: convergence stack create hello -t examples/hello.yaml --wait')
        sys.stdout.flush()

    def stop(self) -> None:
        """Let nobody find it any more."""
        self._announced.close()
        with contextlib.suppress(OSError):
            click.echo('Ending: what runs is finished or handed back. Ctrl-C again ends at once.', err=True)

    def close(self) -> None:
        """Nothing is held."""
