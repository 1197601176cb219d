"""Security groups with their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from convergence_openstack.declared.ports import SecurityGroupAttributes, SecurityGroupProperties
from convergence_openstack.kind import Shown, of_network
from convergence_openstack.lookups import SECURITY_GROUP, Sort
from convergence_openstack.networks import NeutronType
from convergence_openstack.task import Task

EVERYTHING_OUT = ({'direction': 'egress', 'ethertype': 'IPv4'}, {'direction': 'egress', 'ethertype': 'IPv6'})
"""The rules that Neutron gives to each group, and that stay where the template has none of that direction."""

_TELLING = (
    'direction', 'ethertype', 'protocol', 'port_range_min', 'port_range_max', 'remote_group_id', 'remote_ip_prefix'
)  # fmt: skip

Rule = Mapping[str, Any]


class SecurityGroup(NeutronType):
    """A security group of Neutron."""

    Properties, Attributes = SecurityGroupProperties, SecurityGroupAttributes
    collection = of_network('security-groups', 'security_group')
    sorts: ClassVar[Mapping[str, Sort]] = {'rules.remote_group_id': SECURITY_GROUP}
    sent: ClassVar[Mapping[str, str]] = {'name': 'name', 'description': 'description', 'stateful': 'stateful'}
    later: ClassVar[tuple[str, ...]] = ('rules',)
    live: ClassVar[tuple[str, ...]] = ('name', 'description')

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Neutron has that one already, in each project."""
        return (
            'there is a group of the name "default" in each project; name it otherwise'
            if (given.get('name') == 'default')
            else None
        )

    @override
    def cleared(self, task: Task, name: str) -> Any:
        """Return the value by which Neutron means "not given"."""
        return {'description': '', 'stateful': True}.get(name, super().cleared(task, name))

    @override
    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Remove the rules that are not desired, and make the missing ones, all at once."""
        there = (shown or self.shown(task))['security_group_rules']
        wanted = [_worded(rule, task.object_id) for rule in task.given['rules'] or () if rule]
        if not any(rule['direction'] == 'egress' for rule in wanted):
            wanted += [{**rule, 'security_group_id': task.object_id} for rule in EVERYTHING_OUT]
        wanted_by_key = {_key(rule): rule for rule in wanted}
        for rule in there:
            if _key(rule) not in wanted_by_key:
                task.cloud.remove('network', f'/security-group-rules/{rule["id"]}')
        known = {_key(rule) for rule in there}
        missing = [rule for key, rule in wanted_by_key.items() if key not in known]
        if missing:
            task.cloud.ask('network', 'POST', '/security-group-rules', {'security_group_rules': missing})


def _worded(rule: Rule, group: str) -> dict[str, Any]:
    """A rule in the words of the API."""
    told = {key: value for key, value in rule.items() if value is not None and key != 'remote_mode'}
    if rule.get('remote_mode') == 'remote_group_id':
        told = {key: value for key, value in told.items() if key != 'remote_ip_prefix'}
        told.setdefault('remote_group_id', group)
    else:
        told.pop('remote_group_id', None)
    return told | {'security_group_id': group}


def _key(rule: Rule) -> tuple[str, ...]:
    """Return the fields by which rules differ."""
    return tuple(str(rule[name]).lower() if rule.get(name) is not None else '' for name in _TELLING)
