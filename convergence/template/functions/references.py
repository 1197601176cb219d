"""Functions that read parameters, files and other resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.errors import StackValidationFailed, UserParameterMissing
from convergence.template.encoding import call, decode, encode
from convergence.template.functions.base import (
    Absence,
    Compiling,
    Evaluating,
    EvaluationFailed,
    Function,
    ReferenceFailed,
    UnresolvedReference,
    is_call,
)
from convergence.template.functions.text import index_of
from convergence.template.parameters import Parameter


class ParameterNotProvided(EvaluationFailed):
    """The parameter is not declared, or has no value."""

    kind: type[StackValidationFailed] = UserParameterMissing
    is_of_form = False


class GetParameter(Function):
    """The value of a parameter, or an element inside of it."""

    name: ClassVar[str] = 'get_param'
    code: ClassVar[str] = 'get_param'

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return the value, if the parameter has one."""
        if not constant:
            return self._later(argument, scope)
        plain = decode(argument)
        name, *path = plain if isinstance(plain, list) and plain else [plain]
        if not isinstance(name, str):
            quoted = '; put a name like on, off, yes or no in quotes' if isinstance(name, bool) else ''
            raise EvaluationFailed(f'get_param needs the name of a parameter, or a list of the name and keys{quoted}.')
        parameter = _declared(name, scope)
        if not parameter.has_value:
            return call(self.code, argument)
        value = select(parameter.value, path, missing='') if path else parameter.value
        return encode(value, scope.budget, f'get_param of {name}')

    def _later(self, argument: Json, scope: Compiling) -> Json:
        """The call, where a key inside of the value is that of another resource."""
        name, *path = argument if isinstance(argument, list) else [argument]
        if not isinstance(name, str):
            raise EvaluationFailed('get_param needs a name that is known in advance, not one of another resource.')
        parameter = _declared(name, scope)
        if not parameter.has_value:
            return call(self.code, argument)
        return call(ElementOfParameter.code, [encode(parameter.value, scope.budget, f'get_param of {name}'), *path])

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Fail: only calls of a parameter without a value remain.

        :raises ParameterNotProvided: always.
        """
        name = argument[0] if isinstance(argument, list) else argument
        raise ParameterNotProvided(f'The Parameter ({name}) was not provided.')


class ElementOfParameter(Function):
    """An element inside of the value of a parameter, at keys that other resources give."""

    name: ClassVar[str] = 'get_param'
    code: ClassVar[str] = 'get_param@element'

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the element; the empty text if the path leads nowhere."""
        assert isinstance(argument, list)
        return select(argument[0], argument[1:], missing='')


def _declared(name: str, scope: Compiling) -> Parameter:
    """The parameter of a name.

    :raises ParameterNotProvided: there is none.
    """
    parameter = scope.parameters.get(name)
    if parameter is None:
        hint = scope.suggestion(name, scope.parameters)
        raise ParameterNotProvided(f'The Parameter ({name}) was not provided.{hint}')
    if parameter.hidden:
        scope.hidden_reads.note()
    if parameter.pseudo:
        scope.of_the_stack.add(name)
    return parameter


