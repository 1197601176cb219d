"""Makes the dataclasses of a resource type from schemas in the field's established style.

Such a schema maps the name of a property or attribute to its entry, a mapping or an object with attributes: ``type``,
``required``, ``default``, ``update_allowed``, ``immutable``, ``description``, ``constraints``, ``schema`` (of the
inner values), ``support_status``, and two extensions, ``secret`` and ``nullable``. The inverse, for properties, is
`convergence.resources.schema.PropertySchema.describe`.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import make_dataclass
from typing import Any, TypeAlias

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import (
    AllowedPattern,
    AllowedValues,
    Constraint,
    CustomConstraint,
    Length,
    Modulo,
    Range,
    custom,
)
from convergence.resources.schema import prop, remaining, secret
from convergence.resources.shapes import Annotation, FieldDeclaration
from convergence.resources.support import SUPPORTED, Status, SupportStatus
from convergence.resources.translation import Rule

Named: TypeAlias = Callable[[str, str], CustomConstraint]
"""Makes a custom constraint from its name and its error text."""

_TYPES: dict[str, Any] = {
    'string': str,
    'integer': int,
    'number': float,
    'boolean': bool,
    'list': list,
    'map': dict,
    'any': Json,
}


def properties_class(
    name: str, schema: Mapping[str, Any], rules: Sequence[Rule] = (), *, named: Named = custom, rest: str | None = None
) -> type[Any]:
    """A dataclass of properties.

    :param name: of what it describes; the class is called after it.
    :param rules: what names of the past mean.
    :param named: makes its custom constraints.
    :param rest: the description of the field that takes all other properties; None: others are refused.
    :raises TypeError: the schema has a type or a constraint that is not known.
    """
    entries = [
        (_identifier(key), _annotation(entry, named), _declared(key, entry, named)) for key, entry in schema.items()
    ]
    if rest is not None:
        entries.append(('remaining_properties', dict[str, Json], remaining(description=rest)))
    return make_dataclass(f'{name}Properties', entries, frozen=True, namespace={'TRANSLATIONS': tuple(rules)})


def attributes_class(name: str, schema: Mapping[str, Any]) -> type[Any]:
    """A dataclass of attributes. An entry may be nothing but the description.

    An entry may say ``of``, ``secret``, ``dear`` and ``live`` as `convergence.resources.attributes.attr` does.

    :raises TypeError: the schema has a type that is not known.
    """
    entries = [(_identifier(key), *_attribute(key, entry)) for key, entry in schema.items()]
    return make_dataclass(f'{name}Attributes', entries, frozen=True)


def support_of(told: Any) -> SupportStatus:
    """Return the support status of a plugin, given as a mapping or an object; SUPPORTED if it has none."""
    if told is None:
        return SUPPORTED
    previous = _told(told, 'previous_status', None)
    return SupportStatus(
        Status(str(_told(told, 'status', Status.SUPPORTED))),
        _told(told, 'version', None),
        _told(told, 'message', None),
        None if previous is None else support_of(previous),
    )


def _attribute(key: str, entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, str):
        return Json, attr(entry, name=key)
    options = {option: _told(entry, option, None) for option in ('of', 'secret', 'dear', 'live')}
    options = {option: value for option, value in options.items() if value is not None}
    return _annotation(entry, custom), attr(str(_told(entry, 'description', '') or ''), name=key, **options)


def _declared(key: str, entry: Any, named: Named) -> FieldDeclaration:
    options: dict[str, Any] = {
        'description': str(_told(entry, 'description', '') or ''),
        'update_allowed': bool(_told(entry, 'update_allowed', False)),
        'immutable': bool(_told(entry, 'immutable', False)),
        'constraints': [_constraint(key, one, named) for one in _told(entry, 'constraints', ()) or ()],
        'name': key,
        'support': support_of(_told(entry, 'support_status', None)),
    }
    if not _told(entry, 'required', False):
        options['default'] = _told(entry, 'default', None)
    declared = prop(**options)
    return secret(declared) if _told(entry, 'secret', False) else declared


def _annotation(entry: Any, named: Named) -> Annotation:
    kind = str(_told(entry, 'type', None) or 'any').lower()
    if kind not in _TYPES:
        raise TypeError(f'the schema has the unknown type {kind}; known: {", ".join(_TYPES)}')
    annotation = _within(kind, _told(entry, 'schema', None), named)
    # `Json` admits None by itself.
    return annotation | None if _told(entry, 'nullable', False) and kind != 'any' else annotation


def _within(kind: str, inner: Any, named: Named) -> Annotation:
    if kind == 'map' and isinstance(inner, Mapping) and inner and '*' not in inner:
        return properties_class('Nested', inner, named=named)
    if kind in ('list', 'map') and inner is not None:
        item = inner['*'] if isinstance(inner, Mapping) and '*' in inner else inner
        wanted = _annotation(item, named)
        return list[wanted] if kind == 'list' else dict[str, wanted]  # type: ignore[valid-type]
    return _TYPES[kind]


def _constraint(key: str, entry: Any, named: Named) -> Constraint:
    """A constraint, given as one of ours or as the field's JSON, for example ``{'range': {'min': 1}}``."""
    if not isinstance(entry, Mapping):
        if callable(getattr(entry, 'problem', None)):
            constraint: Constraint = entry
            return constraint
        raise TypeError(f'{key}: {entry!r} is no constraint')
    description = str(entry.get('description', ''))
    for name, bounded in (('length', Length), ('range', Range)):
        if name in entry:
            return bounded(entry[name].get('min'), entry[name].get('max'), description)
    if 'allowed_values' in entry:
        return AllowedValues(tuple(entry['allowed_values']), description)
    if 'allowed_pattern' in entry:
        return AllowedPattern(entry['allowed_pattern'], description)
    if 'modulo' in entry:
        return Modulo(entry['modulo']['step'], entry['modulo']['offset'], description)
    if 'custom_constraint' in entry:
        return named(entry['custom_constraint'], description)
    raise TypeError(
        f'{key}: a constraint is one of length, range, modulo, allowed_values, allowed_pattern, custom_constraint'
    )


def _told(entry: Any, name: str, default: Any) -> Any:
    """Return an entry of a schema that is a mapping or an object with attributes."""
    return entry.get(name, default) if isinstance(entry, Mapping) else getattr(entry, name, default)


def _identifier(name: str) -> str:
    text = ''.join(character if character.isalnum() else '_' for character in name)
    return f'{text}_' if keyword.iskeyword(text) or not text.isidentifier() else text
