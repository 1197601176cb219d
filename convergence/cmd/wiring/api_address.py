"""The public address of the API, for signal URLs."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from convergence.concurrency import ThreadEvent
from convergence.config import Settings

PATIENCE_S = 30.0
"""Seconds to wait for the API of this process to listen. It is started right after the workers."""


class ApiAddress:
    """The address of the API with its version, without a slash at the end; None where it is unknown. Call it.

    :param configured: ``[api] public_url``; empty: not set.
    """

    def __init__(self, configured: str) -> None:
        self._url: str | None = configured.rstrip('/') or None
        self._known = ThreadEvent()
        self._known.set()

    @classmethod
    def of(cls, settings: Settings) -> ApiAddress:
        """The address from the configuration."""
        return cls(settings.api.public_url)

    def expect(self) -> None:
        """Make callers wait for `know`: this process is about to serve the API itself."""
        if self._url is None:
            self._known.clear()

    def know(self, url: str) -> None:
        """Set the address on which the API of this process listens. A configured address has precedence."""
        if self._url is None and not _is_everywhere(url):
            self._url = url
        self._known.set()

    def __call__(self) -> str | None:
        """The address."""
        self._known.wait(PATIENCE_S)
        return None if self._url is None else f'{self._url}/v1'


class Telling:
    """Has an address known as soon as the API listens. A service for `convergence.cmd.all_in_one.Together`.

    :param listens: the URL of the API, once it listens.
    """

    def __init__(self, address: ApiAddress, listens: Callable[[], str]) -> None:
        self._address, self._listens = address, listens
        address.expect()

    def start(self) -> None:
        """Say it."""
        self._address.know(self._listens())

    def stop(self) -> None:
        """There is nothing to stop."""

    def close(self) -> None:
        """Nothing is held."""


def _is_everywhere(url: str) -> bool:
    """True if a URL names all addresses of this machine; other machines cannot use such a URL."""
    try:
        return ip_address(urlsplit(url).hostname or '').is_unspecified
    except ValueError:
        return False
