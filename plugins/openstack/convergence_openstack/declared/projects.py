"""Projects."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.schema import prop
from convergence_openstack.declaring import by_service


@dataclass(frozen=True)
class ProjectProperties:
    """The properties of a project."""

    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    domain: str | None = prop(
        'default',
        description='Domain, by name or id.',
        update_allowed=True,
        constraints=[by_service('keystone.domain')],
    )
    description: str | None = prop('', description='Description.', update_allowed=True)
    enabled: bool | None = prop(True, description='Whether it can be used.', update_allowed=True)
    parent: str | None = prop(
        None, description='Project above it, by name or id.', constraints=[by_service('keystone.project')]
    )
    tags: list[Json] | None = prop([], description='Tags.', update_allowed=True)


@dataclass(frozen=True)
class ProjectAttributes:
    """The attributes of a project."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    name: str = attr('Name. Default: derived from the names of the stack and the resource.', of=('name',))
    parent_id: str = attr('Project above it.', of=('parent_id',))
    domain_id: str = attr('Domain.', of=('domain_id',))
    enabled: bool = attr('Whether it can be used.', of=('enabled',))
    is_domain: bool = attr('Whether it is a domain.', of=('is_domain',))
