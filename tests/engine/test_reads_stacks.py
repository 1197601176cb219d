"""What callers are told about whole stacks."""

import json

import pytest

from convergence import errors
from convergence.core.model import Action, Status
from convergence.db.schema.models import STACK
from convergence.engine.reads.answers import StackReads
from convergence.resources.contract import FinalFailure
from convergence.rpc.operations import StackQuery
from tests.harness import Context, hot
from tests.reality import fails

TEMPLATE = """
heat_template_version: 2018-08-31
description: What it is for
parameters:
  size: {type: number, default: 3}
  tags: {type: comma_delimited_list, default: [a, b]}
  options: {type: json, default: {x: 1}}
  on: {type: boolean, default: true}
  secret: {type: string, hidden: true}
resources:
  a:
    type: Test::Thing
    properties: {value: one}
outputs:
  value: {description: What a holds, value: {get_attr: [a, value]}}
  reference: {value: {get_resource: a}}
  other: {value: {get_attr: [a, other]}}
"""
PARAMETERS = {'parameters': {'secret': 'hush'}, 'parameter_defaults': {'secret': 'hush2', 'unused': 1}}


@pytest.fixture
def reads(harness):
    return StackReads(harness.reader, harness.compiler)


def create(harness, source=TEMPLATE, name='s', files=None, params=None):
    environment = PARAMETERS if params is None else params
    return harness.stacks.create_stack(harness.context, name, source, environment, files)


def change(harness, stack_id, **values):
    """Set columns of a stack, for states that take long to get into."""
    with harness.store.writing() as connection:
        connection.execute(STACK.update().where(STACK.c.id == stack_id).values(**values))
        connection.commit()


def test_a_stack_is_identified_by_name_while_it_lives_and_by_id_for_ever(harness, reads):
    stack_id = harness.created({'a': 'x'}, 'web')
    identity = {'tenant': 'p', 'stack_name': 'web', 'stack_id': stack_id, 'path': ''}
    assert reads.identify_stack(harness.context, 'web') == identity
    assert reads.identify_stack(harness.context, stack_id) == identity
    harness.delete(stack_id)
    harness.run()
    assert reads.identify_stack(harness.context, stack_id) == identity
    with pytest.raises(errors.EntityNotFound, match=r'The Stack \(web\) could not be found'):
        reads.identify_stack(harness.context, 'web')


@pytest.mark.parametrize('operation', ['show_stack', 'get_template', 'get_environment', 'get_files', 'list_outputs'])
def test_another_project_has_no_such_stack(harness, reads, operation):
    identity = create(harness)
    stranger = Context(project_id='q')
    for name in (identity['stack_id'], identity['stack_name']):
        with pytest.raises(errors.EntityNotFound):
            reads.identify_stack(stranger, name)
    for claimed in ('p', 'q'):
        with pytest.raises(errors.EntityNotFound):
            getattr(reads, operation)(stranger, {**identity, 'tenant': claimed})
    getattr(reads, operation)(harness.context, identity)


@pytest.mark.parametrize('wrong', [{'stack_name': 'other'}, {'tenant': 'q'}, {'stack_id': 'x'}, {'stack_id': None}])
def test_an_identity_must_be_right_in_all_its_parts(harness, reads, wrong):
    identity = create(harness)
    with pytest.raises(errors.EntityNotFound):
        reads.show_stack(harness.context, {**identity, **wrong})


def test_a_stack_is_shown_with_parameters_as_text_and_hidden_ones_masked(harness, reads):
    identity = create(harness)
    (shown,) = reads.show_stack(harness.context, identity)
    assert shown['stack_identity'] == identity
    assert (shown['stack_action'], shown['stack_status']) == ('CREATE', 'IN_PROGRESS')
    assert shown['parameters'] == {
        'size': '3',
        'tags': 'a,b',
        'options': '{"x": 1}',
        'on': 'True',
        'secret': '******',
        'OS::stack_id': identity['stack_id'],
        'OS::stack_name': 's',
        'OS::project_id': 'p',
    }
    assert shown['description'] == shown['template_description'] == 'What it is for'
    assert shown['creation_time'].endswith('Z') and shown['updated_time'] is None and shown['deletion_time'] is None
    assert 'hush' not in json.dumps(shown)


