"""The incremental parse reads changed resources only, and gives the same result as a full parse."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergence.errors import ConvergenceError
from convergence.expressions import evaluator
from convergence.template import Compiled, Installation, Limits, analyse, definitions
from convergence.values import replace
from tests.template.build import IDENTITY

HEAD = """\
heat_template_version: 2018-08-31
description: of a shop
parameters:
  size: {type: number, default: 3}
conditions:
  large: {equals: [{get_param: size}, 3]}
resources:
"""
TAIL = """\
outputs:
  address: {value: {get_attr: [web, address]}}
"""
WEB = """\
  web:
    type: OS::Nova::Server
    properties:
      size: {get_param: size}
      net: {get_resource: net}
"""
NET = """\
  net:
  # the network
    type: OS::Neutron::Net
    properties: {name: {get_param: "OS::stack_name"}}
"""
DISK = """\
  disk:
    type: OS::Cinder::Volume
    properties:
      of: {get_attr: [web, id]}
      text: |
        web:
          type: none
"""
EARLY = """\
heat_template_version: 2018-08-31
resources:
  web: {type: T, properties: {size: {get_param: size}}}
"""
LATE = """\
parameters:
  size: {type: number, default: 3}
"""
SHOP = HEAD + WEB + NET + DISK + TAIL
INSTALLATION = Installation(yaql=evaluator())


def whole(text: str, installation: Installation = INSTALLATION, earlier: Compiled | None = None) -> Compiled:
    return analyse(text, identity=IDENTITY, installation=installation, earlier=earlier)


def told(text: str, earlier: Compiled | None) -> tuple[object, ...]:
    """All that can be known of a text: what it is compiled to, or what is wrong with it."""
    try:
        compiled = whole(text, earlier=earlier)
    except ConvergenceError as error:
        return type(error), str(error)
    wrong = [(str(each), each.place, each.excerpt) for each in (*compiled.problems.found(), *compiled.warnings)]
    places = [compiled.place('resources', name, 'type') for name in compiled.goal.definitions]
    said = [
        (repr(each), each.secrets, each.hidden, each.private, each.asked) for each in compiled.goal.definitions.values()
    ]
    # Who takes a template for one of its stack alone without need does no harm.
    return replace(compiled, is_personal=False), said, wrong, places, [*compiled.outputs.values()]


@pytest.fixture
def read(monkeypatch):
    """The names of the resources that are read."""
    names: list[str] = []
    definition = definitions.Definitions._definition

    def watched(self, name, body, scope):
        names.append(name)
        return definition(self, name, body, scope)

    monkeypatch.setattr(definitions.Definitions, '_definition', watched)
    return names


def among(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (SHOP, []),
        (among(SHOP, 'type: none', 'type: some'), ['disk']),
        (among(SHOP, 'net: {get_resource: net}', 'net: other'), ['web']),
        (HEAD + WEB + NET + TAIL, []),
        (HEAD + NET + DISK + WEB + TAIL, []),
        (HEAD + WEB + NET + DISK + among(NET, 'net:', 'second:') + TAIL, ['second']),
        (among(among(SHOP, 'type: none', 'type: some'), 'Neutron', 'Other'), ['net', 'disk']),
        (among(SHOP, '      text', '\n      text'), ['disk']),
    ],
    ids=['the same', 'one', 'another', 'removed', 'other order', 'added', 'two', 'an empty line'],
)
def test_only_what_differs_is_read(read, text, expected):
    earlier = whole(SHOP)
    read.clear()
    revised = whole(text, earlier=earlier)
    assert read == expected
    assert revised == whole(text)
    assert [*revised.goal.definitions] == [*whole(text).goal.definitions]
    read.clear()
    assert whole(SHOP, earlier=revised) == earlier
    assert set(read) < {'web', 'net', 'disk'}, 'what was read in part serves as well'


def test_what_is_wrong_later_is_told_with_its_line(read):
    revised = whole(among(SHOP, '  # the network\n', '\n\n\n'), earlier=whole(SHOP))
    read.clear()
    assert revised.place('resources', 'net', 'type').line == SHOP.split('\n').index('    type: OS::Neutron::Net') + 3
    revised.problems.add('Too small.', revised.place('resources', 'web', 'properties', 'size'))
    assert 'size: {get_param: size}' in str(revised.problems.found()[0].excerpt)


def test_a_part_may_make_the_template_one_of_its_stack_alone():
    common = among(SHOP, '{name: {get_param: "OS::stack_name"}}', '{}')
    assert not whole(common).is_personal
    assert whole(SHOP, earlier=whole(common)).is_personal
    assert whole(among(SHOP, 'type: none', ''), earlier=whole(SHOP)).is_personal, 'for the sake of what was not read'


MISLEADING = {
    'a text in quotes that goes on': (
        '  a: {type: T, properties: {x: "\n  b:\n    type: T\n"}}\n  c: {type: T}\n',
        '  a: {type: T, properties: {x: "\n  b:\n    type: U\n"}}\n  c: {type: T}\n',
    ),
    'quotes that are opened': (
        '  a: {type: T}\n  b:\n    type: T\n  c: {type: T}\n',
        '  a: {type: T, properties: {x: "\n  b:\n    type: T\n  c: "}}\n',
    ),
    'braces that are opened': (
        '  a: {type: T}\n  b:\n    type: T\n  c: {type: T}\n',
        '  a: {type: T, properties: {\n  b:\n    type: T,\n  c: 1}}\n',
    ),
    'braces that are closed further left': (
        '  a: {type: T}\n  b: {type: T, properties: {x: 1,\ny: 2}}\n',
        '  a: {type: U}\n  b: {type: T, properties: {x: 1,\ny: 2}}\n',
    ),
    'an alias': (
        '  a: {type: T, properties: &p {x: 1}}\n  b: {type: T, properties: *p}\n',
        '  a: {type: T, properties: &p {x: 2}}\n  b: {type: T, properties: *p}\n',
    ),
    'an alias to what comes before in another one': (
        '  a: &p {type: T}\n  b: &p {type: U}\n  c: {type: T}\n',
        '  a: &p {type: T}\n  b: &p {type: U}\n  c: *p\n',
    ),
    'a merge': (
        '  a: &p {type: T}\n  b:\n    <<: *p\n',
        '  a: &p {type: U}\n  b:\n    <<: *p\n',
    ),
    'a key in quotes': ('  a: {type: T}\n  "b": {type: T}\n', '  a: {type: U}\n  "b": {type: T}\n'),
    'a key with a mark': ('  a: {type: T}\n  ? b\n  : {type: T}\n', '  a: {type: U}\n  ? b\n  : {type: T}\n'),
    'a key given twice': ('  a: {type: T}\n  b: {type: T}\n', '  a: {type: T}\n  b: {type: T}\n  a: {type: U}\n'),
    'a key that means nothing': ('  a: {type: T}\n', '  a: {type: T}\n  null: {type: T}\n'),
    'less indented': ('  a: {type: T}\n  b: {type: T}\n', '  a: {type: T}\n b: {type: T}\n'),
    'more indented': ('  a: {type: T}\n  b: {type: T}\n', '  a: {type: T}\n   b: {type: T}\n'),
    'indented otherwise': ('  a: {type: T}\n  b: {type: T}\n', '    a: {type: T}\n    b: {type: T}\n'),
    'a tab': ('  a: {type: T}\n  b: {type: T}\n', '  a: {type: T}\n\tb: {type: T}\n'),
    'another break': ('  a: {type: T}\n  b: {type: T}\n', '  a: {type: T}\n  b: {type: T} # \u2028  c: {type: T}\n'),
    'another break between two': (
        '  a: {type: T}\n  b: {type: T}\n',
        '  # all\u2028  new: {type: T}\n  a: {type: T}\n  b: {type: T}\n',
    ),
    'something between the section and the first': (
        '  a: {type: T}\n  b: {type: T}\n',
        '  # all\n\n  a: {type: U}\n  b: {type: T}\n',
    ),
    'a break that hides a resource': (
        '  a: {type: T, properties: {x: "\n  b: "}}\r  b: {type: T}\n',
        '  a: {type: T}\n  b: "}}\r  b: {type: T}\n',
    ),
    'a warning of another one': (
        '  a: {type: T, properties: {x: {get_parm: size}}}\n  b: {type: T}\n',
        '  a: {type: T, properties: {x: {get_parm: size}}}\n  b: {type: U}\n',
    ),
    'all in one line': ('  a: {type: T}\n', '  {a: {type: T}}\n'),
    'nothing': ('  a: {type: T}\n', ''),
    'no map': ('  a: {type: T}\n', '  - a\n'),
    'no map in it': ('  a: {type: T}\n  b: {type: T}\n', '  a: {type: T}\n  b: 7\n'),
    'a second document': ('  a: {type: T}\n', '  a: {type: T}\n---\nb: {type: T}\n'),
    'a second section': ('  a: {type: T}\n', '  a: {type: T}\nresources:\n  b: {type: T}\n'),
    'another section': ('  a: {type: T}\n', '  a: {type: T}\nothers:\n  b: {type: T}\n'),
    'required and removed': (
        '  a: {type: T}\n  b: {type: T, depends_on: a}\n',
        '  b: {type: T, depends_on: a}\n',
    ),
    'a circle': (
        '  a: {type: T}\n  b: {type: T, depends_on: a}\n',
        '  a: {type: T, depends_on: b}\n  b: {type: T, depends_on: a}\n',
    ),
    'a condition': (
        '  a: {type: T}\n  b: {type: T, depends_on: a}\n',
        '  a: {type: T, condition: {not: large}}\n  b: {type: T, depends_on: a}\n',
    ),
    'absent before': (
        '  a: {type: T, condition: {not: large}}\n  b: {type: T, depends_on: a}\n',
        '  a: {type: T}\n  b: {type: T, depends_on: a}\n',
    ),
    'a warning': ('  a: {type: T}\n', '  a: {type: T, properties: {x: {get_parm: size}}}\n'),
    'a word that is misspelt': ('  a: {type: T}\n', '  a: {typ: T}\n'),
    'what goes on below': ('  a: {type: T}\n  b:\n    type: T\n', '  a: {type: T}\n  b:\n  type: T\n'),
}


@pytest.mark.parametrize('name', MISLEADING)
def test_lines_that_mislead(name):
    before, after = MISLEADING[name]
    web = '  web: {type: T}\n'
    pairs = [
        (HEAD + each + web + TAIL, HEAD + other + web + TAIL) for each, other in ((before, after), (after, before))
    ]
    pairs += [
        (HEAD + web + each + TAIL, HEAD + web + other + TAIL) for each, other in ((before, after), (after, before))
    ]
    for old, new in pairs:
        try:
            earlier = whole(old)
        except ConvergenceError:
            continue
        if not earlier.problems:
            assert told(new, earlier) == told(new, None)


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        (SHOP, among(SHOP, 'default: 3', 'default: 4')),
        (SHOP, among(SHOP, 'web, address', 'web, name')),
        (SHOP, among(SHOP, '2018-08-31', '2016-10-14')),
        (SHOP, among(SHOP, 'heat_template_version', 'AWSTemplateFormatVersion')),
        (SHOP.replace('\n', '\r\n'), among(SHOP, 'type: none', 'x').replace('\n', '\r\n')),
        ('---\n' + SHOP, '---\n' + among(SHOP, 'type: none', 'x')),
        (
            among(SHOP, 'of a shop', '"of\nresources:\n  a: 1\nb: a"'),
            among(SHOP, 'of a shop', '"of\nresources:\n  a: 2\nb: a"'),
        ),
        (HEAD + WEB + NET, HEAD + WEB + among(NET, 'name', 'title')),
        (HEAD + WEB + NET, HEAD + WEB + NET.rstrip()),
        (EARLY + NET + LATE, EARLY + NET + among(LATE, '3', '4')),
        (EARLY + NET + LATE, EARLY + NET + among(LATE, 'default: 3', 'default: 3, hidden: true')),
    ],
)
def test_what_is_around(old, new):
    """The text before and after the resources."""
    assert told(new, whole(old)) == told(new, None)


def test_what_takes_the_end_of_the_text_with_it_is_not_taken_for_a_resource():
    before = HEAD + '  web: {type: T}\n  a: {type: T}\n  b: {type: T}\noutputs:\n  o: {value: "}} # "}\n'
    after = among(before, '  a: {type: T}', '  a: {type: T, properties: {x: "')
    assert [*whole(after).goal.definitions] == ['web', 'a']
    assert told(after, whole(before)) == told(after, None)


LINES = [
    '  web:', '  a:', '  b:', ' c:', '    type: T', '  type: T', '    properties: {x: 1}', '    properties:', '      x: |',
    '        a:', '  # a', '', '    properties: {x: "', '"}', '  "}', '  }', '    depends_on: a', '    x: &p', '    y: *p',
    '  - a', '  a: {type: T}', '  b: {type: T, depends_on: [a]}', '  b: {type: T, properties: {y: {get_attr: [a, b]}}}',
    '    condition: large', 'outputs:', '  o: {value: 1}', 'a:', '---', "  'b': {type: T}", '    properties: {x:', '      y: 3', '  # x\r  d: {type: T}', '  # y\x85  e: {type: T}',
    '  a: &p {type: T}', '  c: *p', '    metadata: {z: >', '   long', '  ? a', '  : b', '  a : {type: T}',
]  # fmt: skip


@settings(
    derandomize=True,
    deadline=None,
    max_examples=15 * settings.default.max_examples,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_whatever_the_lines_are_it_is_as_if_all_was_read(data):
    """The text before is right; the one after has some lines more, less, or elsewhere."""
    line = st.sampled_from(LINES)
    web = ['  web: {type: T}', '  a:', '    type: T']
    some = st.lists(st.sampled_from([*LINES[1:3], *LINES[4:5], *LINES[18:24]]), max_size=6)
    before = [*web, *data.draw(some)]
    try:
        earlier = whole(HEAD + '\n'.join(before) + '\n' + TAIL)
    except ConvergenceError:
        return
    if earlier.problems:
        return
    after = [*before]
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(after)))
        after[place : place + data.draw(st.integers(0, 2))] = data.draw(st.lists(line, max_size=2))
    text = HEAD + '\n'.join(after) + '\n' + TAIL
    assert told(text, earlier) == told(text, None)


def listed(*numbers: int) -> str:
    """A template with a resource for each number, which takes some steps to read."""
    made = (f'  r{each}: {{type: T, properties: {{x: {{list_join: ["", [{"a, " * 9}a]]}}}}}}\n' for each in numbers)
    return HEAD + '  web: {type: T}\n' + ''.join(made) + TAIL


@pytest.mark.parametrize('limit', ['max_steps', 'max_expanded_bytes', 'max_nodes'])
def test_what_is_read_in_parts_has_the_limits_of_the_whole(limit):
    """Reused resources count against the limits with their earlier size; near a limit the whole text is counted."""
    parse_state = whole(listed(1, 2, 3)).parse_state
    assert parse_state is not None
    taken = {
        'max_steps': parse_state.spent.steps + 40,
        'max_expanded_bytes': parse_state.spent.text + parse_state.text.length,
        'max_nodes': parse_state.text.nodes,
    }
    installation = Installation(Limits(**{limit: taken[limit] * 4 // 3}))
    compiled = whole(listed(1, 2, 3), installation)
    for turn in range(20):  # The estimate grows each time, until a full count replaces it.
        compiled = whole(listed(1 + turn % 2, 5, 3), installation, compiled)
    with pytest.raises(ConvergenceError, match=limit):
        for number in range(4, 60):
            compiled = whole(listed(*range(1, number)), installation, compiled)
    with pytest.raises(ConvergenceError, match=limit):
        whole(listed(*range(1, number)), installation)
