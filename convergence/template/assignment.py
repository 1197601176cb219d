"""Assigns values to parameters."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Mapping

from convergence.core.model import Json
from convergence.errors import Place, UnknownUserParameter, UserParameterMissing
from convergence.template.constraints import Violated
from convergence.template.document import ParsedDocument
from convergence.template.environment import Environment
from convergence.template.limits import Budget
from convergence.template.parameters import Parameter, Source
from convergence.template.values import BadValue, convert


class Require(enum.Enum):
    """The parameters that must have a value."""

    ALL = 'ALL'
    NONE = 'NONE'


@dataclasses.dataclass(frozen=True, slots=True)
class _Given:
    value: Json
    source: Source
    place: Place | None


class Assignment:
    """Finds the value of each declared parameter. The request wins over the environment, the environment over defaults.

    :param undetermined: names of parameters whose values are not known yet.
    """

    def __init__(
        self,
        template: ParsedDocument,
        environment: Environment,
        request: Mapping[str, Json],
        budget: Budget,
        undetermined: Collection[str] = (),
    ) -> None:
        self._template = template
        self._environment = environment
        self._request = request
        self._budget = budget
        self._undetermined = undetermined

    def assign(self, declared: Mapping[str, Parameter], require: Require) -> dict[str, Parameter]:
        """Return the parameters with their values. Wrong and missing values go to the problems."""
        self._refuse_unknown(declared)
        encrypted = self._environment.encrypted
        return {
            name: self._assign(dataclasses.replace(each, hidden=True) if name in encrypted else each, require)
            for name, each in declared.items()
        }

    def _refuse_unknown(self, declared: Mapping[str, Parameter]) -> None:
        problems = self._template.problems
        for given, document in ((self._request, None), (self._environment.parameters, self._environment.document)):
            for name in given:
                if name in declared:
                    continue
                place = document.key_place(('parameters', name)) if document else None
                hint = problems.suggestion(name, declared)
                problems.add(f'The Parameter ({name}) was not defined in template.{hint}', place, UnknownUserParameter)

    def _assign(self, parameter: Parameter, require: Require) -> Parameter:
        default = parameter.default
        if default is not None:
            place = self._template.place(('parameters', parameter.name, 'default'))
            self._check(parameter, _Given(default, Source.TEMPLATE, place))
        if parameter.name in self._undetermined:
            return parameter
        given = self._given(parameter.name)
        if given is None:
            if default is not None:
                return dataclasses.replace(parameter, value=default, source=Source.TEMPLATE)
            if require is Require.ALL:
                self._template.problems.add(
                    f'The Parameter ({parameter.name}) was not provided.',
                    self._template.key_place(('parameters', parameter.name)),
                    UserParameterMissing,
                )
            return parameter
        try:
            value = convert(given.value, parameter.type, self._budget.limits)
        except BadValue as error:
            self._problem(parameter, given, str(error))
            return parameter
        self._check(parameter, dataclasses.replace(given, value=value))
        return dataclasses.replace(parameter, value=value, source=given.source)

    def _given(self, name: str) -> _Given | None:
        """Return the value that wins. Null counts as not given."""
        if (value := self._request.get(name)) is not None:
            return _Given(value, Source.REQUEST, None)
        environment = self._environment
        for section, values, source in (
            ('parameters', environment.parameters, Source.ENVIRONMENT),
            ('parameter_defaults', environment.defaults, Source.ENVIRONMENT_DEFAULT),
        ):
            if (value := values.get(name)) is not None:
                return _Given(value, source, environment.document.place((section, name)))
        return None

    def _check(self, parameter: Parameter, given: _Given) -> None:
        for constraint in parameter.constraints:
            try:
                constraint.check(given.value, self._budget)
            except Violated as error:
                text = 'the value is not allowed' if parameter.hidden and not constraint.description else str(error)
                self._problem(parameter, given, text)

    def _problem(self, parameter: Parameter, given: _Given, message: str) -> None:
        what = 'The default of the parameter' if given.source is Source.TEMPLATE else 'Parameter'
        text = f"{what} '{parameter.name}' is invalid: {message}"
        self._template.problems.add(text, given.place)