def test_outputs_are_read_from_the_rows_and_one_that_fails_does_not_hide_the_others(harness, reads):
    harness.reality.always['attribute other', 'a'] = fails(FinalFailure('nobody knows'))
    identity = create(harness)
    before = {output['output_key']: output for output in reads.show_stack(harness.context, identity)[0]['outputs']}
    assert before['value']['output_value'] is None and 'not known' in before['value']['output_error']
    harness.run()
    calls = dict(harness.reality.calls)
    outputs = {output['output_key']: output for output in reads.show_stack(harness.context, identity)[0]['outputs']}
    assert outputs['value'] == {'output_key': 'value', 'description': 'What a holds', 'output_value': 'one'}
    assert outputs['reference']['output_value'] == next(iter(harness.reality.objects))
    assert outputs['other']['output_value'] is None and 'nobody knows' in outputs['other']['output_error']
    assert reads.show_output(harness.context, identity, 'value') == outputs['value']
    assert reads.list_outputs(harness.context, identity)[0] == {'output_key': 'value', 'description': 'What a holds'}
    assert dict(harness.reality.calls) == calls, 'reading called a resource type'


def test_outputs_can_be_left_out_and_an_unknown_one_is_named(harness, reads):
    identity = create(harness)
    assert 'outputs' not in reads.show_stack(harness.context, identity, resolve_outputs=False)[0]
    with pytest.raises(errors.EntityNotFound, match='nothing'):
        reads.show_output(harness.context, identity, 'nothing')


def test_an_output_follows_a_replacement(harness, reads):
    source = TEMPLATE.replace('{value: one}', '{value: one, key: k1}')
    identity = create(harness, source)
    harness.run()
    old = reads.show_output(harness.context, identity, 'reference')['output_value']
    harness.stacks.update_stack(harness.context, identity, source.replace('k1', 'k2'), PARAMETERS)
    harness.run()
    new = reads.show_output(harness.context, identity, 'reference')['output_value']
    assert new != old and [new] == list(harness.reality.objects)


def test_a_deleted_stack_is_shown_with_its_parameters(harness, reads):
    identity = create(harness)
    harness.run()
    harness.delete(identity['stack_id'])
    assert reads.show_stack(harness.context, identity)[0]['parameters']['size'] == '3', 'while it is deleted'
    harness.run()
    (shown,) = reads.show_stack(harness.context, identity)
    assert (shown['stack_action'], shown['stack_status']) == ('DELETE', 'COMPLETE')
    assert shown['deletion_time'] is not None and 'outputs' not in shown


def test_a_stack_whose_template_cannot_be_read_any_more_is_still_shown(harness, reads):
    identity = create(harness)
    change(harness, identity['stack_id'], template_id='gone')
    (shown,) = reads.show_stack(harness.context, identity)
    assert shown['stack_name'] == 's' and shown['outputs'] == []
    assert shown['parameters']['OS::stack_name'] == 's'
    assert reads.list_outputs(harness.context, identity) == []
    with pytest.raises(errors.EntityNotFound, match='template of the stack s'):
        reads.get_template(harness.context, identity)


@pytest.mark.parametrize('source', [hot({'a': 'x'}), {'heat_template_version': '2018-08-31', 'description': 'd'}])
def test_the_template_is_a_map_whatever_it_was_sent_as(harness, reads, source):
    identity = create(harness, source, params={})
    shown = reads.get_template(harness.context, identity)
    assert shown['heat_template_version'] == '2018-08-31'
    assert shown == source if isinstance(source, dict) else shown['resources']['a']['properties'] == {'value': 'x'}
    json.dumps(shown)


