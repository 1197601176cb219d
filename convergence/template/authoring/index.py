"""An index of the names in a template: their declarations and uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from convergence.core.model import Json
from convergence.template.authoring.bundle import KeyPath
from convergence.template.document import Items, Map, ParsedDocument
from convergence.template.positions import Mark


class NameKind(StrEnum):
    """The kind of a declared item."""

    PARAMETER = 'parameter'
    RESOURCE = 'resource'
    CONDITION = 'condition'
    MAPPING = 'mapping'
    OUTPUT = 'output'


SECTIONS: Mapping[str, NameKind] = {
    'parameters': NameKind.PARAMETER,
    'resources': NameKind.RESOURCE,
    'conditions': NameKind.CONDITION,
    'outputs': NameKind.OUTPUT,
    'Parameters': NameKind.PARAMETER,
    'Resources': NameKind.RESOURCE,
    'Conditions': NameKind.CONDITION,
    'Mappings': NameKind.MAPPING,
    'Outputs': NameKind.OUTPUT,
}
"""The kind of item that the keys of each section declare."""

REFERENCES: Mapping[str, tuple[NameKind, ...]] = {
    'get_param': (NameKind.PARAMETER,),
    'get_resource': (NameKind.RESOURCE,),
    'get_attr': (NameKind.RESOURCE,),
    'if': (NameKind.CONDITION,),
    'Ref': (NameKind.PARAMETER, NameKind.RESOURCE),
    'Fn::GetAtt': (NameKind.RESOURCE,),
    'Fn::If': (NameKind.CONDITION,),
    'Fn::FindInMap': (NameKind.MAPPING,),
    'Condition': (NameKind.CONDITION,),
}
"""The kinds of item that the first argument of a function can name."""

_LOGIC = ('and', 'or', 'not', 'Fn::And', 'Fn::Or', 'Fn::Not')
_NEEDED = ('depends_on', 'DependsOn')
_CONDITIONAL = ('condition', 'Condition')
_CALLS_WITH_PARTS = ('Fn::GetAtt',)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A declaration or use of a name.

    :param line: line of its first character; `column`: its column. Both count from 0.
    :param path: the keys that lead to it.
    """

    kind: NameKind
    name: str
    line: int
    column: int
    path: KeyPath
    declares: bool = False

    def covers(self, line: int, column: int) -> bool:
        """Return True if a position is in the name, or directly after it."""
        return self.line == line and self.column <= column <= self.column + len(self.name)


