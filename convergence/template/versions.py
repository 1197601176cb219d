"""The versions of the language, and the changes of each."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from convergence.template.functions import cloud, collections, logic, references, text
from convergence.template.functions.base import Function
from convergence.template.functions.expressions import YaqlExpression
from convergence.template.functions.facade import CloudResourceFacade, ResourceFacade
from convergence.template.functions.urls import MakeUrl

KEY = 'heat_template_version'
AWS_KEY = 'AWSTemplateFormatVersion'
HEAT_KEY = 'HeatTemplateFormatVersion'

CONDITIONS_SINCE = '2016-10-14'
EXTERNAL_ID_SINCE = '2016-10-14'
LOWER_CASE_POLICIES_SINCE = '2016-10-14'
MODULO_SINCE = '2017-02-24'
TAGS_SINCE = '2018-03-02'


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the language.

    :param date: its name; versions compare by it.
    :param alias: the name of its release, if templates may use it.
    :param functions: functions by name.
    :param conditions: functions of conditions by name; empty for a version without conditions.
    :param key: the key of the version in a document. It selects the dialect.
    """

    date: str
    alias: str | None
    functions: Mapping[str, Function]
    conditions: Mapping[str, Function] = field(default_factory=dict)
    key: str = KEY

    @property
    def is_cloud(self) -> bool:
        """True for the dialect of CloudFormation."""
        return self.key != KEY


@dataclass(frozen=True, slots=True)
class _Change:
    """The functions that a version adds, adds to conditions, and removes."""

    date: str
    alias: str | None = None
    functions: tuple[type[Function], ...] = ()
    conditions: tuple[type[Function], ...] = ()
    removed: tuple[type[Function], ...] = ()


_CLOUD = (
    cloud.Reference,
    cloud.GetZones,
    cloud.Join,
    cloud.Split,
    cloud.Replace,
    cloud.Base64,
    cloud.MemberListToMap,
    CloudResourceFacade,
)

_HISTORY = (
    _Change(
        '2013-05-23',
        functions=(
            references.GetParameter,
            references.GetResource,
            references.GetAttribute,
            references.GetFile,
            text.StringReplace,
            text.ListJoin,
            ResourceFacade,
            cloud.Select,
            *_CLOUD,
        ),
    ),
    _Change('2014-10-16', removed=_CLOUD),
    _Change('2015-04-30', functions=(collections.Repeat, text.Digest)),
    _Change(
        '2015-10-15',
        functions=(references.GetAttributeOrAll, text.StringReplaceJson, text.ListJoinMany, text.StringSplit),
        removed=(cloud.Select,),
    ),
    _Change('2016-04-08', functions=(collections.MapMerge,)),
    _Change(
        '2016-10-14',
        'newton',
        functions=(YaqlExpression, collections.MapReplace, logic.If, collections.RepeatOfMaps),
        conditions=(references.GetParameter, logic.Equals, logic.Not, logic.And, logic.Or),
    ),
    _Change('2017-02-24', 'ocata', functions=(collections.Filter, text.StringReplaceStrict)),
    _Change(
        '2017-09-01',
        'pike',
        functions=(
            MakeUrl,
            collections.ListConcat,
            collections.ListConcatUnique,
            logic.Contains,
            text.StringReplaceVeryStrict,
            collections.RepeatPermutations,
        ),
        conditions=(YaqlExpression, logic.Contains),
    ),
    _Change('2018-03-02', 'queens'),
    _Change('2018-08-31', 'rocky'),
    _Change('2021-04-16', 'wallaby', functions=(logic.IfOrNothing,)),
)

_CLOUD_FUNCTIONS = (*_CLOUD, cloud.CloudGetAtt, cloud.FindInMap, cloud.Select)
_CLOUD_CONDITIONS = (
    cloud.ParameterReference,
    cloud.FindInMap,
    logic.CloudEquals,
    logic.CloudNot,
    logic.CloudAnd,
    logic.CloudOr,
    logic.NamedCondition,
)


def _by_name(functions: tuple[type[Function], ...]) -> dict[str, Function]:
    return {function.name: function() for function in functions}


def _versions() -> dict[str, Version]:
    versions: dict[str, Version] = {}
    functions: dict[str, Function] = {}
    conditions: dict[str, Function] = {}
    for change in _HISTORY:
        removed = {function.name for function in change.removed}
        functions = {name: function for name, function in functions.items() if name not in removed}
        functions.update(_by_name(change.functions))
        conditions = {**conditions, **_by_name(change.conditions)}
        version = Version(change.date, change.alias, functions, conditions)
        versions[change.date] = version
        if change.alias:
            versions[change.alias] = version
    return versions


VERSIONS: Mapping[str, Version] = _versions()
"""By date, and by release name from newton on."""

DIALECTS: Mapping[str, Mapping[str, Version]] = {
    KEY: VERSIONS,
    AWS_KEY: {
        '2010-09-09': Version(
            '2010-09-09', None, _by_name((*_CLOUD_FUNCTIONS, logic.CloudIf)), _by_name(_CLOUD_CONDITIONS), AWS_KEY
        )
    },
    HEAT_KEY: {'2012-12-12': Version('2012-12-12', None, _by_name(_CLOUD_FUNCTIONS), {}, HEAT_KEY)},
}
"""The versions of each dialect, by the key of the version in a document."""


@functools.cache
def by_full_name() -> Mapping[str, Version]:
    """Every version by its key and name, such as ``heat_template_version.2018-08-31``; aliases included."""
    return {f'{key}.{name}': version for key, versions in DIALECTS.items() for name, version in versions.items()}
