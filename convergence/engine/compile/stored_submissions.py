"""Caches the submissions of stored templates: all members of a group have equal ones."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.model import Json
from convergence.db.ports import ReaderPort
from convergence.documents import Document
from convergence.engine.compile.cache import MIB, LastUsed
from convergence.engine.compile.submission import Submission
from convergence.engine.compile.submission_reader import SubmissionReader
from convergence.template.document import plain

SUBMITTED_BYTES = 16 * MIB
"""Size of the cache of submissions, and of the cache of documents read from them."""


class StoredSubmissions:
    """Reads submissions from template rows, and templates as documents."""

    def __init__(self, reader: ReaderPort, submissions: SubmissionReader) -> None:
        self._reader = reader
        self._submissions = submissions
        self._submitted: LastUsed[Submission] = LastUsed(SUBMITTED_BYTES)
        self._documents: LastUsed[Document] = LastUsed(SUBMITTED_BYTES)

    def of_template(self, template_id: str) -> Submission | None:
        """The submission that a template row stores; None if there is no such row (any more)."""
        kept = self._submitted.get(template_id)
        if kept is None:
            row = self._reader.template(template_id)
            if row is None:
                return None
            kept = Submission.from_content(row.content)
            self._submitted.keep(template_id, kept)
        return kept

    def document(self, source: str | Mapping[str, Json]) -> Document:
        """A template as a map; do not change it. Each text is parsed once."""
        if not isinstance(source, str):
            return self._submissions.document(source)
        document = self._documents.get(source)
        if document is None:
            document = plain(self._submissions.document(source))
            self._documents.keep(source, document)
        return document
