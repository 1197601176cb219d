"""``OS::Heat::SoftwareConfig``, ``StructuredConfig`` and ``CloudConfig``: configurations that are kept for servers.

A configuration never changes. So no property is changed in place: a new configuration takes the place of the old one,
which is removed when nothing needs it any more.
"""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import yaml
from typing_extensions import override

from convergence.core.model import Json
from convergence.core.software import DEFAULT_GROUP
from convergence.resources.attributes import attr
from convergence.resources.builtin.waiting import short_token
from convergence.resources.calls import P
from convergence.resources.constraints import AllowedValues
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    ObjectNotFound,
    Observed,
    ResourceType,
)
from convergence.resources.schema import prop
from convergence.resources.support import since

_IDS = uuid.UUID('6f4a8d3c-52c1-4d5e-9b0e-7a0f0c6f2b11')
_LONGEST_NAME = 255
VALUE_TYPES = (AllowedValues(('String', 'Number', 'CommaDelimitedList', 'Json', 'Boolean')),)


def made_id(*parts: str) -> str:
    """Return the id of a row made for these parts. The same parts give the same id, so a repeated creation adds
    nothing.
    """
    return str(uuid.uuid5(_IDS, '\0'.join(parts)))


def shown_name(call: Call[Any]) -> str:
    """A readable name that no other resource has, short enough to be kept."""
    end = f'-{short_token(call)}'
    return f'{call.stack_name}-{call.name}'[: _LONGEST_NAME - len(end)] + end


@dataclass(frozen=True)
class InputProperties:
    """An input of a configuration."""

    name: str = prop(description='Name of the input.')
    description: str | None = prop(None, description='What it is for.')
    type: str = prop('String', constraints=VALUE_TYPES, description='Type of its value.')
    default: Json = prop(None, description='Its value where a deployment gives none.')
    replace_on_change: bool = prop(
        False, description='A deployment is replaced, not updated, when it gives the input another value.'
    )


@dataclass(frozen=True)
class OutputProperties:
    """An output of a configuration."""

    name: str = prop(description='Name of the output.')
    description: str | None = prop(None, description='Meaning of the value.')
    type: str = prop('String', constraints=VALUE_TYPES, description='Type of its value.')
    error_output: bool = prop(False, description='A deployment has failed where this output has a value.')


def declared(each: InputProperties | OutputProperties) -> dict[str, Json]:
    """Return an input or output as it is stored."""
    told = {name: value for name, value in asdict(each).items() if value is not None}
    if told.get('replace_on_change') is False:
        del told['replace_on_change']
    return told


@dataclass(frozen=True)
class _CommonProperties:
    group: str = prop(DEFAULT_GROUP, description='Which tool understands it: agents hand it to the tool of that name.')
    options: dict[str, Json] | None = prop(None, description='Options for that tool.')
    inputs: list[InputProperties] | None = prop(None, description='What it takes.')
    outputs: list[OutputProperties] | None = prop(None, description='What it answers.')


@dataclass(frozen=True)
class SoftwareConfigProperties(_CommonProperties):
    """See the descriptions of the fields."""

    config: str | None = prop(None, description='The script, or other input of the tool.')


@dataclass(frozen=True)
class StructuredConfigProperties(_CommonProperties):
    """See the descriptions of the fields."""

    config: dict[str, Json] | None = prop(None, description='What the tool takes, as a map.')


@dataclass(frozen=True)
class CloudConfigProperties:
    """See the descriptions of the fields."""

    cloud_config: dict[str, Json] | None = prop(None, description='What cloud-init takes, as a map.')


@dataclass(frozen=True)
class ConfigAttributes:
    """The attributes of a configuration."""

    config: str = attr('The stored configuration.')


@dataclass(frozen=True)
class StructuredConfigAttributes:
    """The attributes of a configuration that is a map."""

    config: dict[str, Json] = attr('The stored configuration.')


class KeptConfig(ResourceType[P]):
    """Base of the types that keep a configuration; `content` says what."""

    Attributes: ClassVar[type[Any] | None] = ConfigAttributes
    token_enforced = True  # Its id is made of the token.
    create_ambiguity_s = 0.0

    def group(self, call: Call[P]) -> str:
        """The tool that understands it."""
        return DEFAULT_GROUP

    def content(self, call: Call[P]) -> dict[str, Json]:
        """Return the stored content: ``config``, and ``inputs``, ``outputs`` and ``options`` if there are any."""
        raise NotImplementedError

    @override
    def create(self, call: Call[P]) -> Answer:
        """Keep the configuration."""
        content: dict[str, Json] = {'config': '', 'inputs': [], 'outputs': [], 'options': {}, **self.content(call)}
        config_id = made_id(call.token)
        call.software.keep_config(config_id, shown_name(call), self.group(call), content)
        return Done(config_id)

    @override
    def delete(self, call: Call[P]) -> Answer:
        """Remove it.

        :raises FinalFailure: a deployment has it that no resource has made.
        """
        config_id = call.physical_id or made_id(call.token)
        if not call.software.remove_config(config_id):
            raise FinalFailure(f'Software config with id {config_id} can not be deleted as it is referenced.')
        return Done()

    @override
    def observe(self, call: Call[P]) -> Observed | None:
        """It is as it was made, or it is gone."""
        if call.physical_id is None or call.software.config(call.physical_id) is None:
            raise ObjectNotFound(f'Software config with id {call.physical_id} not found')
        return Observed()

    @override
    def attribute(self, call: Call[P], name: str) -> Json:
        """Return the stored configuration; None if a user has removed it."""
        kept = call.software.config(call.physical_id or '')
        return kept.content.get('config') if kept is not None else None


class _CommonConfig(KeptConfig[P]):
    @override
    def group(self, call: Call[Any]) -> str:
        """As the template says."""
        group: str = call.properties.group
        return group

    @override
    def content(self, call: Call[Any]) -> dict[str, Json]:
        """Everything that the template says."""
        properties = call.properties
        return {
            'config': properties.config if properties.config is not None else '',
            'inputs': [declared(each) for each in properties.inputs or ()],
            'outputs': [declared(each) for each in properties.outputs or ()],
            'options': properties.options or {},
        }


class SoftwareConfigType(_CommonConfig[SoftwareConfigProperties]):
    """Keeps a configuration, a script for example, for servers."""

    support = since('2014.1')
    Properties = SoftwareConfigProperties


class StructuredConfigType(_CommonConfig[StructuredConfigProperties]):
    """Keeps a configuration that is a map, in which a structured deployment puts values."""

    support = since('2014.1')
    Properties = StructuredConfigProperties
    Attributes = StructuredConfigAttributes


class CloudConfigType(KeptConfig[CloudConfigProperties]):
    """Keeps a configuration for cloud-init, for the user data of a server or a part of them."""

    support = since('2014.1')
    Properties = CloudConfigProperties

    @override
    def content(self, call: Call[CloudConfigProperties]) -> dict[str, Json]:
        """Return the content for cloud-init."""
        return {'config': f'#cloud-config\n{yaml.safe_dump(call.properties.cloud_config)}'}
