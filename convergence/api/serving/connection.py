"""One connection: reads whole requests within time limits, and sends answers as fast as the client receives them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus

import h11
from typing_extensions import override

from convergence.api import faults
from convergence.api.serving import gateway
from convergence.api.serving.exchange import Exchange, response_of
from convergence.api.serving.gateway import AnswerHead, Head
from convergence.api.serving.lanes import Lanes, lane_of
from convergence.api.serving.ledger import ConnectionLedger
from convergence.api.serving.limits import ServingLimits
from convergence.api.serving.proxies import Origin, Proxies

LOG = logging.getLogger(__name__)

LINGER_S = 2.0
"""Seconds in which a refused client may still send, so that it reads the answer instead of a reset connection."""
MOST_CHUNKS = 10_000
"""Maximum number of chunks of a body: each costs as much time as many bytes."""


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """The context that all connections of a server share.

    :param is_ending: returns True when the server accepts no more requests.
    """

    application: gateway.WsgiApplication
    limits: ServingLimits
    ledger: ConnectionLedger
    lanes: Lanes
    proxies: Proxies
    loop: asyncio.AbstractEventLoop
    server: tuple[str, int]
    scheme: str
    is_ending: Callable[[], bool]


class ConnectionPhase(Enum):
    """The event that a connection waits for."""

    IDLE = auto()
    """The client: the next request."""
    HEADER = auto()
    """The client: the rest of a header."""
    BODY = auto()
    """The client: the rest of a body."""
    SERVING = auto()
    """The application."""
    SENDING = auto()
    """The client: that it takes the answer."""
    LINGERING = auto()
    """The client: that it reads why it was refused, and closes."""


class Connection(asyncio.Protocol):
    """The protocol of one connection. Everything here runs in the thread of the event loop.

    :param peer: address of the other end.
    """

    def __init__(self, service: ConnectionContext, peer: str) -> None:
        self.peer = self.account = peer
        self.waits_since: float | None = service.loop.time()
        self.buffered = 0
        self._service = service
        self._limits = service.limits
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.max_header_bytes)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._phase = ConnectionPhase.HEADER
        self._head: Head | None = None
        self._origin = Origin(peer, service.scheme)
        self._body = bytearray()
        self._chunks = 0
        self._has_spoken = self._is_blocked = self._input_ended = self._is_ahead = False
        self._exchange: Exchange | None = None

    # --- what the event loop says -----------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the connection is open, after its TLS handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=1)  # report every byte that the client has not received
        self._enter(ConnectionPhase.HEADER, self._limits.header_timeout_s)

    @override
    def connection_lost(self, error: Exception | None) -> None:
        """Called when either side has closed the connection."""
        self._forget()

    @override
    def data_received(self, data: bytes) -> None:
        """Called with data from the client."""
        if self._phase in (ConnectionPhase.SERVING, ConnectionPhase.SENDING):
            self._is_ahead = True
            if self._transport is not None:
                self._transport.pause_reading()
        elif self._phase is not ConnectionPhase.LINGERING:
            self._feed(data)

    @override
    def eof_received(self) -> bool:
        """Called when the client sends no more; returns True to keep the connection open for the answer."""
        self._input_ended = True
        if self._phase is ConnectionPhase.SERVING and self._exchange is not None and self._exchange.is_stream:
            return False
        return self._phase in (ConnectionPhase.SERVING, ConnectionPhase.SENDING) and self._service.scheme == 'http'

    @override
    def pause_writing(self) -> None:
        """Called when the client has not received all sent data yet."""
        self._is_blocked = True

    @override
    def resume_writing(self) -> None:
        """Called when the client has received everything."""
        self._is_blocked = False
        self._service.ledger.charge(self, 0)
        if self._phase is ConnectionPhase.SENDING:
            self._finish()
        elif self._phase is ConnectionPhase.SERVING and self._exchange is not None:
            self._enter(ConnectionPhase.SERVING, None)
            self._exchange.taken.set()

    # --- what the server says ---------------------------------------------------------------------------------

    def evict(self, why: str) -> None:
        """Close the connection to make room for others."""
        LOG.debug('Closing a connection from %s: %s', self.account, why)
        self._abort()

    def end_soon(self) -> None:
        """Close the connection now, or after the running answer."""
        if self._phase in (ConnectionPhase.IDLE, ConnectionPhase.HEADER, ConnectionPhase.BODY):
            self._abort()

    # --- a request --------------------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        if self._phase is ConnectionPhase.IDLE:
            self._enter(ConnectionPhase.HEADER, self._limits.header_timeout_s)
        self._has_spoken = True
        try:
            self._parser.receive_data(data)
            while self._phase in (ConnectionPhase.HEADER, ConnectionPhase.BODY):
                event = self._parser.next_event()
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._add(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self._serve()
                else:
                    return
        except h11.RemoteProtocolError as error:
            # h11 suggests the status, for example of a header that is too large.
            self._refuse(HTTPStatus(error.error_status_hint), f'This is no request: {error}.')
        except gateway.Malformed as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))

    def _begin(self, request: h11.Request) -> None:
        head = Head.of(request.method, request.target, request.http_version, request.headers)
        self._head = head
        self._origin = self._service.proxies.origin(self.peer, self._service.scheme, head.headers)
        self.account = self._origin.address
        self._body, self._chunks = bytearray(), 0
        most = self._limits.max_body_bytes
        if (head.content_length or 0) > most:
            self._refuse_body(most)
            return
        self._enter(ConnectionPhase.BODY, self._limits.body_timeout_s)
        if self._parser.they_are_waiting_for_100_continue:
            self._write(self._parser.send(h11.InformationalResponse(status_code=100, headers=[])))

    def _add(self, data: bytes) -> None:
        self._body += data
        self._chunks += 1
        if len(self._body) > self._limits.max_body_bytes:
            self._refuse_body(self._limits.max_body_bytes)
        elif self._chunks > MOST_CHUNKS and len(self._body) < self._chunks * 64:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 'The body comes in too many small pieces.')
        elif not self._service.ledger.charge(self, len(self._body)):
            self._refuse_for_now('Too many bodies of requests are being received.')

    def _serve(self) -> None:
        assert self._head is not None
        head, service = self._head, self._service
        self._enter(ConnectionPhase.SERVING, None)
        environ = gateway.environ_of(head, bytes(self._body), self._origin, service.server)
        self._body = bytearray()
        self._exchange = exchange = Exchange(
            self, service.application, environ, service.loop.call_soon_threadsafe, is_head=head.method == 'HEAD'
        )
        if not service.lanes.offer(lane_of(head.path, head.query), self.account, exchange):
            self._exchange = None
            self._refuse_for_now('Too many of your requests are being served ([api] max_client_requests).')

    # --- an answer --------------------------------------------------------------------------------------------

    def answer(self, exchange: Exchange, head: AnswerHead | None, data: bytes, *, is_last: bool) -> None:
        """Send a part of an answer, the first one with its head."""
        if exchange is not self._exchange:
            return
        try:
            out = b'' if head is None else self._parser.send(response_of(head, self._service.is_ending()))
            if data and not exchange.is_head:
                out += self._parser.send(h11.Data(data)) or b''
            if is_last:
                out += self._parser.send(h11.EndOfMessage()) or b''
        except (h11.LocalProtocolError, ValueError):
            LOG.exception('Invalid answer of the API application; closing the connection. Report this error')
            self._abort()
            return
        self._write(out or b'')
        if self._exchange is None:  # the connection has been closed meanwhile
            return
        if is_last:
            exchange.is_gone = True
            self._exchange = None
            if self._is_blocked:
                self._enter(ConnectionPhase.SENDING, self._limits.send_timeout_s)
            else:
                self._finish()
        elif exchange.is_stream and self._input_ended:
            self._abort()
        elif self._is_blocked:
            self._enter(ConnectionPhase.SERVING, self._limits.send_timeout_s)
            self.waits_since = self._service.loop.time()
        else:
            exchange.taken.set()

    def fail(self, exchange: Exchange) -> None:
        """Called when the answer remains incomplete."""
        if exchange is self._exchange:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, 'The request could not be served.')

    def refuse_without_thread(self, exchange: Exchange) -> None:
        """Called when the application could not be called."""
        if exchange is self._exchange:
            self._refuse_for_now('The API has no thread for the request.')

    def _finish(self) -> None:
        """Wait for the next request after the client has received the answer.

        A client that sent one before it got its answer must send it again. Otherwise one connection could occupy a
        thread without end, and could not be closed in between.
        """
        self._service.ledger.charge(self, 0)
        if self._is_ahead or self._parser.trailing_data[0]:
            self._linger()
        elif self._parser.our_state is not h11.DONE or self._input_ended or self._service.is_ending():
            self._close()
        else:
            self._parser.start_next_cycle()
            self._head, self._has_spoken = None, False
            self._enter(ConnectionPhase.IDLE, self._limits.keep_alive_s)

    # --- refusals ---------------------------------------------------------------------------------------------

    def _refuse_body(self, most: int) -> None:
        text = f'The body of a request may have {most} bytes at most ([api] max_body_bytes).'
        self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)

    def _refuse_for_now(self, text: str) -> None:
        self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f'{text} Try again later.', ('Retry-After', '5'))

    def _refuse(self, status: HTTPStatus, text: str, *headers: tuple[str, str]) -> None:
        """Answer without the application, and close."""
        LOG.debug('Refusing a request from %s with %d: %s', self.account, status, text)
        self._exchange = None
        if self._parser.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self._abort()
            return
        problem = faults.HttpProblem(status, text)
        body = json.dumps(faults.body_of(problem)).encode()
        head = AnswerHead(
            int(status),
            faults.reason(status),
            (('Content-Type', 'application/json'), ('Content-Length', str(len(body))), *headers),
        )
        try:
            out = self._parser.send(response_of(head, True)) or b''
            if self._head is None or self._head.method != 'HEAD':
                out += self._parser.send(h11.Data(body)) or b''
        except h11.LocalProtocolError:
            self._abort()
            return
        self._service.ledger.charge(self, 0)
        self._write(out)
        self._linger()

    def _linger(self) -> None:
        """Close after the client has read the answer; data that it still sends would reset the connection before."""
        self._enter(ConnectionPhase.LINGERING, LINGER_S)
        if self._transport is not None:
            self._transport.resume_reading()
            if self._transport.can_write_eof():
                self._transport.write_eof()
            else:
                self._transport.close()

    # --- the connection ---------------------------------------------------------------------------------------

    def _enter(self, phase: ConnectionPhase, timeout_s: float | None) -> None:
        """Enter a phase; close the connection if it takes longer than `timeout_s` seconds."""
        if self._timer is not None:
            self._timer.cancel()
        loop = self._service.loop
        self._phase = phase
        self._timer = loop.call_later(timeout_s, self._time_out) if timeout_s is not None else None
        self.waits_since = None if phase is ConnectionPhase.SERVING else loop.time()

    def _time_out(self) -> None:
        if self._phase is ConnectionPhase.BODY or (self._phase is ConnectionPhase.HEADER and self._has_spoken):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, 'The request has taken too long to arrive.')
        else:
            LOG.debug('Closing a connection from %s: time limit exceeded (%s)', self.account, self._phase.name)
            self._abort()

    def _write(self, data: bytes) -> None:
        if self._transport is None or not data:
            return
        self._transport.write(data)
        if self._is_blocked and not self._service.ledger.charge(self, self._transport.get_write_buffer_size()):
            LOG.debug('Closing a connection from %s: it uses too much memory', self.account)
            self._abort()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._forget()

    def _forget(self) -> None:
        """Stop sending and reading."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._service.ledger.leave(self)
        exchange, self._exchange = self._exchange, None
        self._body = bytearray()
        if exchange is not None:
            exchange.is_gone = True
            exchange.taken.set()
