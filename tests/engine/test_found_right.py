"""What an update has in common with what was found to be right before is not checked again, unless it asks somebody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from convergence import template
from convergence.core.digest import digest
from convergence.core.model import Action, Definition, Goal
from convergence.engine.compile.cache import held_bytes
from convergence.errors import StackValidationFailed
from convergence.resources import validation
from convergence.resources.constraints import CustomConstraint, Range
from convergence.resources.contract import ResourceType
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema, prop
from convergence.template import definitions
from convergence.template.limits import Limits
from tests.harness import hot, things
from tests.reality import Thing

NAMES = [f'r{number}' for number in range(6)]


@pytest.fixture
def checked(monkeypatch):
    """The names of the resources whose properties are checked against their types."""
    found: list[str] = []
    check = validation._wrong_properties

    def watched(compiled: Any, definition: Definition, kind: Any) -> Any:
        found.append(definition.name)
        return check(compiled, definition, kind)

    monkeypatch.setattr(validation, '_wrong_properties', watched)
    return found


def test_an_update_checks_what_it_changes(harness, checked):
    stack = harness.created(things(NAMES))
    assert checked == NAMES
    checked.clear()
    harness.update(stack, {**things(NAMES), 'r3': {'value': 'y'}, 'new': {}})
    harness.run()
    assert checked == ['r3', 'new']
    checked.clear()
    harness.update(stack, {**things(NAMES), 'r3': {'value': 'y'}, 'new': {}})
    assert checked == []
    harness.compiler.cache.clear()
    harness.update(stack, {**things(NAMES), 'r3': {'value': 'z'}})
    assert checked == NAMES, 'another engine has found nothing out yet'


@pytest.fixture
def read(monkeypatch):
    """The names of the resources that are read in a template."""
    found: list[str] = []
    definition = definitions.Definitions._definition

    def watched(self: Any, name: str, body: Any, scope: Any) -> Definition:
        found.append(name)
        return definition(self, name, body, scope)

    monkeypatch.setattr(definitions.Definitions, '_definition', watched)
    return found


SIZED = {'parameters': {'size': {'type': 'string', 'default': 'small'}}}


def test_an_update_reads_what_it_changes_under_the_same_circumstances(harness, read):
    """Of a template that is text; see `tests/template/test_incremental.py`."""
    things_now = {**things(NAMES), 'r0': {'value': {'get_param': 'size'}}}

    def update(*changed: str, **args: Any) -> list[str]:
        read.clear()
        given = {**things_now, **things(changed, 'new')}
        harness.stacks.update_stack(harness.context, identity, hot(given, **SIZED), **args)
        harness.run()
        assert harness.state(identity['stack_id']) == 'UPDATE_COMPLETE'
        return [*read]

    identity = harness.stacks.create_stack(harness.context, 's', hot(things_now, **SIZED))
    harness.run()
    assert update('r3') == ['r3']
    assert update('r3', 'r4') == ['r4']
    larger = {'params': {'parameters': {'size': 'large'}}}
    assert update('r4', **larger) == NAMES, 'nobody knows what the parameter leads to'
    assert harness.row(identity['stack_id'], 'r0').properties == {'value': 'large'}
    assert update('r5', **larger) == ['r4', 'r5']
    harness.compiler.cache.clear()
    assert update('r1', **larger) == NAMES


def test_what_types_imply_is_asked_and_all_else_is_not_read_again(harness, read):
    """The template of the row has what types have said, what a user sends has not."""
    harness.registry._types['Test::Port'] = Implying(harness.reality)
    wanted = {**things(NAMES), 'port': {'type': 'Test::Port'}}
    stack = harness.created(wanted)
    assert harness.row(stack, 'port').definition.implied == tuple(NAMES)
    for value in 'yz':
        read.clear()
        harness.update(stack, {**wanted, 'r3': {'value': value}})
        harness.run()
        assert read == ['r3']
        assert harness.row(stack, 'port').definition.implied == tuple(NAMES)


class Implying(Thing):
    """Comes after all others."""

    def implied(self, own, template):
        """All others."""
        return [each.name for each in template.values() if each.name != own.name]


@pytest.mark.parametrize(
    'sections',
    [
        {'environment': {'parameters': {}}},
        {'environment': {'parameters': {}, 'encrypted_param_names': ['size']}},
        {'environment': {'resource_registry': {'Test::*': 'Test::*', 'resources': {'*': {'hooks': 'pre-delete'}}}}},
    ],
    ids=['plain', 'hidden', 'hooks'],
)
def test_a_compiled_template_is_not_twice_as_large_for_what_was_read_of_it(sections):
    """Also where the environment has a say in each definition."""
    text = hot({f'r{number}': {'value': f'text {number}'} for number in range(200)}, **SIZED)
    compiled = template.compile(text, identity=template.StackIdentity('', '', 'p'), **sections).settled(Limits())
    assert held_bytes(compiled) < 1.8 * held_bytes(replace(compiled, parse_state=None))


def test_a_definition_is_held_once(harness):
    """Also where all of a template is read, which then has other definitions that say the same."""
    stack = harness.created(things(NAMES))
    harness.stacks.update_stack(harness.context, {'stack_id': stack}, hot({**things(NAMES), 'new': 'x'}, **SIZED))
    row = harness.stack(stack)
    compiled = harness.compiler.compiled(row, row.template_id)
    assert compiled.parse_state is not None
    assert all(each is compiled.goal.definitions[name] for name, each in compiled.parse_state.definitions.items())


def test_what_was_accepted_by_somebody_else_is_checked_again(harness, checked):
    """As by the version before, whose types took other properties."""
    stack = harness.created(things(NAMES))
    harness.compiler.cache.clear()
    harness.compiler._validated.clear()
    row = harness.stack(stack)
    harness.compiler.stored(row, row.template_id)  # it is compiled and kept here, and was not checked
    checked.clear()
    harness.update(stack, {**things(NAMES), 'r3': {'value': 'y'}})
    assert checked == NAMES


@pytest.mark.parametrize(('before', 'after'), [('1', 'true'), ('1', '1.0'), ('0', 'false'), ('"1"', '1')])
def test_what_python_takes_for_equal_is_not_the_same(before, after):
    one, other = (_compiled({'value': before}).goal for before in (before, after))
    shared = other.sharing(one)
    assert shared.definitions['a'] is other.definitions['a']
    assert other.sharing(_compiled({'value': after}).goal).definitions['a'] is not other.definitions['a']


@pytest.mark.parametrize(
    'change',
    [
        {'hidden': (('properties', 'value'),)},
        {'private': (('properties', 'value'),)},
        {'secrets': ('x',)},
        {'harmless': ('x',)},
        {'implied': ('b',)},
        {'asked': ('b',)},
        {'requires': ('b',)},
        {'description': 'x'},
        {'time_limits': {Action.CREATE: 60}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_said_beside_the_resource_is_part_of_what_is_the_same(change):
    one = Definition('a', 'T', {'value': 'x'}, time_limits={Action.CREATE: 60.0})
    other = replace(one, **change)
    assert not one.says_as(other)
    assert Goal({'a': other}).sharing(Goal({'a': one})).definitions['a'] is other


def test_a_copy_does_not_have_the_text_of_what_it_was_copied_from():
    one = Definition('a', 'T', {'value': 'x'})
    assert digest(one, {}) == digest(one, {}) == digest(Definition('a', 'T', {'value': 'x'}), {})
    other = replace(one, properties={'value': 'y'})
    assert digest(other, {}) == digest(Definition('a', 'T', {'value': 'y'}), {}) != digest(one, {})


# --- what is asked all the same -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inner:
    """What stands below a property."""

    size: int = prop(0, constraints=[Range(0, 9)])


@dataclass(frozen=True)
class Plain:
    """Asks nobody."""

    value: str = prop('')
    inner: Inner | None = prop(None)  # noqa: RUF009


@dataclass(frozen=True)
class InnerAsking:
    """What a service is asked for."""

    size: int = prop(0, constraints=[CustomConstraint('service.size')])


@dataclass(frozen=True)
class AskingBelow:
    """Asks a service of what stands below a property."""

    value: str = prop('')
    inner: dict[str, InnerAsking] | None = prop(None)  # noqa: RUF009


def test_which_schema_asks_nobody():
    asks_nobody = [PropertySchema.of(each).asks_nobody for each in (Plain, AskingBelow)]
    assert asks_nobody == [True, False]


class Of(ResourceType[Any]):
    """A type of some properties."""

    def __init__(self, properties: type[Any]) -> None:
        self.Properties = properties


class Unfit(Of):
    """Looks at the rest of the template."""

    def cross_check(self, properties: Any, names: Any) -> Iterable[str]:
        """Nothing, but it was asked."""
        return []


def _compiled(values: dict[str, str], type_: str = 'OS::Heat::Value', more: str = '') -> template.Compiled:
    lines = ['heat_template_version: 2018-08-31', 'resources:']
    lines += [f'  a: {{type: {type_}, properties: {{{", ".join(f"{k}: {v}" for k, v in values.items())}}}}}', more]
    return template.compile('\n'.join(lines), identity=template.StackIdentity('i', 'n', 'p'))


@pytest.mark.parametrize(('kind', 'again'), [(Of(Plain), []), (Of(AskingBelow), ['a']), (Unfit(Plain), ['a'])])
def test_only_what_asks_nobody_is_not_asked_again(kind, again, checked):
    compiled = _compiled({'value': 'x'}, 'T')
    registry = SimpleNamespace(get=lambda name: kind, missing_service=lambda name: None)
    validation.validate(compiled, registry, sound={})  # type: ignore[arg-type]
    checked.clear()
    validation.validate(compiled, registry, sound=compiled.goal.definitions)  # type: ignore[arg-type]
    assert checked == again


def test_what_others_have_become_is_told():
    """Who asks for an attribute is the same, and wrong by now: the resource is of another type."""
    asking = '  b: {type: OS::Heat::Value, properties: {value: {get_attr: [a, value]}}}'
    before = _compiled({'value': '1'}, more=asking)
    after = _compiled({'value': '1'}, 'OS::Heat::TestResource', asking)
    after = replace(after, goal=after.goal.sharing(before.goal))
    sound = before.goal.definitions
    assert after.goal.definitions['b'] is sound['b']
    validation.validate(before, Registry.builtin(), sound=sound)
    with pytest.raises(StackValidationFailed, match=r'\(a value\) does not exist'):
        validation.validate(after, Registry.builtin(), sound=sound)
