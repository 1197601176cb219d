"""Declarations of options in settings records. Pure: `convergence.config.deriving` makes the options of oslo.config."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

KEY = 'option'
"""Key of an `OptionDeclaration` in the metadata of a field."""

SHARED = 'shared'
"""Key of (section, option) in the metadata of a field that has the value of an option of another section."""

ValueForm: TypeAlias = Literal['', 'host', 'port', 'list', 'map']
"""The form of a value in the file, where it does not follow from the type of the field."""


OptionField: TypeAlias = Any
"""A dataclass field, typed so that it may stand where the value of the field is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDeclaration:
    """The part of an option that oslo.config needs besides the name and the type of its field. See `option`."""

    default: Any
    help: str
    min: float | None = None
    max: float | None = None
    choices: Sequence[Any] = ()
    secret: bool = False
    sample: str | None = None
    form: ValueForm = ''
    unlimited: int | None = None
    deprecated_name: str | None = None
    read: Callable[[Any], Any] | None = None


def option(default: Any, help: str, *, required: bool = False, **more: Any) -> OptionField:
    """A field of a settings record that operators may set.

    :param default: the value of the field, and of the option, if the operator sets nothing. An empty text stands for
        "not set".
    :param help: the text in the sample file: noun and unit first, then the effect of the default and special values.
    :param required: True if the record has no default of its own, because `convergence.config` computes one.
    :param more: further fields of `OptionDeclaration`. ``min``, ``max``: bounds. ``choices``: allowed values, or pairs
        of a value and its explanation. ``secret``: the value is never logged. ``sample``: a value for the sample file.
        ``form``: see `ValueForm`. ``unlimited``: the number in the file that means None. ``deprecated_name``: the old
        name, still accepted. ``read``: makes the value of the field from that of the option.
    """
    metadata = {KEY: OptionDeclaration(default=default, help=help, **more)}
    shown = not more.get('secret', False)
    if required:
        return dataclasses.field(metadata=metadata, repr=shown)
    value = more['read'](default) if more.get('read') else default
    if isinstance(value, list | dict | set):
        return dataclasses.field(default_factory=lambda: value, metadata=metadata, repr=shown)
    return dataclasses.field(default=value, metadata=metadata, repr=shown)


def slice_of(kind: type[Any], *records: Any) -> dict[str, Any]:
    """Return the values of those fields of settings records that a dataclass has too: the slice that a part needs.

    A field of the part that no record has keeps its default. Without a default, the constructor of the part raises
    TypeError for it, unless the caller adds the value.

    :param kind: the dataclass of the part.
    :param records: filled settings records. No two of them may have a field of one name that the part has.
    """
    names = {each.name for each in dataclasses.fields(kind)}
    found = [(each.name, getattr(record, each.name)) for record in records for each in dataclasses.fields(record)]
    taken = [(name, value) for name, value in found if name in names]
    assert len(dict(taken)) == len(taken), f'{kind.__name__}: two records have a field of one name'
    return dict(taken)


def shared(section: str, record: type[Any], name: str) -> OptionField:
    """A field that has the value of an option of another section, so that the two cannot differ.

    :param record: the record of that section.
    """
    (source,) = (each for each in dataclasses.fields(record) if each.name == name)
    return dataclasses.field(default=source.default, metadata={SHARED: (section, name)})
