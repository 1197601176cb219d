"""The registry of custom constraints.

Installed packages offer constraints as entry points of the group ``convergence.constraints``: a function that returns
None for a valid value, or a sentence about the problem that does not repeat the value. The entry point's name is the
constraint's name in templates. A constraint that cannot be loaded is logged and left out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cache

from convergence.core.model import Json
from convergence.resources.checks import BUILTIN
from convergence.resources.plugins import load
from convergence.template.constraints import ValueCheck

LOG = logging.getLogger(__name__)

NAMESPACE = 'convergence.constraints'

SERVICES: Mapping[str, str] = {
    'barbican': 'the key manager Barbican',
    'blazar': 'the reservation service Blazar',
    'cinder': 'the block storage service Cinder',
    'designate': 'the name service Designate',
    'glance': 'the image service Glance',
    'ironic': 'the bare metal service Ironic',
    'keystone': 'the identity service Keystone',
    'magnum': 'the container service Magnum',
    'manila': 'the shared file systems service Manila',
    'mistral': 'the workflow service Mistral',
    'neutron': 'the network service Neutron',
    'nova': 'the compute service Nova',
    'octavia': 'the load balancer Octavia',
    'sahara': 'the data processing service Sahara',
    'senlin': 'the clustering service Senlin',
    'trove': 'the database service Trove',
    'zaqar': 'the messaging service Zaqar',
}
"""The service that a constraint needs, by the part of its name before the first dot."""


class CustomConstraints:
    """Custom constraints by name. Immutable.

    :param checks: the functions by name.
    :param tolerant: True if a constraint whose service is missing accepts every value instead of refusing it.
    """

    def __init__(self, checks: Mapping[str, ValueCheck], *, tolerant: bool = False) -> None:
        self._checks = dict(sorted(checks.items()))
        self._tolerant = tolerant

    def tolerating(self) -> CustomConstraints:
        """Return the same constraints; those whose service is missing accept every value."""
        return CustomConstraints(self._checks, tolerant=True)

    def unchecked(self, name: str) -> str | None:
        """Return the reason why a tolerated constraint accepts every value; None if it checks."""
        service = self._missing_service(name) if self._tolerant else None
        return None if service is None else f'{name} needs {service}, which is not reachable here'

    def names(self) -> Iterable[str]:
        """All names, sorted."""
        return tuple(self._checks)

    def get(self, name: str) -> ValueCheck | None:
        """Return the constraint called `name`, or None.

        A constraint whose service is missing refuses every value and names the service, so that a template with it can
        still be checked.
        """
        found = self._checks.get(name)
        if found is not None:
            return _guarded(name, found)
        service = self._missing_service(name)
        if service is None:
            return None
        missing = (
            f'the custom constraint {name} needs {service}, which this installation cannot query; '
            f'remove it, or install a package that offers it as an entry point of {NAMESPACE}'
        )
        return lambda value: missing

    def _missing_service(self, name: str) -> str | None:
        """The service that a constraint needs and that is not there."""
        if name in self._checks or '.' not in name:
            return None
        return SERVICES.get(name.partition('.')[0])

    def check(self, name: str, value: Json) -> str | None:
        """Return the problem of `value`; None if it is valid."""
        found = self.get(name)
        if found is None:
            return f'the custom constraint {name} is not known to this installation; install the package that offers it'
        return found(value)


def _guarded(name: str, check: ValueCheck) -> ValueCheck:
    """Return `check` with its errors caught: plugin code that raises refuses the value with a text that says so."""

    def guarded(value: Json) -> str | None:
        try:
            return check(value)
        except Exception as error:  # noqa: BLE001 - plugin code may raise anything
            # Neither text nor traceback of the error: they may hold the value, which may be a secret.
            LOG.error(
                'Custom constraint %s is broken, it refuses the value; repair its package: it raised %s',
                name,
                type(error).__name__,
            )
            return f'the custom constraint {name} is broken: it raised {type(error).__name__}'

    return guarded


@cache
def installed_checks() -> CustomConstraints:
    """Return the built-in constraints and those of installed packages; the latter take precedence."""
    offered = {name: check for name, check in load(NAMESPACE, 'custom constraint').items() if callable(check)}
    return CustomConstraints({**BUILTIN, **offered})
