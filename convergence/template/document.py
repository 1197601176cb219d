"""A document: values, and for every one of them the place where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from convergence.core.model import Json
from convergence.documents import AnyJson
from convergence.errors import Place, StackValidationFailed
from convergence.template.positions import Mark, Position, Positions
from convergence.template.problems import Problems

LONGEST_KEY = 255
"""Characters of a key in the path of an error."""


class Map(dict[str, Json]):
    """A map read from text. `marks` has the positions of each key and its value."""

    __slots__ = ('marks',)

    def __init__(self) -> None:  # the class before it would do nothing, at a tenth of the cost of reading a document
        self.marks: dict[str, Positions] = {}


class Items(list[Json]):
    """A list read from text. `marks` has the position of each item."""

    __slots__ = ('marks',)

    def __init__(self) -> None:
        self.marks: list[Position] = []


def plain(value: AnyJson) -> AnyJson:
    """A value without the places where it stands."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def short(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """A path as errors show it: a key may be as long as the document."""
    return tuple(f'{key[:LONGEST_KEY]}…' if isinstance(key, str) and len(key) > LONGEST_KEY else key for key in path)


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text that a document was, and what reading it took of the limits.

    :param nodes: of the document after aliases are expanded. :param length: characters of those that are text.
    :param has_aliases: whether any part stands for another one.
    """

    text: str = field(repr=False)
    nodes: int
    length: int
    has_aliases: bool


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What was read, and the list in which its problems are collected.

    :param root: values as JSON; maps and lists know positions if the document was text.
    :param written: turns a path in `root` into that of the document, where that was arranged otherwise.
    :param text: None where it was no text, or where it was arranged otherwise.
    """

    source: str
    root: Json = field(repr=False)
    problems: Problems = field(repr=False, compare=False)
    written: Callable[[Sequence[str | int]], Sequence[str | int]] | None = field(default=None, repr=False)
    text: ReadText | None = field(default=None, repr=False, compare=False)

    def _path(self, path: Sequence[str | int]) -> tuple[str | int, ...]:
        """A path as errors show it."""
        return short(self.written(path) if self.written else path)

    def place(self, path: Sequence[str | int]) -> Place:
        """Where the value at `path` stands, or the nearest thing around it that has a position.

        A scalar has the position of its value, a map or a list that of its key.
        """
        node: Json = self.root
        found: Mark | None = None
        for index, element in enumerate(path):
            if isinstance(node, Map) and isinstance(element, str) and element in node.marks:
                marks = node.marks[element]
                node = node[element]
                scalar = node is not None and not isinstance(node, dict | list)
                # An unknown last element means that something is missing here: the key of the map is shown.
                found = marks.value if scalar and index == len(path) - 1 else marks.key
            elif isinstance(node, Items) and isinstance(element, int) and 0 <= element < len(node):
                found = node.marks[element]
                node = node[element]
            else:
                break
        if found is None:
            known = 1 if isinstance(self.root, Map | Items) else 0
            return Place(known, known, self.source, self._path(path))
        return Place(found.line + 1, found.column + 1, self.source, self._path(path))

    def key_place(self, path: Sequence[str | int]) -> Place:
        """Where the key at the end of `path` stands; otherwise like `place`."""
        node: Json = self.root
        for element in path[:-1]:
            if isinstance(node, dict) and isinstance(element, str):
                node = node.get(element)
            elif isinstance(node, list) and isinstance(element, int) and 0 <= element < len(node):
                node = node[element]
        last = path[-1] if path else None
        if isinstance(node, Map) and isinstance(last, str) and last in node.marks:
            mark = node.marks[last].key
            return Place(mark.line + 1, mark.column + 1, self.source, self._path(path))
        return self.place(path)

    def problem(
        self,
        message: str,
        path: Sequence[str | int],
        kind: type[StackValidationFailed] = StackValidationFailed,
    ) -> None:
        """Remember that the value at `path` is wrong."""
        self.problems.add(message, self.place(path), kind)

    def key_warning(self, message: str, path: Sequence[str | int]) -> None:
        """Remember that what the key at the end of `path` has is probably not what its author means."""
        self.problems.warn(message, self.key_place(path))

    def key_problem(
        self,
        message: str,
        path: Sequence[str | int],
        kind: type[StackValidationFailed] = StackValidationFailed,
    ) -> None:
        """Remember that the key at the end of `path` is wrong."""
        self.problems.add(message, self.key_place(path), kind)
