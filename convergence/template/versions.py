"""The versions of the language, and what each of them changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convergence.template.functions.base import Function, NotOffered
from convergence.template.functions.references import (
    GetAttribute,
    GetAttributeOrAll,
    GetFile,
    GetParameter,
    GetResource,
)
from convergence.template.functions.text import ListJoin, ListJoinMany, StringReplace, StringReplaceJson

KEY = 'heat_template_version'

FOREIGN_KEYS = ('AWSTemplateFormatVersion', 'HeatTemplateFormatVersion')
"""Version keys of dialects that are not offered."""

LOWER_CASE_POLICIES_SINCE = '2016-10-14'
CONDITIONS_SINCE = '2016-10-14'
MODULO_SINCE = '2017-02-24'
TAGS_SINCE = '2018-03-02'


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the language.

    :param date: its name; versions compare by it.
    :param alias: the name of the release it came with, if it may be used.
    :param functions: by name.
    """

    date: str
    alias: str | None
    functions: Mapping[str, Function]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a version adds to (`offered`, `known`) and takes from (`removed`) the functions of the one before.

    Functions that are only `known` are refused by name: taking them for data would be worse.
    """

    date: str
    alias: str | None = None
    offered: tuple[type[Function], ...] = ()
    known: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


_FOREIGN = (
    'Ref',
    'Fn::GetAZs',
    'Fn::Join',
    'Fn::Split',
    'Fn::Replace',
    'Fn::Base64',
    'Fn::MemberListToMap',
    'Fn::ResourceFacade',
)

_HISTORY = (
    _Change(
        '2013-05-23',
        offered=(GetParameter, GetResource, GetAttribute, GetFile, StringReplace, ListJoin),
        known=('resource_facade', 'Fn::Select', *_FOREIGN),
    ),
    _Change('2014-10-16', removed=_FOREIGN),
    _Change('2015-04-30', known=('repeat', 'digest')),
    _Change(
        '2015-10-15',
        offered=(GetAttributeOrAll, StringReplaceJson, ListJoinMany),
        known=('str_split',),
        removed=('Fn::Select',),
    ),
    _Change('2016-04-08', known=('map_merge',)),
    _Change('2016-10-14', 'newton', known=('yaql', 'map_replace', 'if')),
    _Change('2017-02-24', 'ocata', known=('filter', 'str_replace_strict')),
    _Change(
        '2017-09-01',
        'pike',
        known=('make_url', 'list_concat', 'list_concat_unique', 'contains', 'str_replace_vstrict'),
    ),
    _Change('2018-03-02', 'queens'),
    _Change('2018-08-31', 'rocky'),
    _Change('2021-04-16', 'wallaby'),
)


def _versions() -> dict[str, Version]:
    versions: dict[str, Version] = {}
    functions: dict[str, Function] = {}
    for change in _HISTORY:
        functions = {name: function for name, function in functions.items() if name not in change.removed}
        functions.update({name: NotOffered(name) for name in change.known})
        functions.update({function.name: function() for function in change.offered})
        version = Version(change.date, change.alias, functions)
        versions[change.date] = version
        if change.alias:
            versions[change.alias] = version
    return versions


VERSIONS: Mapping[str, Version] = _versions()
"""By date, and by release name from newton on."""
