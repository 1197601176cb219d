"""Describes a class of Heat as a resource type of Convergence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from convergence.core.model import Json
from convergence.resources.constraints import CustomConstraint
from convergence.resources.contract import ResourceType
from convergence.resources.declaring import attributes_class, properties_class, support_of
from convergence.resources.manifest import entry_of
from convergence.resources.translation import Append, Drop, Rename, Rule

STACKS = 'its objects are stacks of Heat, and it is not among the groups of Convergence'
USERS = 'it needs a user in a domain of Heat, which Convergence does not have'


def entry(name: str, plugin: type[Any]) -> dict[str, Json]:
    """Return the manifest entry of a class.

    :param name: of the type in templates.
    :param plugin: the class of Heat.
    :raises TypeError: it declares something that has no form here.
    """
    from convergence_heat.kind import heat_type

    written = entry_of(heat_type(name, plugin))
    reason = _withheld(name, plugin)
    return written if reason is None else {**written, 'withheld': reason}


def described(
    name: str, plugin: type[Any], bases: tuple[type[Any], ...] = (ResourceType,), more: Mapping[str, Any] | None = None
) -> ResourceType[Any]:
    """A resource type that says what a class says, and does what its bases do.

    :param more: what else its class has.
    """
    last = name.rpartition('::')[2]
    body = {
        '__doc__': plugin.__doc__,
        'Properties': properties_class(last, _schema(plugin.properties_schema), _rules(plugin), named=_left_to_heat),
        'Attributes': attributes_class(last, _attributes(name, plugin)),
        'UpdatePolicy': _update_policy(last, plugin),
        'support': support_of(plugin.support_status),
        'reference_of': (),
    }
    kind: ResourceType[Any] = type(last, bases, body | dict(more or {}))()
    return kind


def _withheld(name: str, plugin: type[Any]) -> str | None:
    from heat.engine.resources.stack_resource import StackResource
    from heat.engine.resources.stack_user import StackUser

    if issubclass(plugin, StackResource):
        return STACKS
    # A server has a user only for the configurations of Heat's own agents.
    return USERS if issubclass(plugin, StackUser) and name != 'OS::Nova::Server' else None


def _schema(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: _property(entry) for name, entry in schema.items()}


def _property(entry: Any) -> dict[str, Any]:
    told = {
        'type': entry.type,
        'required': entry.required,
        'default': entry.default,
        'description': entry.description,
        'update_allowed': entry.update_allowed,
        'immutable': entry.immutable,
        'constraints': [dict(constraint) for constraint in entry.constraints or ()],
        'support_status': entry.support_status,
    }
    # As in Heat, every value that is not required may be null, items of lists included.
    told['nullable'] = not entry.required
    if entry.schema:
        told['schema'] = _schema(entry.schema)
    return told


_ASKS_MORE = frozenset(
    {
        ('OS::Neutron::Net', 'segments'),
        ('OS::Neutron::Port', 'network'),
        ('OS::Neutron::Port', 'subnets'),
        # Its ports, their networks and subnets, and all floating IPs; networks and first_address are enough.
        ('OS::Nova::Server', 'addresses'),
        ('OS::Nova::Server', 'console_urls'),
        ('OS::Nova::Server', 'tags'),
    }
)
"""Attributes for which a class requests more than the object itself: read only if a template uses them."""


def _attributes(type_name: str, plugin: type[Any]) -> dict[str, dict[str, Any]]:
    """Return the attributes of a class and those of all classes. One reveals only the property of its name."""
    declared = {**plugin.base_attributes_schema, **plugin.attributes_schema}
    told = {name: _attribute(name, entry) for name, entry in declared.items()}
    return {name: {**each, 'dear': True} if (type_name, name) in _ASKS_MORE else each for name, each in told.items()}


def _attribute(name: str, entry: Any) -> dict[str, Any]:
    told = {'type': entry.type, 'description': entry.description, 'of': (name,)}
    # Heat requests such an attribute at each use: it is read only if a template uses it, and each check reads it
    # again.
    return {**told, 'dear': True, 'live': True} if entry.cache_mode == entry.CACHE_NONE else told


def _update_policy(last: str, plugin: type[Any]) -> type[Any] | None:
    schema = getattr(plugin, 'update_policy_schema', None)
    return properties_class(f'{last}Policy', _schema(schema), named=_left_to_heat) if schema else None


def _left_to_heat(name: str, description: str) -> CustomConstraint:
    """Return a constraint that queries a service: the class checks it when it acts."""
    return CustomConstraint(name, description, lambda value: None)


class _Nobody:
    """Stands for a client while rules are read: it accepts every name and makes no requests."""

    def __getattr__(self, name: str) -> str:
        return name


class _NothingGiven(dict[str, None]):
    """Properties of which none is given."""

    def __missing__(self, name: str) -> None:
        return None


def _rules(plugin: type[Any]) -> list[Rule]:
    """The translation rules of a class that need no service. Names that are resolved to ids are left to the class."""
    one: Any = object.__new__(plugin)
    one.name, one.properties, one.client_plugin = 'one', _NothingGiven(), lambda name=None: _Nobody()
    return [rule for told in plugin.translation_rules(one, one.properties) or () for rule in _rule(told)]


def _rule(told: Any) -> Iterator[Rule]:
    if told.rule == told.RESOLVE:
        return
    path = tuple(told.translation_path)
    if told.rule == told.DELETE:
        yield Drop(path)
        return
    # Heat names the new place; we name the old one, and what stands beside it.
    before = (*path[:-1], told.value_name) if told.value_name else tuple(told.value_path or ())
    if not before or before[:-1] != path[:-1]:
        raise TypeError(f'{rule_in_words(told)} leads from one map to another')
    yield (Rename if told.rule == told.REPLACE else Append)(before, path[-1])


def rule_in_words(told: Any) -> str:
    """A translation rule in words."""
    return f'the rule {told.rule} of {".".join(told.translation_path)} from {told.value_name or told.value_path}'
