"""``OS::Heat::SoftwareDeploymentGroup`` and ``StructuredDeploymentGroup``: a configuration on several servers."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json, Path
from convergence.resources.attributes import attr
from convergence.resources.builtin.groups.batches import BatchPolicy
from convergence.resources.builtin.groups.members import GroupMember, member, nested_template
from convergence.resources.builtin.groups.resource_group import BatchCreate
from convergence.resources.builtin.groups.stepping import MembersWanted, next_stack
from convergence.resources.builtin.groups.told import in_order
from convergence.resources.builtin.software.deployments import DeploymentProperties, StructuredDeploymentProperties
from convergence.resources.contract import Call
from convergence.resources.nested import OF_ONE, NestedType, by_attribute, of_member
from convergence.resources.nesting import DesiredStack, NestingContext, SampleTemplate
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.shapes import FieldDeclaration, annotations_of
from convergence.resources.support import Status, SupportStatus, since
from convergence.template import UNKNOWN

SERVER, SERVERS = 'server', 'servers'
OF_EACH: Mapping[str, str] = {
    'deploy_stdouts': 'deploy_stdout',
    'deploy_stderrs': 'deploy_stderr',
    'deploy_status_codes': 'deploy_status_code',
}
"""The attributes of a group that have a name of their own, and what they are of each deployment."""


def properties_of_group(base: type[Any]) -> type[Any]:
    """The properties of the group of some deployments: theirs, but for the server."""
    annotations = annotations_of(base)
    servers = prop(
        update_allowed=True, description='The ids of the servers, by the names that their deployments are to have.'
    )
    others = [(each.name, annotations[each.name], _again(each)) for each in fields(base) if each.name != SERVER]
    name = base.__name__.replace('Deployment', 'DeploymentGroup')
    return make_dataclass(name, [(SERVERS, dict[str, Json], servers), *others], frozen=True)


def _again(declared: Field[Any]) -> FieldDeclaration:
    """The declaration of a field, for another class."""
    if declared.default_factory is MISSING:
        return field(kw_only=True, metadata=declared.metadata)
    return field(kw_only=True, default_factory=declared.default_factory, metadata=declared.metadata)


@dataclass(frozen=True)
class DeploymentGroupPolicy:
    """The update policy of a group of deployments."""

    batch_create: BatchCreate | None = prop(None, description='How the deployments are made.', support=since('7.0.0'))
    rolling_update: BatchCreate | None = prop(None, description='How they are changed.', support=since('7.0.0'))


@dataclass(frozen=True)
class DeploymentGroupAttributes:
    """The attributes of a group: maps by the names of its servers. Every output is an attribute too."""

    beginnings: ClassVar[tuple[str, ...]] = ('',)

    deploy_stdouts: dict[str, Json] = attr('What the servers have written to their standard outputs, by name.')
    deploy_stderrs: dict[str, Json] = attr('What they have written to their standard errors, by name.')
    deploy_status_codes: dict[str, Json] = attr('The statuses with which they have ended, by name.')


class SoftwareDeploymentGroup(NestedType[Any]):
    """Has a configuration done on several servers: a deployment for each."""

    support = since('5.0.0')
    Properties: ClassVar[type[Any]] = properties_of_group(DeploymentProperties)
    Attributes: ClassVar[type[Any] | None] = DeploymentGroupAttributes
    UpdatePolicy: ClassVar[type[Any] | None] = DeploymentGroupPolicy
    member_type: ClassVar[str] = 'OS::Heat::SoftwareDeployment'

    @override
    def wanted(self, call: Call[Any], context: NestingContext) -> DesiredStack:
        """A deployment for each server; all at once, or the next batch of them."""
        given = {each.name: getattr(call.properties, each.name) for each in fields(call.properties)}
        policy: DeploymentGroupPolicy = PropertySchema.of(DeploymentGroupPolicy).parse(context.update_policy)
        members = {
            name: self._member(given, name, server, context.masked_paths) for name, server in given[SERVERS].items()
        }
        batches = policy.batch_create if context.action == 'CREATE' else policy.rolling_update
        rolling = None if batches is None else BatchPolicy(batches.max_batch_size, 0, batches.pause_time)
        return next_stack(context, lambda: MembersWanted(members, rolling))

    @override
    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """The deployment on any server."""
        name = SERVER
        made = self._member(properties, name, UNKNOWN, masked_paths)
        yield SampleTemplate((), ('resources', name, 'properties'), nested_template({name: made}))

    def _member(self, given: Mapping[str, Any], name: str, server: Any, masked_paths: Iterable[Path]) -> GroupMember:
        properties = {key: value for key, value in given.items() if key != SERVERS}
        return member(
            self.member_type,
            {**properties, SERVER: server},
            masked_paths=[found for path in masked_paths for found in _in_member(path, name)],
        )

    @override
    def is_told_by_members(self, name: str) -> bool:
        """Each."""
        return True

    @override
    def asked_of_members(self, name: str, members: Collection[str]) -> Mapping[str, str]:
        """The same of each deployment, under its name for it."""
        if name.startswith(OF_ONE):
            return super().asked_of_members(name, members)
        return dict.fromkeys(members, OF_EACH.get(name, name))

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """Return the values of all deployments, by the names of their servers.

        :raises FinalFailure: a deployment has no such value.
        """
        members = in_order(call)
        if name in OF_EACH:
            found = by_attribute(members).get(OF_EACH[name], {})
            return {key: found.get(key) for key in members}
        if name.startswith(OF_ONE):
            return super().attribute(call, name)
        return {key: of_member(call, key, (name,)) for key in members}


def _in_member(path: Path, name: str) -> Iterable[Path]:
    """Return the place of a value of the group in the deployment on one server, if it occurs there."""
    if path[:1] != (SERVERS,):
        yield ('properties', *path)
    elif len(path) == 1 or path[1] == name:
        yield ('properties', SERVER)


class StructuredDeploymentGroup(SoftwareDeploymentGroup):
    """Has a map with values of inputs in it done on several servers: a deployment for each."""

    Properties: ClassVar[type[Any]] = properties_of_group(StructuredDeploymentProperties)
    member_type: ClassVar[str] = 'OS::Heat::StructuredDeployment'


class SoftwareDeployments(SoftwareDeploymentGroup):
    """The former name of the group of deployments."""

    support = SupportStatus(
        Status.HIDDEN,
        version='7.0.0',
        message='Please use OS::Heat::SoftwareDeploymentGroup instead.',
        previous=SupportStatus(Status.DEPRECATED, version='2014.2'),
    )


class StructuredDeployments(StructuredDeploymentGroup):
    """The former name of the group of structured deployments."""

    support = SupportStatus(
        Status.HIDDEN,
        version='7.0.0',
        message='Please use OS::Heat::StructuredDeploymentGroup instead.',
        previous=SupportStatus(Status.DEPRECATED, version='2014.2'),
    )
