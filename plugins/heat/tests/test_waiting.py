"""A call that nobody wants any more stops waiting for a service that does not answer."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import pytest
from convergence_heat.lookups import KeptAnswers, Lookups
from convergence_heat.session import CallSession
from keystoneauth1 import exceptions
from keystoneauth1.session import Session

from convergence.core.model import Action


@contextmanager
def service(serve):
    """The address of a service that does something with its first connection, in a thread of its own."""
    with socket.create_server(('127.0.0.1', 0)) as server:

        def run():
            peer, _ = server.accept()
            with peer:
                serve(peer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{server.getsockname()[1]}/'
        thread.join(30)
        assert not thread.is_alive()


def session(opened):
    return CallSession(opened, 'token', lambda: False, Lookups(KeptAnswers(), 'scope'), Action.CREATE)


def test_a_cancel_closes_the_connection_and_what_came_of_the_request_is_not_known():
    call = session(Session())

    def cancel(peer):
        peer.recv(1)
        call.waiting.close()
        while peer.recv(4096):
            pass

    with service(cancel) as url, pytest.raises(exceptions.ConnectFailure):
        call.request(url, 'POST', json={'thing': {}})
    assert call.doings.unsure


def test_others_go_on_with_the_connections_of_the_same_credentials():
    opened = Session()
    over, going_on = session(opened), session(opened)
    answered = []

    def answer(peer):
        for _ in range(2):
            peer.recv(4096)
            over.waiting.close()
            peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')

    with service(answer) as url:
        answered += [going_on.request(url, 'PUT', authenticated=False).status_code for _ in range(2)]
    assert answered == [200, 200]
    with pytest.raises(exceptions.ConnectFailure):
        over.request(url, 'POST', json={'thing': {}})
