"""The attributes of a resource type, which templates read with ``get_attr``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

from convergence.core.model import Json
from convergence.resources.contract import Call, ResourceType
from convergence.resources.shapes import FieldDeclaration, Kind, annotations_of, shape_of

_DESCRIPTION = 'convergence.attribute.description'
_NAME = 'convergence.attribute.name'
_OF = 'convergence.attribute.of'
_SECRET = 'convergence.attribute.secret'
_DEAR = 'convergence.attribute.dear'
_LIVE = 'convergence.attribute.live'

SHOW = 'show'
"""The attribute that every type has: the object as its service describes it, null where no service does."""

ABOUT_SHOW: Json = {'type': 'map', 'description': 'The object as its service describes it; null where no service does.'}
"""Description of the attribute `SHOW` in the list of a type's attributes."""


@dataclass(frozen=True)
class AnyAttribute:
    """Use as `Attributes` of a type that answers to every attribute name."""


def attr(
    description: str = '',
    *,
    name: str | None = None,
    of: Sequence[str] | None = None,
    secret: bool = False,
    dear: bool = False,
    live: bool = False,
) -> FieldDeclaration:
    """Declare an attribute with a description: the right-hand side of a field of the `Attributes` dataclass.

    :param name: the name in templates, if it differs from the field's name.
    :param of: names of the properties that the value of the attribute may reveal. The attribute is masked if one of
        them is hidden. None: it may reveal any property.
    :param secret: True to mask the attribute, unless an output of the stack gives it.
    :param dear: True if a read is slow or costs something. Such an attribute is read only if a template uses it. The
        others are read after each action, for users who show the resource.
    :param live: True if the value changes although no action changes the resource. Each check of the stack reads it
        again if it was read before, and each request that shows the resource reads the present value.
    """
    told = None if of is None else tuple(of)
    metadata = {_DESCRIPTION: description, _NAME: name, _OF: told, _SECRET: secret, _DEAR: dear, _LIVE: live}
    return field(kw_only=True, metadata=metadata)


def attribute_names(kind: ResourceType[Any]) -> tuple[str, ...]:
    """Return the names of a type's attributes, in the order of their declaration.

    Empty for a type without attributes, and for one that answers to every name. ``get_attr: [resource]`` (all
    attributes, with the key ``''``) stands for this list.
    """
    declared = kind.Attributes
    if declared is None or issubclass(declared, AnyAttribute):
        return ()
    return tuple(entry.metadata.get(_NAME) or entry.name for entry in fields(declared))


def has_attribute(kind: ResourceType[Any], name: str) -> bool:
    """Return True if a template may read the attribute `name`. Every type allows ``''``, all attributes."""
    declared = kind.Attributes
    if declared is not None and issubclass(declared, AnyAttribute):
        return True
    if name in getattr(declared, 'also', ()) or name.startswith(getattr(declared, 'beginnings', ()) or '\0'):
        return True
    return name in ('', SHOW) or name in attribute_names(kind)


def read_attribute(kind: ResourceType[Any], call: Call[Any], name: str) -> Json:
    """The value of one attribute; `has_attribute` it has."""
    if name == SHOW and name not in attribute_names(kind) and not issubclass(kind.Attributes or type, AnyAttribute):
        return None
    return kind.attribute(call, name)


def attributes_to_show(kind: ResourceType[Any]) -> tuple[str, ...]:
    """Return the names of the attributes that are read after each action, also if no template uses them."""
    names = attribute_names(kind)
    return tuple(name for name in names if not is_secret(kind, name) and not _is_dear(kind, name))


def is_live(kind: ResourceType[Any], name: str) -> bool:
    """Return True if an attribute changes although no action changes the resource."""
    entry = _entry(kind, name)
    return entry is not None and bool(entry.metadata.get(_LIVE))


def attributes_to_ask_for(
    kind: ResourceType[Any], wanted: Collection[str] = (), read: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the attributes to read while a request shows a resource.

    :param wanted: names in the request: includes dear attributes that are live, attributes that were never read, and
        `SHOW`.
    :param read: names of the attributes that were read before. Those that are not live are shown with the stored
        value.
    """
    live = [
        name for name in attribute_names(kind) if is_live(kind, name) and (name in wanted or not _is_dear(kind, name))
    ]
    more = [name for name in wanted if name and (name == SHOW or name not in read) and has_attribute(kind, name)]
    return tuple(name for name in dict.fromkeys((*live, *more)) if not is_secret(kind, name))


def _is_dear(kind: ResourceType[Any], name: str) -> bool:
    entry = _entry(kind, name)
    return entry is not None and bool(entry.metadata.get(_DEAR))


def properties_told(kind: ResourceType[Any], name: str) -> frozenset[str] | None:
    """Return the names of the properties that an attribute may reveal; None: any property.

    :param name: '' for all attributes.
    """
    entry = _entry(kind, name)
    told = entry.metadata.get(_OF) if entry is not None else None
    return None if told is None else frozenset(told)


def is_secret(kind: ResourceType[Any], name: str) -> bool:
    """Return True if an attribute is declared secret. '' stands for all attributes and is secret if one of them is."""
    if not name:
        return any(is_secret(kind, each) for each in attribute_names(kind))
    entry = _entry(kind, name)
    return entry is not None and bool(entry.metadata.get(_SECRET))


def _entry(kind: ResourceType[Any], name: str) -> Field[Any] | None:
    """The declaration of an attribute, where there is one of its own."""
    declared = kind.Attributes
    if declared is None or issubclass(declared, AnyAttribute):
        return None
    return next((entry for entry in fields(declared) if (entry.metadata.get(_NAME) or entry.name) == name), None)


def describe_attributes(kind: ResourceType[Any], *, whole: bool = False) -> dict[str, Json]:
    """Return the attributes as JSON, by name: type and description.

    :param whole: True to include every argument of `attr`, so that the attributes can be made from it again.
    :raises TypeError: an annotation is no type of an attribute.
    """
    return describe_declared(kind.Attributes, whole=whole)


def describe_declared(declared: type[Any] | None, *, whole: bool = False) -> dict[str, Json]:
    """The same of attributes that a class declares.

    :raises TypeError: an annotation is no type of an attribute.
    """
    if declared is None or issubclass(declared, AnyAttribute):
        return {}
    annotations = annotations_of(declared)
    described: dict[str, Json] = {}
    for entry in fields(declared):
        type_ = shape_of(annotations[entry.name]).kind
        # The field has no word for an attribute of any type: it names none.
        about: dict[str, Json] = {'type': type_.value} if whole or type_ is not Kind.ANY else {}
        if entry.metadata.get(_DESCRIPTION):
            about['description'] = entry.metadata[_DESCRIPTION]
        if whole:
            about |= {
                key: True
                for key, at in (('secret', _SECRET), ('dear', _DEAR), ('live', _LIVE))
                if entry.metadata.get(at)
            }
            about |= {'of': [*entry.metadata[_OF]]} if entry.metadata.get(_OF) is not None else {}
        described[entry.metadata.get(_NAME) or entry.name] = about
    return described
