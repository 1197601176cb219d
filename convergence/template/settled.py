"""The document of a template that was accepted: what is kept of it is its text.

Where each value stands takes more room than all that the template means, and is asked for only where something is wrong
later: a type is gone, or a preview finds that the update would be refused. Then the text is read again.
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
    """Tells the same places as the `ParsedDocument` that it was.

    :param source: its name.
    :param text: None where it was no text, so that nothing in it has a line.
    :param limits: those under which it was accepted.
    :param problems: nothing but warnings.
    """

    source: str
    text: str | None = field(repr=False)
    limits: Limits
    problems: Problems = field(repr=False)
    _read: ParsedDocument | None = field(default=None, repr=False)

    @classmethod
    def of(cls, document: ParsedDocument | SettledDocument, limits: Limits) -> SettledDocument:
        """What is to be kept of a document."""
        problems, text = document.problems.settled(document.source)
        return cls(document.source, text, limits, problems)

    def again(self) -> SettledDocument:
        """The same for another request: what is read for one is not kept for all."""
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
