"""``OS::Heat::SoftwareComponent``: one configuration for each action, kept as one."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.software.configs import (
    InputProperties,
    KeptConfig,
    OutputProperties,
    declared,
)
from convergence.resources.constraints import Length
from convergence.resources.contract import Call
from convergence.resources.schema import prop
from convergence.resources.support import since

GROUP = 'component'
"""The group by which agents, and deployments, know a component."""


@dataclass(frozen=True)
class ComponentConfig:
    """The configuration for some actions."""

    tool: str = prop(description='The tool that understands the configuration.')
    config: str | None = prop(None, description='The script, or other input of the tool.')
    actions: list[str] = prop(
        ['CREATE', 'UPDATE'],
        constraints=[Length(minimum=1)],
        description='The actions: CREATE, UPDATE, SUSPEND, RESUME, DELETE, or others that agents know.',
    )


@dataclass(frozen=True)
class ComponentProperties:
    """See the descriptions of the fields."""

    configs: list[ComponentConfig] = prop(
        constraints=[Length(minimum=1)], description='The configurations, each with its actions.'
    )
    inputs: list[InputProperties] | None = prop(None, description='What all of them take.')
    outputs: list[OutputProperties] | None = prop(None, description='What all of them answer.')
    options: dict[str, Json] | None = prop(None, description='Options for the tools.')

    def __post_init__(self) -> None:
        actions = list(chain.from_iterable(each.actions for each in self.configs))
        if len(set(actions)) < len(actions):
            raise ValueError('Defining more than one configuration for the same action is not allowed.')


@dataclass(frozen=True)
class ComponentAttributes:
    """The attributes of a component."""

    config: dict[str, Json] = attr('All of them as they are kept, as one map.')
    configs: list[Json] = attr('The same as a list.')


class SoftwareComponent(KeptConfig[ComponentProperties]):
    """Stores the configurations of a component for the actions of a deployment."""

    support = since('2014.2')
    Properties = ComponentProperties
    Attributes = ComponentAttributes

    @override
    def group(self, call: Call[ComponentProperties]) -> str:
        """Return the group of components."""
        return GROUP

    @override
    def content(self, call: Call[ComponentProperties]) -> dict[str, Json]:
        """All of them, as one."""
        properties = call.properties
        configs: list[Json] = [
            {'actions': list(each.actions), 'config': each.config, 'tool': each.tool} for each in properties.configs
        ]
        return {
            'config': {'configs': configs},
            'inputs': [declared(each) for each in properties.inputs or ()],
            'outputs': [declared(each) for each in properties.outputs or ()],
            'options': properties.options or {},
        }

    @override
    def attribute(self, call: Call[ComponentProperties], name: str) -> Json:
        """Return the stored configurations; None if a user has removed them."""
        kept = super().attribute(call, name)
        if name == 'config':
            return kept
        return kept.get('configs') if isinstance(kept, dict) else None
