"""The registry of resource types.

Installed packages offer types as entry points of the group ``convergence.resource_types``; the entry point's name is
the type's name in templates. A type that cannot be loaded is logged and left out: one broken package must not stop an
engine. A package with many types offers a manifest, see `convergence.resources.manifest`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from convergence.core.claim import Creation
from convergence.core.model import Action, Json
from convergence.errors import EntityNotFound
from convergence.resources.attributes import describe_attributes, describe_declared
from convergence.resources.builtin import builtin_types
from convergence.resources.builtin.addressed import addressed_types
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.local.types import local_types
from convergence.resources.contract import ResourceType
from convergence.resources.custom import installed_checks
from convergence.resources.manifest import NAMESPACE as MANIFESTS
from convergence.resources.manifest import ManifestType, installed_manifests
from convergence.resources.nested import PROVIDER
from convergence.resources.plugins import Offering, offers
from convergence.resources.preference import Preference
from convergence.resources.reading import did_you_mean
from convergence.resources.schema import PropertySchema
from convergence.resources.services import missing_service, unavailable
from convergence.resources.withdrawn import WITHDRAWN
from convergence.template.mappings import is_template

LOG = logging.getLogger(__name__)

NAMESPACE = 'convergence.resource_types'

Offered: TypeAlias = ResourceType[Any] | Callable[[], ResourceType[Any]]
"""A resource type: a ready instance, or a class or function that gives one without arguments."""

_DESCRIBED: set[tuple[type[Any], type[Any] | None]] = set()
"""Classes whose descriptions were checked. Each simulated run makes a registry, so a second check would cost time."""


class Registry:
    """The resource types of this process, by name. Immutable.

    :param types: the types, by name. A broken one is logged and left out.
    :param withheld: the reasons why further types are missing, by type name, each the end of a sentence.
    """

    def __init__(self, types: Mapping[str, Offered], *, withheld: Mapping[str, str] | None = None) -> None:
        self._withheld = {**(withheld or {}), **WITHDRAWN}
        usable = {name: _usable(name, offered) for name, offered in types.items()}
        self._types = {name: kind for name, kind in sorted(usable.items()) if kind is not None}

    @classmethod
    def installed(
        cls,
        *,
        local: LocalProvider | None = None,
        api: Callable[[], str | None] | None = None,
        namespace: str = NAMESPACE,
        manifests_in: str = MANIFESTS,
        for_checks: bool = False,
        prefer: Sequence[str] = (),
    ) -> Registry:
        """Return the types of all installed packages. A type with an entry point of its own wins over one of a
        manifest.

        :param local: enables the types of the local provider, which touch this machine.
        :param api: returns the address of the Orchestration API, for resources that are signalled through it.
        :param for_checks: True to include types that packages only describe, for programs that check templates.
        :param prefer: the packages that win where several offer a type; see `convergence.resources.preference`.
        """
        preference, single = Preference(prefer, is_silent=for_checks), offers(namespace, 'resource type')
        loaded = preference.choose(single)
        if api is not None:
            # What another package offers under these names stays.
            loaded |= {name: kind for name, kind in addressed_types(api).items() if loaded.get(name) is type(kind)}
        installed_checks()  # Properties are checked in transactions, where nothing should be loaded any more.
        manifests = [
            each for each in installed_manifests(manifests_in) if for_checks or not each.offered.is_for_checks_only
        ]
        preference.require_known([*single, *manifests])
        described = preference.choose(
            Offering(name, each.package, each.source, kind)
            for each in manifests
            for name, kind in each.offered.types().items()
            if name not in loaded
        )
        withheld = {name: why for each in reversed(manifests) for name, why in each.offered.withheld.items()}
        return cls({**described, **loaded, **(local_types(local) if local else {})}, withheld=withheld)

    @classmethod
    def builtin(cls, *, local: LocalProvider | None = None, more: Mapping[str, Offered] | None = None) -> Registry:
        """Return the types that come with Convergence, without those of installed packages.

        :param more: further types; they win over the built-in ones of the same name.
        """
        return cls({**builtin_types(), **(local_types(local) if local else {}), **(more or {})})

    def names(self) -> tuple[str, ...]:
        """All type names, sorted."""
        return tuple(self._types)

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def nests(self, name: str) -> bool:
        """Return True if the objects of a type are stacks; False for an unknown type."""
        return is_template(name) or (name in self._types and self._types[name].nests)

    def is_exclusive(self, name: str) -> bool:
        """Return True if only one object can have a name; False for an unknown type."""
        return name in self._types and self._types[name].delete_before_create

    def gives_way(self, name: str) -> bool:
        """Return True if an object must hand something over to its replacement; False for an unknown type."""
        return name in self._types and self._types[name].implements('release_for_replacement')

    def time_limit(self, name: str, action: Action) -> float | None:
        """Seconds that an action of a type may take; None: no limit of its own, or no such type here."""
        kind = self._types.get(name)
        return kind.time_limits.get(action) if kind is not None else None

    def creation(self, name: str, settles_s: float) -> Creation:
        """Return the facts about the creations of a type.

        :param settles_s: seconds during which an interrupted creation may still have an effect, for types that set
            none, and for unknown types.
        """
        kind = PROVIDER if is_template(name) else self._types.get(name)
        if kind is None:
            return Creation(settles_s=settles_s)
        declared_s = kind.create_ambiguity_s
        return Creation(
            is_repeated=kind.token_enforced and not kind.implements('find'),
            settles_s=settles_s if declared_s is None else declared_s,
            is_enforced=kind.token_enforced,
            is_exclusive=kind.delete_before_create,
            hands_over=kind.implements('release_for_replacement'),
        )

    def can_snapshot(self, name: str) -> bool:
        """Return True if resources of a type take part in snapshots of their stack."""
        kind = PROVIDER if is_template(name) else self._types.get(name)
        return kind is not None and kind.implements('snapshot')

    def observed_every_s(self, usual_s: float, configured_s: Mapping[str, float]) -> dict[str, float]:
        """Return the maximum number of seconds between two observations of an object, for each type that can observe.

        :param usual_s: for types without an interval of their own.
        :param configured_s: the operator's intervals by type; 0: never.
        """
        looking = {name: kind for name, kind in self._types.items() if kind.implements('observe')}
        own = {name: kind.observe_interval_s or usual_s for name, kind in looking.items()}
        asked = {name: configured_s.get(name, each_s) for name, each_s in own.items()}
        return {name: each_s for name, each_s in asked.items() if each_s > 0}

    def get(self, name: str) -> ResourceType[Any]:
        """The type called `name`.

        :raises EntityNotFound: there is none; the text says why, or suggests a similar name.
        """
        kind = PROVIDER if is_template(name) else self._types.get(name)
        if kind is None:
            service = self.missing_service(name)
            if service is not None:
                raise EntityNotFound(unavailable(name, service))
            withheld = self._withheld.get(name)
            more = f': {withheld}.' if withheld else did_you_mean(name, self._types) or '.'
            raise EntityNotFound(f'The Resource Type ({name}) could not be found{more}')
        return kind

    def missing_service(self, name: str) -> str | None:
        """The service of a cloud that a type belongs to, where no type of that is here; None for any other type."""
        return None if name in self._withheld or name in self._types else missing_service(name, self._types)

    def describe(self, name: str) -> dict[str, Json]:
        """The type as JSON: resource_type, properties, attributes, support_status, description.

        :raises EntityNotFound: there is no such type.
        """
        kind = self.get(name)
        return {
            'resource_type': name,
            'properties': PropertySchema.of(kind.Properties).describe(),
            'attributes': describe_attributes(kind),
            'support_status': kind.support.document(),
            'description': (kind.__doc__ or '').strip().partition('\n')[0],
        }


def _require_description(declared: tuple[type[Any], type[Any] | None]) -> None:
    """See that properties and attributes can be described, as a class declares them once and for all."""
    if declared not in _DESCRIBED:
        properties, attributes = declared
        PropertySchema.of(properties).describe()
        describe_declared(attributes)
        _DESCRIBED.add(declared)


def _usable(name: str, offered: Offered) -> ResourceType[Any] | None:
    """Return the instance if every part that the engine reads of it works; otherwise log an error and return None."""
    try:
        kind = offered if isinstance(offered, ResourceType) else offered()
        if isinstance(kind, ManifestType):
            return kind  # What it says was read when the manifest was written; reading all of it here would take long.
        if not isinstance(kind, ResourceType):
            raise TypeError(f'{type(kind).__qualname__} is not derived from ResourceType')
        _require_description((kind.Properties, kind.Attributes))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - plugin code may raise anything
        LOG.error(
            'The resource type %s is unusable and is left out; repair its package: %s: %s',
            name,
            type(error).__name__,
            error,
        )
        return None
    return kind
