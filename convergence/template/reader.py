"""Reads YAML text from the parser's events, and refuses hostile documents before they take much memory.

The parser keeps no tree and does not recurse, so reading can stop at any event. Checking a composed document would be
too late: deep nesting crashes the C composer.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml
from yaml.reader import ReaderError

from convergence.core.model import Json
from convergence.errors import Place, StackValidationFailed
from convergence.template import scalars
from convergence.template.document import Items, Map, ParsedDocument, ReadText, short
from convergence.template.limits import Limits, exceeded
from convergence.template.positions import Mark, Position, Positions
from convergence.template.problems import Problems

_Loader: Any = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)


_CONTROL = re.compile('[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ufffd\U00010000-\U0010ffff]')
"""Characters that YAML does not allow in a document."""


SHORT = 40
"""Maximum number of characters of an interned word. Keys and types repeat in every resource."""


class _MergeKey(str):
    """The unquoted key `<<`. The quoted text "<<" is another object."""

    __slots__ = ()


_MERGE = _MergeKey('<<')


class _Anchored:
    """The target of an alias, and its size."""

    __slots__ = ('height', 'nodes', 'text', 'value')

    def __init__(self, value: Json, nodes: int, text: int, height: int) -> None:
        self.value = value
        self.nodes = nodes
        self.text = text
        self.height = height


class _Frame:
    """A map or list that is being read.

    :ivar is_map: True for a map.
    :ivar key: the key of the next value; None while a map expects a key.
    :ivar height: levels of nesting inside.
    :ivar merges: the maps after `<<`.
    """

    __slots__ = ('anchor', 'height', 'is_map', 'key', 'key_mark', 'mark', 'merges', 'nodes', 'text', 'value')

    def __init__(self, value: Map | Items, mark: Mark, anchor: str | None, nodes: int, text: int) -> None:
        self.value = value
        self.is_map = type(value) is Map
        self.mark = mark
        self.anchor = anchor
        self.nodes = nodes
        self.text = text
        self.height = 1
        self.key: str | None = None
        self.key_mark: Mark = mark
        self.merges: list[Map] | None = None


class TemplateReader:
    """Reads one document. Use `read_text`."""

    def __init__(self, text: str, source: str, limits: Limits, problems: Problems) -> None:
        self._text = text
        self._source = source
        self._limits = limits
        self._max_nodes, self._max_length = limits.max_nodes, limits.max_expanded_bytes
        self._problems = problems
        self._dialect = scalars.NumberNotation.JSON if text.lstrip()[:1] == '{' else scalars.NumberNotation.YAML
        self._frames: list[_Frame] = []
        self._frame: _Frame | None = None
        self._anchors: dict[str, _Anchored | None] = {}
        self._words: dict[str, str] = {}
        self._root: Json = None
        self._documents = 0
        self._aliases = 0
        self._nodes = 0
        self._length = 0

    def read(self) -> ParsedDocument:
        """Return the document.

        :raises yaml.YAMLError: not YAML.
        :raises StackValidationFailed: an error after which reading cannot continue.
        :raises RequestLimitExceeded: too large, too deep.
        """
        loader = _Loader(self._text)
        next_event = loader.get_event
        try:
            while (event := next_event()) is not None:
                kind = event.__class__
                if kind is yaml.ScalarEvent:
                    self._scalar(event)
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    self._close()
                elif kind is yaml.MappingStartEvent:
                    self._open(Map(), event, 'map')
                elif kind is yaml.SequenceStartEvent:
                    self._open(Items(), event, 'seq')
                elif kind is yaml.AliasEvent:
                    self._alias(event)
                elif kind is yaml.DocumentStartEvent:
                    self._documents += 1
                    if self._documents > 1:
                        self._give_up('only one YAML document is expected here; remove the line with "---"', event)
        finally:
            loader.dispose()
        text = ReadText(self._text, self._nodes, self._length, self._aliases > 0)
        return ParsedDocument(self._source, self._root, self._problems, text=text)

    # --- events -----------------------------------------------------------------------------------------------

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        mark: Mark = event.start_mark
        is_plain: bool = event.implicit[0]
        size = len(text)
        if size <= SHORT:
            text = self._words.setdefault(text, text)
        self._nodes += 1
        self._length += size
        if self._nodes > self._max_nodes or self._length > self._max_length:
            self._too_large(mark)
        if not is_plain and '\0' in text:  # Only an escape sequence can produce it.
            self._problem(scalars.NUL_PROBLEM, mark)
        frame = self._frame
        if frame is not None and frame.is_map and frame.key is None:
            if event.anchor:
                self._anchors[event.anchor] = _Anchored(text, 1, size, 0)
            if is_plain and text in scalars.WORDS and scalars.WORDS[text] is None:
                self._give_up('a key of a map is empty or null; name it, or put it in quotes', event)
            self._key(frame, text, mark, plain=is_plain)
            return
        value: Json = text
        try:
            if is_plain:
                value = scalars.plain(text, self._limits.max_number_length, self._dialect)
            elif event.tag is not None:
                value = scalars.tagged(text, event.tag, self._limits.max_number_length, self._dialect)
        except scalars.BadScalar as error:
            self._problem(str(error), mark)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1, size, 0)
        self._add(value, mark)

    def _open(self, value: Map | Items, event: Any, tag: str) -> None:
        mark: Mark = event.start_mark
        frame = self._frame
        if frame is not None and frame.is_map and frame.key is None:
            self._give_up('a key must be text; to use { or [ in a key, put it in quotes', event)
        if len(self._frames) >= self._limits.max_depth:
            self._too_deep(mark)
        if event.tag is not None and event.tag not in ('!', scalars.TAG + tag):
            self._problem(f'the tag {event.tag[:80]} has no meaning here; remove it', mark)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._frame = _Frame(value, mark, event.anchor, self._nodes, self._length)
        self._frames.append(self._frame)
        self._nodes += 1
        if self._nodes > self._max_nodes:
            self._too_large(mark)

    def _close(self) -> None:
        frame = self._frames.pop()
        value = frame.value
        if frame.merges and type(value) is Map:
            value = _merged(value, frame.merges)
        if frame.anchor:
            self._anchors[frame.anchor] = _Anchored(
                value, self._nodes - frame.nodes, self._length - frame.text, frame.height
            )
        self._frame = outer = self._frames[-1] if self._frames else None
        if outer is not None and outer.height <= frame.height:
            outer.height = frame.height + 1
        self._add(value, frame.mark)

    def _alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            if event.anchor in self._anchors:
                self._give_up(f'the alias *{event.anchor} is used inside of what it stands for', event)
            self._give_up(f'the alias *{event.anchor} stands for nothing; define it before with &{event.anchor}', event)
        self._aliases += 1
        if self._aliases > self._limits.max_aliases:
            raise exceeded('max_aliases', self._limits.max_aliases, 'too many aliases', self._place(event.start_mark))
        self._nodes += anchored.nodes
        self._length += anchored.text
        if self._nodes > self._max_nodes or self._length > self._max_length:
            self._too_large(event.start_mark)
        frame = self._frame
        if frame is None:
            self._give_up('a document cannot be an alias', event)
        if len(self._frames) + anchored.height > self._limits.max_depth:
            self._too_deep(event.start_mark)
        frame.height = max(frame.height, anchored.height + 1)
        if frame.is_map and frame.key is None:
            if not isinstance(anchored.value, str):
                self._give_up('a key must be text', event)
            self._key(frame, anchored.value, event.start_mark, plain=False)
        else:
            self._add(anchored.value, event.start_mark)

    # --- building ---------------------------------------------------------------------------------------------

    def _key(self, frame: _Frame, key: str, mark: Mark, *, plain: bool) -> None:
        frame.key_mark = mark
        if plain and key == _MERGE:
            frame.key = _MERGE
            if frame.merges is not None:
                self._problem('"<<" is given twice; write it once, with a list of maps', mark)
            else:
                frame.merges = []
            return
        frame.key = key
        assert isinstance(frame.value, Map)
        if key in frame.value:
            first = frame.value.marks[key].key
            self._problem(
                f'the key "{key[:80]}" is given twice, first in line {first.line + 1}, again in line {mark.line + 1}',
                mark,
            )

    def _add(self, value: Json, mark: Mark) -> None:
        frame = self._frame
        if frame is None:
            self._root = value
            return
        container = frame.value
        if type(container) is Map:
            key = frame.key
            assert key is not None
            frame.key = None
            if key is _MERGE:
                self._merge(frame, value, mark)
                return
            container[key] = value
            container.marks[key] = Positions.of(frame.key_mark, mark)
        elif type(container) is Items:
            container.append(value)
            container.marks.append(Position.of(mark))

    def _merge(self, frame: _Frame, value: Json, mark: Mark) -> None:
        merges = frame.merges
        assert merges is not None
        maps = value if isinstance(value, list) else [value]
        for merged in maps:
            if isinstance(merged, Map):
                merges.append(merged)
            else:
                self._problem('"<<" must be followed by a map or a list of maps', mark)

    # --- saying no --------------------------------------------------------------------------------------------

    def _too_large(self, mark: Mark) -> NoReturn:
        if self._nodes > self._max_nodes:
            raise exceeded('max_nodes', self._max_nodes, 'the document has too many values', self._place(mark))
        subject = 'the document has too much text after its aliases are expanded'
        raise exceeded('max_expanded_bytes', self._max_length, subject, self._place(mark))

    def _too_deep(self, mark: Mark) -> NoReturn:
        place = Place(mark.line + 1, mark.column + 1, self._source)
        raise exceeded('max_depth', self._limits.max_depth, 'maps and lists are nested too deeply', place)

    def _place(self, mark: Mark) -> Place:
        path = [frame.key or '' if frame.is_map else len(frame.value) for frame in self._frames]
        return Place(mark.line + 1, mark.column + 1, self._source, short([key for key in path if key != '']))

    def _problem(self, message: str, mark: Mark) -> None:
        self._problems.add(message, self._place(mark))

    def _give_up(self, message: str, event: Any) -> NoReturn:
        self._problem(message, event.start_mark)
        self._problems.raise_any()
        raise StackValidationFailed(message)


def _merged(own: Map, merges: list[Map]) -> Map:
    """Return the map with its merged maps. Its own keys win, then those of the first merged map."""
    result = Map()
    for merged in merges:
        for key, value in merged.items():
            if key not in result:
                result[key] = value
                result.marks[key] = merged.marks[key]
    result.update(own)
    result.marks.update(own.marks)
    return result


def read_text(text: str, source: str, limits: Limits, problems: Problems) -> ParsedDocument:
    """Return the document of YAML or JSON text.

    :param source: its name in errors, for example ``template``.
    :raises StackValidationFailed: the text is not YAML. Lesser problems are added to `problems`.
    :raises RequestLimitExceeded: too large, too deep.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        problems.add('half of a surrogate pair is not a character', place_of(text, error.start, source))
        problems.raise_any()
        raise
    if size > limits.max_bytes:
        raise exceeded('max_bytes', limits.max_bytes, f'the {source} has {size} bytes')
    return TemplateReader(text, source, limits, problems).read()


