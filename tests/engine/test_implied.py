"""What a resource has to come after although its template does not say so."""

from __future__ import annotations

import pytest

from convergence import drawing, template
from convergence.cli.graph_text import graph_lines
from convergence.cli.template.authoring import template_graph
from convergence.resources.contract import FutureValue
from convergence.resources.implied import ask_for_implied, with_implied
from convergence.resources.manifest import Manifest, entry_of
from convergence.resources.registry import Registry
from tests.harness import Harness, hot
from tests.reality import Thing


class Port(Thing):
    """Comes after whatever is in the same network, and says so of other ports, too, which is too much."""

    def implied(self, own, template):
        """By the property `link`."""
        return [each.name for each in template.values() if each.properties.get('link') == own.properties.get('link')]


NETWORK = {
    'port_a': ('Test::Port', {'link': {'get_resource': 'net'}}),
    'port_b': ('Test::Port', {'link': {'get_resource': 'net'}}),
    'far': ('Test::Thing', {'link': {'get_attr': ['net', 'value']}}),
    'subnet': ('Test::Thing', {'link': {'get_resource': 'net'}, 'value': '1'}),
    'net': ('Test::Thing', {}),
}


def resources(**more):
    return {name: {'type': kind, **given, **more.get(name, {})} for name, (kind, given) in NETWORK.items()}


@pytest.fixture
def harness():
    found = Harness(None)
    found.registry._types['Test::Port'] = Port(found.reality)
    return found


def names(harness, verb):
    return [name for done, name, *_ in harness.reality.journal if done == verb]


def test_what_a_type_implies_orders_creation_and_removal(harness):
    stack_id = harness.created(resources())
    made = names(harness, 'create')
    assert made.index('subnet') < made.index('port_b') < made.index('port_a')
    assert harness.row(stack_id, 'port_b').definition.implied == ('subnet',)
    assert harness.row(stack_id, 'far').definition.requires == ('net',)
    harness.delete(stack_id)
    harness.run()
    gone = names(harness, 'delete')
    assert gone.index('port_a') < gone.index('port_b') < gone.index('subnet')


def test_a_requirement_that_would_close_a_circle_is_left_out(harness):
    stack_id = harness.created(resources(subnet={'after': ['port_b']}))
    assert harness.row(stack_id, 'port_b').definition.requires == ('net',)
    assert harness.row(stack_id, 'port_a').definition.requires == ('net', 'port_b', 'subnet')


def test_what_was_implied_is_kept_with_the_template_whatever_is_installed_later(harness):
    stack_id = harness.created(resources())
    harness.registry._types['Test::Port'] = Thing(harness.reality)
    harness.compiler.cache.clear()
    stack = harness.stack(stack_id)
    _, compiled = harness.compiler.stored(stack, stack.template_id)
    assert compiled.goal.definitions['port_a'].requires == ('net', 'port_b', 'subnet')
    visited = harness.messages.sent
    harness.acted(stack_id, 'check')
    assert harness.messages.sent > visited
    harness.update(stack_id, resources())  # what is accepted now is asked of the types of now
    harness.run()
    assert harness.row(stack_id, 'port_a').definition.requires == ('net',)


def test_a_type_is_told_what_is_known_of_the_template():
    told = {}

    class Asking(Thing):
        def implied(self, own, template):
            """Looks at everything, wants nothing, and something that is not there."""
            told.update({name: (each.type, each.properties) for name, each in template.items()}, own=own.name)
            return ['nothing', own.name]

    registry = Registry({'Test::Port': Asking(None), 'Test::Thing': Thing(None)})
    compiled = template.compile(hot(resources()), identity=template.StackIdentity('', '', ''))
    assert with_implied(compiled, ask_for_implied(compiled, registry)) is compiled
    (link,) = told['port_b'][1].values()
    assert (link.resource, link.attribute) == ('net', None)
    assert told['subnet'] == ('Test::Thing', {'link': link, 'value': '1'})
    assert isinstance(link, FutureValue) and told['far'][1]['link'] != link


def test_it_is_marked_wherever_the_graph_is_drawn():
    registry = Registry({'Test::Port': Port(None), 'Test::Thing': Thing(None)})
    compiled = template.compile(hot(resources()), identity=template.StackIdentity('', '', ''))
    drawn = template_graph(with_implied(compiled, ask_for_implied(compiled, registry)))
    assert {'from': 'port_b', 'to': 'subnet', 'is_implied': True} in drawn['edges']
    assert {'from': 'port_b', 'to': 'net'} in drawn['edges']
    assert '│  └─ subnet  Test::Thing  (implied)' in graph_lines(drawn)
    assert 'n1 -> n3 [style=dashed];' in drawing.dot(drawn)
    assert 'n1 -.-> n3' in drawing.mermaid(drawn)
    assert drawing.svg(drawn).count('stroke-dasharray') == 3


def test_a_manifest_brings_functions_that_need_no_class():
    written = {'format': 1, 'types': {'Test::Port': entry_of(Thing(None))}}
    kinds = Manifest(written, implied={'Test::Port': lambda own, template: ['subnet']}).types()
    compiled = template.compile(hot(resources()), identity=template.StackIdentity('', '', ''))
    registry = Registry({**kinds, 'Test::Thing': Thing(None)})
    assert ask_for_implied(compiled, registry) == {'port_a': ('subnet',), 'port_b': ('subnet',)}
    plain = Registry({**Manifest(written).types(), 'Test::Thing': Thing(None)})
    assert ask_for_implied(compiled, plain) == {}
