"""Desired stacks of scenarios, and their templates in the template language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from convergence.core.model import Json
from convergence_simulator.cloud.groups import GROUPS
from convergence_simulator.cloud.sorts import SORTS
from convergence_simulator.cloud.things import Thing
from convergence_simulator.cloud.trees import STACK, TEMPLATE


@dataclass(frozen=True, slots=True)
class GetRes:
    """The reference id of another resource."""

    target_name: str


@dataclass(frozen=True, slots=True)
class GetAtt:
    """An attribute of another resource; attributes mirror properties."""

    target_name: str
    attr: str


class RsrcDef:
    """The desired state of one resource.

    :param kind: one of `convergence_simulator.cloud.sorts.SORTS`, or of `convergence_simulator.cloud.groups.GROUPS`.
    :param deletion_policy: ``Delete``, ``Retain`` or ``Snapshot``.
    :param external_id: id of an object that the stack did not create.
    :param condition: False if the template contains the resource but the condition excludes it.
    :param nested: template of a nested stack.
    :param patience: ``time_limits`` in seconds, and ``retry``, as in `convergence.template.time_limits`.
    :param update_policy: of a group.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        depends_on: Sequence[str] = (),
        *,
        kind: str = Thing.__name__,
        deletion_policy: str | None = None,
        external_id: str | None = None,
        condition: bool | None = None,
        patience: Mapping[str, Any] | None = None,
        nested: Template | None = None,
        update_policy: Mapping[str, Any] | None = None,
    ) -> None:
        self.nested = nested
        self.properties = dict(properties)
        self.depends_on = list(depends_on)
        self.kind = kind
        self.deletion_policy = deletion_policy
        self.external_id = external_id
        self.condition = condition
        self.patience = dict(patience) if patience is not None else None
        self.update_policy = dict(update_policy) if update_policy is not None else None

    @property
    def is_thing(self) -> bool:
        """True if its object is in the simulated cloud; false for stacks, groups and the policies that scale groups."""
        return self.nested is None and self.kind not in GROUPS

    def document(self) -> dict[str, Json]:
        """Return the resource in the template language."""
        properties: dict[str, Json] = {name: _encode(value) for name, value in self.properties.items()}
        if self.nested is not None:
            properties[TEMPLATE] = json.dumps(self.nested.document(), sort_keys=True)
        document: dict[str, Json] = {
            'type': type_name_of(self.kind) if self.nested is None else STACK,
            'properties': properties,
            'depends_on': list(self.depends_on),
        }
        if self.deletion_policy is not None:
            document['deletion_policy'] = self.deletion_policy
        if self.external_id is not None:
            document['external_id'] = self.external_id
        if self.condition is not None:
            document['condition'] = _CONDITIONS[self.condition]
        if self.patience is not None:
            document['metadata'] = {'convergence': _encode(self.patience)}
        if self.update_policy is not None:
            document['update_policy'] = _encode(self.update_policy)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RsrcDef:
        """Return the resource from which `document` was made."""
        properties, nested = dict(document.get('properties', {})), None
        if document['type'] == STACK:
            nested = Template.from_document(json.loads(properties.pop(TEMPLATE)))
        return cls(
            _decode(properties),
            document.get('depends_on', ()),
            nested=nested,
            kind=document['type'].rpartition('::')[2] if nested is None else Thing.__name__,
            deletion_policy=document.get('deletion_policy'),
            external_id=document.get('external_id'),
            condition=None if 'condition' not in document else document['condition'] == _CONDITIONS[True],
            patience=document.get('metadata', {}).get('convergence'),
            update_policy=document.get('update_policy'),
        )

    @override
    def __repr__(self) -> str:
        named = ('kind', 'deletion_policy', 'external_id', 'condition', 'patience', 'nested', 'update_policy')
        usual = RsrcDef({})
        given = [f'{name}={getattr(self, name)!r}' for name in named if getattr(self, name) != getattr(usual, name)]
        return f'RsrcDef({", ".join([repr(self.properties), repr(self.depends_on), *given])})'


def type_name_of(kind: str) -> str:
    """Return the resource type for the short name that scenarios use."""
    return GROUPS[kind][0] if kind in GROUPS else SORTS[kind].type_name


_CONDITIONS = {True: 'always', False: 'never'}


def _encode(value: Any) -> Json:
    if isinstance(value, GetRes):
        return {'get_resource': value.target_name}
    if isinstance(value, GetAtt):
        return {'get_attr': [value.target_name, value.attr]}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    encoded: Json = value
    return encoded


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if 'get_resource' in value:
            return GetRes(value['get_resource'])
        if 'get_attr' in value:
            return GetAtt(*value['get_attr'])
        return {key: _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value


class Template:
    """The desired state of a stack.

    :param hooks: hooks at which operations pause until a user clears them, by resource: ``pre-create`` and others.
    :param restricted: forbidden actions by resource: ``update``, ``replace``.
    :param drift: reaction to drift by resource: ``ignore``, ``report``, ``repair``; `drift_policy` is the default of
        the stack, from the operation with this template on.
    :ivar written: all resources in the text; `resources`: those whose condition is true.
    """

    def __init__(
        self,
        resources: Mapping[str, RsrcDef] | None = None,
        *,
        hooks: Mapping[str, str] | None = None,
        restricted: Mapping[str, str] | None = None,
        drift: Mapping[str, str] | None = None,
        drift_policy: str | None = None,
    ) -> None:
        self.written = dict(resources or {})
        self.resources = {name: wanted for name, wanted in self.written.items() if wanted.condition is not False}
        self.hooks = dict(hooks or {})
        self.restricted = dict(restricted or {})
        self.drift = dict(drift or {})
        self.drift_policy = drift_policy

    @classmethod
    def from_document(cls, document: Mapping[str, Any], environment: Mapping[str, Any] | None = None) -> Template:
        """Return the template from which `document` was made."""
        rules = (environment or {}).get('resource_registry', {}).get('resources', {})
        return cls(
            {name: RsrcDef.from_document(resource) for name, resource in document['resources'].items()},
            hooks={name: rule['hooks'] for name, rule in rules.items() if 'hooks' in rule},
            restricted={
                name: rule['restricted_actions'] for name, rule in rules.items() if 'restricted_actions' in rule
            },
            drift={name: rule['drift_policy'] for name, rule in rules.items() if 'drift_policy' in rule},
        )

    def document(self) -> dict[str, Json]:
        """Return the template in the template language."""
        resources: dict[str, Json] = {name: wanted.document() for name, wanted in self.written.items()}
        document: dict[str, Json] = {'heat_template_version': '2018-08-31', 'resources': resources}
        if any(wanted.condition is not None for wanted in self.written.values()):
            document['conditions'] = {
                name: {'equals': ['yes', 'yes' if wanted else 'no']} for wanted, name in _CONDITIONS.items()
            }
        return document

    def environment(self) -> dict[str, Json]:
        """Return the environment that belongs to the template."""
        rules: dict[str, Json] = {}
        for name in sorted({*self.hooks, *self.restricted, *self.drift}):
            said = {
                'hooks': self.hooks.get(name),
                'restricted_actions': self.restricted.get(name),
                'drift_policy': self.drift.get(name),
            }
            rules[name] = {key: value for key, value in said.items() if value is not None}
        return {'resource_registry': {'resources': rules}} if rules else {}

    @override
    def __repr__(self) -> str:
        named = ('hooks', 'restricted', 'drift', 'drift_policy')
        rules = [f'{name}={value!r}' for name in named if (value := getattr(self, name))]
        return f'Template({", ".join([repr(self.written), *rules])})'
