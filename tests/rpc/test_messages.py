"""Messages: what is written, what is understood, what is refused."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergence.errors import Invalid, RequestLimitExceeded
from convergence.rpc import messages
from convergence.rpc.messages import CAST_LIMIT_BYTES, Cancel, CheckResource, DriftFound, Settle
from convergence.rpc.operations import OPERATIONS, EventQuery, StackQuery

text = st.text(max_size=60)


@given(
    st.one_of(
        st.builds(CheckResource, text, st.integers(), more=st.lists(st.integers())),
        st.builds(Cancel, text, text),
        st.builds(Settle, text, text),
        st.builds(DriftFound, text),
    )
)
def test_a_message_survives_the_wire(message):
    assert type(message).decode(message.encode()) == message


def test_what_a_newer_sender_adds_is_ignored():
    document = {'traversal_id': 't-1', 'node': 5, 'colour': 'blue'}
    assert CheckResource.decode(document) == CheckResource('t-1', 5)


@pytest.mark.parametrize(
    ('document', 'problem'),
    [
        ({'traversal_id': 't-1'}, 'node is missing'),
        ({'traversal_id': 't-1', 'node': '5'}, 'node must be int, not str'),
        ({'traversal_id': 't-1', 'node': True}, 'node must be int, not bool'),
        ({'traversal_id': None, 'node': 5}, 'traversal_id must be str, not NoneType'),
        ({'traversal_id': 't-1', 'node': 5, 'more': 6}, 'more must be list, not int'),
        ({'traversal_id': 't-1', 'node': 5, 'more': [6, '7']}, 'more must be a list of numbers'),
    ],
)
def test_what_is_missing_or_of_the_wrong_type_is_refused(document, problem):
    with pytest.raises(Invalid, match=f'check_resource: {problem}'):
        CheckResource.decode(document)


def test_a_flood_of_the_same_bad_message_is_logged_once(caplog, monkeypatch):
    monkeypatch.setattr(messages, '_logged', set())
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            with pytest.raises(Invalid):
                Cancel.decode({'stack_id': 's-1'})
    assert caplog.text.count('traversal_id is missing') == 1


def test_a_sender_that_invents_messages_does_not_fill_the_memory(monkeypatch):
    remembered = set()
    monkeypatch.setattr(messages, '_logged', remembered)
    monkeypatch.setattr(messages, 'MAX_LOGGED', 10)
    for number in range(100):
        messages.refuse(f'method {number}', 'it is unknown')
        assert len(remembered) <= 10


def test_a_cast_carries_ids_only():
    fits = 'i' * (CAST_LIMIT_BYTES - 1000)
    assert Settle(fits, 't-1').encode()['stack_id'] == fits
    with pytest.raises(RequestLimitExceeded, match=r'settle: .* the limit is 65536 bytes .*only ids belong in it'):
        Settle('i' * CAST_LIMIT_BYTES, 't-1').encode()


def test_sizes_are_counted_in_bytes():
    with pytest.raises(RequestLimitExceeded):
        Settle('☂' * (CAST_LIMIT_BYTES // 4), 't-1').encode()


def test_a_call_leaves_out_what_was_not_given_but_never_what_is_required():
    operation = OPERATIONS['update_stack']
    document = operation.encode({'stack_identity': {}, 'template': None, 'params': None, 'files': {}})
    assert document == {'stack_identity': {}, 'template': None, 'files': {}}
    assert operation.decode(document) == document


def test_a_call_refuses_what_it_does_not_know_or_what_is_no_json():
    with pytest.raises(Invalid, match='get_template has no argument color'):
        OPERATIONS['get_template'].encode({'stack_identity': {}, 'color': 1})
    with pytest.raises(Invalid, match='create_stack: the arguments cannot be sent'):
        OPERATIONS['create_stack'].encode({'stack_name': 'web', 'template': {1, 2}})
    circle = []
    circle.append(circle)
    with pytest.raises(Invalid, match='create_stack: the arguments cannot be sent'):
        OPERATIONS['create_stack'].encode({'stack_name': 'web', 'template': circle})


@pytest.mark.parametrize(
    ('name', 'query', 'rest'),
    [
        ('list_stacks', StackQuery(limit=5, marker='s-1', tags_any=['a'], show_deleted=True), {}),
        ('count_stacks', StackQuery(filters={'status': 'FAILED'}), {}),
        ('list_events', EventQuery(sort_keys=['created_at'], sort_dir='desc'), {'stack_identity': {'stack_id': '1'}}),
    ],
)
def test_a_query_travels_as_plain_arguments(name, query, rest):
    document = OPERATIONS[name].encode({**rest, 'query': query})
    assert 'query' not in document
    assert OPERATIONS[name].decode(document) == {**rest, 'query': query}


@pytest.mark.parametrize('name', ['list_stacks', 'show_stack', 'get_revision'])
def test_a_call_with_an_argument_that_the_engine_does_not_know_is_refused(name):
    operation = OPERATIONS[name]
    with pytest.raises(Invalid, match=f'{name}: it has no argument colour, query; .* different versions'):
        operation.decode({**dict.fromkeys(operation.required), 'query': {}, 'colour': 'blue'})


def test_a_query_need_not_be_given():
    assert OPERATIONS['list_stacks'].decode({}) == {'query': StackQuery()}
