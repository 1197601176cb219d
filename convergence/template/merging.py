"""Merges environment files and the sections of a request into one environment."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from convergence.core.model import Json
from convergence.errors import ConflictingMergeStrategyForParam, Invalid, InvalidTemplateReference
from convergence.template.environment import STRATEGIES, VALUES, Environment, Strategy, read_environment
from convergence.template.limits import Limits
from convergence.template.parameters import Parameter
from convergence.template.problems import Problems
from convergence.template.values import BadValue, ParameterType, convert

_DEFAULT = 'default'


def merge_environments(
    names: Sequence[str],
    files: Mapping[str, str],
    given: Mapping[str, Json],
    declared: Mapping[str, Parameter],
    limits: Limits,
) -> dict[str, Json]:
    """Merge environment files with their own strategies, and lay the result over the `given` sections.

    :param names: names of the files, in order; later ones win.
    :param files: texts by name.
    :param given: the sections in the request.
    :param declared: the parameters of the template; their types select the way of merging.
    :raises StackValidationFailed: with all problems of the files.
    :raises Invalid: `names` is not a list of names.
    """
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise Invalid('environment_files must be a list of names')
    problems = Problems()
    for name in names:
        if name not in files:
            hint = problems.suggestion(name, files)
            problems.add(
                f'The environment file "{name}" is not among the files that were sent.{hint}',
                kind=InvalidTemplateReference,
            )
    problems.raise_any()
    environments = [read_environment(files[name], limits, problems, name) for name in names]
    problems.raise_any()
    merging = _Merging(declared, limits)
    for environment in environments:
        merging.add(environment)
    problems.raise_any()
    return laid_over(given, merging.sections)


def laid_over(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """Merge two environments. `above` wins; maps of types and lists are joined."""
    result: dict[str, Json] = dict(below)
    for section, content in above.items():
        before = result.get(section)
        if section in VALUES and isinstance(before, dict) and isinstance(content, dict):
            result[section] = {**before, **content}
        else:
            result[section] = _joined(before, content)
    return result


class _Merging:
    """The merged sections of the files so far. Each file is valid by itself."""

    def __init__(self, declared: Mapping[str, Parameter], limits: Limits) -> None:
        self.sections: dict[str, Json] = {}
        self._declared = declared
        self._limits = limits
        self._strategies: dict[str, Strategy] = {}

    def add(self, environment: Environment) -> None:
        """Merge one more file. Contradicting strategies go to its problems."""
        root = environment.document.root
        for section, content in root.items() if isinstance(root, dict) else ():
            if section == STRATEGIES:
                continue
            if section in VALUES and isinstance(content, dict):
                present = self.sections.setdefault(section, {})
                assert isinstance(present, dict)
                for name, value in content.items():
                    strategy = self._strategy(environment, name)
                    present[name] = self._merged(name, present.get(name), value, strategy)
            else:
                self.sections[section] = _joined(self.sections.get(section), content)
        for name, strategy in environment.strategies.items():
            if name != _DEFAULT:
                self._strategies.setdefault(name, strategy)

    def _strategy(self, environment: Environment, name: str) -> Strategy:
        """Return the strategy of a parameter: from this file, from an earlier one, or the default of this file."""
        own, before = environment.strategies.get(name), self._strategies.get(name)
        if own is not None and before is not None and own is not before:
            document = environment.document
            message = f"Conflicting merge strategy '{own}' for parameter '{name}' in file '{document.source}'."
            document.problem(message, (STRATEGIES, name), ConflictingMergeStrategyForParam)
        usual = environment.strategies.get(_DEFAULT, Strategy.OVERWRITE)
        return own or before or usual

    def _merged(self, name: str, before: Json, value: Json, strategy: Strategy) -> Json:
        """Merge two values of a parameter. Values of a wrong type are not merged; `compile` reports them."""
        parameter = self._declared.get(name)
        if value is None:
            return before
        if before is None or parameter is None or strategy is Strategy.OVERWRITE:
            return copy.deepcopy(value)
        try:
            first, second = (convert(one, parameter.type, self._limits) for one in (before, value))
        except BadValue:
            return copy.deepcopy(value)
        if parameter.type is ParameterType.BOOLEAN:
            return bool(first) or bool(second)
        return _added(first, second, deep=strategy is Strategy.DEEP_MERGE)


def _added(first: Json, second: Json, *, deep: bool) -> Json:
    """Concatenate texts and lists, add numbers, join maps. Otherwise the second value wins."""
    if isinstance(first, dict) and isinstance(second, dict):
        result = dict(first)
        for key, value in second.items():
            if value is None:
                continue
            result[key] = _added(first[key], value, deep=True) if deep and key in first else copy.deepcopy(value)
        return result
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *copy.deepcopy(second)]
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    if numbers and not isinstance(first, bool) and not isinstance(second, bool):
        return first + second  # type: ignore[operator]  # Both are numbers.
    return copy.deepcopy(second)


def _joined(before: Json, after: Json) -> Json:
    """Merge sections without values: join maps at every depth, and add missing items to lists."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **{key: _joined(before.get(key), value) for key, value in after.items()}}
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *(copy.deepcopy(entry) for entry in after if entry not in before)]
    return copy.deepcopy(after)
