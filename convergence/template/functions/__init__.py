"""The functions of the language: one class each."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.template.functions import cloud, collections, logic, references, text
from convergence.template.functions.base import FailedCall, Function
from convergence.template.functions.expressions import YaqlExpression
from convergence.template.functions.facade import ResourceFacade
from convergence.template.functions.urls import MakeUrl

BY_CODE: Mapping[str, Function] = {
    function.code: function()
    for function in (
        cloud.Base64,
        cloud.FindInMap,
        cloud.MemberListToMap,
        cloud.Replace,
        cloud.Select,
        collections.Filter,
        collections.ListConcat,
        collections.ListConcatUnique,
        collections.MapMerge,
        collections.MapReplace,
        collections.Repeat,
        collections.RepeatOfMaps,
        collections.RepeatPermutations,
        FailedCall,
        logic.And,
        logic.Contains,
        logic.Equals,
        logic.If,
        logic.Not,
        logic.Or,
        MakeUrl,
        references.ElementOfParameter,
        references.GetAttribute,
        references.GetParameter,
        references.GetResource,
        ResourceFacade,
        text.Digest,
        text.ListJoin,
        text.ListJoinMany,
        text.StringReplace,
        text.StringReplaceJson,
        text.StringReplaceStrict,
        text.StringReplaceVeryStrict,
        text.StringSplit,
        YaqlExpression,
    )
}
"""The functions that may remain in a definition, by their codes. The meaning of a code never changes, because later
versions of this program read stored definitions."""
