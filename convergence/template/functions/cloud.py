"""The functions of CloudFormation."""

from __future__ import annotations

import re
from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.encoding import call, decode, encode, escaped, function_of
from convergence.template.functions.base import (
    Compiling,
    Evaluating,
    EvaluationFailed,
    Function,
    ReferenceFailed,
    is_call,
    type_name,
)
from convergence.template.functions.references import GetAttribute, GetParameter, GetResource, select
from convergence.template.functions.text import ListJoin, StringReplace, StringSplit, index_of
from convergence.template.values import BadValue, ParameterType, convert

DEFAULT_ZONE = 'nova'
"""The default availability zone of OpenStack."""


class Reference(Function):
    """The reference id of a resource, or the value of a parameter."""

    name: ClassVar[str] = 'Ref'
    names: ClassVar[int] = 1

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Evaluate like `get_resource` or `get_param`. A resource hides a parameter with the same name."""
        if not isinstance(argument, str):
            raise EvaluationFailed('Ref needs the name of a resource or a parameter that is known in advance.')
        if argument in scope.resources:
            return GetResource().fold(argument, constant, scope)
        if argument in scope.parameters:
            return GetParameter().fold(argument, constant, scope)
        hint = scope.suggestion(argument, {**scope.resources, **scope.parameters})
        raise ReferenceFailed(f'The specified reference "{argument}" (in {scope.subject}) is incorrect.{hint}')


class ParameterReference(Reference):
    """The value of a parameter."""

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Evaluate like `get_param`: a condition cannot depend on a resource."""
        if not isinstance(argument, str):
            raise EvaluationFailed('Ref needs the name of a parameter.')
        return GetParameter().fold(argument, constant, scope)


