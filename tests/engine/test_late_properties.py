"""Properties that are known as a whole only when other resources are there."""

import yaml

TEMPLATE = """
heat_template_version: wallaby
resources:
  a: {type: Test::Thing, properties: {value: one}}
  b:
    type: Test::Thing
    properties:
      map_merge: [{value: fixed}, {link: {get_attr: [a, value]}}]
    metadata: {map_merge: [{seen: {get_resource: a}}]}
"""


def test_they_are_resolved_compared_and_previewed(harness):
    identity = harness.stacks.create_stack(harness.context, 's', TEMPLATE)
    stack = identity['stack_id']
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    assert harness.row(stack, 'b').properties == {'value': 'fixed', 'link': 'one'}
    changed = yaml.safe_load(TEMPLATE)
    changed['resources']['a']['properties']['value'] = 'two'
    harness.stacks.update_stack(harness.context, identity, yaml.safe_dump(changed))
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE', harness.stack(stack).status_reason
    assert harness.row(stack, 'b').properties == {'value': 'fixed', 'link': 'two'}
    assert harness.reality.calls['update', 'b'] == 1


def test_what_is_no_map_then_fails_the_resource(harness):
    document = yaml.safe_load(TEMPLATE)
    document['resources']['b']['properties'] = {'get_attr': ['a', 'value']}
    stack = harness.stacks.create_stack(harness.context, 's', yaml.safe_dump(document))['stack_id']
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'properties must be a map' in harness.stack(stack).status_reason


def test_a_value_may_turn_out_to_be_null(harness):
    """As where nobody knows the address of a server yet, or an output is null under a condition."""
    nothing = {'type': 'OS::Heat::Value', 'properties': {'value': None}}
    asking = {'type': 'OS::Heat::Value', 'properties': {'value': {'get_attr': ['nothing', 'value']}}}
    text = {'type': 'OS::Heat::Value', 'properties': {**asking['properties'], 'type': 'string'}}
    document = {
        'heat_template_version': 'wallaby',
        'resources': {'nothing': nothing, 'asking': asking, 'text': text},
        'outputs': {name: {'value': {'get_attr': [name, 'value']}} for name in ('asking', 'text')},
    }
    stack = harness.stacks.create_stack(harness.context, 's', document)['stack_id']
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    assert [harness.row(stack, name).output.attributes['value'] for name in ('asking', 'text')] == [None, '']
