"""Properties of all templates, tested with generated templates.

The examples are the same in every run.
"""

import json
from collections.abc import Mapping

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from convergence.core.model import Output
from convergence.errors import ConvergenceError, RequestLimitExceeded, StackValidationFailed
from convergence.template import EvaluationFailed, Require, compile, preview, references, resolve
from convergence.template.versions import DIALECTS
from tests.template.build import IDENTITY

SAME = settings(
    derandomize=True,
    max_examples=3 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
RESOURCES = ('db', 'net')
ATTRIBUTES = ('a', 'b')
PARAMETERS = {
    'text': {'type': 'string', 'default': 'a,b'},
    'flag': {'type': 'boolean', 'default': False},
    'tree': {'type': 'json', 'default': {'k': ['a', {'b': 1}], '$fn': ['get_attr', ['db', 'secret']]}},
}
CONDITIONS = {'on': True, 'off': {'not': 'on'}, 'given': {'get_param': 'flag'}}
KNOWN = sorted({name for versions in DIALECTS.values() for version in versions.values() for name in version.functions})

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 90),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(['', 'a', 'b', 'k', 'a,b', ',', 'md5', 'text', 'on', 'off', 'db', 'net', '1', '$fn', 'é☃']),
)
keys = st.sampled_from(['a', 'b', 'k', 'template', 'params', 'for_each', 'keys', 'values', 'host', '$fn', '$map', '$$'])


def calls(values):
    """A call with an argument of about the right form, or of a wrong one."""
    two, many = st.tuples(values, values).map(list), st.lists(values, max_size=3)
    mapping = st.dictionaries(keys, values, max_size=3)
    resource, attribute = st.sampled_from(RESOURCES), st.sampled_from(ATTRIBUTES)
    condition = st.one_of(
        st.sampled_from([True, False, *CONDITIONS, 'unknown']), st.fixed_dictionaries({'equals': two})
    )
    forms = {
        'get_resource': resource,
        'get_attr': st.tuples(resource, st.one_of(attribute, values)).map(list),
        'get_param': st.one_of(st.sampled_from([*PARAMETERS, 'OS::stack_id', 'nothing']), many),
        'str_replace': st.fixed_dictionaries({'template': values, 'params': mapping}),
        'str_replace_strict': st.fixed_dictionaries({'template': values, 'params': mapping}),
        'str_replace_vstrict': st.fixed_dictionaries({'template': values, 'params': mapping}),
        'list_join': st.tuples(values, many).map(list),
        'str_split': two,
        'repeat': st.fixed_dictionaries({'template': values, 'for_each': st.dictionaries(keys, many, max_size=2)}),
        'map_merge': many,
        'map_replace': st.tuples(mapping, st.fixed_dictionaries({'keys': mapping, 'values': mapping})).map(list),
        'list_concat': st.lists(many, max_size=3),
        'list_concat_unique': st.lists(many, max_size=3),
        'filter': st.tuples(many, many).map(list),
        'contains': st.tuples(values, many).map(list),
        'make_url': mapping,
        'digest': two,
        'if': st.tuples(condition, values, values).map(list),
        'yaql': st.fixed_dictionaries({'expression': st.just('$.data'), 'data': values}),
    }
    good = st.one_of(*(argument.map(lambda given, name=name: {name: given}) for name, argument in forms.items()))
    wrong = st.builds(lambda name, argument: {name: argument}, st.sampled_from(KNOWN), values)
    cut = condition.flatmap(lambda found: values.map(lambda value: {'if': [found, value]}))
    return st.one_of(good, good, good, cut, wrong)


values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3), calls(inner)),
    max_leaves=12,
)
late_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)


document_keys = st.sampled_from(
    [
        'heat_template_version',
        'AWSTemplateFormatVersion',
        'parameters',
        'Parameters',
        'resources',
        'Resources',
        'outputs',
        'conditions',
        'Conditions',
        'Mappings',
        'type',
        'Type',
        'properties',
        'Properties',
        'condition',
        'depends_on',
        'DependsOn',
        'external_id',
        'value',
        'default',
        'constraints',
        'a',
        'b',
        *KNOWN,
    ]
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(document_keys, inner, max_size=4)),
    max_leaves=25,
)


class Watched(Mapping):
    """Outputs of resources that remember what was looked at."""

    def __init__(self, given):
        self._outputs = {
            name: Output(name, f'id-{name}', attributes=_Attributes(self, name, given)) for name in RESOURCES
        }
        self.resources, self.attributes = set(), set()

    def __getitem__(self, name):
        self.resources.add(name)
        return self._outputs[name]

    def __iter__(self):
        return iter(self._outputs)

    def __len__(self):
        return len(self._outputs)


class _Attributes(dict):
    def __init__(self, watched, name, given):
        super().__init__({**given, '': dict(given)})
        self._watched, self._name = watched, name

    def get(self, key, default=None):
        self._watched.attributes.add((self._name, key))
        return super().get(key, default)

    def __getitem__(self, key):
        self._watched.attributes.add((self._name, key))
        return super().__getitem__(key)