class CloudGetAtt(GetAttribute):
    """An attribute of another resource."""

    name: ClassVar[str] = 'Fn::GetAtt'

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Evaluate like `get_attr`. Resource and attribute may also be one text with a dot."""
        if isinstance(argument, str):
            resource, _, attribute = argument.partition('.')
            argument = [resource, attribute]
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('Fn::GetAtt needs a list: the name of a resource, and an attribute.')
        return super().fold(argument, constant, scope)


class FindInMap(Function):
    """A value of the section Mappings."""

    name: ClassVar[str] = 'Fn::FindInMap'
    code: ClassVar[str] = 'Fn::FindInMap'

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return the value."""
        if not isinstance(argument, list) or len(argument) != 3:
            raise EvaluationFailed('Fn::FindInMap needs a list: the name of a mapping, and two keys.')
        if not constant:
            if not scope.inspecting or _needs_resources(argument):
                raise EvaluationFailed('Fn::FindInMap needs keys that are known in advance, not of another resource.')
            return call(self.code, argument)
        found: Json = dict(scope.mappings)
        keys = decode(argument)
        assert isinstance(keys, list)
        for key in keys:
            if not isinstance(found, dict) or str(key) not in found:
                hint = scope.suggestion(str(key), found) if isinstance(found, dict) else ''
                raise ReferenceFailed(f'Fn::FindInMap: the section Mappings has no "{str(key)[:80]}" there.{hint}')
            found = found[str(key)]
        return encode(found, scope.budget, self.name)

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Fail: only calls that depend on a parameter without a value remain.

        :raises EvaluationFailed: always.
        """
        raise EvaluationFailed('Fn::FindInMap: a key depends on a parameter that has no value.')


def _needs_resources(encoded: Json) -> bool:
    """Return True if a remaining call in an encoded value reads another resource; others read parameters."""
    pending = [encoded]
    while pending:
        value = pending.pop()
        found = function_of(value)
        if found:
            if found[0] in (GetResource.code, GetAttribute.code):
                return True
            pending.append(found[1])
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return False


class Join(ListJoin):
    """The strings of a list, joined by a delimiter."""

    name: ClassVar[str] = 'Fn::Join'
    form: ClassVar[str] = 'Fn::Join needs a list: a delimiter, and a list of strings.'


class Split(StringSplit):
    """The parts of a text between delimiters."""

    name: ClassVar[str] = 'Fn::Split'


class Select(Function):
    """An item of a list, or an entry of a map; the empty text if there is none."""

    name: ClassVar[str] = 'Fn::Select'
    code: ClassVar[str] = 'Fn::Select'

    @override
    def check(self, argument: Json) -> None:
        """Require an index or key, and a list or map."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('Fn::Select needs a list: an index or a key, and a list or a map.')
        key, source = argument
        if not (is_call(key) or isinstance(key, str | int)):
            raise EvaluationFailed(f'Fn::Select: the index must be a number or a string, not {type_name(key)}.')
        if not (source is None or isinstance(source, dict | list | str)):
            raise EvaluationFailed(f'Fn::Select: the source must be a list or a map, not {type_name(source)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the selected value. A text is read as JSON."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        key, source = argument
        if isinstance(source, str):
            try:
                source = convert(source, ParameterType.JSON, scope.budget.limits)
            except BadValue:
                raise EvaluationFailed('Fn::Select: the text to select from is not JSON.') from None
        if isinstance(source, list) and index_of(key) is None:
            raise EvaluationFailed(f'Fn::Select: the index into a list must be a whole number, not {str(key)[:80]}.')
        return select(source, [key], missing='')


class Replace(StringReplace):
    """A text in which every occurrence of some keys is replaced."""

    name: ClassVar[str] = 'Fn::Replace'
    code: ClassVar[str] = 'Fn::Replace'

    @override
    def check(self, argument: Json) -> None:
        """Require a map of replacements, and a text."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('Fn::Replace needs a list: a map of what to replace, and a string.')
        super().check({'params': argument[0], 'template': argument[1]})

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the text with its replacements."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        return StringReplace().evaluate({'params': argument[0], 'template': argument[1]}, scope)


class Base64(Function):
    """The text itself. The service that needs base64 encodes it."""

    name: ClassVar[str] = 'Fn::Base64'
    code: ClassVar[str] = 'Fn::Base64'

    @override
    def check(self, argument: Json) -> None:
        """Require a text."""
        if not (is_call(argument) or isinstance(argument, str)):
            raise EvaluationFailed(f'Fn::Base64 needs a string, not {type_name(argument)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the text."""
        self.check(escaped(argument))
        return argument


class GetZones(Function):
    """The availability zones of a region: always the default zone, without a query of a service."""

    name: ClassVar[str] = 'Fn::GetAZs'

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return the zones."""
        if not (argument is None or isinstance(argument, str) or is_call(argument)):
            raise EvaluationFailed(f'Fn::GetAZs needs the name of a region, not {type_name(argument)}.')
        return [DEFAULT_ZONE]


_MEMBER = re.compile(r'\.member\.([0-9]{1,9})\.([^=.]+)=(.*)', re.DOTALL)


class MemberListToMap(Function):
    """A map made of a flat list of keys and values such as .member.0.Name=a and .member.0.Value=b."""

    name: ClassVar[str] = 'Fn::MemberListToMap'
    code: ClassVar[str] = 'Fn::MemberListToMap'

    @override
    def check(self, argument: Json) -> None:
        """Require the names of key and value, and the list."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 3:
            raise EvaluationFailed(
                'Fn::MemberListToMap needs a list: the name of the keys, the name of the values, and a list of members.'
            )
        for name in argument[:2]:
            if not (is_call(name) or isinstance(name, str)):
                raise EvaluationFailed(f'Fn::MemberListToMap: a name must be a string, not {type_name(name)}.')
        members = argument[2]
        if is_call(members):
            return
        if not isinstance(members, list) or not all(is_call(item) or isinstance(item, str) for item in members):
            raise EvaluationFailed('Fn::MemberListToMap: the members must be a list of strings.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the map, of those that have both a key and a value."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        key_name, value_name, members = argument
        assert isinstance(members, list)
        found: dict[int, dict[str, str]] = {}
        for member in members:
            match = _MEMBER.fullmatch(str(member))
            if match is None:
                raise EvaluationFailed('Fn::MemberListToMap: a member must look like .member.0.Name=value.')
            found.setdefault(int(match[1]), {})[match[2]] = match[3]
        pairs = (found[number] for number in sorted(found))
        key, value = str(key_name), str(value_name)
        return {pair[key]: pair[value] for pair in pairs if key in pair and value in pair}
