"""Environments: which type stands for which, what holds for single resources, several files in one."""

import fnmatch
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergence.core.model import Definition
from convergence.errors import (
    ConflictingMergeStrategyForParam,
    ConvergenceError,
    Invalid,
    InvalidBreakPointHook,
    InvalidTemplateReference,
    InvalidTemplateSection,
    RequestLimitExceeded,
    StackValidationFailed,
)
from convergence.template import Installation, Limits
from convergence.template.environment import SECTIONS
from convergence.template.limits import STANDARD
from convergence.template.mappings import fits
from convergence.template.merging import merge_environments
from convergence.template.parameters import Parameter
from convergence.template.values import ParameterType
from tests.template.build import compiled, problems


def definition(registry, name='web', type_='T', files=None):
    template = {'heat_template_version': 'newton', 'resources': {name: {'type': type_}}}
    result = compiled(template, environment={'resource_registry': registry}, files=files or {})
    return result.goal.definitions[name]


@pytest.mark.parametrize(
    ('registry', 'name', 'wanted'),
    [
        ({}, 'web', 'T'),
        ({'T': 'U'}, 'web', 'U'),
        ({'T': 'U', 'U': 'V'}, 'web', 'V'),
        ({'T': None}, 'web', 'T'),
        ({'T': 'T'}, 'web', 'T'),
        ({'U': 'V'}, 'web', 'T'),
        ({'T*': 'U'}, 'web', 'U'),
        ({'T*': 'UT*', 'UT': 'V'}, 'web', 'V'),
        ({'T*': 'U', 'T': 'V'}, 'web', 'V'),
        ({'T': 'U', 'resources': {'web': {'T': 'V'}}}, 'web', 'V'),
        ({'T': 'U', 'resources': {'web': {'T': 'V'}}}, 'db', 'U'),
        ({'resources': {'we*': {'T': 'U'}, 'web': {'T': 'V'}}}, 'web', 'V'),
        ({'resources': {'we*': {'T': 'U'}, 'web': {'X': 'V'}}}, 'web', 'U'),
        ({'resources': {'w*b': {'T': 'U'}}}, 'web', 'U'),
        ({'resources': {'w*b': {'T': 'U'}}}, 'weba', 'T'),
        ({'resources': {'web': None}}, 'web', 'T'),
    ],
)
def test_types_stand_for_types(registry, name, wanted):
    found = definition(registry, name)
    assert found.type == wanted
    assert found.shown_type == 'T'


def test_the_rest_of_a_name_is_carried_over():
    assert definition({'OS::Old*': 'OS::New*'}, type_='OS::OldServer').type == 'OS::NewServer'
    assert definition({'OS::*': 'A*', 'OS::Old*': 'B*'}, type_='OS::OldServer').type == 'BServer'


def test_what_stands_for_a_type_is_kept_in_the_row():
    found = definition({'T': 'U', 'resources': {'web': {'restricted_actions': 'update', 'hooks': 'pre-create'}}})
    assert Definition.from_document(found.document()) == found
    assert set(definition({}).document()) == set(Definition('a', 'T').document())


@pytest.mark.parametrize(
    ('registry', 'message', 'kind'),
    [
        ({'T': 'U', 'U': 'T'}, 'maps T to other types in a cycle', StackValidationFailed),
        ({'T*': 'TT*'}, 'in a cycle', StackValidationFailed),
        ({'T': 5}, 'must be mapped to the name of a type', StackValidationFailed),
        ({'T*x': 'U'}, 'must be the last character', StackValidationFailed),
        ({'T': 'U*'}, 'must be the last character', StackValidationFailed),
        ({'T': 'web.yaml'}, 'The template "web.yaml" of the resource web is not among the files', None),
        ({'resources': []}, 'must be a map', StackValidationFailed),
        ({'resources': {'web': 'x'}}, 'settings of the resource web must be a map', StackValidationFailed),
        ({'base_url': []}, 'must be a string', StackValidationFailed),
        (
            {'resources': {'web': {'hooks': 'pre-craete'}}},
            'Invalid hook type "pre-craete" for resource breakpoint "web"',
            InvalidBreakPointHook,
        ),
        ({'resources': {'a': {'b': {'hooks': ['x']}}}}, 'Invalid hook type "x"', InvalidBreakPointHook),
        (
            {'resources': {'web': {'restricted_actions': ['update', 'delete']}}},
            'Invalid restricted_action type "delete" for resource "web"',
            StackValidationFailed,
        ),
        ({'resources': {'web': {'hooks': [5]}}}, 'The hooks must be a name, or a list', StackValidationFailed),
    ],
)
def test_wrong_registries(registry, message, kind):
    template = {'heat_template_version': 'newton', 'resources': {'web': {'type': 'T'}}}
    found = problems(template, kind or StackValidationFailed, environment={'resource_registry': registry})
    assert message in found[0].message


