"""The examples do what they say: really, on this machine, without an engine."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from convergence.core.model import Action, Change, Output
from convergence.resources.attributes import attribute_names
from convergence.resources.builtin.local.process_table import is_running
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.comparison import compare
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template import StackIdentity, compile, resolve
from convergence.testing.fixture import pause
from tests.resources.calls import Row

IDENTITY = StackIdentity('stack-id', 'site', 'project')


class Stack:
    """Plays a stack one resource after the other; old objects go last, as with the engine."""

    def __init__(self, registry):
        self.registry = registry
        self.rows = {}
        self.leftovers = []
        self.changes = {}
        self.tokens = 0

    def apply(self, text):
        """Bring the stack to what the template says; gives the outputs."""
        compiled = compile(text, identity=IDENTITY)
        validate(compiled, self.registry)
        inputs, pending = {}, dict(compiled.goal.definitions)
        while pending:
            name = next(name for name, one in pending.items() if all(need in inputs for need in one.requires))
            definition = pending.pop(name)
            row = self._converge(name, definition.type, resolve(definition.properties, inputs))
            attributes = {key: row.attribute(key) for key in attribute_names(row.kind)}
            inputs[name] = Output('row', row.kind.reference_id(row.call()), attributes)
        for row in reversed(self.leftovers):
            self._delete(row)
        self.leftovers = []
        return {name: resolve(output.value, inputs) for name, output in compiled.outputs.items()}

    def delete(self):
        """Remove everything."""
        for row in [*self.leftovers, *reversed(self.rows.values())]:
            self._delete(row)
        self.rows, self.leftovers = {}, []

    def _converge(self, name, type_name, properties):
        old = self.rows.get(name)
        row = old
        if old is not None:
            previous, old.properties = old.properties, properties
            self.changes[name] = compare(old.kind, previous, properties, lambda: old.call(previous))
            if self.changes[name] is Change.IN_PLACE:
                old.poll(old.store(old.kind.update(old.call(previous))), Action.UPDATE, pause)
            if self.changes[name] is Change.REPLACE:
                old.properties = previous
                self.leftovers.append(old)
        if old is None or self.changes[name] is Change.REPLACE:
            self.tokens += 1
            row = self.rows[name] = Row(self.registry.get(type_name), properties, name, token=f'token-{self.tokens}')
            row.poll(row.store(row.kind.create(row.call())), Action.CREATE, pause)
        return row

    @staticmethod
    def _delete(row):
        row.poll(row.store(row.kind.delete(row.call())), Action.DELETE, pause)


@pytest.fixture
def stack(tmp_path):
    made = Stack(Registry.builtin(local=LocalProvider(tmp_path)))
    yield made
    made.delete()


def example(request, name):
    return (request.config.rootpath / 'examples' / name).read_text(encoding='utf-8')


def read(url, password=None):
    headers = {'X-Password': password} if password else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_hello(stack, request):
    assert stack.apply(example(request, 'hello.yaml')) == {'greeting': 'Hello, world!'}


def test_the_site_runs_changes_and_goes_away(stack, request, tmp_path):
    outputs = stack.apply(example(request, 'site.yaml'))
    assert outputs['check_passed'] is True
    assert read(outputs['url']) == (200, 'Hello from Convergence (first edition)\n')
    password = stack.rows['password'].attribute('value')
    assert password in Path(outputs['settings_file']).read_text(encoding='utf-8')
    assert read(outputs['url'] + '/private')[0] == 401
    assert read(outputs['url'] + '/private', password)[0] == 200
    first = stack.rows['server'].subject.physical_id

    changed = stack.apply(example(request, 'site-update.yaml'))
    assert stack.changes == {
        'password': Change.NONE,
        'site': Change.NONE,
        'program': Change.NONE,
        'settings': Change.IN_PLACE,
        'server': Change.REPLACE,
        'answers': Change.IN_PLACE,
    }
    assert changed['settings_file'] == outputs['settings_file']
    assert changed['url'] != outputs['url']
    assert read(changed['url']) == (200, 'Good day from Convergence (second edition)\n')
    assert not is_running(first)
    second = stack.rows['server'].subject.physical_id
    assert is_running(second)

    stack.delete()
    assert not is_running(second)
    assert [path for path in tmp_path.rglob('*') if '.convergence' not in path.parts] == []


def test_the_two_sites_differ_only_in_what_they_say(request):
    before, after = (example(request, name).splitlines() for name in ('site.yaml', 'site-update.yaml'))
    differing = [line.strip() for line in after if line not in before and not line.startswith('#')]
    assert differing == ['default: Good day from Convergence', 'default: second']
