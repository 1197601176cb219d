"""A request that the application answers in a thread, and the way of its answer back to the connection."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Protocol

import h11

from convergence.api.serving import gateway
from convergence.api.serving.gateway import AnswerHead, ClientGone
from convergence.concurrency import ThreadEvent


class Taker(Protocol):
    """A connection, as an exchange sees it. For the thread of the event loop only."""

    def answer(self, exchange: Exchange, head: AnswerHead | None, data: bytes, *, is_last: bool) -> None:
        """Send a part of an answer: at first with its head."""

    def fail(self, exchange: Exchange) -> None:
        """The answer has come to no end."""

    def refuse_without_thread(self, exchange: Exchange) -> None:
        """The application could not be asked."""


class Exchange:
    """A request that the application answers, and the way of the answer from its thread to the connection.

    :param call_soon: calls a function in the thread of the event loop.
    :param is_head: whether the client wants no body.
    :ivar is_gone: whether nobody takes the answer any more.
    :ivar is_stream: whether the answer comes in pieces.
    :ivar taken: set when the client has taken the last piece, or has gone.
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
        """Have the application answer. In a thread of the lane."""
        gateway.run(self._application, self._environ, self)

    def give_up(self) -> None:
        """There is no thread."""
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
    """An answer as h11 wants it.

    :param is_last: whether the connection ends after it.
    """
    headers = [(name.encode('latin-1'), value.encode('latin-1')) for name, value in head.headers]
    headers.append((b'Date', formatdate(usegmt=True).encode()))
    if is_last:
        headers.append((b'Connection', b'close'))
    return h11.Response(status_code=head.status, headers=headers, reason=head.reason.encode('latin-1'))
