from __future__ import annotations

import pytest

from convergence.errors import StackValidationFailed
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template import StackIdentity, analyse, compile

IDENTITY = StackIdentity('stack-id', 'stack', 'project')


def problems(text, **options):
    compiled = compile(f'heat_template_version: 2018-08-31\n{text}', identity=IDENTITY, **options)
    with pytest.raises(StackValidationFailed) as caught:
        validate(compiled, Registry.builtin())
    return [(problem.place.line, str(problem).splitlines()[0]) for problem in caught.value.problems]


def test_everything_wrong_is_found_in_one_go_and_in_order():
    found = problems("""
resources:
  a:
    type: OS::Heat::Vaule
  b:
    type: OS::Heat::RandomString
    properties:
      lenght: 5
      length: many
  c:
    type: OS::Heat::Value
outputs:
  o:
    value: {get_attr: [b, valu]}
  p:
    value:
      deep: [{get_attr: [c, output]}]
""")
    assert [line for line, _ in found] == [5, 9, 10, 11, 15, 18]
    texts = [text for _, text in found]
    assert 'Did you mean OS::Heat::Value?' in texts[0]
    assert 'Did you mean length?' in texts[1]
    assert 'the value must be an integer' in texts[2]
    assert 'Property value not assigned' in texts[3]
    assert 'Did you mean value?' in texts[4]
    assert 'OS::Heat::Value has no attribute output' in texts[5]


def test_values_that_are_known_only_later_are_not_held_against_the_template():
    validate(
        compile(
            """
heat_template_version: 2018-08-31
resources:
  text: {type: OS::Heat::RandomString}
  test:
    type: OS::Heat::TestResource
    properties:
      value: {get_attr: [text, value]}
      wait_secs: {get_resource: text}
      action_wait_secs: {create: {get_attr: [text, value]}, delete: 1}
  anything:
    type: OS::Heat::None
    properties: {whatever: {get_attr: [test]}}
outputs:
  all: {value: {get_attr: [test]}}
  any: {value: {get_attr: [anything, what, ever, 0]}}
""",
            identity=IDENTITY,
        ),
        Registry.builtin(),
    )


def test_attributes_asked_in_properties_and_metadata_are_checked():
    found = problems("""
resources:
  a: {type: OS::Heat::Delay}
  b:
    type: OS::Heat::TestResource
    metadata: {x: {get_attr: [a, y]}}
    properties:
      value: {list_join: ['', [{get_attr: [a, x]}, b]]}
""")
    assert [line for line, _ in found] == [7, 9]


def test_the_examples_are_valid(tmp_path, request):
    registry = Registry.builtin(local=LocalProvider(tmp_path))
    examples = sorted((request.config.rootpath / 'examples').glob('*.yaml'))
    assert [example.name for example in examples] == [
        'hello.yaml',
        'scaling.yaml',
        'site-update.yaml',
        'site.yaml',
        'wait.yaml',
    ]
    for example in examples:
        validate(compile(example.read_text(), identity=IDENTITY), registry)


def analysed(text):
    return analyse(f'heat_template_version: 2018-08-31\n{text}', identity=IDENTITY)


HOLDS = 'a: {type: OS::Heat::Value, properties: {value: x}}'


@pytest.mark.parametrize(
    ('text', 'line', 'said'),
    [
        (
            'resources:\n  a:\n  type: OS::Heat::Value\n  properties:\n    value: x',
            4,
            'type and properties stand beside a, which is empty; indent them further.',
        ),
        (
            'resources:\n  a:\n    type: OS::Heat::Value\n    properties:\n    value: x',
            6,
            'value stands beside properties, which is empty; indent it further.',
        ),
        (f'resources:\n{HOLDS}', 3, 'a stands beside resources, which is empty; indent it further.'),
        (
            (
                'parameters:\n  p:\n  type: number\n  default: 1\nresources:\n  a: {type: OS::Heat::Value, '
                'properties: {value: {get_param: p}}}'
            ),
            4,
            'type and default stand beside p, which is empty; indent them further.',
        ),
        ('outputs:\n  o:\n  value: x\n  p: {value: y}', 4, 'value stands beside o, which is empty; indent it further.'),
        (
            'outputs:\n  o: {valu: x}',
            3,
            'The output o must be a map with the key value. Did you mean "value" by "valu"?',
        ),
        (
            'resources:\n  a:\n    typ: OS::Heat::None',
            4,
            '"typ" is not a valid keyword inside a resource definition. Did you mean "type"?',
        ),
        (
            'resources:\n  a: {type: OS::Heat::None, deletion_policy: Retian}',
            3,
            'Invalid deletion policy; it must be one of Delete, Retain, Snapshot. Did you mean "Retain"?',
        ),
    ],
)
def test_one_mistake_is_told_once_without_its_consequences_and_where_it_is(text, line, said):
    with pytest.raises(StackValidationFailed) as caught:
        validate(analysed(text), Registry.builtin())
    assert [(problem.place.line, str(problem).splitlines()[0]) for problem in caught.value.problems] == [(line, said)]


