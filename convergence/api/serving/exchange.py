"""Passes a request to a thread of the application, and the answer back to the connection."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Protocol

import h11

from convergence.api.serving import gateway
from convergence.api.serving.gateway import AnswerHead, ClientGone
from convergence.concurrency import ThreadEvent


class Taker(Protocol):
    """The part of a connection that an exchange uses. Only for the thread of the event loop."""

    def answer(self, exchange: Exchange, head: AnswerHead | None, data: bytes, *, is_last: bool) -> None:
        """Send a part of an answer, the first one with its head."""

    def fail(self, exchange: Exchange) -> None:
        """Report that the answer remains incomplete."""

    def refuse_without_thread(self, exchange: Exchange) -> None:
        """Report that the application could not be called."""


class Exchange:
    """Passes one request to the application, and its answer from the thread to the connection.

    :param call_soon: calls a function in the thread of the event loop.
    :param is_head: True for HEAD: the answer has no body.
    :ivar is_gone: True when the client has left.
    :ivar is_stream: True if the answer consists of pieces.
    :ivar taken: set when the client has received the last piece, or has left.
    """

    def __init__(
        self,
        taker: Taker,
        application: gateway.WsgiApplication,
        environ: dict[str, Any],
        call_soon: Callable[[Callable[[], None]], object],
        *,
        is_head: bool,
    ) -> None:
        self.is_head = is_head
        self.is_gone = self.is_stream = False
        self.taken = ThreadEvent()
        self._taker, self._application, self._environ, self._call_soon = taker, application, environ, call_soon

    def run(self) -> None:
        """Call the application, in a thread of the lane."""
        gateway.run(self._application, self._environ, self)

    def give_up(self) -> None:
        """Report that no thread is available."""
        self._taker.refuse_without_thread(self)

    def whole(self, head: AnswerHead, body: bytes) -> None:
        """See `gateway.Outlet`."""
        self._call(lambda: self._taker.answer(self, head, body, is_last=True))

    def begin(self, head: AnswerHead) -> None:
        """See `gateway.Outlet`."""
        self.is_stream = True
        self._send(head, b'')

    def piece(self, data: bytes) -> None:
        """See `gateway.Outlet`."""
        if self.is_gone:
            raise ClientGone
        if data:
            self._send(None, data)

    def end(self) -> None:
        """See `gateway.Outlet`."""
        self._call(lambda: self._taker.answer(self, None, b'', is_last=True))

    def fail(self) -> None:
        """See `gateway.Outlet`."""
        self._call(lambda: self._taker.fail(self))

    def _send(self, head: AnswerHead | None, data: bytes) -> None:
        self.taken.clear()
        if not self.is_gone:
            self._call(lambda: self._taker.answer(self, head, data, is_last=False))
            self.taken.wait()
        if self.is_gone:
            raise ClientGone

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._call_soon(function)
        except RuntimeError:  # the loop has ended
            self.is_gone = True


def response_of(head: AnswerHead, is_last: bool) -> h11.Response:
    """Convert the head of an answer for h11.

    :param is_last: True if the connection ends after it.
    """
    headers = [(name.encode('latin-1'), value.encode('latin-1')) for name, value in head.headers]
    headers.append((b'Date', formatdate(usegmt=True).encode()))
    if is_last:
        headers.append((b'Connection', b'close'))
    return h11.Response(status_code=head.status, headers=headers, reason=head.reason.encode('latin-1'))
