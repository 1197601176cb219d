"""Functions that return lists and maps."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.encoding import entries_of, escaped
from convergence.template.functions.base import Evaluating, EvaluationFailed, Function, is_call, type_name, wrong_keys
from convergence.template.functions.text import json_text, replace
from convergence.template.limits import CALL_STEPS, COMPARISON_STEPS, ITEM_BYTES, Budget


class Repeat(Function):
    """A template once for each item of a list, or for each combination of the items of several lists."""

    name: ClassVar[str] = 'repeat'
    code: ClassVar[str] = 'repeat'
    keys: ClassVar[frozenset[str]] = frozenset({'template', 'for_each'})
    iterable: ClassVar[tuple[type, ...]] = (list,)
    """The sources of items."""

    @override
    def check(self, argument: Json) -> None:
        """Require a map of template and for_each, the latter a map of lists."""
        if is_call(argument):
            return
        entries = entries_of(argument)
        if entries is None or not {'template', 'for_each'} <= set(entries) <= self.keys:
            optional = ', '.join(sorted(self.keys - {'template', 'for_each'}))
            more = f'; it may have {optional}' if optional else ''
            what = f'repeat needs a map with the keys template and for_each{more}'
            raise wrong_keys(what, entries or (), sorted(self.keys, reverse=True))
        for_each = entries['for_each']
        if is_call(for_each):
            return
        lists = entries_of(for_each)
        if not lists:
            raise EvaluationFailed('repeat: for_each must be a map of one or more lists, by what they replace.')
        if '' in lists:
            raise EvaluationFailed('repeat: a key of for_each is empty; nothing can be found by it.')
        for key, items in lists.items():
            if not (items is None or is_call(items) or isinstance(items, self.iterable)):
                raise EvaluationFailed(f'repeat: the items of {key} must be a list, not {type_name(items)}.')
        self._permutations(entries)

    def _permutations(self, entries: dict[str, Json]) -> bool:
        permutations = entries.get('permutations', True)
        if is_call(permutations) or isinstance(permutations, bool):
            return permutations is not False
        raise EvaluationFailed(f'repeat: permutations must be true or false, not {type_name(permutations)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the list of templates, filled in. The last key of for_each varies fastest."""
        self.check(escaped(argument))
        assert isinstance(argument, dict)
        for_each = argument['for_each']
        assert isinstance(for_each, dict)
        sources = for_each.values()
        lists: list[Sequence[Json]] = [[*items] if isinstance(items, dict | list) else [] for items in sources]
        combinations: Iterable[tuple[Json, ...]]
        if self._permutations(argument):
            count = math.prod(map(len, lists))
            combinations = itertools.product(*lists)
        else:
            count = len(lists[0]) if lists else 0
            if any(len(items) != count for items in lists):
                raise EvaluationFailed('repeat: without permutations, the lists of for_each must be equally long.')
            combinations = zip(*lists, strict=True)
        scope.budget.spend_text(ITEM_BYTES * count, self.name)
        scope.budget.spend_steps(count * (1 + len(lists)), self.name)
        template = argument['template']
        return [_filled(template, dict(zip(for_each, items, strict=True)), scope.budget) for items in combinations]


class RepeatOfMaps(Repeat):
    """A template once for each item of a list or key of a map, or for each combination of those of several."""

    code: ClassVar[str] = 'repeat@2016-10-14'
    iterable: ClassVar[tuple[type, ...]] = (list, dict)


class RepeatPermutations(RepeatOfMaps):
    """A template once for each item of a list or key of a map; several are combined, or gone through side by side."""

    code: ClassVar[str] = 'repeat@2017-09-01'
    keys: ClassVar[frozenset[str]] = frozenset({'template', 'for_each', 'permutations'})


def _filled(template: Json, values: dict[str, Json], budget: Budget) -> Json:
    """A template with each key of `values` replaced. Where a text is nothing but a key, the value keeps its type."""
    budget.spend_steps(1, 'repeat')
    budget.spend_text(ITEM_BYTES, 'repeat')
    if isinstance(template, str):
        if template not in values:
            return _replaced(template, values, budget)
        value = values[template]
        budget.spend_value(value, 'repeat')
        return value
    if isinstance(template, dict):
        return {_replaced(key, values, budget): _filled(value, values, budget) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(item, values, budget) for item in template]
    return template


def _replaced(text: str, values: dict[str, Json], budget: Budget) -> str:
    if not any(key in text for key in values):
        budget.spend_text(len(text), 'repeat')
        return text
    return replace(text, {key: _text(value, budget) for key, value in values.items()}, budget)


def _text(value: Json, budget: Budget) -> str:
    if value is None:
        return ''
    return json_text(value, budget, 'repeat') if isinstance(value, dict | list) else str(value)


