"""The language server for editors. No other module imports pygls.

Positions of the protocol are converted here: the tools in `convergence.template.authoring` count lines and characters.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from convergence import __version__, errors
from convergence.cli.template.files import load
from convergence.cli.template.installed import template_checker
from convergence.template.authoring.formatting import Unformattable, formatted
from convergence.template.authoring.index import NameKind, Occurrence, TemplateIndex
from convergence.template.authoring.lint import lint_bundle
from convergence.template.authoring.vocabulary import Candidate, CandidateKind, Vocabulary, explain_name, key_at
from convergence.template.document import ParsedDocument
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read

LOG = logging.getLogger(__name__)

PAUSE_S = 0.2
"""Seconds without a change after which a document is checked: short, but longer than the pause between two keys."""

_NAME = re.compile(r'[A-Za-z_][\w.-]*')
_WORD = re.compile(r'[^\s,{}\[\]#]+')
_KINDS: Mapping[CandidateKind, lsp.CompletionItemKind] = {
    CandidateKind.SECTION: lsp.CompletionItemKind.Module,
    CandidateKind.KEY: lsp.CompletionItemKind.Keyword,
    CandidateKind.PROPERTY: lsp.CompletionItemKind.Property,
    CandidateKind.FUNCTION: lsp.CompletionItemKind.Function,
    CandidateKind.NAME: lsp.CompletionItemKind.Reference,
    CandidateKind.ATTRIBUTE: lsp.CompletionItemKind.Field,
    CandidateKind.TYPE: lsp.CompletionItemKind.Class,
    CandidateKind.VALUE: lsp.CompletionItemKind.Value,
}


class TemplateServer:
    """The state of the language server.

    :ivar editor: the connection to the editor.
    """

    def __init__(self) -> None:
        self.editor = LanguageServer('convergence', __version__)
        self.checker = template_checker({})
        self.vocabulary = Vocabulary(self.checker.types)

    def document(self, uri: str) -> TextDocument:
        """Return a document with the unsaved changes of the editor."""
        return self.editor.workspace.get_text_document(uri)

    def place(self, uri: str, position: lsp.Position) -> tuple[TextDocument, int, int]:
        """Return a document, and the line and column of a position in it."""
        document = self.document(uri)
        found = document.position_from_client_units(position)
        return document, found.line, found.character

    async def check(self, uri: str) -> None:
        """Publish the diagnostics of a document after a pause. A change during the pause starts its own check."""
        version = self.document(uri).version
        await asyncio.sleep(PAUSE_S)
        document = self.document(uri)
        if document.version != version:
            return
        found = await asyncio.to_thread(self._diagnostics, document, document.source)
        if uri in self.editor.workspace.text_documents and self.document(uri).version == version:
            details = lsp.PublishDiagnosticsParams(uri, found, version)
            self.editor.text_document_publish_diagnostics(details)

    def _diagnostics(self, document: TextDocument, text: str) -> list[lsp.Diagnostic]:
        name = document.path or 'template'
        try:
            result = lint_bundle(self.checker, load(name, (), self.checker.installation.limits, text))
        except errors.ConvergenceError as error:
            LOG.warning('Template %s not checked, retrying after the next change: %s', name, error)
            return []
        severities = {'error': lsp.DiagnosticSeverity.Error, 'warning': lsp.DiagnosticSeverity.Warning}
        return [
            lsp.Diagnostic(
                _problem_range(document, problem, name),
                f'{problem.message} {problem.hint}'.strip(),
                severities[severity],
                problem.kind,
                source='convergence',
            )
            for severity, problem in result.problems()
        ]


def _problem_range(document: TextDocument, problem: errors.Problem, name: str) -> lsp.Range:
    """Return the range of a problem: the word at its place, or the start of the file without a place in it."""
    place = problem.place
    lines = document.lines
    if place is None or place.source != name or not 0 < place.line <= len(lines):
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    line, column = place.line - 1, place.column - 1
    found = _WORD.match(lines[line], column)
    return _range(document, line, column, found.end() if found else column)


def _range(document: TextDocument, line: int, start: int, end: int) -> lsp.Range:
    return document.range_to_client_units(
        ServerTextRange(ServerTextPosition(line, start), ServerTextPosition(line, end))
    )


def _of_occurrence(document: TextDocument, found: Occurrence) -> lsp.Range:
    return _range(document, found.line, found.column, found.column + len(found.name))


def _parsed(document: TextDocument) -> ParsedDocument | None:
    """Return the parsed document; None while it is not YAML."""
    try:
        return read(document.source, 'template', Limits(), Problems())
    except (errors.StackValidationFailed, errors.RequestLimitExceeded):
        return None


def _named(document: TextDocument, line: int, column: int) -> tuple[TemplateIndex, Occurrence] | None:
    """Return the index of the document and the name at a position; None without a name."""
    parsed = _parsed(document)
    if parsed is None:
        return None
    index = TemplateIndex(parsed, document.source)
    found = index.at(line, column)
    return (index, found) if found is not None else None


# --- requests of editors -----------------------------------------------------------------------------------------


async def opened(server: TemplateServer, params: lsp.DidOpenTextDocumentParams) -> None:
    """Check a document that was opened."""
    await server.check(params.text_document.uri)


async def changed(server: TemplateServer, params: lsp.DidChangeTextDocumentParams) -> None:
    """Check a document that was changed."""
    await server.check(params.text_document.uri)


async def saved(server: TemplateServer, params: lsp.DidSaveTextDocumentParams) -> None:
    """Check a document that was saved: files that it names may have changed."""
    await server.check(params.text_document.uri)


def closed(server: TemplateServer, params: lsp.DidCloseTextDocumentParams) -> None:
    """Clear the diagnostics of a closed document."""
    server.editor.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))


def complete(server: TemplateServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    """Return the completions at a position."""
    document, line, column = server.place(params.text_document.uri, params.position)
    lines = document.source.split('\n')
    behind = lines[line][column:] if line < len(lines) else ''
    needs_colon = not behind.lstrip().startswith(':')
    found = server.vocabulary.candidates(lines, line, column)
    return lsp.CompletionList(False, [_item(each, number, needs_colon) for number, each in enumerate(found)])


def _item(candidate: Candidate, number: int, needs_colon: bool) -> lsp.CompletionItem:
    text = f'{candidate.label}: ' if candidate.is_key and needs_colon else candidate.label
    return lsp.CompletionItem(
        candidate.label,
        kind=_KINDS[candidate.kind],
        detail=candidate.detail or None,
        documentation=candidate.documentation or None,
        sort_text=f'{number:05}',
        insert_text=text,
    )


def hover(server: TemplateServer, params: lsp.HoverParams) -> lsp.Hover | None:
    """Return the documentation of the item at a position."""
    document, line, column = server.place(params.text_document.uri, params.position)
    parsed = _parsed(document)
    if parsed is None:
        return None
    named = TemplateIndex(parsed, document.source).at(line, column)
    details = ''
    if named is not None:
        details = _explained(parsed, named)
    elif (found := key_at(parsed.root, line, column)) is not None:
        path, is_key = found
        lines = document.source.split('\n')
        if is_key:
            details = server.vocabulary.explain_key(lines, line, path)
        elif path[-1] in ('type', 'Type'):
            details = server.vocabulary.explain_type(str(_value(parsed, path)))
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, details)) if details else None


def _explained(parsed: ParsedDocument, named: Occurrence) -> str:
    root = parsed.root if isinstance(parsed.root, dict) else {}
    for section in (f'{named.kind}s', f'{named.kind}s'.capitalize()):
        entries = root.get(section)
        if isinstance(entries, dict) and named.name in entries:
            body = entries[named.name]
            of_type = str(body.get('type', body.get('Type', ''))) if isinstance(body, dict) else ''
            return explain_name(named.kind, named.name, body, of_type)
    return ''


def _value(parsed: ParsedDocument, path: tuple[str | int, ...]) -> object:
    node: Any = parsed.root
    for key in path:
        node = node[key]
    return node


def define(server: TemplateServer, params: lsp.DefinitionParams) -> lsp.Location | None:
    """Return the declaration of the name at a position."""
    document, line, column = server.place(params.text_document.uri, params.position)
    found = _named(document, line, column)
    declared = found[0].declared(found[1].kind).get(found[1].name) if found else None
    return lsp.Location(document.uri, _of_occurrence(document, declared)) if declared is not None else None


def refer(server: TemplateServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """Return the references to the name at a position."""
    document, line, column = server.place(params.text_document.uri, params.position)
    found = _named(document, line, column)
    if found is None:
        return []
    shown = [each for each in found[0].everywhere(found[1]) if params.context.include_declaration or not each.declares]
    return [lsp.Location(document.uri, _of_occurrence(document, each)) for each in shown]


def prepare_rename(server: TemplateServer, params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
    """Return the name at a position if it can be renamed: this template must declare it."""
    document, line, column = server.place(params.text_document.uri, params.position)
    found = _named(document, line, column)
    if found is None or found[1].name not in found[0].declared(found[1].kind):
        return None
    return lsp.PrepareRenamePlaceholder(_of_occurrence(document, found[1]), found[1].name)


def rename(server: TemplateServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    """Rename the item at a position in the whole template."""
    document, line, column = server.place(params.text_document.uri, params.position)
    found = _named(document, line, column)
    if found is None or found[1].name not in found[0].declared(found[1].kind):
        return None
    index, named = found
    _require_free(index, named.kind, params.new_name)
    edits = [lsp.TextEdit(_of_occurrence(document, each), params.new_name) for each in index.everywhere(named)]
    return lsp.WorkspaceEdit({document.uri: edits})


def _require_free(index: TemplateIndex, kind: NameKind, name: str) -> None:
    """Refuse an invalid name, and one that exists already.

    :raises JsonRpcInvalidParams: the editor shows the text.
    """
    if not _NAME.fullmatch(name):
        raise JsonRpcInvalidParams(
            f'"{name}" is not a valid name. Use a letter, then letters, digits, "_", "-" and ".".'
        )
    if name in index.declared(kind):
        raise JsonRpcInvalidParams(f'The {kind} {name} exists already.')


def lay_out(server: TemplateServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
    """Format a document like ``convergence template format``. Return no edits while it is not YAML."""
    document = server.document(params.text_document.uri)
    try:
        text = formatted(document.source)
    except (errors.StackValidationFailed, Unformattable):
        return []
    if text == document.source:
        return []
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(len(document.lines), 0))
    return [lsp.TextEdit(everything, text)]


_ANSWERS: Mapping[str, Callable[..., object]] = {
    lsp.TEXT_DOCUMENT_DID_OPEN: opened,
    lsp.TEXT_DOCUMENT_DID_CHANGE: changed,
    lsp.TEXT_DOCUMENT_DID_SAVE: saved,
    lsp.TEXT_DOCUMENT_DID_CLOSE: closed,
    lsp.TEXT_DOCUMENT_COMPLETION: complete,
    lsp.TEXT_DOCUMENT_HOVER: hover,
    lsp.TEXT_DOCUMENT_DEFINITION: define,
    lsp.TEXT_DOCUMENT_REFERENCES: refer,
    lsp.TEXT_DOCUMENT_PREPARE_RENAME: prepare_rename,
    lsp.TEXT_DOCUMENT_RENAME: rename,
    lsp.TEXT_DOCUMENT_FORMATTING: lay_out,
}
_OPTIONS: Mapping[str, object] = {
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionOptions(trigger_characters=[' ', '{', '[', ',']),
    lsp.TEXT_DOCUMENT_RENAME: lsp.RenameOptions(prepare_provider=True),
}


def serve() -> None:
    """Serve the editor that started this process until it disconnects."""
    server = TemplateServer()
    for request, answer in _ANSWERS.items():
        server.editor.feature(request, _OPTIONS.get(request))(functools.partial(answer, server))
    server.editor.start_io()
