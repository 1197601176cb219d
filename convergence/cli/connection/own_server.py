"""The user's own server. The command sends it the token only after it has proved its identity.

Every account of the machine can listen on a loopback address while the server is down. The command therefore sends a
nonce first. The server answers with a proof that needs the secret of its start, which only the user can read.
"""

from __future__ import annotations

import hmac
import http.client
import json
import secrets
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from convergence.cli.connection import local_servers
from convergence.cli.connection.local_servers import LocalServer
from convergence.cli.exits import Unreachable
from convergence.signing import server_proof

CONNECT_S = 5.0
"""Timeout of the proof in seconds. The server computes it without waiting for anything else."""
MAX_BYTES = 4096
"""Maximum size of an answer with a proof: a stranger may send more."""


@dataclass(frozen=True, slots=True)
class OwnServer:
    """The token of the server of a data directory, for one address only.

    :param url: the address to which requests go.
    :param given: the token that the user named; empty: that of the server.
    """

    data: Path
    url: str
    given: str = field(default='', repr=False)

    def token(self) -> str:
        """Return the token, after the server has proved its identity. Each request needs a new proof.

        :raises Unreachable: the server does not run, has another address, or another process answers in its place.
        """
        server = local_servers.alive(self.data)
        if server is None:
            raise Unreachable(
                f'The server with data in {self.data} does not run, so its token was not sent to {self.url}. '
                f'Start it with "convergence serve --data {self.data}".'
            )
        if not local_servers.is_same_address(self.url, server.url):
            raise Unreachable(
                f'The server with data in {self.data} is at {server.url}, so its token was not sent to {self.url}.'
            )
        prove(server)
        return self.given or server.token()


def prove(server: LocalServer) -> None:
    """Make a server prove that it is the announced one.

    :raises Unreachable: it does not.
    """
    if not server.secret:
        raise Unreachable(
            f'The server at {server.url} cannot prove its identity, so no token was sent. Restart it with '
            f'"convergence serve --data {server.data}".'
        )
    nonce = secrets.token_hex(32)
    expected = server_proof(server.secret, nonce, server.url)
    if not hmac.compare_digest(_answer(server.url, nonce).encode(errors='replace'), expected.encode()):
        raise Unreachable(
            f'The process at {server.url} is not the server with data in {server.data}, so no token was sent. '
            'Stop that process, and restart the server with "convergence serve".'
        )


def _answer(url: str, nonce: str) -> str:
    """Return the answer to a nonce; empty if it is no proof."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == 'https':
        unverified = ssl.create_default_context()  # The proof itself identifies the server.
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            parts.hostname or '', parts.port, timeout=CONNECT_S, context=unverified
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname or '', parts.port, timeout=CONNECT_S)
    try:
        connection.request('GET', f'/proof?nonce={nonce}')
        document = json.loads(connection.getresponse().read(MAX_BYTES))
        return str(document['proof'])
    except (ValueError, KeyError, TypeError, http.client.HTTPException):
        return ''
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise Unreachable(f'The server at {url} does not answer: {reason}.') from None
    finally:
        connection.close()
