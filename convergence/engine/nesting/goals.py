"""Compiled templates of nested stacks: of many that are alike, such as the members of a group, one is compiled."""

from __future__ import annotations

from collections.abc import Mapping

from convergence import logs, template
from convergence.core.model import Json
from convergence.core.rows import Stack, Template
from convergence.db.ports import ReaderPort
from convergence.documents import Document
from convergence.engine.operations.compiled_templates import LastUsed, made_from
from convergence.engine.operations.goals import Goals, identity_of
from convergence.engine.operations.permits import Permits
from convergence.engine.operations.submission import Submission

SUBMITTED = 16
"""How many goals are kept as they were submitted. All members of a group are made from one."""


class NestedGoals:
    """Compiles templates for nested stacks, and keeps what the stacks are made from that they are in."""

    def __init__(self, reader: ReaderPort, goals: Goals) -> None:
        self._reader = reader
        self._goals = goals
        self._submitted: LastUsed[Submission] = LastUsed(SUBMITTED)
        self._documents: LastUsed[Document] = LastUsed(SUBMITTED)

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
            return self._goals.document(source)
        document = self._documents.get(source)
        if document is None:
            document = self._goals.document(source)
            self._documents.keep(source, document)
        return document

    def compile(self, stack: Stack, submission: Submission, permits: Permits) -> template.Compiled:
        """As `Goals.compile` does, of those that are alike once."""
        key = made_from(submission.content(), stack.project_id, permits.rules)
        compiled = self._goals.alike.get(key, identity_of(stack))
        if compiled is None:
            compiled = self._goals.compile(stack, submission, permits)
            self._goals.alike.keep(key, compiled)
            return compiled
        logs.conceal(compiled.secrets)
        self._goals.refuse_changed(stack, compiled)
        return compiled

    def keep(self, stack: Stack, row: Template, compiled: template.Compiled) -> None:
        """Keep what a template that was just stored has been compiled to."""
        self._goals.kept.keep(row.id, compiled)
        self._goals.alike.keep(made_from(row.content, stack.project_id), compiled)
