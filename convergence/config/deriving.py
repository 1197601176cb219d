"""Makes options of oslo.config from the settings records, and the values of a record from a filled configuration."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from oslo_config import cfg

from convergence.settings.declaring import KEY, SHARED, OptionDeclaration

_BY_FORM = {'host': cfg.HostAddressOpt, 'port': cfg.PortOpt, 'list': cfg.ListOpt, 'map': cfg.DictOpt}
_BY_TYPE = {bool: cfg.BoolOpt, int: cfg.IntOpt, float: cfg.FloatOpt, str: cfg.StrOpt, Path: cfg.StrOpt}


def options_of(record: type[Any]) -> list[cfg.Opt]:
    """Return the options that the fields of a settings record declare, in order."""
    return [_option(name, declared, kind) for name, declared, kind in _declared(record)]


def values_of(record: type[Any], section: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields of a record that operators set.

    :param section: the filled section of the configuration.
    :param sections: all sections by name, for fields that have the value of an option of another section.
    """
    found = {name: _value(section[name], declared, kind) for name, declared, kind in _declared(record)}
    for field in dataclasses.fields(record):
        if SHARED in field.metadata:
            other, name = field.metadata[SHARED]
            found[field.name] = sections[other][name]
    return found


def _declared(record: type[Any]) -> Iterator[tuple[str, OptionDeclaration, type[Any]]]:
    hints = get_type_hints(record)
    for field in dataclasses.fields(record):
        if KEY in field.metadata:
            yield field.name, field.metadata[KEY], _plain(hints[field.name])


def _plain(hint: Any) -> type[Any]:
    """The type of a field without None and without type arguments."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    plain: type[Any] = get_origin(hint) or hint
    return plain


def _option(name: str, declared: OptionDeclaration, kind: type[Any]) -> cfg.Opt:
    more: dict[str, Any] = {
        'min': declared.min,
        'max': declared.max,
        'choices': list(declared.choices) or None,
        'sample_default': declared.sample,
        'secret': declared.secret or None,
        'deprecated_name': declared.deprecated_name,
    }
    default = declared.default
    if isinstance(default, tuple):
        default = list(default)
    if default != '':  # an empty text stands for "not set"
        more['default'] = default
    if default is None:
        del more['default']
    given = {key: value for key, value in more.items() if value is not None}
    return _class_of(declared, kind)(name, help=declared.help, **given)


def _class_of(declared: OptionDeclaration, kind: type[Any]) -> type[cfg.Opt]:
    if declared.form:
        return _BY_FORM[declared.form]
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    return cfg.DictOpt if issubclass(kind, Mapping) else cfg.ListOpt


def _value(value: Any, declared: OptionDeclaration, kind: type[Any]) -> Any:
    """The value of a field, from that of its option."""
    if declared.read is not None:
        return declared.read(value)
    if declared.unlimited is not None and value == declared.unlimited:
        return None
    if value is None:
        return '' if kind is str and declared.default == '' else None
    if kind is Path:
        return Path(value).expanduser().absolute()
    return tuple(value) if kind is tuple else value