def test_templates_are_found_among_the_files():
    files = {'web.yaml': '', 'http://x/lib/db.yaml': '', 'http://y/db.yaml': ''}
    assert definition({'T': 'web.yaml'}, files=files).type == 'web.yaml'
    assert definition({}, type_='web.yaml', files=files).type == 'web.yaml'
    below = definition({'T': './db.yaml', 'base_url': 'http://x/lib/'}, files=files)
    assert (below.type, below.shown_type) == ('http://x/lib/db.yaml', 'T')
    nearer = {'T': 'db.yaml', 'base_url': 'http://x/lib', 'resources': {'web': {'base_url': 'http://y'}}}
    assert definition(nearer, files=files).type == 'http://y/db.yaml'


def test_hooks_and_restrictions_come_from_all_that_fits():
    registry = {
        'resources': {
            'web': {'hooks': 'pre-update', 'restricted_actions': 'replace'},
            'w*': {'hooks': ['pre-create', 'pre-update'], 'restricted_actions': ['update']},
            'x*': {'hooks': 'post-delete'},
        }
    }
    found = definition(registry)
    assert found.hooks == ('pre-create', 'pre-update')
    assert found.restrictions == ('replace', 'update')


@given(st.text(alphabet='ab[]!', max_size=12), st.text(alphabet='ab*?[]!-', max_size=7))
def test_patterns_fit_as_in_a_shell(name, pattern):
    assert fits(name, pattern) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize('pattern', ['web?', 'web[12]', 'web[!3-9]', '?eb1', 'w*[1]'])
def test_a_restriction_holds_for_every_name_that_its_pattern_fits(pattern):
    text = 'resources:\n  web1: {type: T}\n  db: {type: T}\n'
    registry = {'resources': {pattern: {'restricted_actions': 'update', 'hooks': 'pre-update', 'T': 'Other'}}}
    found = compiled(text, environment={'resource_registry': registry}).goal.definitions
    assert (found['web1'].restrictions, found['web1'].hooks, found['web1'].type) == (
        ('update',),
        ('pre-update',),
        'Other',
    )
    assert (found['db'].restrictions, found['db'].hooks, found['db'].type) == ((), (), 'T')


def test_a_pattern_that_is_made_to_take_long_does_not():
    assert not fits('a' * 255, '*a' * 100 + '?b')


@pytest.mark.parametrize(('pattern', 'count'), [('*{}*', 10_000), ('?{}', 1_000)])
def test_an_environment_made_to_exhaust_is_refused(pattern, count):
    registry = {'resources': {pattern.format(number): {} for number in range(count)}}
    template = {
        'heat_template_version': 'newton',
        'resources': {f'r{number}': {'type': 'T'} for number in range(1_000)},
    }
    with pytest.raises(RequestLimitExceeded, match='max_steps'):
        compiled(template, environment={'resource_registry': registry}, installation=Installation(Limits()))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(alphabet='ab*-.yl', max_size=8)
    | st.sampled_from(['web', 'T', 'T*', 'pre-create', 'update', 'merge', 'a.yaml']),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ['web', 'w*', 'T', '*', 'hooks', 'restricted_actions', 'base_url', 'resources', 'default', 'p']
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
ENVIRONMENT = st.dictionaries(st.sampled_from([*SECTIONS, 'x']), JSON, max_size=4)
TEMPLATE = {
    'heat_template_version': 'newton',
    'parameters': {'p': {'type': 'json', 'default': {}}},
    'resources': {'web': {'type': 'T'}},
}


@settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(ENVIRONMENT)
def test_whatever_an_environment_says_it_is_read_or_refused(environment):
    try:
        found = compiled(TEMPLATE, environment=environment, files={'a.yaml': ''})
    except ConvergenceError:
        return
    assert isinstance(found.goal.definitions['web'].type, str)


@settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ENVIRONMENT, max_size=3), ENVIRONMENT)
def test_whatever_files_say_they_are_merged_or_refused(environments, given_besides):
    files = {str(number): json.dumps(environment) for number, environment in enumerate(environments)}
    try:
        found = merge_environments(list(files), files, given_besides, DECLARED, STANDARD)
    except ConvergenceError:
        return
    json.dumps(found)
    assert set(found) <= {*given_besides, *(section for environment in environments for section in environment)}


# --- several files --------------------------------------------------------------------------------------------

DECLARED = {
    name: Parameter(name, ParameterType(type_))
    for name, type_ in {
        's': 'string',
        'n': 'number',
        'l': 'comma_delimited_list',
        'j': 'json',
        'b': 'boolean',
    }.items()
}


def merged(*files, given=None):
    names = [f'{number}.yaml' for number in range(len(files))]
    return merge_environments(names, dict(zip(names, files, strict=True)), given or {}, DECLARED, STANDARD)


