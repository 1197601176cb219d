"""Checks the addresses of webhooks: a webhook must not reach this machine or its network.

A name is resolved when a webhook is created and again for each request. The request connects to the checked address, so
a name that resolves to another address a moment later does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

from convergence.errors import ConfigurationError, ConvergenceError, Invalid

Network: TypeAlias = IPv4Network | IPv6Network
Resolver: TypeAlias = Callable[[str, int], Sequence[str]]

MOST_CHARACTERS = 2048
_PLAIN = re.compile(r'[\x21-\x7e]+')
_PORTS = {'http': 80, 'https': 443}
_EMBEDDING = ip_network('64:ff9b::/96')
"""Addresses of IPv6 behind which, by way of a translator, one of IPv4 stands."""


class AddressRefused(ConvergenceError):
    """A webhook address is refused. The text says why."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The target of a webhook.

    :param host: name or address, as in the URL, without brackets.
    :param target: path and query.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as a request names them."""
        host = f'[{self.host}]' if ':' in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f'{host}:{self.port}'


def destination(url: str) -> Destination:
    """Parse a URL.

    :raises Invalid: it is no valid webhook URL.
    """
    if len(url) > MOST_CHARACTERS or not _PLAIN.fullmatch(url):
        raise Invalid(f'The url of a webhook has at most {MOST_CHARACTERS} characters, all of them printable ASCII.')
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Invalid(f'The url of a webhook cannot be understood: {error}') from None
    if parts.scheme not in _PORTS or not host or port == 0:
        raise Invalid('The url of a webhook begins with https:// or http:// and names a host.')
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise Invalid('The url of a webhook has no user, no password and no fragment; requests are signed instead.')
    target = (parts.path or '/') + (f'?{parts.query}' if parts.query else '')
    return Destination(parts.scheme, host, port or _PORTS[parts.scheme], target)


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse a list of networks.

    :raises ConfigurationError: one of them is no network.
    """
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ip_network(text, strict=False))
        except ValueError:
            raise ConfigurationError(
                f'[notifications] allowed_networks: {text} is neither an address nor a network such as 192.0.2.0/28.'
            ) from None
    return tuple(found)


def checked(to: Destination, allowed: Sequence[Network], resolve: Resolver) -> str:
    """The address to connect to.

    :param allowed: networks that webhooks may reach besides public ones.
    :raises AddressRefused: the host cannot be resolved, or one of its addresses is refused.
    """
    try:
        found = resolve(to.host, to.port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, 'strerror', None) or error
        raise AddressRefused(f'The host {to.host} cannot be found: {reason}') from None
    refused = [text for text in found if not _may_be_reached(text, allowed)]
    if refused or not found:
        raise AddressRefused(
            f'The host {to.host} has the address {", ".join(refused) or "none"}, which webhooks may not reach: it is '
            'not public. An operator can allow its network with [notifications] allowed_networks.'
        )
    return found[0]


def _may_be_reached(text: str, allowed: Sequence[Network]) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if '%' in text:
        return False
    return all(
        any(each in network for network in allowed) or (each.is_global and not each.is_multicast)
        for each in _behind(address)
    )


def _behind(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The addresses that an address stands for: itself, or an embedded IPv4 address."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inside: list[IPv4Address | IPv6Address] = [address]
    if address.sixtofour is not None:
        inside.append(address.sixtofour)
    if address.teredo is not None:
        inside += address.teredo
    if address in _EMBEDDING:
        inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return inside
