"""Compiled templates of nested stacks: of many that are alike, such as the members of a group, one is compiled."""

from __future__ import annotations

from collections.abc import Mapping

from convergence import template
from convergence.core.model import Json
from convergence.core.rows import Stack, Template
from convergence.db.ports import ReaderPort
from convergence.documents import Document
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.cache import MIB, LastUsed
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.submission import Submission
from convergence.template.document import plain

SUBMITTED_BYTES = 16 * MIB
"""What the goals may hold that are kept as they were submitted, and as much again the documents that were read of them.
All members of a group are made from one."""


class NestedTemplates:
    """Compiles templates for nested stacks, and keeps what the stacks are made from that they are in."""

    def __init__(self, reader: ReaderPort, compiler: TemplateCompiler) -> None:
        self._reader = reader
        self._compiler = compiler
        self._submitted: LastUsed[Submission] = LastUsed(SUBMITTED_BYTES)
        self._documents: LastUsed[Document] = LastUsed(SUBMITTED_BYTES)

    def submitted(self, template_id: str) -> Submission | None:
        """What a stored template was made from; None where it is gone."""
        kept = self._submitted.get(template_id)
        if kept is None:
            row = self._reader.template(template_id)
            if row is None:
                return None
            kept = Submission.from_content(row.content)
            self._submitted.keep(template_id, kept)
        return kept

    def document(self, source: str | Mapping[str, Json]) -> Document:
        """A template as a map, to be read alone. Many stacks have the same text: it is read once."""
        if not isinstance(source, str):
            return self._compiler.document(source)
        document = self._documents.get(source)
        if document is None:
            document = plain(self._compiler.document(source))
            self._documents.keep(source, document)
        return document

    def compile(self, stack: Stack, submission: Submission, permits: Permits) -> template.Compiled:
        """As `TemplateCompiler.compile` does, and checks those that are alike once."""
        return self._compiler.compile(stack, submission, permits, trusting=True)

    def keep(self, stack: Stack, row: Template, compiled: template.Compiled) -> None:
        """Keep what a template that was just stored has been compiled to."""
        self._compiler.keep(stack, row, compiled)
