"""The document of an accepted template, kept as text.

The places of all values take more memory than the compiled template. They are needed only for later errors: a type is
not installed any more, or a preview reports that an update would be refused. Then the text is parsed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from convergence.errors import Place
from convergence.template.document import ParsedDocument
from convergence.template.limits import Limits
from convergence.template.opening import open_template
from convergence.template.problems import Problems
from convergence.template.sources import read


@dataclass(slots=True)
class SettledDocument:
    """Returns the same places as the original `ParsedDocument`.

    :param source: its name.
    :param text: None if the document was not text and has no lines.
    :param limits: the limits under which it was accepted.
    :param problems: its warnings.
    """

    source: str
    text: str | None = field(repr=False)
    limits: Limits
    problems: Problems = field(repr=False)
    _read: ParsedDocument | None = field(default=None, repr=False)

    @classmethod
    def of(cls, document: ParsedDocument | SettledDocument, limits: Limits) -> SettledDocument:
        """Return the form of a document to keep."""
        problems, text = document.problems.settled(document.source)
        return cls(document.source, text, limits, problems)

    def again(self) -> SettledDocument:
        """Return a copy for another request. The parsed form is not kept for all requests."""
        return SettledDocument(self.source, self.text, self.limits, self.problems)

    def place(self, path: Sequence[str | int]) -> Place:
        """See `ParsedDocument.place`."""
        return self._document().place(path)

    def key_place(self, path: Sequence[str | int]) -> Place:
        """See `ParsedDocument.key_place`."""
        return self._document().key_place(path)

    def _document(self) -> ParsedDocument:
        if self._read is None:
            again = Problems()
            if self.text is None:
                self._read = ParsedDocument(self.source, None, again)
            else:
                self._read = open_template(read(self.text, self.source, self.limits, again)).document
        return self._read