@pytest.mark.parametrize(
    ('call', 'wrong'),
    [
        ('str_replace: {templte: x, params: {}}', 'templte'),
        ('repeat: {template: x, foreach: {}}', 'foreach'),
        ('yaql: {expresion: x, data: 1}', 'expresion'),
        ('make_url: {hots: x}', 'hots'),
    ],
)
def test_the_caret_is_below_the_key_that_a_function_does_not_know(call, wrong):
    line = f'    value: {{{call}}}'
    with pytest.raises(StackValidationFailed) as caught:
        validate(analysed(f'outputs:\n  o:\n{line}'), Registry.builtin())
    (problem,) = caught.value.problems
    assert f'not {wrong}.' in problem.message and problem.hint.startswith('Did you mean')
    assert problem.place.column == line.index(wrong) + 1


def test_mistakes_of_language_and_of_types_are_told_together_but_not_their_consequences():
    wrong = analysed("""
resources:
  a:
    type: OS::Heat::Vaule
  b:
    type: OS::Heat::Value
    properties:
      value: {get_param: nmae}
      valeu: 1
  c:
    type: OS::Heat::RandomString
    properties:
      length: {get_param: [size, 0]}
  d:
    depends_on: x
reosurces: {}
""")
    with pytest.raises(StackValidationFailed) as caught:
        validate(wrong, Registry.builtin())
    assert [(problem.place.line, problem.kind) for problem in caught.value.problems] == [
        (5, 'UnknownResourceType'),
        (9, 'UserParameterMissing'),
        (10, 'StackValidationFailed'),
        (14, 'UserParameterMissing'),
        (15, 'StackValidationFailed'),
        (16, 'InvalidTemplateReference'),
        (17, 'InvalidTemplateSection'),
    ]


def test_unknown_types_can_be_ignored_and_the_rest_is_still_checked():
    text = """
resources:
  a: {type: Foreign::Thing, properties: {any: thing}, deletion_policy: Snapshot}
  b: {type: OS::Heat::RandomString, properties: {length: 8, salt: {get_attr: [a, whatever]}}}
"""
    warnings = validate(analysed(text), Registry.builtin(), ignore_unknown_types=True)
    assert [(warning.kind, warning.place.path) for warning in warnings] == [
        ('UnknownResourceType', ('resources', 'a', 'type'))
    ]
    assert warnings[0].excerpt.startswith('4 |   a: {type: Foreign::Thing')
    with pytest.raises(StackValidationFailed) as caught:
        validate(analysed(text.replace('length', 'lenght')), Registry.builtin(), ignore_unknown_types=True)
    assert [problem.place.line for problem in caught.value.problems] == [5]


def test_a_document_that_came_parsed_has_paths_instead_of_lines():
    document = {
        'heat_template_version': '2018-08-31',
        'resources': {'a': {'type': 'OS::Heat::Value', 'properties': {'value': {'get_param': 'x'}}}},
    }
    with pytest.raises(StackValidationFailed) as caught:
        validate(analyse(document, identity=IDENTITY), Registry.builtin())
    (problem,) = caught.value.problems
    assert (problem.document()['line'], problem.place.path[:4]) == (None, ('resources', 'a', 'properties', 'value'))
    assert str(problem) == 'Property error: : resources.a.properties.value: : The Parameter (x) was not provided.'


def test_however_many_types_are_unknown_they_only_warn_once_each():
    lines = [f'  r{number}: {{type: Foreign::Thing{number % 150}}}\n' for number in range(900)]
    warnings = validate(analysed(f'resources:\n{"".join(lines)}'), Registry.builtin(), ignore_unknown_types=True)
    assert len(warnings) == 100
    assert len({warning.message for warning in warnings}) == 100
