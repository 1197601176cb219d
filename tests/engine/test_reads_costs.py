"""What it costs to ask for a stack: the same however large it is, and never its template."""

from functools import partial

import pytest
from sqlalchemy import event

from convergence.engine.reads.answers import ResourceReads, StackReads


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
    reads, costs = StackReads(harness.reader, harness.goals), []
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
    reads, costs = ResourceReads(harness.reader, harness.goals), []
    for size in (6, 40):
        identity = stack_of(harness, size)
        sent = asked(partial(reads.list_stack_resources, harness.context, identity, limit=5))
        assert not [text for text in sent if 'template.content' in text]
        rows = [text for text in sent if 'resource.definition' in text]
        assert len(rows) == 1 and rows[0].count('?') == 6
        costs.append(len(sent))
    assert costs[0] == costs[1]
