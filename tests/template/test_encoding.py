"""User data is never taken for a function, whatever it looks like, and comes out as it went in."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergence.errors import ConvergenceError
from convergence.template import preview, references, resolve
from tests.template.build import compiled, encoded_property

LOOKS_LIKE_A_CALL = [
    {'get_resource': 'db'},
    {'get_attr': ['db', 'secret']},
    {'$fn': ['get_resource', 'db']},
    {'$fn': 'x'},
    {'$map': {'$fn': ['get_resource', 'db']}},
    {'$map': {'$map': {}}},
    {'$': 1},
    {'$fn': ['get_resource', 'db'], 'more': 1},
    [{'a': {'$fn': ['get_attr', ['db', 'x']]}}],
]


@pytest.mark.parametrize('data', LOOKS_LIKE_A_CALL)
def test_a_parameter_cannot_smuggle_in_a_function(data):
    encoded = encoded_property({'get_param': 'p'}, declared={'p': {'type': 'json'}}, parameters={'p': data})
    assert references(encoded) == (set(), {})
    assert resolve(encoded, {}) == data
    assert preview(encoded, {}) == data


@pytest.mark.parametrize('data', LOOKS_LIKE_A_CALL)
def test_a_default_an_environment_and_json_text_cannot_either(data):
    declared = {'p': {'type': 'json', 'default': data}}
    assert resolve(encoded_property({'get_param': 'p'}, declared=declared), {}) == data
    declared = {'p': {'type': 'json'}}
    environment = {'parameters': {'p': json.dumps(data)}}
    encoded = encoded_property({'get_param': 'p'}, declared=declared, environment=environment)
    assert resolve(encoded, {}) == data


def test_dollar_keys_of_a_template_are_data_and_functions_below_them_work():
    encoded = encoded_property({'$fn': ['get_resource', 'db'], '$map': {'get_param': 'OS::stack_name'}})
    assert resolve(encoded, {}) == {'$fn': ['get_resource', 'db'], '$map': 'shop'}
    assert references(encoded) == (set(), {})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(['$fn', '$map', '$', 'a', '', 'get', '<<', '1', 'template', 'params', 'x' * 40])
            | st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
steady = settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@steady
@given(json_values)
def test_literal_data_comes_out_unchanged_from_every_way_in(data):
    template = {'heat_template_version': 'newton', 'resources': {'web': {'type': 'T', 'properties': {'x': data}}}}
    for source in (template, json.dumps(template), json.dumps(template, ensure_ascii=False)):
        definition = compiled(source).goal.definitions['web']
        assert definition.requires == ()
        assert resolve(definition.properties, {}) == {'x': data}
        assert json.loads(json.dumps(definition.properties)) == definition.properties


pieces = st.sampled_from(
    [
        *('resources', 'parameters', 'outputs', 'web', 'db', 'type', 'properties', 'depends_on', 'value', 'T'),
        *('get_param', 'get_resource', 'get_attr', 'list_join', 'str_replace', 'template', 'params', 'default'),
        *('constraints', 'length', 'min', 'allowed_pattern', '$fn', '$map', 'string', 'json', '', '<<', 'x'),
    ]
)
wild = st.recursive(
    pieces | st.none() | st.integers(-3, 3) | st.booleans() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(pieces, inner, max_size=4),
    max_leaves=25,
)


@steady
@given(wild, wild, wild)
def test_nonsense_is_refused_with_an_error_of_the_language_or_compiles(resources, parameters, properties):
    template = {
        'heat_template_version': '2021-04-16',
        'parameters': parameters,
        'resources': resources if isinstance(resources, list) else {'web': {'type': 'T', 'properties': properties}},
        'outputs': {'o': {'value': resources}},
    }
    try:
        result = compiled(template)
        resolve(result.outputs['o'].value, {})
    except ConvergenceError as error:
        assert str(error)


@steady
@given(st.text('{}[]&*a:- \n\t"\'!|>%@<#?,0', max_size=60))
def test_any_text_is_refused_with_an_error_of_the_language(text):
    with pytest.raises(ConvergenceError):
        compiled(f'{text}\n#heat_template_version')
