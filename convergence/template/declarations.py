"""Reads the `parameters` section of a template, with its constraints, and `parameter_groups`."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.model import Json, Path
from convergence.errors import InvalidTemplateSection
from convergence.template.constraints import (
    KINDS,
    AllowedPattern,
    AllowedValues,
    Constraint,
    CustomConstraint,
    Length,
    Modulo,
    Range,
)
from convergence.template.document import ParsedDocument
from convergence.template.installation import Installation
from convergence.template.limits import Limits
from convergence.template.parameters import Parameter
from convergence.template.patterns import BadPattern
from convergence.template.values import BadValue, ParameterType, convert, number
from convergence.template.versions import MODULO_SINCE, TAGS_SINCE, Version

PARAMETER_KEYS = ('type', 'label', 'description', 'default', 'hidden', 'immutable', 'constraints', 'tags')
_GROUPPARAMETER_KEYS = ('label', 'description', 'parameters')


class Wrong(ValueError):
    """A declaration is wrong. The text names the error; the caller adds the place."""


def declared(
    document: ParsedDocument, section: Mapping[str, Json], version: Version, installation: Installation
) -> dict[str, Parameter]:
    """Return the declared parameters without values. Errors go to the problems."""
    result = {}
    for name, declaration in section.items():
        path = ('parameters', name)
        if name.startswith('OS::'):
            document.key_problem(f'The name {name} is reserved; give the parameter another name.', path)
        if not isinstance(declaration, dict):
            document.problem(f'The parameter {name} must be a map with at least the key type.', path)
            continue
        result[name] = _Declaration(document, version, installation, name, declaration).parameter()
    return result


class _Declaration:
    """One entry of the section."""

    def __init__(
        self,
        document: ParsedDocument,
        version: Version,
        installation: Installation,
        name: str,
        declaration: dict[str, Json],
    ) -> None:
        self._document = document
        self._version = version
        self._limits = installation.limits
        self._checks = installation.checks
        self._declaration = declaration
        self._name = name
        self._path: Path = ('parameters', name)

    def parameter(self) -> Parameter:
        self._check_keys()
        type_ = self._type()
        return Parameter(
            name=self._name,
            type=type_,
            default=self._default(type_),
            written_default=self._declaration.get('default'),
            description=self._text('description'),
            label=self._text('label'),
            hidden=self._boolean('hidden'),
            immutable=self._boolean('immutable'),
            tags=self._tags(),
            constraints=self._constraints(type_),
        )

    def _problem(self, message: str, *path: str | int) -> None:
        self._document.problem(message, (*self._path, *path))

    def _check_keys(self) -> None:
        for key in self._declaration:
            known = key in PARAMETER_KEYS
            if known and not (key == 'tags' and self._version.date < TAGS_SINCE):
                continue
            hint = (
                f' It came with version {TAGS_SINCE}.'
                if known
                else self._document.problems.suggestion(key, PARAMETER_KEYS)
            )
            message = f'"{key}" is not a valid keyword inside a parameter definition.{hint}'
            self._document.key_problem(message, (*self._path, key), InvalidTemplateSection)

    def _type(self) -> ParameterType:
        found = self._declaration.get('type')
        names = [member.value for member in ParameterType]
        if isinstance(found, str) and found in names:
            return ParameterType(found)
        if found is None:
            self._problem(f'The parameter {self._name} has no type; it must be one of {", ".join(names)}.')
        else:
            hint = self._document.problems.suggestion(found, names) if isinstance(found, str) else ''
            self._problem(f'The type of the parameter {self._name} must be one of {", ".join(names)}.{hint}', 'type')
        return ParameterType.STRING

    def _default(self, type_: ParameterType) -> Json:
        default = self._declaration.get('default')
        if default is None:
            return None
        try:
            return convert(default, type_, self._limits)
        except BadValue as error:
            self._problem(f"The default of the parameter '{self._name}' is invalid: {error}", 'default')
            return None

    def _text(self, key: str) -> str:
        text = self._declaration.get(key)
        if isinstance(text, dict | list):
            self._problem(f'The {key} of the parameter {self._name} must be a string.', key)
            return ''
        return '' if text is None else str(text)

    def _boolean(self, key: str) -> bool:
        try:
            return convert(self._declaration.get(key) or False, ParameterType.BOOLEAN, self._limits) is True
        except BadValue as error:
            self._problem(f'{key} of the parameter {self._name}: {error}', key)
            return key == 'hidden'  # Treat the value as a secret if that is not clear.

    def _tags(self) -> tuple[str, ...]:
        tags = self._declaration.get('tags')
        if tags is None:
            return ()
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            self._problem(f'The tags of the parameter {self._name} must be a list of strings.', 'tags')
            return ()
        return tuple(str(tag) for tag in tags)

    def _constraints(self, type_: ParameterType) -> tuple[Constraint, ...]:
        constraints = self._declaration.get('constraints')
        if constraints is None:
            return ()
        if not isinstance(constraints, list):
            self._problem(f'The constraints of the parameter {self._name} must be a list.', 'constraints')
            return ()
        result = []
        for index, constraint in enumerate(constraints):
            try:
                result.append(self._constraint(constraint, type_))
            except (Wrong, BadValue) as error:
                self._problem(f'A constraint of the parameter {self._name} is invalid: {error}', 'constraints', index)
        return tuple(result)

    def _constraint(self, constraint: Json, type_: ParameterType) -> Constraint:
        """Return one constraint.

        :raises Wrong: it is invalid.
        """
        if not isinstance(constraint, dict):
            raise Wrong('it must be a map')
        description = constraint.get('description')
        kinds = [key for key in constraint if key != 'description']
        if len(kinds) != 1:
            raise Wrong(f'it must have exactly one of the keys {", ".join(KINDS)}, and may have a description')
        kind, argument = kinds[0], constraint[kinds[0]]
        if kind not in KINDS:
            hint = self._document.problems.suggestion(kind, KINDS)
            raise Wrong(f'"{kind}" is not one of {", ".join(KINDS)}.{hint}')
        if kind == 'modulo' and self._version.date < MODULO_SINCE:
            raise Wrong(f'modulo came with version {MODULO_SINCE}; this template says {self._version.date}')
        if type_.value not in KINDS[kind].types:
            raise Wrong(f'{kind} cannot be used for the type {type_.value}, only for {", ".join(KINDS[kind].types)}')
        text = '' if description is None else str(description)
        if kind == 'custom_constraint':
            return self._custom(argument, text)
        return _make(kind, argument, text, type_, self._limits)

    def _custom(self, name: Json, description: str) -> Constraint:
        """Return a custom constraint.

        :raises Wrong: it does not exist.
        """
        if not isinstance(name, str) or not name:
            raise Wrong('custom_constraint must be the name of a constraint')
        if self._checks is None:
            return CustomConstraint(name, description)
        unchecked = self._checks.unchecked(name)
        if unchecked is not None:
            message = f"The values of the parameter '{self._name}' are not checked: {unchecked}."
            self._document.key_warning(message, (*self._path, 'constraints'))
            return CustomConstraint(name, description)
        check = self._checks.get(name)
        if check is None:
            hint = self._document.problems.suggestion(name, self._checks.names())
            raise Wrong(f'the custom constraint "{name}" is not known to this installation. Remove it.{hint}')
        return CustomConstraint(name, description, check)


def _make(kind: str, argument: Json, description: str, type_: ParameterType, limits: Limits) -> Constraint:
    """Return the constraint of a known kind.

    :raises Wrong: the argument does not fit the kind.
    :raises BadValue: a number is invalid.
    """
    if kind == 'allowed_pattern':
        if not isinstance(argument, str):
            raise Wrong('allowed_pattern must be a string')
        try:
            return AllowedPattern(argument, description)
        except BadPattern as error:
            raise Wrong(f'allowed_pattern cannot be used: {error}') from None
    if kind == 'allowed_values':
        if not isinstance(argument, list):
            raise Wrong('allowed_values must be a list')
        item_type = ParameterType.STRING if type_ is ParameterType.COMMA_DELIMITED_LIST else type_
        return AllowedValues(tuple(convert(value, item_type, limits) for value in argument), description)
    if kind == 'modulo':
        step, offset = _numbers(kind, argument, ('step', 'offset'), limits)
        if step is None or offset is None:
            raise Wrong('modulo needs both step and offset')
        try:
            return Modulo(step, offset, description)
        except ValueError as error:
            raise Wrong(str(error)) from None
    return _bounded(kind, argument, description, limits)


def _bounded(kind: str, argument: Json, description: str, limits: Limits) -> Constraint:
    """Return a range or length constraint."""
    least, most = _numbers(kind, argument, ('min', 'max'), limits)
    if least is None and most is None:
        raise Wrong(f'{kind} needs min or max')
    if least is not None and most is not None and least > most:
        raise Wrong(f'min of {kind} is greater than max')
    if kind == 'range':
        return Range(least, most, description)
    for bound in (least, most):
        if bound is not None and (bound < 0 or bound != int(bound)):
            raise Wrong('min and max of length must be whole numbers, not less than 0')
    return Length(None if least is None else int(least), None if most is None else int(most), description)


def _numbers(kind: str, argument: Json, keys: tuple[str, str], limits: Limits) -> tuple[float | None, float | None]:
    if not isinstance(argument, dict) or not set(argument) <= set(keys):
        raise Wrong(f'{kind} must be a map with the keys {" and ".join(keys)}')
    first, second = (None if argument.get(key) is None else number(argument[key], limits) for key in keys)
    return first, second


def check_groups(document: ParsedDocument, groups: Json, parameters: Mapping[str, Parameter]) -> None:
    """Check the section `parameter_groups`: each parameter is declared and is in one group only."""
    if groups is None:
        return
    if not isinstance(groups, list):
        document.problem('The parameter_groups must be a list.', ('parameter_groups',))
        return
    seen: set[str] = set()
    for index, group in enumerate(groups):
        path: Path = ('parameter_groups', index)
        if not isinstance(group, dict):
            document.problem('A parameter group must be a map.', path)
            continue
        for key in group:
            if key not in _GROUPPARAMETER_KEYS:
                hint = document.problems.suggestion(key, _GROUPPARAMETER_KEYS)
                message = f'"{key}" is not a valid keyword inside a parameter group.{hint}'
                document.key_problem(message, (*path, key), InvalidTemplateSection)
        names = group.get('parameters')
        if not isinstance(names, list):
            document.problem('A parameter group needs a list of names under the key parameters.', (*path, 'parameters'))
            continue
        for position, name in enumerate(names):
            _check_grouped(document, name, (*path, 'parameters', position), parameters, seen)


def _check_grouped(
    document: ParsedDocument, name: Json, path: Path, parameters: Mapping[str, Parameter], seen: set[str]
) -> None:
    if not isinstance(name, str) or name not in parameters:
        hint = document.problems.suggestion(name, parameters) if isinstance(name, str) else ''
        document.problem(f'The parameter group names "{name}", which is not a parameter of the template.{hint}', path)
    elif name in seen:
        document.problem(f'The parameter {name} is in more than one parameter group.', path)
    else:
        seen.add(name)
