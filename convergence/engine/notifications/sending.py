"""One request to a webhook: to the address that was checked, bounded in time and bytes, redirected nowhere."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from convergence import __version__
from convergence.engine.notifications.addresses import Network, Resolver, checked, destination
from convergence.engine.notifications.names import resolved
from convergence.errors import ConvergenceError
from convergence.notices import signed

MOST_BYTES = 4096
"""Maximum number of bytes read of an answer: only its status counts."""
_STATUS = re.compile(rb'HTTP/1\.[01] (\d{3})\b')


class NotDelivered(ConvergenceError):
    """A webhook was not reached, or did not confirm. The text says why."""


class Sender(Protocol):
    """Sends events to a webhook."""

    def send(self, url: str, key: str, event: Mapping[str, object]) -> int:
        """Send one event; the status of the answer, which is a success.

        :raises ConvergenceError: the address is refused, or there was no such answer.
        """


@dataclass(frozen=True, slots=True)
class HttpSender:
    """Sends over HTTP and HTTPS.

    :param timeout_s: time limit for a whole request, from resolving the name to the status of the answer.
    :param allowed: networks that webhooks may reach besides public ones.
    """

    timeout_s: float
    allowed: Sequence[Network] = ()
    resolve: Resolver = resolved
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def send(self, url: str, key: str, event: Mapping[str, object]) -> int:
        """Send one event; the status of the answer, from 200 to 299.

        :raises AddressRefused: the address is refused.
        :raises NotDelivered: there was no answer, or one with another status.
        """
        to = destination(url)
        until = time.monotonic() + self.timeout_s
        address = checked(to, self.allowed, self.resolve)
        body, headers = signed(event, key, time.time())
        lines = {
            'Host': to.authority,
            'User-Agent': f'convergence/{__version__}',
            'Content-Length': str(len(body)),
            'Connection': 'close',
            **headers,
        }
        head = (
            f'POST {to.target} HTTP/1.1\r\n' + ''.join(f'{name}: {text}\r\n' for name, text in lines.items()) + '\r\n'
        )
        try:
            with socket.create_connection((address, to.port), _left(until)) as plain:
                if to.scheme == 'http':
                    return self._exchange(plain, head.encode() + body, until)
                plain.settimeout(_left(until))
                with self.tls.wrap_socket(plain, server_hostname=to.host) as secure:
                    return self._exchange(secure, head.encode() + body, until)
        except TimeoutError:
            raise NotDelivered(f'{to.authority} has not answered within {self.timeout_s:g} s') from None
        except OSError as error:
            raise NotDelivered(f'{to.authority} cannot be reached: {error.strerror or error}') from None

    def _exchange(self, connection: socket.socket, request: bytes, until: float) -> int:
        connection.settimeout(_left(until))
        connection.sendall(request)
        answer = b''
        while b'\n' not in answer and len(answer) < MOST_BYTES:
            connection.settimeout(_left(until))
            piece = connection.recv(MOST_BYTES)
            if not piece:
                break
            answer += piece
        found = _STATUS.match(answer)
        if found is None:
            raise NotDelivered('the answer is not one of HTTP')
        status = int(found[1])
        if not 200 <= status < 300:
            more = '; redirects are not followed' if 300 <= status < 400 else ''
            raise NotDelivered(f'the answer was {status}{more}')
        return status


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
