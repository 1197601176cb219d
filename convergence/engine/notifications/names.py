"""Resolves names with a time limit, because the system's resolver has no limit that a caller can set."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from convergence.concurrency import Lock, ThreadEvent, start_thread

MOST_AT_ONCE = 32
"""Maximum number of names resolved at a time. A name without an answer keeps a thread until the system gives up."""


def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system finds them.

    :raises OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class NameResolution:
    """Resolves each name in a thread of its own, so that a name server without answers delays no other request.

    :param timeout_s: time limit for one name.
    :param look_up: resolves a host; it may block.
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

        :raises OSError: it has none, or there was no answer in time.
        :raises UnicodeError: it is no name.
        """
        with self._lock:
            if self._under_way >= self._most:
                raise OSError(f'{self._most} other names are being resolved already')
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
            raise OSError('no thread is left to resolve names') from None
        if not ended.wait(self._timeout_s):
            raise OSError(f'no name server has answered within {self._timeout_s:g} s')
        if failed:
            raise failed[0]
        return found