class Echo:
    """Evaluates the only expression that is used here."""

    def evaluate(self, expression, data, budget):
        return data


def template(value, version='2021-04-16'):
    return {
        'heat_template_version': version,
        'parameters': PARAMETERS,
        'conditions': CONDITIONS,
        'resources': {'r': {'type': 'T', 'properties': {'x': value}}, 'db': {'type': 'T'}, 'net': {'type': 'T'}},
        'outputs': {'o': {'value': value}},
    }


@SAME
@given(values, late_values, late_values)
@example({'get_attr': ['db', {'get_attr': ['net', 'a']}]}, 'b', 1)
@example({'str_split': [',', {'get_attr': ['db', 'a']}]}, {'$fn': [1, 2, 3]}, None)
def test_dependencies_are_what_resolution_touches_and_nothing_but_errors_of_the_language_is_raised(value, a, b):
    try:
        compiled = compile(template(value), identity=IDENTITY)
    except (StackValidationFailed, RequestLimitExceeded):
        return
    definition = compiled.goal.definitions['r']
    names, attributes = references(definition.properties)
    asked = {(name, key) for name, found in attributes.items() for key in found}
    assert definition.requires == tuple(sorted(names | set(attributes)))
    assert definition.uses == {name: tuple(sorted(found)) for name, found in attributes.items()}
    assert {(name, key) for name, found in compiled.goal.asked.items() for key in found} == asked
    watched = Watched({'a': a, 'b': b})
    try:
        resolved = resolve(definition.properties, watched, Echo())
    except (EvaluationFailed, RequestLimitExceeded):
        assert watched.resources <= set(definition.requires)
        return
    assert json.loads(json.dumps(resolved)) == resolved
    assert watched.resources == set(definition.requires)
    # Where the name of an attribute is known only later, all were asked for.
    assert {(name, key) for name, key in watched.attributes if (name, '') not in asked} <= asked
    assert {(name, key) for name, key in asked if key} <= watched.attributes
    assert preview(definition.properties, watched, Echo()) == resolved
    try:
        preview(definition.properties, {})
    except EvaluationFailed:
        raise AssertionError('what can be resolved was refused by the preview') from None


@SAME
@given(values)
def test_looking_at_a_template_refuses_nothing_that_is_accepted(value):
    try:
        compiled = compile(template(value), identity=IDENTITY)
    except (StackValidationFailed, RequestLimitExceeded):
        return
    observed_at = compile(template(value), identity=IDENTITY, require_parameters=Require.NONE)
    assert observed_at.goal.definitions['r'] == compiled.goal.definitions['r']


@SAME
@given(values)
def test_however_a_template_is_written_down_it_means_the_same(value):
    document = template(value)
    meanings = set()
    for source in (document, json.dumps(document), yaml.safe_dump(document, allow_unicode=True, sort_keys=False)):
        try:
            meaning = repr(compile(source, identity=IDENTITY))
        except StackValidationFailed as error:
            meaning = repr(sorted(problem.message for problem in error.problems))
        meanings.add(meaning)
    assert len(meanings) == 1


@SAME
@given(documents, st.sampled_from([(key, name) for key, found in DIALECTS.items() for name in found]))
def test_whatever_the_sections_hold_there_is_a_template_or_an_error_of_the_language(content, version):
    key, name = version
    document = {**(content if isinstance(content, dict) else {'resources': content}), key: name}
    try:
        compile(json.dumps(document), identity=IDENTITY)
    except ConvergenceError as error:
        assert str(error)


PIECES = [
    'heat_template_version: wallaby\n',
    'resources:\n',
    '  a: ',
    '- ',
    '{',
    '}',
    '[',
    ']',
    ': ',
    ', ',
    '&x ',
    '*x',
    '<<: ',
    '!!str ',
    '!!binary ',
    '|\n',
    '>-\n',
    '"',
    "'",
    '# c\n',
    '? ',
    '\t',
    '\r\n',
    '\n',
    '---\n',
    '...\n',
    '%YAML 1.1\n',
    '\ufeff',
    '\x00',
    '\x85',
    '\u2028',
    '\ud800',
    'é',
    '0x_',
    '1e999',
    '.nan',
    '12:30:45',
    '2016-10-14',
    '~',
    'yes',
    '{get_attr: [a, b]}',
    '{if: [',
    '$fn',
    'type: T\n',
    '\\',
    '\U0001f600',
    ' ' * 3,
]


@settings(SAME, max_examples=15 * settings.default.max_examples)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map(''.join))
@example('[' * 25_000)
@example('{a: ' * 25_000)
@example('- ' * 25_000)
@example('? ' * 25_000)
@example('heat_template_version: wallaby\nresources: ' + '{if: [true, ' * 63 + '1')
@example(
    'a: &a [x]\n'
    + ''.join(f'{c}: &{c} [{", ".join(["*" + p] * 9)}]\n' for p, c in zip('abcdefghi', 'bcdefghij', strict=True))
)
def test_no_text_does_anything_but_make_a_template_or_an_error_of_the_language(text):
    try:
        compile(text, identity=IDENTITY)
    except ConvergenceError as error:
        assert str(error)
