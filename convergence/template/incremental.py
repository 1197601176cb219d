"""Incremental parse: compares a new text of a template with the previous one, and reads only changed resources.

An update of a large stack changes a few of its resources. A text in block style has a line ``resources:``; below it,
each resource begins in a line of its own with the same indentation. The text is cut into a head, the resources, and a
tail. If head and tail are equal, an unchanged line block means the same resource as before: a resource depends only on
head, tail and the names of the others. Head, changed resources and tail form a smaller template, which is compiled.

The cut can be wrong: a quoted text may look like resources, an alias may lead from one resource to another, or the text
has another style. Then there is no revision, or the compiled part differs from the expected one, and the whole text is
read. The previous parse makes this safe: if it found as many resources as lines that begin one, with the same names,
no such line is inside of another value. This needs equal line ends; YAML knows other line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from convergence.core.model import Definition, Json
from convergence.errors import ConvergenceError
from convergence.template.document import ParsedDocument, ReadText
from convergence.template.limits import Limits, Spent

_RESOURCES = re.compile(r'^resources: *\n', re.MULTILINE)
_OTHER_BREAKS = re.compile('[\r\x85\u2028\u2029]')
_KEY = re.compile(r'([A-Za-z0-9_][A-Za-z0-9_.-]*):(?=[ \n]|$)')
_FIRST = re.compile(r'^( +)[^ #\n]', re.MULTILINE)
_OUTERMOST = re.compile(r'^[^ #\n].*', re.MULTILINE)


class NotAPart(ConvergenceError):
    """The compiled part differs from the expected one: the cut was wrong."""


@dataclass(frozen=True, slots=True)
class ParseState:
    """The state of a parse that the next one reuses.

    :param definitions: the definitions before the environment and other resources apply.
    :param spent: the budget used by evaluating them.
    :param compiled_count: number of definitions that were compiled and not reused.
    """

    text: ReadText
    definitions: Mapping[str, Definition]
    spent: Spent
    compiled_count: int

    @classmethod
    def of(cls, document: ParsedDocument, definitions: Mapping[str, Definition], spent: Spent) -> Self | None:
        """Return the state to keep; None if another text cannot reuse it."""
        text = document.text
        return None if text is None or text.has_aliases else cls(text, definitions, spent, len(definitions))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A text cut into pieces.

    :param before: the head, up to the first resource.
    :param resources: the lines of each resource by name.
    """

    before: str
    resources: dict[str, str]
    behind: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the pieces of a text; None if it cannot be cut."""
        lines = _RESOURCES.search(text)
        if lines is None or _OTHER_BREAKS.search(text):
            return None
        first = _FIRST.search(text, lines.end())
        if first is None:
            return None
        indent = len(first[1])
        begins: list[tuple[str, int]] = []
        behind = len(text)
        for line in re.compile(rf'^( {{0,{indent}}})[^ #\n].*', re.MULTILINE).finditer(text, lines.end()):
            if not line[1]:
                behind = line.start()
                break
            key = _KEY.match(text, line.end(1)) if len(line[1]) == indent else None
            if key is None:
                return None
            begins.append((key[1], line.start()))
        if not begins:
            return None
        ends = [*(start for _, start in begins[1:]), behind]
        resources = {name: text[start:end] for (name, start), end in zip(begins, ends, strict=True)}
        if len(resources) != len(begins):
            return None
        return cls(text[: begins[0][1]], resources, text[behind:])


@dataclass(frozen=True, slots=True)
class Revision:
    """A text of which only a part has to be compiled.

    :param part: the part, a template itself.
    :param names: names of all resources, in their order.
    :param unchanged: the definitions of the resources outside the part.
    :param earlier: the state of the previous parse.
    """

    part: str
    names: Mapping[str, None]
    unchanged: Mapping[str, Definition]
    earlier: ParseState

    @classmethod
    def of(cls, text: str, earlier: ParseState, limits: Limits) -> Self | None:
        """Return the part of a text to compile; None if the whole text has to be compiled.

        :param earlier: the state of a parse with the same parameters, environment, files and limits.
        """
        if len(text.encode(errors='surrogatepass')) > limits.max_bytes:
            return None
        old, new = _Pieces.of(earlier.text.text), _Pieces.of(text)
        if old is None or new is None or (old.before, old.behind) != (new.before, new.behind):
            return None
        if [*old.resources] != [*earlier.definitions]:
            return None
        known, lines, names = earlier.definitions, old.resources, new.resources.keys()
        unchanged = {name: known[name] for name, each in new.resources.items() if lines.get(name) == each}
        if not names >= lines.keys() and not all(names >= {*each.requires} for each in unchanged.values()):
            return None
        changed = [each for name, each in new.resources.items() if name not in unchanged]
        return cls(''.join((new.before, *changed, new.behind)), dict.fromkeys(new.resources), unchanged, earlier)

    def refuse_other(self, root: Mapping[str, Json]) -> None:
        """Verify that the compiled part has the expected resources.

        A resource with a condition may not exist, and unchanged resources depend on that.

        :param root: the parsed part.
        :raises NotAPart: the part differs.
        """
        keys = [_KEY.match(line) for line in _OUTERMOST.findall(self.part)]
        resources = root.get('resources') or {}
        if (
            [key and key[1] for key in keys] != [*root]
            or not isinstance(resources, dict)
            or [*resources] != [name for name in self.names if name not in self.unchanged]
            or any(isinstance(each, dict) and 'condition' in each for each in resources.values())
        ):
            raise NotAPart('Read the text as a whole.')

    def whole(self, text: str, part: ParseState, limits: Limits) -> ParseState | None:
        """Return the size of the whole text, at most; None if it may exceed a limit.

        :param part: the size of the part.
        """
        before, now = self.earlier.text, part.text
        nodes, length = before.nodes + now.nodes, before.length + now.length
        if nodes > limits.max_nodes or length > limits.max_expanded_bytes:
            return None
        spent = self.earlier.spent + part.spent
        compiled_count = len(self.names) - len(self.unchanged)
        return ParseState(ReadText(text, nodes, length, has_aliases=False), part.definitions, spent, compiled_count)
