"""Looks up the addresses of names, for so long and no longer: the system's resolver has no limit that it is told."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from convergence.concurrency import Lock, ThreadEvent, start_thread

MOST_AT_ONCE = 32
"""Names that are looked up at the same time. Those that nobody answers keep a thread each until the system gives up."""


def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system finds them.

    :raises OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class NameResolution:
    """Looks names up, each in a thread of its own, so that a name server which does not answer holds up nobody else.

    :param timeout_s: for how long one name is waited for.
    :param look_up: finds the addresses of a host; it may take as long as it likes.
    """

    def __init__(
        self,
        timeout_s: float,
        look_up: Callable[[str, int], Sequence[str]] = resolved,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._timeout_s = timeout_s
        self._look_up = look_up
        self._most = most
        self._lock = Lock()
        self._under_way = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host.

        :raises OSError: it has none, or nobody says so in time.
        :raises UnicodeError: it is no name.
        """
        with self._lock:
            if self._under_way >= self._most:
                raise OSError(f'{self._most} other names are being looked up already')
            self._under_way += 1
        ended, found, failed = ThreadEvent(), list[str](), list[Exception]()

        def look() -> None:
            try:
                found.extend(self._look_up(host, port))
            except (OSError, UnicodeError) as error:
                failed.append(error)
            finally:
                with self._lock:
                    self._under_way -= 1
                ended.set()

        try:
            start_thread(f'name {host}'[:40], look)
        except RuntimeError:
            with self._lock:
                self._under_way -= 1
            raise OSError('no thread is left to look names up') from None
        if not ended.wait(self._timeout_s):
            raise OSError(f'no name server has answered within {self._timeout_s:g} s')
        if failed:
            raise failed[0]
        return found
