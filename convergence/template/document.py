"""A parsed document: values with their places in the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from convergence.core.model import Json
from convergence.documents import AnyJson
from convergence.errors import Place, StackValidationFailed
from convergence.template.positions import Mark, Position, Positions
from convergence.template.problems import Problems

LONGEST_KEY = 255
"""Maximum number of characters of a key in the path of an error."""


class Map(dict[str, Json]):
    """A map read from text. `marks` has the positions of each key and its value."""

    __slots__ = ('marks',)

    def __init__(
        self,
    ) -> None:  # super().__init__ would do nothing, and would take a tenth of the time of reading a document.
        self.marks: dict[str, Positions] = {}


class Items(list[Json]):
    """A list read from text. `marks` has the position of each item."""

    __slots__ = ('marks',)

    def __init__(self) -> None:
        self.marks: list[Position] = []


def plain(value: AnyJson) -> AnyJson:
    """Return a value without places."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def short(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return a path for an error, with long keys cut: a key may be as long as the document."""
    return tuple(f'{key[:LONGEST_KEY]}…' if isinstance(key, str) and len(key) > LONGEST_KEY else key for key in path)


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a document, and its size as counted against the limits.

    :param nodes: number of nodes after expanding aliases. :param length: characters of the text nodes.
    :param has_aliases: True if the document uses aliases.
    """

    text: str = field(repr=False)
    nodes: int
    length: int
    has_aliases: bool


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document with the collection of its problems.

    :param root: values as JSON; maps and lists have positions if the document was text.
    :param written: turns a path in `root` into the path in the text, if the document was rearranged.
    :param text: the text; None if the document was not text, or was rearranged.
    """

    source: str
    root: Json = field(repr=False)
    problems: Problems = field(repr=False, compare=False)
    written: Callable[[Sequence[str | int]], Sequence[str | int]] | None = field(default=None, repr=False)
    text: ReadText | None = field(default=None, repr=False, compare=False)

    def _path(self, path: Sequence[str | int]) -> tuple[str | int, ...]:
        """Return a path for an error."""
        return short(self.written(path) if self.written else path)

    def place(self, path: Sequence[str | int]) -> Place:
        """Return the place of the value at `path`, or of the nearest enclosing value with a position.

        The place of a scalar is that of its value; the place of a map or a list is that of its key.
        """
        node: Json = self.root
        found: Mark | None = None
        for index, element in enumerate(path):
            if isinstance(node, Map) and isinstance(element, str) and element in node.marks:
                marks = node.marks[element]
                node = node[element]
                scalar = node is not None and not isinstance(node, dict | list)
                # An unknown last element is missing from the map: show the key of the map.
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
        """Return the place of the last key of `path`; otherwise like `place`."""
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
        """Report an error at the value of `path`."""
        self.problems.add(message, self.place(path), kind)

    def key_warning(self, message: str, path: Sequence[str | int]) -> None:
        """Report a warning at the last key of `path`."""
        self.problems.warn(message, self.key_place(path))

    def key_problem(
        self,
        message: str,
        path: Sequence[str | int],
        kind: type[StackValidationFailed] = StackValidationFailed,
    ) -> None:
        """Report an error at the last key of `path`."""
        self.problems.add(message, self.key_place(path), kind)
