"""What a new text of a template has in common with the one before, so that only what differs is read.

An update of a large stack changes a few of its resources. A text in block style, as nearly everybody writes it, has a
line ``resources:``, and below it each resource begins in a line of its own, all as far to the right. So the text can be
cut into what is before, the resources, and what is behind. If what is before and behind is the same, so is what an
unchanged resource means: it depends on nothing else, but for which others there are. The rest, with all that is before
and behind, is a template by itself.

Where the lines mislead (a text in quotes that looks like resources, an alias from one to another, any other style)
there is no revision, or the reader makes something else of the part; then the whole text is read. What the reader found
out about the text before is what makes that safe: if there were as many resources as lines that begin one, and all
had the same names, no such line is in the middle of anything. That takes a text in which all lines end in the same way:
YAML knows other breaks.
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


class NoPart(ConvergenceError):
    """What was taken for a part of a text is none: its lines mislead."""


@dataclass(frozen=True, slots=True)
class AsRead:
    """What was read of the resources of a template, and what that took of the limits.

    :param definitions: as they were read, before the environment and other resources had a say.
    :param spent: on evaluating them.
    :param anew: how many were not taken over from what was read before.
    """

    text: ReadText
    definitions: Mapping[str, Definition]
    spent: Spent
    anew: int

    @classmethod
    def of(cls, document: ParsedDocument, definitions: Mapping[str, Definition], spent: Spent) -> Self | None:
        """What is to be kept of what was read; None where it is of no use for another text."""
        text = document.text
        return None if text is None or text.has_aliases else cls(text, definitions, spent, len(definitions))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A text that was cut.

    :param before: with the line ``resources:``, and what stands between it and the first resource.
    :param resources: the lines of each, by its name.
    """

    before: str
    resources: dict[str, str]
    behind: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The pieces of a text; None where it does not seem to be of the kind that can be cut."""
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
    """A text of which only a part has to be read.

    :param part: that part, a template itself.
    :param names: of all resources, in their order; nothing is said of them.
    :param unchanged: the definitions of those that are not in the part.
    :param earlier: what was read before.
    """

    part: str
    names: Mapping[str, None]
    unchanged: Mapping[str, Definition]
    earlier: AsRead

    @classmethod
    def of(cls, text: str, earlier: AsRead, limits: Limits) -> Self | None:
        """What is left to read of a text; None where it has to be read as a whole.

        :param earlier: what was read under the same circumstances: parameters, environment, files, limits.
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
        """See to it that the part is what it was taken for.

        A resource with a condition may not be there, on which what is said of the unchanged ones depends.

        :param root: what the reader has made of it.
        :raises NoPart: it is not.
        """
        keys = [_KEY.match(line) for line in _OUTERMOST.findall(self.part)]
        resources = root.get('resources') or {}
        if (
            [key and key[1] for key in keys] != [*root]
            or not isinstance(resources, dict)
            or [*resources] != [name for name in self.names if name not in self.unchanged]
            or any(isinstance(each, dict) and 'condition' in each for each in resources.values())
        ):
            raise NoPart('Read the text as a whole.')

    def whole(self, text: str, part: AsRead, limits: Limits) -> AsRead | None:
        """What was read of the whole text, at most; None where that may be more than is allowed.

        :param part: what was read of the part.
        """
        before, now = self.earlier.text, part.text
        nodes, length = before.nodes + now.nodes, before.length + now.length
        if nodes > limits.max_nodes or length > limits.max_expanded_bytes:
            return None
        spent = self.earlier.spent + part.spent
        anew = len(self.names) - len(self.unchanged)
        return AsRead(ReadText(text, nodes, length, has_aliases=False), part.definitions, spent, anew)