def test_later_files_win_and_the_files_win_over_what_was_sent_besides():
    first = 'parameters: {s: one, n: 1}\nparameter_defaults: {l: [a]}'
    second = 'parameters: {s: two}'
    given = {'parameters': {'s': 'sent', 'b': True}, 'parameter_defaults': {'j': {}}}
    assert merged(first, second, given=given) == {
        'parameters': {'s': 'two', 'b': True, 'n': 1},
        'parameter_defaults': {'j': {}, 'l': ['a']},
    }


@pytest.mark.parametrize(
    ('name', 'first', 'second', 'strategy', 'expected'),
    [
        ('s', 'one', 'two', 'overwrite', 'two'),
        ('s', 'one', 'two', 'merge', 'onetwo'),
        ('n', '1', '2', 'merge', 3),
        ('n', '1', "'2.5'", 'merge', 3.5),
        ('b', 'true', 'false', 'merge', True),
        ('b', 'false', 'false', 'merge', False),
        ('l', '[a]', "'b,c'", 'merge', ['a', 'b', 'c']),
        ('l', '[a]', '[b]', 'deep_merge', ['a', 'b']),
        ('j', '{a: {x: 1}, b: 1}', '{a: {y: 2}, c: 3}', 'merge', {'a': {'y': 2}, 'b': 1, 'c': 3}),
        (
            'j',
            '{a: {x: 1, l: [1]}, b: 1, s: p}',
            '{a: {y: 2, l: [2]}, b: null, s: q}',
            'deep_merge',
            {'a': {'x': 1, 'y': 2, 'l': [1, 2]}, 'b': 1, 's': 'pq'},
        ),
        ('j', '{a: 1}', '[1]', 'merge', [1]),
        ('n', '1', 'many', 'merge', 'many'),
        ('undeclared', '1', '2', 'merge', 2),
        ('s', 'one', 'null', 'overwrite', 'one'),
    ],
)
@pytest.mark.parametrize('section', ['parameters', 'parameter_defaults'])
@pytest.mark.parametrize('by', ['name', 'default'])
def test_strategies(section, by, name, first, second, strategy, expected):
    key = name if by == 'name' else 'default'
    found = merged(
        f'{section}: {{{name}: {first}}}',
        f'{section}: {{{name}: {second}}}\nparameter_merge_strategies: {{{key}: {strategy}}}',
    )
    assert found == {section: {name: expected}}


def test_a_strategy_stays_for_the_files_that_follow():
    first = 'parameters: {s: a}\nparameter_merge_strategies: {s: merge}'
    assert merged(first, 'parameters: {s: b}', 'parameters: {s: c}') == {'parameters': {'s': 'abc'}}


def test_strategies_that_contradict_each_other_are_refused():
    with pytest.raises(ConflictingMergeStrategyForParam) as caught:
        merged(
            'parameters: {s: a}\nparameter_merge_strategies: {s: merge}',
            'parameters: {s: b}\nparameter_merge_strategies: {s: overwrite}',
        )
    (problem,) = caught.value.problems
    assert problem.message == "Conflicting merge strategy 'overwrite' for parameter 's' in file '1.yaml'."
    assert (problem.place.source, problem.place.line) == ('1.yaml', 2)


def test_registries_and_lists_are_joined():
    found = merged(
        'resource_registry: {A: B, resources: {x: {hooks: pre-create}}}\nencrypted_param_names: [a]',
        'resource_registry: {A: C, resources: {x: {T: U}, y: {T: V}}}\nencrypted_param_names: [a, b]',
        given={'resource_registry': {'D': 'E'}},
    )
    assert found['resource_registry'] == {
        'D': 'E',
        'A': 'C',
        'resources': {'x': {'hooks': 'pre-create', 'T': 'U'}, 'y': {'T': 'V'}},
    }
    assert found['encrypted_param_names'] == ['a', 'b']


def test_problems_of_a_file_name_the_file():
    with pytest.raises(InvalidTemplateSection) as caught:
        merged('parameters: {}', 'paramaters: {}')
    assert caught.value.problems[0].place.source == '1.yaml'


@pytest.mark.parametrize(
    ('names', 'kind'), [(['b.yaml'], InvalidTemplateReference), ('a.yaml', Invalid), ([1], Invalid)]
)
def test_names_of_files_must_be_those_of_files(names, kind):
    with pytest.raises(kind):
        merge_environments(names, {'a.yaml': ''}, {}, {}, STANDARD)


def test_what_was_sent_is_not_changed():
    given = {'parameters': {'s': 'a'}, 'resource_registry': {'A': 'B'}}
    merged('parameters: {s: b}\nresource_registry: {C: D}', given=given)
    assert given == {'parameters': {'s': 'a'}, 'resource_registry': {'A': 'B'}}