class MapMerge(Function):
    """One map of several; where they have the same key, the last one wins."""

    name: ClassVar[str] = 'map_merge'
    code: ClassVar[str] = 'map_merge'

    @override
    def check(self, argument: Json) -> None:
        """Require a list of maps."""
        if is_call(argument):
            return
        if not isinstance(argument, list):
            raise EvaluationFailed(f'map_merge needs a list of maps, not {type_name(argument)}.')
        for item in argument:
            if not (item is None or isinstance(item, dict)):
                raise EvaluationFailed(f'map_merge: the items to merge must be maps, not {type_name(item)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the merged map."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        merged: dict[str, Json] = {}
        for item in argument:
            if isinstance(item, dict):
                scope.budget.spend_steps(len(item), self.name)
                merged.update(item)
        return merged


class MapReplace(Function):
    """A map with some of its keys and values replaced by others."""

    name: ClassVar[str] = 'map_replace'
    code: ClassVar[str] = 'map_replace'

    @override
    def check(self, argument: Json) -> None:
        """Require a map, and a map with the keys keys and values."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('map_replace needs a list: a map, and a map with the keys keys and values.')
        source, replacements = argument
        if not (source is None or isinstance(source, dict)):
            raise EvaluationFailed(f'map_replace: the first argument must be a map, not {type_name(source)}.')
        if is_call(replacements):
            return
        entries = entries_of(replacements)
        if entries is None or not set(entries) <= {'keys', 'values'}:
            raise EvaluationFailed('map_replace: the replacements must be a map with the keys keys and values.')
        for name, found in entries.items():
            if not (found is None or isinstance(found, dict)):
                raise EvaluationFailed(f'map_replace: {name} must be a map, not {type_name(found)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the map with its replacements."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        source, replacements = argument
        assert isinstance(source, dict | None)
        assert isinstance(replacements, dict)
        keys, values = (replacements.get(name) or {} for name in ('keys', 'values'))
        assert isinstance(keys, dict)
        assert isinstance(values, dict)
        result: dict[str, Json] = {}
        scope.budget.spend_steps(CALL_STEPS * len(source or {}), self.name)
        for key, value in (source or {}).items():
            new = keys.get(key)
            if new is None:
                name = key
            elif isinstance(new, dict | list):
                raise EvaluationFailed(f'map_replace: what replaces the key {key} must be a string.')
            else:
                name = str(new)
                if name in (source or {}) and name != key:
                    raise EvaluationFailed(f'map_replace: key replacement {name} collides with a key in the input map')
            if name in result:
                raise EvaluationFailed(f'map_replace: key replacement {name} collides with a key in the output map')
            replacement = values.get(_key(value)) if isinstance(value, str | int | float) else None
            result[name] = value if replacement is None else replacement
        return result


def _key(value: str | float) -> str:
    """A value as the key of a map, which is always text."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


class ListConcat(Function):
    """One list of several, in their order."""

    name: ClassVar[str] = 'list_concat'
    code: ClassVar[str] = 'list_concat'

    @override
    def check(self, argument: Json) -> None:
        """Require a list of lists."""
        if is_call(argument):
            return
        if not isinstance(argument, list):
            raise EvaluationFailed(f'{self.name} needs a list of lists, not {type_name(argument)}.')
        for items in argument:
            if not (items is None or is_call(items) or isinstance(items, list)):
                raise EvaluationFailed(f'{self.name}: the items to concatenate must be lists, not {type_name(items)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the items of all the lists."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        scope.budget.spend_text(sum(8 * len(items) for items in argument if isinstance(items, list)), self.name)
        return [item for items in argument if isinstance(items, list) for item in items]


class ListConcatUnique(ListConcat):
    """One list of several, in their order, without duplicates."""

    name: ClassVar[str] = 'list_concat_unique'
    code: ClassVar[str] = 'list_concat_unique'

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return each item once."""
        items = super().evaluate(argument, scope)
        assert isinstance(items, list)
        scope.budget.spend_value(items, self.name)
        scope.budget.spend_steps(COMPARISON_STEPS * len(items), self.name)
        return [*{json.dumps(item, sort_keys=True): item for item in items}.values()]


class Filter(Function):
    """A list without the items that have certain values."""

    name: ClassVar[str] = 'filter'
    code: ClassVar[str] = 'filter'

    @override
    def check(self, argument: Json) -> None:
        """Require a list of values, and the list to filter."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('filter needs a list: the values to leave out, and the list to leave them out of.')
        values, items = argument
        if not (is_call(values) or values is None or isinstance(values, list)):
            raise EvaluationFailed(f'filter: the values must be a list, not {type_name(values)}.')
        if not (is_call(items) or items is None or isinstance(items, list)):
            raise EvaluationFailed(f'filter: only a list can be filtered, not {type_name(items)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the remaining items. Null, as from an attribute without a value, filters nothing."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        values, items = argument
        if items is None:
            return None
        assert values is None or isinstance(values, list)
        assert isinstance(items, list)
        values = values or []
        scope.budget.spend_steps(COMPARISON_STEPS * (len(values) + len(items)), self.name)
        unwanted = {json.dumps(value, sort_keys=True) for value in values}
        return [item for item in items if json.dumps(item, sort_keys=True) not in unwanted]