class TemplateIndex:
    """The names of one template.

    :param text: the template, to find quotes around names; empty if columns do not matter.
    :ivar is_whole: True if all used names are known; False if a function computes one.
    """

    def __init__(self, document: ParsedDocument, text: str = '') -> None:
        self.is_whole = True
        self._lines = text.split('\n')
        root: Mapping[str, Any] = document.root if isinstance(document.root, dict) else {}
        self._declared: dict[NameKind, dict[str, Occurrence]] = {kind: {} for kind in NameKind}
        for section, kind in SECTIONS.items():
            entries = root.get(section)
            if isinstance(entries, Map):
                for name, marks in entries.marks.items():
                    self._declared[kind][name] = self._occurrence(kind, name, marks.key, (section, name), declares=True)
        self._used = list(self._uses(root))
        self._listed = list(self._in_groups(root))

    def declared(self, kind: NameKind) -> Mapping[str, Occurrence]:
        """Return the declarations of a kind by name."""
        return self._declared[kind]

    def uses(self, kind: NameKind, name: str) -> list[Occurrence]:
        """Return the uses of a name."""
        return [each for each in self._used if (each.kind, each.name) == (kind, name)]

    def at(self, line: int, column: int) -> Occurrence | None:
        """Return the name at a position; None without one."""
        everything = (each for declared in self._declared.values() for each in declared.values())
        return next((each for each in (*everything, *self._used, *self._listed) if each.covers(line, column)), None)

    def everywhere(self, found: Occurrence) -> list[Occurrence]:
        """Return all occurrences of the same item, its declaration first."""
        declared = self._declared[found.kind].get(found.name)
        listed = [each for each in self._listed if (each.kind, each.name) == (found.kind, found.name)]
        return [*([declared] if declared is not None else []), *self.uses(found.kind, found.name), *listed]

    def _uses(self, root: Mapping[str, Any]) -> Iterator[Occurrence]:
        for section, entries in root.items():
            if section not in SECTIONS or not isinstance(entries, dict):
                continue
            kind = SECTIONS[section]
            for name, body in entries.items():
                path = (section, name)
                if kind in (NameKind.RESOURCE, NameKind.OUTPUT) and isinstance(body, Map):
                    yield from self._of_definition(body, path)
                elif kind is not NameKind.PARAMETER:
                    yield from self._in(body, path, is_condition=kind is NameKind.CONDITION)

    def _in_groups(self, root: Mapping[str, Any]) -> Iterator[Occurrence]:
        """Yield the parameters in parameter groups. They do not count as uses: groups only arrange the display."""
        groups = root.get('parameter_groups')
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            if isinstance(group, Map) and 'parameters' in group:
                path = ('parameter_groups', number, 'parameters')
                yield from self._named(group['parameters'], group.marks['parameters'].value, path, NameKind.PARAMETER)

    def _of_definition(self, body: Map, path: KeyPath) -> Iterator[Occurrence]:
        for key, value in body.items():
            if key in _CONDITIONAL and isinstance(value, str):
                yield self._occurrence(NameKind.CONDITION, value, body.marks[key].value, (*path, key))
            elif key in _NEEDED:
                yield from self._named(value, body.marks[key].value, (*path, key), NameKind.RESOURCE)
            else:
                yield from self._in(value, (*path, key), is_condition=key in _CONDITIONAL)

    def _named(self, value: Json, mark: Mark, path: KeyPath, kind: NameKind) -> Iterator[Occurrence]:
        """Yield one name, or each name of a list."""
        if isinstance(value, str):
            yield self._occurrence(kind, value, mark, path)
        elif isinstance(value, Items):
            for index, item in enumerate(value):
                if isinstance(item, str):
                    yield self._occurrence(kind, item, value.marks[index], (*path, index))

    def _in(self, node: Json, path: KeyPath, *, is_condition: bool) -> Iterator[Occurrence]:
        """Yield the names that a value uses. Iterative, because values may be nested deeply."""
        pending: list[tuple[Json, KeyPath]] = [(node, path)]
        while pending:
            value, where = pending.pop()
            if isinstance(value, Map):
                if len(value) == 1:
                    ((key, argument),) = value.items()
                    yield from self._of_call(key, argument, value.marks[key].value, (*where, key), is_condition)
                pending += [(each, (*where, key)) for key, each in value.items()]
            elif isinstance(value, list):
                pending += [(each, (*where, index)) for index, each in enumerate(value)]

    def _of_call(
        self, function: str, argument: Json, mark: Mark, path: KeyPath, is_condition: bool
    ) -> Iterator[Occurrence]:
        if is_condition and function in _LOGIC:
            yield from self._named(argument, mark, path, NameKind.CONDITION)
        kinds = REFERENCES.get(function, ())
        if not kinds or (function == 'Condition' and not is_condition):
            return
        first, place, where = argument, mark, path
        if isinstance(argument, Items) and argument:
            first, place, where = argument[0], argument.marks[0], (*path, 0)
        if isinstance(first, str):
            name = first.partition('.')[0] if function in _CALLS_WITH_PARTS else first
            yield self._occurrence(self._kind(name, kinds), name, place, where)
        elif isinstance(first, dict):
            self.is_whole = False

    def _kind(self, name: str, kinds: Sequence[NameKind]) -> NameKind:
        return next((kind for kind in kinds if name in self._declared[kind]), kinds[0])

    def _occurrence(
        self, kind: NameKind, name: str, mark: Mark, path: KeyPath, *, declares: bool = False
    ) -> Occurrence:
        line = self._lines[mark.line] if mark.line < len(self._lines) else ''
        quoted = line[mark.column : mark.column + 1] in ('"', "'")
        return Occurrence(kind, name, mark.line, mark.column + quoted, path, declares)
