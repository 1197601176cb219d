"""The custom constraints that come with Convergence: functions that return the problem of a value, or None.

The texts never repeat the value: the caller decides if it may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from convergence.resources.checks.addresses import check_cidr, check_ip, check_ip_or_cidr, check_mac
from convergence.resources.checks.moments import check_cron, check_expiration, check_iso_8601, check_timezone
from convergence.resources.checks.names import check_dns_domain, check_dns_name, check_relative_dns_name
from convergence.resources.checks.texts import check_json, check_nothing
from convergence.template.constraints import ValueCheck

BUILTIN: Mapping[str, ValueCheck] = {
    'cron_expression': check_cron,
    'dns_domain': check_dns_domain,
    'dns_name': check_dns_name,
    'expiration': check_expiration,
    'ip_addr': check_ip,
    'ip_or_cidr': check_ip_or_cidr,
    'iso_8601': check_iso_8601,
    'json_string': check_json,
    'mac_addr': check_mac,
    'net_cidr': check_cidr,
    'rel_dns_name': check_relative_dns_name,
    'test_constr': check_nothing,
    'timezone': check_timezone,
}
