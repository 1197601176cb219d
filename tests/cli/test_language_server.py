"""``convergence template serve-lsp``, asked by a real client over standard input and output."""

import asyncio
import sys

import pytest

lsp = pytest.importorskip('lsprotocol.types', reason='pygls is not installed')
JsonRpcException = pytest.importorskip('pygls.exceptions').JsonRpcException
LanguageClient = pytest.importorskip('pygls.lsp.client').LanguageClient

LONG_S = 60
TEXT = """heat_template_version: 2018-08-31
parameter_groups:
  - {label: sizes, parameters: [length]}
parameters:
  length: {type: number, default: 8, description: How long it is., immutable: true}
  secret: {type: string, hidden: true, default: canary-1}
conditions:
  big: {equals: [{get_param: length}, 8]}
resources:
  key:
    type: OS::Heat::RandomString
    condition: big
    properties:
      length: {get_param: length}
  other:
    type: OS::Heat::Value
    depends_on: [key]
    properties: {value: {get_attr: ["key", value]}}
outputs:
  said:
    value: ["é𝔸", {get_attr: [other, value]}, {get_param: secret}]
"""


class Editor:
    """A client and the server that it has started, with documents that are opened."""

    def __init__(self, runner, root):
        self.client = LanguageClient('editor', '1')
        self._runner, self._root, self._told, self._number = runner, root, {}, 0
        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._listen(params))
        self._arrived = None

    def _listen(self, params):
        self._told[params.uri, params.version] = params.diagnostics
        if self._arrived is not None:
            self._arrived.set()

    def do(self, answer):
        return self._runner.run(asyncio.wait_for(answer, LONG_S))

    async def start(self):
        self._arrived = asyncio.Event()
        await self.client.start_io(sys.executable, '-m', 'convergence.cmd.convergence', 'template', 'serve-lsp')
        capabilities = lsp.ClientCapabilities()
        await self.client.initialize_async(lsp.InitializeParams(capabilities, root_uri=self._root.as_uri()))
        self.client.initialized(lsp.InitializedParams())

    def open(self, text):
        """Open a new document; its address."""
        self._number += 1
        uri = (self._root / f'{self._number}.yaml').as_uri()

        async def send():
            self.client.text_document_did_open(
                lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, 'yaml', 1, text))
            )

        self.do(send())
        return uri

    def diagnostics(self, uri, version=1):
        """Return the diagnostics of a version of a document, as soon as they arrive."""

        async def wait():
            while (uri, version) not in self._told:
                self._arrived.clear()
                await self._arrived.wait()
            return self._told[uri, version]

        return self.do(wait())

    def change(self, uri, version, text):
        async def send():
            whole = lsp.TextDocumentContentChangeWholeDocument(text)
            document = lsp.VersionedTextDocumentIdentifier(version, uri)
            self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))

        self.do(send())

    def ask(self, method, kind, uri, text, marker, **more):
        """Ask about the position behind a piece of a text."""
        before = text[: text.index(marker) + len(marker)]
        line = before.count('\n')
        units = len(before.rpartition('\n')[2].encode('utf-16-le')) // 2
        position = lsp.Position(line, units)
        answer = getattr(self.client, f'{method}_async')
        return self.do(answer(kind(text_document=lsp.TextDocumentIdentifier(uri), position=position, **more)))

    def complete(self, text, marker):
        """The labels of what may stand behind a piece of a text, which may be no YAML."""
        uri = self.open(text)
        found = self.ask('text_document_completion', lsp.CompletionParams, uri, text, marker)
        return [item.label for item in found.items]

    def hover(self, marker):
        found = self.ask('text_document_hover', lsp.HoverParams, self.open(TEXT), TEXT, marker)
        return found.contents.value if found else ''


@pytest.fixture(scope='module')
def editor(tmp_path_factory):
    with asyncio.Runner() as runner:
        editor = Editor(runner, tmp_path_factory.mktemp('edited'))
        editor.do(editor.start())
        yield editor
        editor.do(editor.client.shutdown_async(None))

        async def leave():
            editor.client.exit(None)
            await editor.client.stop()

        editor.do(leave())


def words(text, ranges):
    lines = text.split('\n')
    found = []
    for each in ranges:
        units = lines[each.start.line].encode('utf-16-le')
        found.append((each.start.line, units[2 * each.start.character : 2 * each.end.character].decode('utf-16-le')))
    return found


def test_what_is_wrong_is_shown_while_one_types(editor):
    uri = editor.open(TEXT)
    assert [each.code for each in editor.diagnostics(uri)] == ['plain-secret']
    wrong = TEXT.replace('depends_on: [key]', 'depends_on: [kye]')
    editor.change(uri, 2, wrong)
    (error,) = editor.diagnostics(uri, 2)
    assert (error.severity, error.source) == (lsp.DiagnosticSeverity.Error, 'convergence')
    assert 'Did you mean "key"?' in error.message
    assert words(wrong, [error.range]) == [(16, 'kye')]
    editor.change(uri, 3, 'resources: [')
    assert editor.diagnostics(uri, 3)[0].severity == lsp.DiagnosticSeverity.Error
    editor.change(uri, 4, TEXT.replace(', default: canary-1', ''))
    assert not editor.diagnostics(uri, 4)


