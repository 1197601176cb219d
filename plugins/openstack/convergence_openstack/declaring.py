"""Words that the declarations of properties share."""

from __future__ import annotations

from convergence.resources.constraints import CustomConstraint
from convergence.resources.support import Status, SupportStatus

HIDDEN = SupportStatus(Status.HIDDEN)
DEPRECATED = SupportStatus(Status.DEPRECATED)

UUID = '^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$'
"""The form of ids of images."""

PROTOCOLS = (
    *range(256),
    *(
        'ah',
        'dccp',
        'egp',
        'esp',
        'gre',
        'icmp',
        'icmpv6',
        'igmp',
        'ipv6-encap',
        'ipv6-frag',
        'ipv6-icmp',
        'ipv6-nonxt',
    ),
    *('ipv6-opts', 'ipv6-route', 'ospf', 'pgm', 'rsvp', 'sctp', 'tcp', 'udp', 'udplite', 'vrrp'),
)
"""Protocols that rules of security groups know."""


def by_service(name: str) -> CustomConstraint:
    """Return a constraint that only a service can check: the type queries the service when it acts."""
    return CustomConstraint(name, '', lambda value: None)
