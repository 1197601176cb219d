"""Limits of time, connections and memory for clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """Limits for clients.

    :param header_timeout_s: for the whole header of a request, from its first byte or from the opening of the
        connection; also for the TLS handshake.
    :param body_timeout_s: for the whole body of a request.
    :param send_timeout_s: for a client to take an answer, or one piece of a stream.
    :param keep_alive_s: between two requests of a connection.
    :param max_header_bytes: of a request.
    :param max_body_bytes: of a request.
    :param max_connections: of all clients.
    :param max_client_connections: of one client.
    :param max_client_requests: requests of one client that are served or wait for a thread.
    :param max_buffered_bytes: bodies of requests, and answers that are not sent yet, of all clients.
    :param max_client_buffered_bytes: the same of one client.
    """

    header_timeout_s: float = 10.0
    body_timeout_s: float = 60.0
    send_timeout_s: float = 60.0
    keep_alive_s: float = 60.0
    max_header_bytes: int = 64 * 1024
    max_body_bytes: int = 8 * 1024 * 1024
    max_connections: int = 500
    max_client_connections: int = 200
    max_client_requests: int = 100
    max_buffered_bytes: int = 256 * 1024 * 1024
    max_client_buffered_bytes: int = 64 * 1024 * 1024
