"""Projects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from keystoneauth1.exceptions import EndpointNotFound
from typing_extensions import override

from convergence.core.model import Json
from convergence_openstack.declared.projects import ProjectAttributes, ProjectProperties
from convergence_openstack.kind import CloudType, Collection
from convergence_openstack.lookups import DOMAIN, PROJECT, Sort
from convergence_openstack.task import Task


class Project(CloudType):
    """A project of Keystone."""

    Properties, Attributes = ProjectProperties, ProjectAttributes
    collection = Collection('identity', '/projects', 'project', 'projects', change='PATCH', filters=False)
    sorts: ClassVar[Mapping[str, Sort]] = {'domain': DOMAIN, 'parent': PROJECT}
    sent: ClassVar[Mapping[str, str]] = {
        'name': 'name',
        'domain': 'domain_id',
        'description': 'description',
        'enabled': 'enabled',
        'parent': 'parent_id',
        'tags': 'tags',
    }
    live: ClassVar[tuple[str, ...]] = ('name', 'description', 'enabled')

    @override
    def cleared(self, task: Task, name: str) -> Json:
        """Return the value by which Keystone means "not given"."""
        unsaid: dict[str, Json] = {'description': '', 'enabled': True, 'tags': []}
        return unsaid[name] if name in unsaid else super().cleared(task, name)

    @override
    def remove(self, task: Task) -> None:
        """With the security group that Neutron gives to each project, and keeps otherwise."""
        for group in self._default_groups(task):
            task.cloud.remove('network', f'/security-groups/{group["id"]}')
        super().remove(task)

    def _default_groups(self, task: Task) -> Iterator[Mapping[str, Any]]:
        try:
            yield from task.cloud.listed(
                'network', '/security-groups', 'security_groups', project_id=task.object_id, name='default'
            )
        except EndpointNotFound:
            return