def test_the_environment_has_all_its_sections_and_no_secret(harness, reads):
    identity = create(harness)
    shown = reads.get_environment(harness.context, identity)
    assert shown == {
        'parameters': {'secret': '******'},
        'parameter_defaults': {'secret': '******', 'unused': '******'},
        'resource_registry': {'resources': {}},
        'event_sinks': [],
        'encrypted_param_names': [],
    }


def test_an_environment_is_masked_wholly_where_nobody_can_tell_what_is_hidden(harness, reads, monkeypatch):
    identity = create(harness)

    def refuse(*arguments):
        raise errors.StackValidationFailed('a limit was lowered')

    monkeypatch.setattr(harness.compiler, 'stored', refuse)
    shown = reads.get_environment(harness.context, identity)
    assert set(shown['parameters'].values()) | set(shown['parameter_defaults'].values()) == {'******'}


def test_files_are_those_of_the_goal(harness, reads):
    identity = create(harness, hot({'a': 'x'}), files={'f.sh': 'echo'}, params={})
    assert reads.get_files(harness.context, identity) == {'f.sh': 'echo'}


def test_files_of_environments_are_kept_and_their_secrets_masked(harness, reads):
    files = {'one.yaml': '# mine\nparameters: {size: 5}', 'two.yaml': 'parameter_defaults: {secret: hush3, size: 6}'}
    made = harness.stacks.create_stack(
        harness.context, 's', TEMPLATE, PARAMETERS, {**files, 'f.sh': 'echo'}, None, list(files)
    )
    masked = json.dumps({'parameter_defaults': {'secret': '******', 'size': 6}}, indent=2)
    kept = {**files, 'two.yaml': masked, 'f.sh': 'echo'}
    assert reads.get_files(harness.context, made) == kept
    more = {'three.yaml': 'parameters: {size: 7}'}
    harness.stacks.update_stack(harness.context, made, None, None, more, {'existing': True}, ['three.yaml'])
    assert reads.get_files(harness.context, made) == {**kept, **more}


# --- lists ------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(harness):
    """Stacks b, a, c, created in this order, in different states."""
    states = {
        'b': (Action.CREATE, Status.FAILED, ('red', 'big')),
        'a': (Action.UPDATE, Status.COMPLETE, ('red',)),
        'c': (Action.CREATE, Status.COMPLETE, ()),
    }
    ids = {}
    for number, (name, (action, status, tags)) in enumerate(states.items()):
        ids[name] = create(harness, hot({'a': 'x'}), name, params={})['stack_id']
        change(harness, ids[name], action=action, status=status, tags=tags, created_at=1000.0 + number)
    return ids


def names(reads, harness, **query):
    documents = reads.list_stacks(harness.context, StackQuery(**query))
    whole = {name: value for name, value in query.items() if name not in ('limit', 'marker')}
    if whole == query:
        assert reads.count_stacks(harness.context, StackQuery(**whole)) == len(documents)
    return ''.join(document['stack_name'] for document in documents)