@pytest.mark.parametrize(
    ('after', 'typed', 'offered'),
    [
        ('get_attr: [other, value]}, {get_param: secret}]\n', 'par', {'parameters', 'parameter_groups', 'resources'}),
        ('      length: {get_param: length}\n', '      sal', {'salt', 'character_classes', 'length'}),
        ('      length: {get_param: length}\n', '      salt: {get_param: ', {'length', 'secret'}),
        ('      length: {get_param: length}\n', '      salt: {', {'get_param', 'get_attr', 'str_replace'}),
        ('      length: {get_param: length}\n', '      character_classes:\n        - class: ', {'digits', 'lowercase'}),
        ('      length: {get_param: length}\n', '      salt: {get_attr: [other, ', {'value'}),
        ('      length: {get_param: length}\n', '      salt: {get_attr: [', {'key', 'other'}),
        ('resources:\n', '  new: {type: OS::', {'OS::Heat::Value', 'OS::Heat::RandomString'}),
        ('resources:\n', '  new: {type: OS::Heat::RandomString, properties: {', {'length', 'salt'}),
        ('resources:\n', '  new:\n    dep', {'depends_on', 'type', 'deletion_policy'}),
        ('resources:\n', '  new:\n    depends_on:\n      - ', {'key', 'other'}),
        ('resources:\n', '  new:\n    condition: ', {'big'}),
        ('conditions:\n', '  c: {and: [', {'big'}),
        ('parameters:\n', '  p: {type: ', {'string', 'json', 'boolean'}),
        ('parameters:\n', '  p: {', {'default', 'hidden', 'type'}),
        ('', 'heat_template_version: ', {'2018-08-31', 'wallaby'}),
    ],
)
def test_what_may_stand_at_a_place_is_offered(editor, after, typed, offered):
    text = f'{typed}\n{TEXT}' if not after else TEXT.replace(after, f'{after}{typed}\n', 1)
    assert offered <= set(editor.complete(text, f'{after}{typed}'))


def test_only_what_fits_is_offered(editor):
    text = TEXT.replace('resources:\n', 'resources:\n  new:\n    depends_on: [ke\n')
    assert editor.complete(text, 'depends_on: [ke') == ['key', 'other']
    offered = editor.complete(TEXT, '    type: OS')
    assert offered == sorted(offered)
    assert 'OS::Heat::RandomString' in offered


@pytest.mark.parametrize(
    ('marker', 'told'),
    [
        (
            '    properties:\n      leng',
            ['**length**: integer', 'Length of the string.', 'Default: `32`', 'replacement'],
        ),
        ('type: OS::Heat::Ran', ['**OS::Heat::RandomString**', 'Attributes: `value`']),
        ('{equals: [{get_param: len', ['**length**, a parameter of type `number`', 'How long it is.', '`8`']),
        ('{equals: [{get_par', ['**get_param**, a function']),
        ('get_attr: [oth', ['**other**, a resource of type `OS::Heat::Value`']),
        ('depends', ['**depends_on**', 'to create before this one']),
        ('resour', ['**resources**', 'Desired resources by name.']),
        ('{get_param: sec', ['**secret**, a parameter of type `string`']),
    ],
)
def test_documentation_is_shown_under_the_pointer(editor, marker, told):
    found = editor.hover(marker)
    assert all(each in found for each in told), found
    assert 'canary' not in found


@pytest.mark.parametrize(
    ('marker', 'line'),
    [
        ('      length: {get_param: len', 4),
        ('depends_on: [k', 9),
        ('get_attr: ["ke', 9),
        ('condition: bi', 7),
        ('"é𝔸", {get_attr: [oth', 14),
        ('{get_param: sec', 5),
    ],
)
def test_a_name_leads_to_its_declaration(editor, marker, line):
    uri = editor.open(TEXT)
    found = editor.ask('text_document_definition', lsp.DefinitionParams, uri, TEXT, marker)
    assert (found.uri, found.range.start.line) == (uri, line)


def test_every_use_of_a_name_is_found_and_changed(editor):
    uri = editor.open(TEXT)
    context = lsp.ReferenceContext(include_declaration=False)
    found = editor.ask('text_document_references', lsp.ReferenceParams, uri, TEXT, 'parameters: [le', context=context)
    assert words(TEXT, [each.range for each in found]) == [(7, 'length'), (13, 'length'), (2, 'length')]
    ready = editor.ask('text_document_prepare_rename', lsp.PrepareRenameParams, uri, TEXT, '[{get_attr: ["k'[1:])
    assert ready.placeholder == 'key'
    edit = editor.ask('text_document_rename', lsp.RenameParams, uri, TEXT, 'get_attr: ["k', new_name='secret_key')
    assert sorted(words(TEXT, [each.range for each in edit.changes[uri]])) == [(9, 'key'), (16, 'key'), (17, 'key')]
    for wrong in ('other', 'no name', ''):
        with pytest.raises(JsonRpcException):
            editor.ask('text_document_rename', lsp.RenameParams, uri, TEXT, 'get_attr: ["k', new_name=wrong)
    assert editor.ask('text_document_prepare_rename', lsp.PrepareRenameParams, uri, TEXT, 'type: OS::H') is None


def test_a_document_is_laid_out(editor):
    uri = editor.open('a:\n    b:   [1,2]\n')
    options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
    params = lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), options)
    (edit,) = editor.do(editor.client.text_document_formatting_async(params))
    assert (edit.new_text, edit.range.start.line, edit.range.end.line) == ('a:\n  b: [1, 2]\n', 0, 2)