class GetFile(Function):
    """A function for including a file inline."""  # Clients of Heat compare this text.

    name: ClassVar[str] = 'get_file'

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return the content."""
        if not isinstance(argument, str):
            raise EvaluationFailed('get_file needs the name of a file.')
        content = scope.files.get(argument)
        if content is None:
            raise ReferenceFailed(
                f'No content found in the "files" section for get_file path: {argument}'
                f'{scope.suggestion(argument, scope.files)}'
            )
        if not isinstance(content, str):
            raise EvaluationFailed(f'The file {argument} is not text.')
        return encode(content, scope.budget, f'get_file of {argument}')


class GetResource(Function):
    """The reference id of another resource."""

    name: ClassVar[str] = 'get_resource'
    code: ClassVar[str] = 'get_resource'
    names: ClassVar[int] = 1

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return a call that remains, and a dependency."""
        if not isinstance(argument, str):
            raise EvaluationFailed('get_resource needs the name of a resource that is known in advance.')
        if not require(argument, scope):
            return None
        return call(self.code, argument)

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the reference id; null if the resource has none."""
        name = str(argument)
        output = scope.inputs.get(name)
        if output is None:
            raise UnresolvedReference(f'The reference id of the resource {name} is not known.', name)
        return output.reference

    @override
    def reference(self, argument: Json) -> tuple[str, str | None] | None:
        """Return the resource."""
        return str(argument), None


class GetAttribute(Function):
    """An attribute of another resource, or an element inside of it."""

    name: ClassVar[str] = 'get_attr'
    code: ClassVar[str] = 'get_attr'
    names: ClassVar[int] = 2
    least: ClassVar[int] = 2

    @override
    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return a call that remains, a dependency, and the attribute to provide."""
        if not isinstance(argument, list) or len(argument) < self.least:
            raise EvaluationFailed('get_attr needs a list: the name of a resource, an attribute, and maybe keys.')
        resource, *path = argument
        if is_call(resource):
            raise EvaluationFailed('get_attr needs the name of a resource that is known in advance.')
        if not isinstance(resource, str) or not (not path or isinstance(path[0], str) or is_call(path[0])):
            raise EvaluationFailed('get_attr needs the name of a resource and the name of an attribute.')
        if path and not path[0]:
            raise EvaluationFailed('get_attr needs the name of an attribute, which cannot be empty.')
        if not require(resource, scope):
            return None
        argument = [resource, *_of_member(path)]
        scope.asked.add((resource, _attribute(argument)))
        return call(self.code, argument)

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the value; null if the path leads nowhere."""
        assert isinstance(argument, list)
        resource, attribute = str(argument[0]), str(argument[1]) if len(argument) > 1 else ''
        if len(argument) > 1 and (not isinstance(argument[1], str) or not attribute):
            raise EvaluationFailed(f'get_attr: the name of an attribute of {resource} must be a string, not empty.')
        what = (
            f'The attribute {attribute} of the resource {resource}'
            if attribute
            else f'The map of all attributes of {resource}'
        )
        output = scope.inputs.get(resource)
        if output is None:
            raise UnresolvedReference(f'{what} is not known.', resource, attribute)
        if attribute in output.errors:
            text = f'{what} could not be read: {output.errors[attribute]}'
            raise UnresolvedReference(text, resource, attribute)
        known: Mapping[str, Json] = output.attributes
        if attribute not in known and isinstance(everything := known.get(''), dict):
            known = everything  # The name was not known in advance, so all attributes were requested.
        if attribute not in known:
            raise UnresolvedReference(f'{what} was not provided.', resource, attribute)
        return _selected(known[attribute], argument[2:], output.each.get(attribute))

    @override
    def reference(self, argument: Json) -> tuple[str, str | None] | None:
        """Return the resource and the attribute; all attributes if the name is known only later."""
        assert isinstance(argument, list)
        return str(argument[0]), _attribute(argument)


class GetAttributeOrAll(GetAttribute):
    """`GetAttribute` that also works without the name of an attribute: it then returns a map of all attributes."""

    least: ClassVar[int] = 1


def _of_member(path: list[Json]) -> list[Json]:
    """A path with an attribute of a resource of a nested stack in one piece: ``resource.0, name`` is the same."""
    if len(path) > 1 and isinstance(path[0], str) and isinstance(path[1], str):
        beginning, _, name = path[0].partition('.')
        if beginning == 'resource' and name and '.' not in name:
            return [f'{path[0]}.{path[1]}', *path[2:]]
    return path


def _selected(value: Json, path: list[Json], before_members: int | None) -> Json:
    """Return the element at a path; for a value with members, that of each member.

    :param before_members: see `Output.each`.
    """
    if before_members and path and not value and isinstance(value, dict | list):
        return value  # A group without members has no values.
    if before_members is None or len(path) <= before_members:
        return select(value, path, missing=None)
    members, further = select(value, path[:before_members], missing=None), path[before_members:]
    if isinstance(members, dict):
        return {name: select(each, further, missing=None) for name, each in members.items()}
    if isinstance(members, list):
        return [select(each, further, missing=None) for each in members]
    return None


def _attribute(argument: list[Json]) -> str:
    """Return the attribute in an encoded argument; empty for all."""
    return str(argument[1]) if len(argument) > 1 and isinstance(argument[1], str) else ''


def require(name: str, scope: Compiling) -> bool:
    """Record a dependency of the current definition.

    :returns: True if the resource exists; otherwise the reference is null.
    :raises ReferenceFailed: the template has no such resource.
    """
    if name not in scope.resources:
        raise ReferenceFailed(
            f'The specified reference "{name}" (in {scope.subject}) is incorrect.'
            f'{scope.suggestion(name, scope.resources)}'
        )
    if name in scope.absent:
        if scope.absence is Absence.NULL:
            return False
        raise ReferenceFailed(
            f'The specified reference "{name}" (in {scope.subject}) is incorrect: the condition of that resource is '
            'false, so it does not exist. Refer to it under the function if, with the same condition.'
        )
    scope.requires.add(name)
    return True


def select(value: Json, path: list[Json], *, missing: Json) -> Json:
    """Return the element at a path of keys and indices, or `missing`. The elements of a text are characters."""
    for element in path:
        if isinstance(value, dict) and isinstance(element, str | int):
            key = element if isinstance(element, str) else str(element)
            if key not in value:
                return missing
            value = value[key]
        elif isinstance(value, list | str):
            index = index_of(element)
            if index is None or not -len(value) <= index < len(value):
                return missing
            value = value[index]
        else:
            return missing
    return value
