"""The functions of the language: one class each."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.template.functions.base import Function
from convergence.template.functions.references import GetAttribute, GetParameter, GetResource
from convergence.template.functions.text import ListJoin, ListJoinMany, StringReplace, StringReplaceJson

BY_CODE: Mapping[str, Function] = {
    function.code: function()
    for function in (
        GetAttribute,
        GetParameter,
        GetResource,
        ListJoin,
        ListJoinMany,
        StringReplace,
        StringReplaceJson,
    )
}
"""The functions that may remain in a definition, by the code that is written there. A code is never given another
meaning: definitions are stored, and are read by later versions of this program."""
