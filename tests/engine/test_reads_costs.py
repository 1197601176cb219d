"""What it costs to ask for a stack: the same however large it is, and never its template."""

from functools import partial

import pytest
from sqlalchemy import event

from convergence.db.schema import columns
from convergence.engine.compile import shown_outputs
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.reads.answers import ResourceReads, StackReads
from convergence.template.limits import Limits
from tests.harness import hot, things


@pytest.fixture
def asked(harness):
    """The statements that a question leads to."""

    def ask(question):
        sent = []

        def note(connection, cursor, statement, *_):
            sent.append(statement)

        event.listen(harness.reader._store.engine, 'before_cursor_execute', note)
        try:
            question()
        finally:
            event.remove(harness.reader._store.engine, 'before_cursor_execute', note)
        return sent

    return ask


def stack_of(harness, size):
    return {'stack_id': harness.created({f'r{number}': {'value': 'x'} for number in range(size)}, name=f's{size}')}


def test_to_show_a_stack_costs_the_same_at_every_size_and_reads_no_template(harness, asked):
    reads, costs = StackReads(harness.reader, harness.compiler), []
    for size in (2, 40):
        identity = stack_of(harness, size)
        for outputs in (False, True):
            reads.show_stack(harness.context, identity, resolve_outputs=outputs)
            sent = asked(partial(reads.show_stack, harness.context, identity, outputs))
            assert not [text for text in sent if 'template.content' in text]
            costs.append(len(sent))
    assert costs[:2] == costs[2:]
    assert max(costs) <= 5


def test_a_page_of_resources_reads_the_rows_of_the_page_alone(harness, asked):
    reads, costs = ResourceReads(harness.reader, harness.compiler), []
    for size in (6, 40):
        identity = stack_of(harness, size)
        sent = asked(partial(reads.list_stack_resources, harness.context, identity, limit=5))
        assert not [text for text in sent if 'template.content' in text]
        rows = [text for text in sent if 'resource.definition' in text]
        assert len(rows) == 1 and rows[0].count('?') == 6
        costs.append(len(sent))
    assert costs[0] == costs[1]


OUTPUTS = {'told': {'value': {'get_attr': ['r1', 'value']}}, 'named': {'value': {'get_resource': 'r0'}}}


@pytest.fixture
def opened(monkeypatch):
    """The texts of columns that were understood."""
    found, loaded = [], columns.loaded

    def noting(text, dialect=None):
        found.append(text)
        return loaded(text, dialect)

    monkeypatch.setattr(columns, 'loaded', noting)
    return found


def elsewhere(harness):
    """An engine that has compiled nothing."""
    return StackReads(harness.reader, TemplateCompiler(harness.reader, harness.registry, Limits()))


def made(harness, size, **sections):
    source = hot(things([f'r{number}' for number in range(size)]), **sections)
    identity = harness.stacks.create_stack(harness.context, f's{size}', source)
    harness.run()
    return identity


@pytest.mark.parametrize('outputs', [{}, OUTPUTS], ids=['none', 'few'])
def test_outputs_cost_what_they_refer_to_on_every_engine_and_no_template(harness, asked, opened, outputs):
    costs = []
    for size in (2, 40):
        identity = made(harness, size, outputs=outputs)
        reads = elsewhere(harness)
        for question in (
            partial(reads.show_stack, harness.context, identity),
            partial(reads.list_outputs, harness.context, identity),
            *(partial(reads.show_output, harness.context, identity, name) for name in outputs),
        ):
            opened.clear()
            sent = asked(question)
            assert not [text for text in sent if 'template.content' in text]
            costs.append((len(sent), len(opened)))
        (shown,) = reads.show_stack(harness.context, identity)
        assert {each['output_key'] for each in shown['outputs']} == {*outputs}
        assert not outputs or shown['outputs'][0]['output_value'] == 'x'
    half = len(costs) // 2
    assert costs[:half] == costs[half:]
    assert costs[0] == ((4, 18) if outputs else (3, 2))


def test_what_cannot_be_read_is_looked_for_when_somebody_asks_for_it(harness, asked):
    identity = made(harness, 2)
    reads = elsewhere(harness)
    assert not [text for text in asked(partial(reads.show_stack, harness.context, identity)) if 'resource.data' in text]
    assert [
        text
        for text in asked(partial(reads.show_stack, harness.context, identity, False, with_unreadable=True))
        if 'resource.data' in text
    ]


def test_large_outputs_are_read_from_the_template_and_shown_alike(harness, asked, monkeypatch):
    sections = {
        'outputs': {**OUTPUTS, 'secret': {'value': {'list_join': ['-', [{'get_param': 'p'}, 'y']]}}},
        'parameters': {'p': {'type': 'string', 'hidden': True, 'default': 'a secret text'}},
    }
    small = made(harness, 2, **sections)
    monkeypatch.setattr(shown_outputs, 'MOST_BYTES', 10)
    large = made(harness, 3, **sections)
    sent = asked(partial(elsewhere(harness).show_stack, harness.context, large))
    assert [text for text in sent if 'template.content' in text]
    shown = [elsewhere(harness).show_stack(harness.context, each)[0]['outputs'] for each in (small, large)]
    for told in shown:
        told[1].pop('output_value')  # the id of another object
    assert shown[0] == shown[1]
    assert 'a secret text' not in str(shown)
