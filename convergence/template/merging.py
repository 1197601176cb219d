"""Makes one environment of several files, and of what was sent besides them."""

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
    """One environment: that of the files, merged with each other as they themselves say, laid over what was `given`.

    :param names: of the files, in order; later ones win.
    :param files: their texts, by name.
    :param given: the sections that came with the request.
    :param declared: the parameters of the template; how two values are merged depends on their type.
    :raises StackValidationFailed: with every problem of the files.
    :raises Invalid: the names are not a list of names.
    """
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise Invalid('environment_files: a list of names is wanted')
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
    """Two environments in one: where both say something, `above` wins; maps of types and lists are joined."""
    result: dict[str, Json] = dict(below)
    for section, content in above.items():
        before = result.get(section)
        if section in VALUES and isinstance(before, dict) and isinstance(content, dict):
            result[section] = {**before, **content}
        else:
            result[section] = _joined(before, content)
    return result


class _Merging:
    """The sections of the files so far. Each of them is right in itself."""

    def __init__(self, declared: Mapping[str, Parameter], limits: Limits) -> None:
        self.sections: dict[str, Json] = {}
        self._declared = declared
        self._limits = limits
        self._strategies: dict[str, Strategy] = {}

    def add(self, environment: Environment) -> None:
        """Merge one more file. Strategies that contradict each other go to its problems."""
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
        """How a parameter is merged: as this file says, as one before it said, or as is usual in this file."""
        own, before = environment.strategies.get(name), self._strategies.get(name)
        if own is not None and before is not None and own is not before:
            document = environment.document
            message = f"Conflicting merge strategy '{own}' for parameter '{name}' in file '{document.source}'."
            document.problem(message, (STRATEGIES, name), ConflictingMergeStrategyForParam)
        usual = environment.strategies.get(_DEFAULT, Strategy.OVERWRITE)
        return own or before or usual

    def _merged(self, name: str, before: Json, value: Json, strategy: Strategy) -> Json:
        """Two values of a parameter in one. What cannot be read as its type is not merged: `compile` will tell."""
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
    """Texts and lists are put together, numbers added, maps joined; the second wins where nothing else makes sense."""
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
    """Sections that are no values: maps joined at every depth, lists without what is there already."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **{key: _joined(before.get(key), value) for key, value in after.items()}}
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *(copy.deepcopy(entry) for entry in after if entry not in before)]
    return copy.deepcopy(after)
