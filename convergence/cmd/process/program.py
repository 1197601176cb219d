"""The frame of the long-running programs: read the configuration, start, run, stop on a signal.

Exit codes:

* 0: it stopped in good order after a signal. Other processes take over the work that it could not finish in time.
* 1: it could not start (database, broker, schema), did not finish, or needs a restart (too many threads
  are stuck); standard error or the log says why.
* 2: the command line or the configuration is wrong.

A second SIGTERM or SIGINT ends the program at once, by that signal.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn, Protocol, runtime_checkable

from oslo_config import cfg

from convergence import concurrency, config, errors, logs
from convergence.cmd.process.memory import collect_rarely, give_back
from convergence.cmd.process.signals import STOP, ProcessSignals, restore
from convergence.cmd.process.supervisor import Link, Patience, Supervisor
from convergence.escaping import escaped

LOG = logging.getLogger(__name__)

CHECK_S = 1.0
"""Seconds between two checks of the health of a process and of its supervisor."""
STOP_MARGIN_S = 20.0
"""Seconds that a program may take to end after the time for its work is over."""


class ProgramExit(IntEnum):
    """See the module."""

    OK = 0
    FAILED = 1
    USAGE = 2


class ProgramService(Protocol):
    """The service that a program runs."""

    def start(self) -> None:
        """Begin; returns when it is at work."""

    def stop(self) -> object:
        """End in good order."""

    def close(self) -> None:
        """Give back connections."""


@runtime_checkable
class Working(Protocol):
    """A service that starts work by itself, not only on request."""

    def begin_nothing(self) -> None:
        """From now on nothing begins. Returns at once; `ProgramService.stop` comes later."""


@dataclass(frozen=True)
class Program:
    """One of the programs.

    :param build: connects to everything. It imports what it needs itself: the executor must be installed before.
    :param stop_s: seconds that `ProgramService.stop` may take, by the settings.
    :param processes: how many processes are configured.
    :param ailment: why a running service needs a restart; empty while it is healthy.
    :param defaults: see `config.load`.
    :param executor: what it runs on; None: what the configuration says.
    """

    name: str
    build: Callable[[config.Settings], ProgramService]
    stop_s: Callable[[config.Settings], float]
    processes: Callable[[config.Settings], int] = lambda settings: 1
    unhealthy_reason: Callable[[Any], str] = lambda service: ''
    defaults: config.Defaults = field(default_factory=dict)
    executor: concurrency.Executor | None = None


def exit_code(error: errors.ConvergenceError) -> ProgramExit:
    """How a program ends because of an error."""
    mistaken = isinstance(error, (errors.ConfigurationError, errors.UserError))
    return ProgramExit.USAGE if mistaken else ProgramExit.FAILED


def complain(name: str, error: errors.ConvergenceError) -> ProgramExit:
    """Say on standard error, in one line and without secrets, why a program ends."""
    line = escaped(' '.join(logs.mask(str(error)).split()))
    print(f'{name}: {line}', file=sys.stderr, flush=True)
    return exit_code(error)


def require_broker(settings: config.Settings, name: str) -> None:
    """Refuse a transport that does not reach other processes.

    :raises ConfigurationError: it is `memory://`.
    """
    if settings.transport.url.startswith('memory:'):
        raise errors.ConfigurationError(
            f'[transport] url is memory://, which reaches no further than one process. {name} needs a broker, for '
            'example rabbit://host:5672/; or run everything in one process: convergence-all-in-one.'
        )


def run(program: Program, argv: Sequence[str] | None = None, count_option: str | None = None) -> int:
    """Run a program to its end.

    :param argv: arguments without the program's name; None: those of this process.
    :param count_option: help of the option ``--workers``, for a program that has it.
    :returns: the exit code.
    """
    if count_option is not None:
        cfg.CONF.register_cli_opt(cfg.IntOpt('workers', min=1, metavar='N', help=count_option))
    try:
        arguments = sys.argv[1:] if argv is None else argv
        settings = config.load(arguments, process=program.name, defaults=program.defaults)
    except errors.ConvergenceError as error:
        return complain(program.name, error)
    except SystemExit as ended:
        return _usage(ended)
    count = (cfg.CONF.workers if count_option else None) or program.processes(settings)
    if count == 1:
        _leave(serve(program, settings))
    logs.set_up(cfg.CONF, program.name)
    patience = Patience(stop_s=program.stop_s(settings) + 2 * STOP_MARGIN_S)
    return Supervisor(
        program.name,
        count,
        lambda link: serve(program, settings, link),
        reload=lambda: reload_logging(program.name),
        patience=patience,
    ).run()


def _usage(ended: SystemExit) -> ProgramExit:
    """Return the exit code of a wrong command line or of --help, after the message is printed."""
    if ended.code == 1:  # oslo.config has not ended its line
        print(file=sys.stderr)
    return ProgramExit.USAGE if ended.code else ProgramExit.OK


def serve(program: Program, settings: config.Settings, link: Link | None = None) -> int:
    """Run a program in this process until a signal stops it.

    :param link: the supervisor, if there is one.
    :returns: the exit code.
    """
    # While it starts it holds nothing: a signal may simply end it.
    restore(signal.SIGINT)
    try:
        give_back()
        concurrency.install(program.executor or settings.executor)
        logs.set_up(cfg.CONF, program.name)
        for problem in config.unknown_options(cfg.CONF) + config.exposed_files(cfg.CONF):
            LOG.warning(problem)
        service = program.build(settings)
        collect_rarely()
        with _signals(link) as signals:
            service.start()
            LOG.info('%s is at work', program.name)
            if link is not None:
                link.ready()
            unhealthy_reason = _wait(program, service, signals, link)
            restore(*(STOP if link is None else (signal.SIGTERM,)))
            _stop(service, program.stop_s(settings) + STOP_MARGIN_S)
    except errors.ConvergenceError as error:
        return complain(program.name, error)
    except Exception:
        LOG.exception('%s has failed', program.name)
        return ProgramExit.FAILED
    LOG.info('%s has ended', program.name)
    return ProgramExit.FAILED if unhealthy_reason else ProgramExit.OK


def _signals(link: Link | None) -> ProcessSignals:
    if link is None:
        return ProcessSignals(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    # Ctrl-C reaches every process of a terminal; the supervisor says what it means.
    return ProcessSignals(signal.SIGTERM, signal.SIGHUP, overheard=(signal.SIGINT,))


def _wait(program: Program, service: ProgramService, signals: ProcessSignals, link: Link | None) -> str:
    """Wait until the program has to stop. Return the fault that forces it, or an empty text after a signal."""
    at_terminal = link is None and os.isatty(0)
    while True:
        received = signals.wait(CHECK_S)
        # A terminal that is closed says SIGHUP too, and means the end.
        if received in STOP or (received is signal.SIGHUP and at_terminal):
            LOG.info('%s: ending, %s', program.name, received.name)
            return ''
        if received is signal.SIGHUP:
            reload_logging(program.name)
        if link is not None and link.orphaned():
            LOG.warning('%s: ending, its supervisor is gone', program.name)
            return ''
        unhealthy_reason = program.unhealthy_reason(service)
        if unhealthy_reason:
            LOG.error('%s: ending because it needs a restart by its supervisor: %s', program.name, unhealthy_reason)
            return unhealthy_reason


def _stop(service: ProgramService, limit_s: float) -> None:
    """End in good order, or at least end. The watchdog is a signal, not a thread: it works even if all threads hang."""
    faulthandler.dump_traceback_later(limit_s, exit=True)
    if isinstance(service, Working):
        service.begin_nothing()  # before anything that takes its time: some parts are stopped long after others
    service.stop()
    service.close()
    faulthandler.cancel_dump_traceback_later()


def _leave(code: int) -> NoReturn:
    """End this process now. The interpreter would wait for threads that are stuck in a plugin."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def reload_logging(name: str) -> None:
    """Read the logging options again from the configuration files, and reopen the log files."""
    try:
        cfg.CONF.mutate_config_files()
        logs.set_up(cfg.CONF, name)
    except Exception as error:  # noqa: BLE001 - a broken file must not end what runs
        LOG.error('%s: configuration not reloaded, the old one stays in force: %s', name, error)
    else:
        LOG.info('%s: logging configuration reloaded (debug: %s)', name, cfg.CONF.debug)
