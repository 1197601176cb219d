"""Which custom constraints there are.

Installed packages offer further ones as entry points of the group ``convergence.constraints``: a function from a value
to what is wrong with it, as a sentence that does not repeat the value, or None. The entry point's name is the
constraint's name in templates. One that cannot be loaded is logged and left out.
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
"""What a constraint needs whose name begins with such a word and a dot."""


class CustomConstraints:
    """Custom constraints by name. Immutable.

    :param checks: what there is.
    :param tolerant: those that need a service which is not there check nothing, instead of refusing every value.
    """

    def __init__(self, checks: Mapping[str, ValueCheck], *, tolerant: bool = False) -> None:
        self._checks = dict(sorted(checks.items()))
        self._tolerant = tolerant

    def tolerating(self) -> CustomConstraints:
        """The same, but those that need a service which is not there check nothing."""
        return CustomConstraints(self._checks, tolerant=True)

    def unchecked(self, name: str) -> str | None:
        """Why a constraint checks nothing, where that is tolerated; None: it checks."""
        service = self._missing_service(name) if self._tolerant else None
        return None if service is None else f'{name} needs {service}, which cannot be asked here'

    def names(self) -> Iterable[str]:
        """All names, sorted."""
        return tuple(self._checks)

    def get(self, name: str) -> ValueCheck | None:
        """The constraint called `name`, or None.

        One that needs a service which is not there refuses every value and names the service: so a template that
        has it can be looked at.
        """
        found = self._checks.get(name)
        if found is not None:
            return _guarded(name, found)
        service = self._missing_service(name)
        if service is None:
            return None
        missing = (
            f'the custom constraint {name} needs {service}, which this installation cannot ask; '
            f'do without it, or install a package that offers it as an entry point of {NAMESPACE}'
        )
        return lambda value: missing

    def _missing_service(self, name: str) -> str | None:
        """The service that a constraint needs and that is not there."""
        if name in self._checks or '.' not in name:
            return None
        return SERVICES.get(name.partition('.')[0])

    def check(self, name: str, value: Json) -> str | None:
        """What is wrong with `value`; None if nothing is."""
        found = self.get(name)
        if found is None:
            return f'the custom constraint {name} is not known to this installation; install the package that offers it'
        return found(value)


def _guarded(name: str, check: ValueCheck) -> ValueCheck:
    """`check`, which may be somebody else's code: if it breaks, the value is refused, and the text says why."""

    def guarded(value: Json) -> str | None:
        try:
            return check(value)
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            # Neither text nor traceback of the error: they may hold the value, which may be a secret.
            LOG.error('The custom constraint %s is broken: it raised %s', name, type(error).__name__)
            return f'the custom constraint {name} is broken: it raised {type(error).__name__}'

    return guarded


@cache
def installed_checks() -> CustomConstraints:
    """Those that come with Convergence, and everything that installed packages offer; the latter win."""
    offered = {name: check for name, check in load(NAMESPACE, 'custom constraint').items() if callable(check)}
    return CustomConstraints({**BUILTIN, **offered})