def place_of(text: str, position: int, source: str) -> Place:
    """Return the place of a character of the text."""
    return Place(text.count('\n', 0, position) + 1, position - text.rfind('\n', 0, position), source)


def syntax_problem(error: yaml.YAMLError, text: str, source: str) -> tuple[str, Place | None]:
    """Return message and place of an error of the YAML parser."""
    mark = getattr(error, 'problem_mark', None) or getattr(error, 'context_mark', None)
    if isinstance(error, ReaderError) and (control := _CONTROL.search(text)):
        place: Place | None = place_of(text, control.start(), source)
    else:
        place = Place(mark.line + 1, mark.column + 1, source) if mark else None
    what = getattr(error, 'problem', None) or getattr(error, 'reason', None) or 'it cannot be read'
    context = getattr(error, 'context', None)
    hint = _remedy(f'{what} ({context})', _character(text, mark)) if mark else ''
    return f'the {source} is not valid YAML: {what}{f" ({context})" if context else ""}{hint}', place


def _remedy(what: str, character: str) -> str:
    """Return the remedy for a frequent mistake, as the end of a sentence.

    :param what: the message of the parser.
    :param character: the character at which it stopped.
    """
    if character == '\t':
        return '; indent with spaces, not with tabs'
    if 'cannot start any token' in what:
        return f'; put a text that begins with {character} in quotes'
    if 'mapping values are not allowed' in what:
        return '; put a text that has a colon and a space in it in quotes'
    if 'undefined alias' in what or 'scanning an alias' in what:
        return '; put a text that begins with * in quotes'
    return ''


def _character(text: str, mark: Mark) -> str:
    """Return the character at a position; empty at the end of a line."""
    lines = text.split('\n')
    return lines[mark.line][mark.column : mark.column + 1] if mark.line < len(lines) else ''
