"""Several processes of a program: start them, restart a crashed one, end them together.

The supervisor itself connects to nothing and has no threads, so a fork copies nothing that must not be shared.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from convergence.cmd.process.signals import STOP, ProcessSignals, forget, held_back, overhear

LOG = logging.getLogger(__name__)

CAUGHT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class Patience:
    """How a supervisor deals with time. In seconds.

    :param restart_first_s: seconds before a crashed process is restarted; the pause doubles with each crash.
    :param restart_most_s: the longest such pause.
    :param settled_s: a process that ran so long has not crashed again but for the first time.
    :param stop_s: seconds that a process may take to end before it is killed.
    """

    restart_first_s: float = 1.0
    restart_most_s: float = 30.0
    settled_s: float = 60.0
    stop_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Link:
    """The link from a process to its supervisor.

    :param supervisor: its process id.
    :param ready: tells it that the process is at work. Call it once.
    """

    supervisor: int
    ready: Callable[[], None]

    def orphaned(self) -> bool:
        """True if the supervisor has died."""
        return os.getppid() != self.supervisor


ChildWork: TypeAlias = Callable[[Link], int]
"""The work of a child process; returns its exit code."""


@dataclass(slots=True)
class SupervisedProcess:
    """One of the processes, over its lives.

    :param process_id: None between two lives.
    :param was_ready: whether it has been at work in any life.
    :param restart_at: monotonic time of its next life.
    """

    number: int
    process_id: int | None = None
    news: int = -1
    started_at: float = 0.0
    crashes: int = 0
    was_ready: bool = False
    restart_at: float = 0.0


class Supervisor:
    """Runs `work` in `count` processes until a signal stops it.

    * SIGTERM, SIGINT: every process gets SIGTERM, and the supervisor waits. A second signal kills them.
    * SIGHUP: handed on, after `reload`.
    * A process that ends by itself is restarted after a pause. But one that could not even begin, in its first
      life, ends the supervisor with the same exit code: an operator has to repair the cause.
    """

    def __init__(
        self, name: str, count: int, work: ChildWork, *, reload: Callable[[], None], patience: Patience | None = None
    ) -> None:
        self._name = name
        self._work = work
        self._reload = reload
        self._patience = patience or Patience()
        self._children = [SupervisedProcess(number) for number in range(1, count + 1)]

    def run(self) -> int:
        """Until it is over; the exit code."""
        with ProcessSignals(*CAUGHT) as signals:
            for child in self._children:
                self._start(child)
            LOG.info('%s runs %d processes', self._name, len(self._children))
            while True:
                received = signals.wait(self._pause_s())
                if received in STOP:
                    LOG.info('%s: ending, %s', self._name, received.name)
                    return self._stop(signals)
                if received is signal.SIGHUP:
                    self._reload()
                    self._signal(signal.SIGHUP)
                failed = self._reap()
                if failed is not None:
                    self._stop(signals)
                    return failed
                for child in self._children:
                    if child.process_id is None and time.monotonic() >= child.restart_at:
                        self._start(child)

    # --- lives ------------------------------------------------------------------------------------------------

    def _start(self, child: SupervisedProcess) -> None:
        supervisor = os.getpid()
        news, tell = os.pipe()
        # Otherwise a signal that reaches the new process first would be noted in the supervisor's pipe.
        with held_back(*CAUGHT):
            process_id = os.fork()
            if process_id == 0:
                forget(*CAUGHT)
                # Handed on to all, and no reason to end for one that is still starting.
                overhear(signal.SIGHUP)
        if process_id == 0:
            os.close(news)
            _live(self._work, Link(supervisor, lambda: _tell(tell)))
        os.close(tell)
        child.process_id, child.news, child.started_at = process_id, news, time.monotonic()

    def _reap(self) -> int | None:
        """Take note of processes that have ended; an exit code where that is the end of all."""
        for child in self._children:
            code = self._ended(child)
            if code is None:
                continue
            if not child.was_ready:
                return code if code > 0 else 1
            lived_s = time.monotonic() - child.started_at
            child.crashes = 1 if lived_s > self._patience.settled_s else child.crashes + 1
            pause_s = min(
                self._patience.restart_first_s * 2 ** min(child.crashes - 1, 16), self._patience.restart_most_s
            )
            child.restart_at = time.monotonic() + pause_s
            LOG.error(
                '%s: process %d ended by itself (%s); restarting it in %g s',
                self._name,
                child.number,
                _described(code),
                pause_s,
            )
        return None

    def _ended(self, child: SupervisedProcess) -> int | None:
        """The exit code of a process that has ended, negative for a signal; None while it lives."""
        if child.process_id is None:
            return None
        process_id, status = os.waitpid(child.process_id, os.WNOHANG)
        if process_id == 0:
            return None
        child.was_ready = bool(os.read(child.news, 1)) or child.was_ready
        os.close(child.news)
        child.process_id = None
        return os.waitstatus_to_exitcode(status)

    def _pause_s(self) -> float | None:
        """How long there is nothing to do unless a signal arrives; None: for ever."""
        waiting = [child.restart_at for child in self._children if child.process_id is None]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    # --- the end ----------------------------------------------------------------------------------------------

    def _stop(self, signals: ProcessSignals) -> int:
        """Ask every process to end and wait; 0 where all of them did so in good order."""
        self._signal(signal.SIGTERM)
        ends = time.monotonic() + self._patience.stop_s
        codes: list[int] = []
        while any(child.process_id is not None for child in self._children):
            for child in self._children:
                code = self._ended(child)
                if code is not None:
                    # One that was still starting has no handler yet, and holds nothing.
                    codes.append(0 if code == -signal.SIGTERM else code)
            left_s = ends - time.monotonic()
            # Not only on a signal: one that came while another was read is noted only once.
            received = signals.wait(min(max(left_s, 0.0), 1.0)) if self._alive() else None
            if received in STOP or left_s <= 0:
                LOG.warning(
                    '%s: killing processes that did not end in time; other processes take over their claims', self._name
                )
                self._signal(signal.SIGKILL)
                ends = float('inf')
        return 0 if not any(codes) else 1

    def _alive(self) -> bool:
        return any(child.process_id is not None for child in self._children)

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.process_id is not None:
                os.kill(child.process_id, number)


def _live(work: ChildWork, link: Link) -> None:
    """The whole life of a new process. Never returns: what the supervisor was doing is not its business."""
    code = 1
    try:
        code = work(link)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - nothing may reach the frames of the supervisor
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tell(pipe: int) -> None:
    os.write(pipe, b'1')
    os.close(pipe)


def _described(code: int) -> str:
    return f'exit code {code}' if code >= 0 else signal.Signals(-code).name