@pytest.mark.parametrize(
    ('query', 'expected'),
    [
        ({}, 'cab'),
        ({'sort_dir': 'asc'}, 'bac'),
        ({'sort_keys': ['stack_name']}, 'abc'),
        ({'sort_keys': ['stack_name'], 'sort_dir': 'desc'}, 'cba'),
        ({'sort_keys': ['stack_status', 'creation_time']}, 'acb'),
        ({'filters': {'name': 'a'}}, 'a'),
        ({'filters': {'stack_name': ['a', 'b']}}, 'ab'),
        ({'filters': {'status': 'COMPLETE'}}, 'ca'),
        ({'filters': {'status': ['CREATE_FAILED', 'UPDATE_COMPLETE']}}, 'ab'),
        ({'filters': {'status': 'CREATE_COMPLETE', 'action': 'UPDATE'}}, ''),
        ({'filters': {'status': 'COMPLETE', 'action': 'UPDATE'}}, 'a'),
        ({'filters': {'action': ['CREATE']}}, 'cb'),
        ({'filters': {'status': 'NONSENSE'}}, ''),
        ({'filters': {'action': 'NONSENSE'}}, ''),
        ({'filters': {'owner_id': 'x'}}, ''),
        ({'filters': {'tenant': 'q'}}, ''),
        ({'filters': {'name': None}}, 'cab'),
        ({'filters': {'disable_rollback': 'false'}}, ''),
        ({'filters': {'timeout_mins': 60}}, 'cab'),
        ({'tags': ['red']}, 'ab'),
        ({'tags': ['red', 'big']}, 'b'),
        ({'tags': 'red,big'}, 'b'),
        ({'tags_any': ['big', 'small']}, 'b'),
        ({'not_tags': ['red', 'big']}, 'ca'),
        ({'not_tags_any': ['red', 'small']}, 'c'),
        ({'tags': ['red'], 'filters': {'status': 'COMPLETE'}}, 'a'),
    ],
    ids=str,
)
def test_stacks_are_selected_and_sorted(harness, reads, three, query, expected):
    assert names(reads, harness, **query) == expected


@pytest.mark.parametrize(
    ('hidden', 'query', 'expected'),
    [
        (['big', 'none'], {}, 'ca'),
        (['big'], {'show_hidden': True}, 'cab'),
        (['big'], {'tags': ['red']}, 'a'),
        (['big'], {'not_tags_any': ['red']}, 'c'),
        (['Big', 'bi', 'g', 'd","b', ''], {}, 'cab'),
    ],
    ids=str,
)
def test_stacks_with_a_hidden_tag_are_listed_and_counted_on_request_only(harness, three, hidden, query, expected):
    assert names(StackReads(harness.reader, harness.compiler, hidden), harness, **query) == expected


def test_a_tag_is_found_whatever_it_is_made_of_and_no_other(harness, reads, three):
    for tag in ('"', '\\', 'a"b', '[x', 'é%_', "o'k"):
        change(harness, three['a'], tags=('first', tag))
        change(harness, three['c'], tags=(f'{tag}{tag}', f'x{tag}', f'{tag}x', f'"{tag}"', f'["{tag}"'))
        assert names(reads, harness, tags_any=[tag]) == 'a'


def test_pages_cover_everything_once(harness, reads, three):
    assert names(reads, harness, limit=2) == 'ca'
    assert names(reads, harness, limit=2, marker=three['a']) == 'b'
    assert names(reads, harness, limit=2, marker=three['b']) == ''
    assert names(reads, harness, limit=1, tags=['red']) == 'a'
    assert names(reads, harness, limit=1, tags=['red'], marker=three['a']) == 'b'


def test_a_marker_that_was_deleted_between_two_pages_keeps_its_place(harness, reads, three):
    change(harness, three['a'], live_name=None, deleted_at=2000.0)
    assert names(reads, harness, marker=three['a']) == 'b'
    assert names(reads, harness, show_deleted=True) == 'cab'


def test_a_list_is_about_the_own_project_only(harness, reads, three):
    assert reads.list_stacks(Context(project_id='q')) == []
    assert reads.count_stacks(Context(project_id='q')) == 0
    with pytest.raises(errors.EntityNotFound):
        reads.list_stacks(Context(project_id='q'), StackQuery(marker=three['a']))


@pytest.mark.parametrize(
    'query',
    [
        {'sort_keys': ['colour']},
        {'sort_dir': 'up'},
        {'limit': -1},
        {'limit': 'many'},
        {'filters': {'disable_rollback': 'perhaps'}},
        {'filters': {'timeout_mins': 'x'}},
        {'filters': {'stak_name': 'a'}},
        {'filters': {'unheard_of': None}},
    ],
    ids=str,
)
def test_a_query_that_makes_no_sense_is_refused_by_name(harness, reads, query):
    argument = next(iter(query.get('filters', query)))
    with pytest.raises(errors.Invalid, match=argument):
        reads.list_stacks(harness.context, StackQuery(**query))
