"""A template as a resource type: its parameters are the properties, its outputs the attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.errors import Problem, RequestLimitExceeded, StackValidationFailed
from convergence.resources.attributes import attr, attribute_names
from convergence.resources.contract import Answer, Call, FinalFailure, ResourceType
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.shapes import FieldDeclaration, Kind
from convergence.template import BARE, Require, StackIdentity, analyse
from convergence.template.values import ParameterType

TYPES: Mapping[ParameterType, Any] = {
    ParameterType.STRING: str,
    ParameterType.NUMBER: float,
    ParameterType.BOOLEAN: bool,
    ParameterType.COMMA_DELIMITED_LIST: list,
    ParameterType.JSON: Json,
}
"""The type of a property that stands for a parameter. JSON may be a map or a list."""


@dataclass(frozen=True)
class TemplateAttributes:
    """Base of the attributes of a template: its outputs, all ``outputs``, and the values of its resources."""

    also: ClassVar[tuple[str, ...]] = ('outputs',)
    beginnings: ClassVar[tuple[str, ...]] = ('resource.',)


class TemplateType(ResourceType[Any]):
    """The interface of a template, to check its users. `convergence.resources.nested.ProviderType` acts.

    :param defaults: values of parameters that need not be given.
    :raises StackValidationFailed: the text is no template.
    """

    Attributes = TemplateAttributes

    def __init__(self, path: str, text: str, defaults: Mapping[str, Json]) -> None:
        self.path = path
        compiled = analyse(
            text,
            identity=StackIdentity('', '', ''),
            environment={'parameter_defaults': defaults} if defaults else None,
            installation=BARE,
            require_parameters=Require.NONE,
        )
        self.__doc__ = compiled.description
        declared = [parameter for parameter in compiled.parameters.values() if not parameter.pseudo]
        # Names of parameters are free; those of fields are not.
        properties = [
            (f'property_{number}', TYPES[parameter.type], _property(parameter))
            for number, parameter in enumerate(declared)
        ]
        self.Properties = make_dataclass('Properties', properties, frozen=True)  # type: ignore[misc]
        outputs = [
            (f'attribute_{number}', Json, attr(output.description, name=output.name))
            for number, output in enumerate(compiled.outputs.values())
        ]
        self.Attributes = make_dataclass(  # type: ignore[misc, assignment]
            'Attributes', outputs, bases=(TemplateAttributes,), frozen=True
        )

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Refuse: this one only checks."""
        raise FinalFailure(f'{call.name}: not made by the type that checks it')


def _property(parameter: Any) -> FieldDeclaration:
    options: dict[str, Any] = {
        'name': parameter.name,
        'description': parameter.description,
        'constraints': parameter.constraints,
        'immutable': parameter.immutable,
        'update_allowed': not parameter.immutable,
    }
    return prop(parameter.default, **options) if parameter.has_value else prop(**options)


@dataclass
class Templates:
    """The templates that are used as types, each read once. An unreadable one is reported with its first resource.

    :param texts: by path.
    :param defaults: values of parameters that need not be given: the ``parameter_defaults`` of the environment.
    """

    texts: Mapping[str, str]
    defaults: Mapping[str, Json] = field(default_factory=dict)
    _read: dict[str, TemplateType | str] = field(default_factory=dict)

    def get(self, path: str) -> TemplateType | None:
        """The type that a template is; None if it is not there, or none; see `problem`."""
        if path not in self.texts:
            return None
        if path not in self._read:
            try:
                self._read[path] = TemplateType(path, self.texts[path], self.defaults)
            except (StackValidationFailed, RequestLimitExceeded) as error:
                self._read[path] = str(error)
        found = self._read[path]
        return found if isinstance(found, TemplateType) else None

    def problem(self, path: str) -> str | None:
        """Return the reason why the text is no template; None if it is one, or does not exist."""
        found = self._read.get(path)
        return f'The template "{path}" cannot be read: {found}' if isinstance(found, str) else None


def facade_problems(name: str, facade: ResourceType[Any], provider: ResourceType[Any]) -> list[Problem]:
    """Return the reasons why a template cannot replace a type: users of the type rely on its properties and
    attributes.

    :param name: of the type that it replaces.
    """
    wanted, offered = PropertySchema.of(facade.Properties), PropertySchema.of(provider.Properties)
    messages = []
    for key, declared in wanted.properties.items():
        other = offered.properties.get(key)
        if other is None:
            if declared.required:
                messages.append(f'Required property {key} for facade {name} missing in provider')
        elif _family(declared.shape.kind) != _family(other.shape.kind) and Kind.ANY not in (
            declared.shape.kind,
            other.shape.kind,
        ):
            messages.append(
                f'Property {key} type mismatch between facade {name} ({declared.shape.kind}) '
                f'and provider ({other.shape.kind})'
            )
    for key, other in offered.properties.items():
        if other.required and key not in wanted.properties and wanted.rest is None:
            messages.append(f'Provider requires property {key} unknown in facade {name}')
    there = attribute_names(provider)
    missing = (key for key in attribute_names(facade) if key not in there)
    messages += [f'Attribute {key} for facade {name} missing in provider' for key in missing]
    return [Problem(message) for message in messages]


def _family(kind: Kind) -> Kind:
    return Kind.NUMBER if kind is Kind.INTEGER else kind
