"""What was compiled before is used again, and whatever depends on more than its content is asked anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from convergence import errors, logs, template
from convergence.core.rows import Template
from convergence.engine.compile.analyser import identity_of
from convergence.engine.compile.cache import CompiledTemplates, LastUsed, held_bytes, made_from
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.submission import Submission
from convergence.engine.preview.preview import Previews
from convergence.resources.custom import CustomConstraints
from convergence.template import compiler, settled
from convergence.template.limits import Limits
from tests.harness import Context, hot, things

OTHER = hot(things('bc'))
SECRET = 'correct horse battery'


@pytest.fixture
def compiled(monkeypatch):
    """The names of the stacks for which something was compiled."""
    found: list[str] = []
    run = compiler._Compilation.run

    def watched(self: Any, *arguments: Any) -> Any:
        found.append(self._request.identity.stack_name)
        return run(self, *arguments)

    monkeypatch.setattr(compiler._Compilation, 'run', watched)
    return found


@pytest.fixture
def stack(harness):
    """A stack whose template is sent again."""
    return make(harness, SOURCE)


SOURCE = hot(
    things('ab'),
    parameters={
        'given': {'type': 'string', 'default': 'x', 'constraints': [{'custom_constraint': 'service.thing'}]},
        'secret': {'type': 'string', 'hidden': True, 'default': SECRET},
    },
)


def make(harness, source, name='s', **sent):
    says(harness, None)
    identity = harness.stacks.create_stack(harness.context, name, source, **sent)
    harness.run()
    assert harness.state(identity['stack_id']) == 'CREATE_COMPLETE'
    return identity['stack_id']


def says(harness, answer):
    """What the service says of every value from now on."""
    asked: list[Any] = []

    def check(value):
        asked.append(value)
        return answer

    checks = CustomConstraints({'service.thing': check})
    harness.compiler.analyser.installation = replace(harness.compiler.analyser.installation, checks=checks)
    return asked


def send(harness, stack_id, source=SOURCE, context=None, **sent):
    harness.stacks.update_stack(context or harness.context, {'stack_id': stack_id}, source, **sent)
    harness.run()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'


def refused(harness, stack_id, source=SOURCE, **sent):
    with pytest.raises(errors.ConvergenceError) as caught:
        harness.stacks.update_stack(harness.context, {'stack_id': stack_id}, source, **sent)
    return caught.value


def told(error):
    return [(problem.message, problem.place, problem.excerpt, problem.kind) for problem in error.problems]


def on_another_engine(harness):
    """What the same request is answered by an engine that has compiled nothing yet."""
    compiler = TemplateCompiler(harness.reader, harness.compiler.types, Limits())
    compiler.analyser.installation = harness.compiler.analyser.installation
    harness.compiler.cache.clear()
    return compiler


# --- used again -----------------------------------------------------------------------------------------------


def test_a_template_that_is_sent_again_is_not_compiled_again(harness, stack, compiled):
    send(harness, stack)
    previews = Previews(harness.reader, harness.registry, harness.stacks)
    previews.preview_update_stack(harness.context, {'stack_id': stack}, SOURCE)
    previews.preview_stack(harness.context, 'new', SOURCE)
    make(harness, SOURCE, name='other')
    assert compiled == []
    send(harness, stack, OTHER)
    send(harness, stack, SOURCE)
    assert compiled == ['s'], 'what was there before is still kept'


@pytest.mark.parametrize(
    'changed',
    [
        {'params': {'parameters': {'given': 'y'}}},
        {'params': {'parameter_defaults': {'given': 'y'}}},
        {'files': {'a': 'text'}},
        {'source': SOURCE + '\n# another'},
    ],
    ids=['parameter', 'default', 'file', 'text'],
)
def test_what_is_not_the_same_is_compiled(harness, stack, compiled, changed):
    parts = {'source': SOURCE, **changed}
    send(harness, stack, parts.pop('source'), **parts)
    assert compiled == ['s']


def test_the_order_of_resources_is_part_of_a_template():
    one, other = ({'template': {'resources': dict.fromkeys(names)}} for names in ('ab', 'ba'))
    assert made_from(one, 'p') != made_from(other, 'p') != made_from(other, 'q')


def test_with_files_of_the_environment_nothing_is_compiled_either(harness, compiled):
    sent = {'files': {'e.yaml': 'parameters: {given: y}'}, 'environment_files': ['e.yaml']}
    stack_id = make(harness, SOURCE, **sent)
    compiled.clear()
    send(harness, stack_id, SOURCE, **sent)
    assert compiled == []


def test_what_depends_on_the_stack_is_used_again_for_that_stack_alone(harness, compiled):
    source = hot({'a': {'value': {'get_param': 'OS::stack_name'}}})
    ids = [make(harness, source, name=name) for name in ('one', 'two')]
    assert compiled == ['one', 'two']
    for stack_id, name in zip(ids, ('one', 'two'), strict=True):
        send(harness, stack_id, source)
        assert harness.row(stack_id, 'a').properties['value'] == name
    assert compiled == ['one', 'two']


def test_a_stack_gets_its_own_identity(harness, stack):
    other = make(harness, SOURCE, name='other')
    for stack_id in (stack, other):
        row = harness.stack(stack_id)
        assert harness.compiler.compiled(row, row.template_id).parameters['OS::stack_id'].value == stack_id


def test_what_types_imply_is_asked_anew(harness, stack, monkeypatch):
    asked: list[str] = []

    def implied(self, own, outlines):
        asked.append(own.name)
        return ['a'] if own.name == 'b' else []

    kind = type(harness.registry.get('Test::Thing'))
    monkeypatch.setattr(kind, 'implied', implied)
    send(harness, stack)
    assert asked == ['a', 'b']
    row = harness.stack(stack)
    assert harness.compiler.compiled(row, row.template_id).goal.definitions['b'].implied == ('a',)
    asked.clear()
    monkeypatch.setattr(kind, 'implied', lambda self, own, outlines: [])
    send(harness, stack)
    row = harness.stack(stack)
    assert harness.compiler.compiled(row, row.template_id).goal.definitions['b'].implied == ()


def test_what_is_hidden_is_concealed_whenever_it_is_used(harness, stack):
    with logs.masking():
        send(harness, stack)
        assert logs.masked(f'it is {SECRET}') == 'it is ******'
    with logs.masking():
        harness.compiler.compiled(harness.stack(stack), harness.stack(stack).template_id)
        assert logs.masked(f'it is {SECRET}') == 'it is ******'


# --- asked anew -----------------------------------------------------------------------------------------------


def test_a_service_is_asked_each_time_and_refuses_in_the_same_words(harness, stack):
    asked = says(harness, None)
    send(harness, stack)
    assert 'x' in asked
    says(harness, 'it has gone')
    error = refused(harness, stack)
    on_another_engine(harness)
    assert told(error) == told(refused(harness, stack)) != []
    assert 'it has gone' in str(error)
    says(harness, None)
    send(harness, stack)


def test_a_moment_passes(harness):
    source = hot(
        things('a'),
        parameters={
            'until': {
                'type': 'string',
                'default': '2999-01-01T00:00:00Z',
                'constraints': [{'custom_constraint': 'expiration'}],
            }
        },
    )
    checks = CustomConstraints({'expiration': lambda value: None})
    harness.compiler.analyser.installation = replace(harness.compiler.analyser.installation, checks=checks)
    identity = harness.stacks.create_stack(harness.context, 'm', source)
    harness.run()
    late = CustomConstraints({'expiration': lambda value: 'it has passed'})
    harness.compiler.analyser.installation = replace(harness.compiler.analyser.installation, checks=late)
    assert 'it has passed' in str(refused(harness, identity['stack_id'], source))


def test_a_constraint_that_is_not_installed_any_more_is_told(harness, stack):
    harness.compiler.analyser.installation = replace(
        harness.compiler.analyser.installation, checks=CustomConstraints({})
    )
    assert 'service.thing' in str(refused(harness, stack))


def test_a_type_that_was_forbidden_meanwhile_is_refused(harness, stack):
    context = Restricted(type_rules={'Test::Thing': False})
    with pytest.raises(errors.Forbidden, match='Test::Thing'):
        harness.stacks.update_stack(context, {'stack_id': stack}, SOURCE)
    send(harness, stack, context=Restricted(type_rules={'Test::Thing': True}))


class Restricted(Context):
    """Who may use some types only."""

    def __init__(self, type_rules):
        super().__init__()
        object.__setattr__(self, 'type_rules', type_rules)


def test_what_a_type_says_now_is_told_where_it_stands(harness, stack, monkeypatch):
    kind = type(harness.registry.get('Test::Thing'))
    monkeypatch.setattr(kind, 'cross_check', lambda self, known, names: ['it does not fit any more'])
    error = refused(harness, stack)
    on_another_engine(harness)
    assert told(error) == told(refused(harness, stack)) != []
    assert error.problems[0].place.line > 0


def test_what_was_immutable_stays_so(harness):
    source = hot(things('a'), parameters={'once': {'type': 'string', 'default': 'x', 'immutable': True}})
    stack_id, other = make(harness, source), make(harness, source, name='other', params={'parameters': {'once': 'y'}})
    with pytest.raises(errors.ImmutableParameterModified, match='once'):
        harness.stacks.update_stack(
            harness.context, {'stack_id': stack_id}, source, params={'parameters': {'once': 'y'}}
        )
    send(harness, other, source, params={'parameters': {'once': 'y'}})


def test_what_was_refused_is_not_kept(harness, stack, compiled):
    wrong = hot({'a': {'colour': 'blue'}})
    first, second = refused(harness, stack, wrong), refused(harness, stack, wrong)
    assert compiled == ['s', 's'] and told(first) == told(second)


def test_what_is_no_template_is_refused_however_it_is_sent(harness, stack):
    circle: dict[str, Any] = {'heat_template_version': '2018-08-31'}
    circle['resources'] = circle
    for wrong in (circle, {'heat_template_version': '2018-08-31', 'resources': {('a', 'b'): 1}}):
        with pytest.raises(errors.UserError):
            harness.stacks.update_stack(harness.context, {'stack_id': stack}, wrong)


# --- what is kept ---------------------------------------------------------------------------------------------


def test_where_something_stands_is_told_of_what_was_accepted_and_read_only_when_asked(monkeypatch):
    source = 'heat_template_version: 2018-08-31\nresources:\n  a:\n    type: T\n'
    read: list[str] = []
    monkeypatch.setattr(settled, 'read', lambda *given: read.append(given[1]) or compiler.read(*given))
    whole = template.compile(source, identity=template.StackIdentity('i', 'n', 'p'))
    kept = whole.settled(Limits())
    assert kept == whole and read == []
    for _ in range(2):
        assert kept.place('resources', 'a', 'type') == whole.place('resources', 'a', 'type')
        assert kept.key_place('resources', 'a') == whole.key_place('resources', 'a')
    assert read == ['template']
    assert kept.of(template.StackIdentity('j', 'm', 'p'))._document._read is None, 'not kept for all'


def test_warnings_of_what_is_kept_are_the_same():
    source = 'heat_template_version: 2018-08-31\noutputs:\n  o: {value: 1, colour: red}\n'
    whole = template.compile(source, identity=template.StackIdentity('i', 'n', 'p'))
    kept = whole.settled(Limits())
    assert kept.warnings == whole.warnings != []
    assert kept.settled(Limits()).warnings == whole.warnings
    assert kept.warnings[0].excerpt


def test_many_small_ones_are_kept_and_few_large_ones():
    kept: LastUsed[str] = LastUsed(100_000)
    for number in range(40):
        kept.keep(f'small{number}', 's' * 1000)
    assert all(kept.get(f'small{number}') for number in range(40))
    kept.keep('large', 'l' * 60_000)
    assert kept.get('large') and kept.get('small39') and kept.get('small0') is None
    kept.keep('largest', 'l' * 200_000)
    assert kept.get('largest'), 'alone'
    assert kept.get('large') is None and kept.get('small39') is None
    kept.keep('small', 's')
    assert kept.get('small') and kept.get('largest') is None
    kept.clear()
    assert kept.get('small') is None and kept._bytes == 0


def test_what_is_used_stays():
    kept: LastUsed[str] = LastUsed(10_000)
    for number in range(100):
        kept.keep(str(number), 's' * 1000)
        assert kept.get('0')
    assert kept.get('99') and kept.get('50') is None
    assert kept._bytes <= 10_000


def test_a_large_template_takes_half_of_the_room_before_it_is_compiled(harness):
    """And no more, whatever it will hold: who sends what is refused again and again does not slow the others down."""
    most = held_bytes(SOURCE) * 100
    compiler = TemplateCompiler(harness.reader, harness.registry, Limits(), most_bytes=most)
    kept = CompiledTemplates(Limits(), most)
    compiler.cache = kept
    stack = harness.stack(make(harness, SOURCE))
    for number in range(200):
        text = f'{OTHER}\n# {number}\n'
        row = Template(f't{number}', stack.id, Submission(text).content())
        compiler.keep(stack, row, template.compile(text, identity=identity_of(stack)))

    def are_kept() -> int:
        return sum(kept.of_row(f't{number}', identity_of(stack)) is not None for number in range(200))

    before = are_kept()
    kept.make_room_for('x' * most)
    assert before // 2 - 1 <= are_kept() <= before // 2 + 1
    assert kept.of_row('t199', identity_of(stack)) is not None


def test_what_may_ask_for_the_time_is_like_nothing_else():
    """Else it would depend on the engine that is asked whether an update finds something to change."""
    assert made_from({'template': {'value': {'yaql': {'expression': 'str(now())', 'data': {}}}}}, 'p') == ''
    assert made_from({'template': {'value': 1}}, 'p') != ''


def test_what_is_like_nothing_else_is_not_taken_for_something_else(harness):
    """Neither what it was compiled to, nor what parameters it declares, by which environment files are merged."""
    kept: LastUsed[int] = LastUsed(1 << 20)
    kept.keep('', 1)
    assert kept.get('') is None
    compiler = TemplateCompiler(harness.reader, harness.registry, Limits())
    asks = (
        'heat_template_version: 2018-08-31\nparameters: {{{}: {{type: string}}}}\noutputs: {{at: {{value: now()}}}}\n'
    )
    assert [set(compiler.submissions._declares(asks.format(name), {})) & {'q', 'p'} for name in 'qp'] == [{'q'}, {'p'}]


def test_a_text_that_many_resources_have_is_counted_once():
    text = 'x' * 10_000
    assert held_bytes([text] * 100) < 2 * len(text) < held_bytes([f'{text}{number}' for number in range(100)])
