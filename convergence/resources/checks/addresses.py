"""Custom constraints about addresses in networks."""

from __future__ import annotations

import ipaddress
import re

from convergence.core.model import Json

LONGEST = 100
"""Characters. No address is longer; a zone of an IPv6 address could be as long as the request."""

_MAC = re.compile(
    '[0-9A-Fa-f]{1,2}([-:])[0-9A-Fa-f]{1,2}(?:\\1[0-9A-Fa-f]{1,2}){4}'  # 00-1b-77-49-54-fd, 0:1b:77:49:54:fd
    '|[0-9A-Fa-f]{1,4}([.:])[0-9A-Fa-f]{1,4}\\2[0-9A-Fa-f]{1,4}'  # 001b.7749.54fd
    '|[0-9A-Fa-f]{6}-[0-9A-Fa-f]{6}'  # 001b77-4954fd
    '|[0-9A-Fa-f]{12}'
)


def check_ip(value: Json) -> str | None:
    """``ip_addr``: an IPv4 or IPv6 address."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return 'Invalid IP address'
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return 'Invalid IP address'
    return None


def check_cidr(value: Json) -> str | None:
    """``net_cidr``: an address and the length of its prefix. Like ``192.0.2.1/24`` it may say which host it is, too."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return 'Invalid net cidr: it must be a text like 192.0.2.0/24'
    _, slash, prefix = value.partition('/')
    # The standard library also takes a netmask for a prefix, which is another notation.
    if not slash or not prefix.isascii() or not prefix.isdigit():
        return 'Invalid net cidr: it must have an address, a slash and the length of the prefix'
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return 'Invalid net cidr: it must be like 192.0.2.0/24 or 2001:db8::/32'
    return None


def check_ip_or_cidr(value: Json) -> str | None:
    """``ip_or_cidr``: an address or a network."""
    if check_ip(value) is None or check_cidr(value) is None:
        return None
    return 'it must be an IP address, or a network like 192.0.2.0/24'


def check_mac(value: Json) -> str | None:
    """``mac_addr``: the address of a network interface, in one of the usual notations."""
    if isinstance(value, str) and _MAC.fullmatch(value):
        return None
    return 'Invalid MAC address.'
