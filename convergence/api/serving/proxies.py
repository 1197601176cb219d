"""The client behind a proxy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

FORWARDED = ('forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-real-ip')
"""Headers in which a proxy names the client. Those of untrusted proxies are dropped."""


_MAPPED = 96
"""Prefix length of IPv4 addresses in IPv6 notation."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a request.

    :param address: of the client.
    :param scheme: of the client's URL: http or https.
    """

    address: str
    scheme: str


class Proxies:
    """The trusted proxies.

    :param networks: addresses, or networks with a slash.
    :raises ValueError: one of them is neither.
    """

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks = [_plain_network(ip_network(each, strict=False)) for each in networks]

    def trusts(self, address: str) -> bool:
        """Return True for the address of a trusted proxy."""
        try:
            found = ip_address(plain_address(address.partition('%')[0]))
        except ValueError:
            return False
        return any(found.version == each.version and found in each for each in self._networks)

    def origin(self, peer: str, scheme: str, headers: Mapping[str, str]) -> Origin:
        """Return the origin of a request.

        :param peer: the other end of the connection.
        :param scheme: of the connection.
        :param headers: of the request, by lower-case name; several of one name joined by commas.
        """
        peer = plain_address(peer)
        if not self.trusts(peer):
            return Origin(peer, scheme)
        # Each proxy appends the address of its peer. The last untrusted address is the client; the client itself may
        # have invented the addresses before it.
        address = peer
        for each in reversed([part.strip() for part in headers.get('x-forwarded-for', '').split(',') if part.strip()]):
            found = _address(each)
            if found is None:
                break
            address = found
            if not self.trusts(found):
                break
        said = headers.get('x-forwarded-proto', '').rpartition(',')[2].strip().lower()
        return Origin(address, said if said in ('http', 'https') else scheme)


def _address(text: str) -> str | None:
    """Return an address without the port that some proxies add; None if it is invalid."""
    if text.startswith('['):
        text = text[1:].partition(']')[0]
    elif text.count(':') == 1:
        text = text.partition(':')[0]
    try:
        return plain_address(str(ip_address(text)))
    except ValueError:
        return None


def plain_address(text: str) -> str:
    """Return an address, in IPv4 notation if it is one: a dual-stack socket reports 192.0.2.1 as ::ffff:192.0.2.1."""
    try:
        mapped = getattr(ip_address(text), 'ipv4_mapped', None)
    except ValueError:
        return text
    return text if mapped is None else str(mapped)


def _plain_network(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    mapped = getattr(network.network_address, 'ipv4_mapped', None)
    if mapped is None or network.prefixlen < _MAPPED:
        return network
    return IPv4Network((mapped, network.prefixlen - _MAPPED))
