"""Frozen values that are quickly made, and quickly copied with some fields changed.

Rows, effects and events are frozen dataclasses, and each step of a traversal makes dozens of them. Python sets each
field of such a value by a call of `object.__setattr__`, and `dataclasses.replace` looks each field up by its name; with
forty columns that is most of what a decision costs. A class that is decorated by `quickly_made` is as frozen as before.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ('copied', 'quickly_made', 'replace')

ValueT = TypeVar('ValueT')

_COPIERS: dict[type, Callable[[Any, Mapping[str, object]], Any]] = {}


def quickly_made(kind: type[ValueT]) -> type[ValueT]:
    """Decorate a frozen dataclass with slots: its values are made, and copied, several times as fast.

    While its fields are set a value is of a class that has the same slots and is not frozen: there an assignment calls
    nothing.

    :raises TypeError: the class has something that this does not know, such as `__post_init__`.
    """
    parameters = inspect.signature(kind).parameters
    factories = {
        each.name: each.default_factory
        for each in dataclasses.fields(kind)  # type: ignore[arg-type]  # any dataclass
        if each.default_factory is not dataclasses.MISSING
    }
    if list(parameters) != [*getattr(kind, '__dataclass_fields__', {})] or hasattr(kind, '__post_init__'):
        raise TypeError(f'{kind.__qualname__} is more than its fields')
    bases = getattr(kind, '__orig_bases__', kind.__bases__)
    slots = {'__slots__': vars(kind)['__slots__'], '__setattr__': object.__setattr__}
    names: dict[str, Any] = {
        'begin': object.__setattr__,
        'new': object.__new__,
        'Open': types.new_class(kind.__name__, bases, exec_body=lambda namespace: namespace.update(slots)),
        'Frozen': kind,
        'unset': next((parameters[name].default for name in factories), None),
        'factories': factories,
    }
    exec(_source([*parameters], factories), names)  # noqa: S102 - of names of fields alone, as dataclasses does it
    _take_over(vars(kind)['__init__'], names['__init__'])
    type.__setattr__(kind, '__init__', names['__init__'])
    _COPIERS[kind] = names['copied']
    return kind


def _source(fields: list[str], factories: Mapping[str, object]) -> str:
    """Two functions, written out field by field."""
    given = {name: name for name in fields}
    given |= {name: f'factories[{name!r}]() if {name} is unset else {name}' for name in factories}
    return '\n'.join(
        (
            f'def __init__(self, {", ".join(fields)}):',
            '    begin(self, "__class__", Open)',
            *(f'    self.{name} = {value}' for name, value in given.items()),
            '    self.__class__ = Frozen',
            'def copied(value, changes):',
            '    copy = new(Open)',
            *(f'    copy.{name} = value.{name}' for name in fields),
            '    for name, change in changes.items():',
            '        setattr(copy, name, change)',
            '    copy.__class__ = Frozen',
            '    return copy',
        )
    )


def _take_over(before: types.FunctionType, after: types.FunctionType) -> None:
    """Give a function the defaults, and all that is to be read, of the one in whose place it comes."""
    for name in ('__defaults__', '__doc__', '__module__', '__qualname__', '__annotations__'):
        setattr(after, name, getattr(before, name))


def copied(value: ValueT, changes: Mapping[str, object]) -> ValueT:
    """Return a copy of a value with changed fields, without a check of their names; use `replace` for known names.

    :raises AttributeError: there is no such field.
    """
    copier = _COPIERS.get(type(value), _as_dataclasses_do)
    copy: ValueT = copier(value, changes)
    return copy


def _as_dataclasses_do(value: Any, changes: Mapping[str, object]) -> Any:
    return dataclasses.replace(value, **changes)


if TYPE_CHECKING:
    from dataclasses import replace  # whose fields are known to the type checker
else:

    def replace(value: ValueT, /, **changes: object) -> ValueT:
        """As `dataclasses.replace`, and quick where the class is `quickly_made`."""
        return copied(value, changes)
