"""What becomes of live values that a person has taken for wanted."""

from dataclasses import replace
from functools import partial

import pytest

from convergence import errors
from convergence.core.acceptance import AcceptanceOutcome, accept, withdraw
from convergence.core.effects import Decision
from convergence.db.scopes import HeldResource
from convergence.engine.drift.acceptance import DriftAcceptance
from convergence.engine.drift.requested_repairs import ResourceRepairs
from tests.engine.test_drift import HIDDEN, Shown
from tests.harness import Context, hot


class Accepting(Shown):
    """The same, with what accepts."""

    def __init__(self, harness, resources, **sections):
        super().__init__(harness, resources, **sections)
        ports = harness.ports
        self.acceptance = DriftAcceptance(harness.store, harness.stacks, ports.observations, harness.new_id)

    def accept(self, name, *properties):
        return self.acceptance.accept_drift(self.harness.context, self.identity, name, list(properties) or None)

    def differ(self, name, **values):
        """Change an object behind its stack's back, and have somebody see it."""
        self.change(name, **values)
        self.observing.look(self.stack_id)

    def update(self, resources, **args):
        self.harness.stacks.update_stack(self.harness.context, self.identity, hot(resources), args=args)
        self.harness.run()
        return self.harness.state(self.stack_id)

    def live(self, name):
        return self.harness.reality.objects[self.object_of(name)]

    def calls(self):
        return {key: count for key, count in self.harness.reality.calls.items() if key[0] in ('create', 'update')}


def test_an_accepted_value_differs_no_more_and_stays_until_the_template_wants_another(harness):
    shown = Accepting(harness, {'a': {'value': 'x', 'link': 'l'}, 'b': 'y'})
    shown.differ('a', value='else')
    traversal, before = harness.stack(shown.stack_id).traversal_id, shown.calls()
    assert shown.accept('a', 'value') == {'resource_name': 'a', 'accepted': ['value']}
    assert harness.stack(shown.stack_id).traversal_id == traversal, 'no operation is needed for that'
    shown.observing.look(shown.stack_id)
    (kept,) = [each for each in shown.drift(with_healthy=True)['resources'] if each['path'] == 'a']
    assert (kept['state'], kept['accepted'], shown.drift()['drifted']) == ('HEALTHY', ['value'], 0)
    assert 'Accepted the live values of: value' in [each.reason for each in harness.reader.events(shown.stack_id)]
    assert shown.update({'a': {'value': 'x', 'link': 'l'}, 'b': 'y'}) == 'UPDATE_COMPLETE'
    assert shown.update({'a': {'value': 'x', 'link': 'l'}, 'b': 'y'}, converge=True) == 'UPDATE_COMPLETE'
    assert shown.calls() == before, 'there was nothing to do'
    preview = shown.previews.preview_update_stack(
        harness.context, shown.identity, hot({'a': {'value': 'x', 'link': 'm'}, 'b': 'y'})
    )
    assert [each['resource_name'] for each in preview['updated']] == ['a']
    shown.update({'a': {'value': 'x', 'link': 'm'}, 'b': 'y'})
    assert (shown.live('a')['value'], shown.live('a')['link']) == ('else', 'm'), 'another property was changed'
    shown.update({'a': {'value': 'new', 'link': 'm'}, 'b': 'y'})
    assert shown.live('a')['value'] == 'new', 'the template wins'
    shown.update({'a': {'value': 'x', 'link': 'm'}, 'b': 'y'})
    assert shown.live('a')['value'] == 'x', 'and the acceptance is over'
    assert shown.drift(with_healthy=True)['resources'][0]['accepted'] == []


def test_what_was_accepted_is_taken_back_and_differs_as_before(harness):
    shown = Accepting(harness, {'a': {'value': 'x'}, 'b': 'y'})
    withdraw = partial(shown.acceptance.withdraw_acceptance, harness.context, shown.identity)
    with pytest.raises(errors.NotSupported, match='Nothing of resource a'):
        withdraw('a')
    with pytest.raises(errors.ResourceNotFound):
        withdraw('nothing')
    shown.differ('a', value='else', key='other')
    before = shown.drift()['resources'][0]['properties']
    shown.accept('a')
    shown.observing.look(shown.stack_id)
    assert shown.drift()['drifted'] == 0
    assert withdraw('a') == {'resource_name': 'a', 'withdrawn': ['key', 'value']}
    assert shown.live('a')['value'] == 'else', 'no object is touched'
    shown.observing.look(shown.stack_id)
    (found,) = shown.drift()['resources']
    assert (found['state'], found['properties'], found['accepted']) == ('DIFFERS', before, [])
    assert 'Accepted no more: key, value' in [each.reason for each in harness.reader.events(shown.stack_id)]
    shown.change('a', key='')
    assert shown.update({'a': {'value': 'x'}, 'b': 'y'}, converge=True) == 'UPDATE_COMPLETE'
    assert shown.live('a')['value'] == 'x'


def test_nothing_is_taken_back_while_somebody_works_on_it(harness):
    shown = Accepting(harness, {'a': 'x'})
    shown.differ('a', value='else')
    shown.accept('a')
    harness.stacks.update_stack(harness.context, shown.identity, hot({'a': 'z'}))
    (row,) = harness.reader.resources(shown.stack_id)
    busy = replace(row, owner='somebody')
    view = harness.store.transact(
        HeldResource(row.id), lambda view: Decision(withdraw(replace(view, resource=busy), str))
    )
    assert view.verdict.verdict is AcceptanceOutcome.BUSY


def test_what_was_accepted_is_what_a_later_difference_is_put_right_to(harness):
    shown = Accepting(harness, {'a': 'x'})
    shown.differ('a', value='else')
    shown.accept('a')
    shown.differ('a', value='third')
    (found,) = shown.drift()['resources']
    assert found['properties'] == [{'name': 'value', 'wanted': 'else', 'applied': 'else', 'live': 'third'}]
    repairs = ResourceRepairs(harness.stacks, harness.traversals, harness.ports.observations)
    repairs.repair_resource(harness.context, shown.identity, 'a')
    harness.run()
    assert shown.live('a')['value'] == 'else'
    shown.differ('a', value='fourth')
    assert shown.accept('a')['accepted'] == ['value']
    assert shown.update({'a': 'x'}, converge=True) == 'UPDATE_COMPLETE'
    assert shown.live('a')['value'] == 'fourth', 'it still takes the place of what the template says'


def test_an_object_that_is_made_again_or_anew_has_what_was_accepted(harness):
    shown = Accepting(harness, {'a': {'value': 'x', 'key': 'k'}})
    shown.differ('a', value='else')
    shown.accept('a')
    del harness.reality.objects[shown.object_of('a')]
    assert shown.update({'a': {'value': 'x', 'key': 'k'}}, converge=True) == 'UPDATE_COMPLETE'
    assert shown.live('a')['value'] == 'else'
    old = shown.object_of('a')
    assert shown.update({'a': {'value': 'x', 'key': 'other'}}) == 'UPDATE_COMPLETE'
    assert shown.object_of('a') != old, 'another key needs another object'
    assert (shown.live('a')['value'], shown.live('a')['key']) == ('else', 'other')


def test_what_reads_it_gets_what_was_accepted_when_it_is_compared(harness):
    shown = Accepting(harness, {'a': 'x', 'b': {'link': {'get_attr': ['a', 'value']}}})
    shown.differ('a', value='else')
    shown.accept('a')
    assert shown.live('b')['link'] == 'x'
    repairs = ResourceRepairs(harness.stacks, harness.traversals, harness.ports.observations)
    repairs.repair_resource(harness.context, shown.identity, 'a')
    harness.run()
    assert shown.live('b')['link'] == 'else'


def test_a_property_that_no_update_can_put_right_can_be_accepted(harness):
    shown = Accepting(harness, {'a': {'value': 'x', 'key': 'k'}})
    shown.differ('a', key='else')
    shown.accept('a', 'key')
    before = shown.calls()
    assert shown.update({'a': {'value': 'x', 'key': 'k'}}, converge=True) == 'UPDATE_COMPLETE'
    assert shown.calls() == before


def test_what_cannot_be_accepted_is_refused_and_nothing_changes(harness):
    shown = Accepting(harness, {'a': 'x', 'b': 'y', 'c': 'z'})
    shown.observing.look(shown.stack_id)
    with pytest.raises(errors.NotSupported, match='has no known drift; request an observation first'):
        shown.accept('a')
    del harness.reality.objects[shown.object_of('b')]
    shown.differ('a', value='else')
    rows = harness.reader.resources(shown.stack_id)
    for name, properties, error, text in (
        ('b', (), errors.NotSupported, 'its object is GONE'),
        ('a', ('link',), errors.Invalid, 'does not differ; these properties do: value'),
        ('z', (), errors.ResourceNotFound, 'could not be found'),
    ):
        with pytest.raises(error, match=text):
            shown.accept(name, *properties)
    with pytest.raises(errors.EntityNotFound):
        shown.acceptance.accept_drift(Context(project_id='q'), shown.identity, 'a')
    assert harness.reader.resources(shown.stack_id) == rows


def test_a_value_that_the_type_would_not_take_is_refused(harness):
    shown = Accepting(harness, {'a': 'x'})
    shown.differ('a', value={'a': ['map']})
    with pytest.raises(errors.StackValidationFailed):
        shown.accept('a')
    assert harness.reader.resources(shown.stack_id)[0].accepted is None


def test_what_was_seen_before_somebody_worked_on_it_is_not_accepted(harness):
    shown = Accepting(harness, {'a': 'x'})
    shown.differ('a', value='else')
    row = harness.reader.resources(shown.stack_id)[0]
    seen = harness.ports.observations.of_row(row)

    def verdict():
        decide = partial(accept, seen=seen, names=['value'], new_id=harness.new_id)
        return harness.store.transact(HeldResource(row.id), decide).verdict

    meanwhile = []
    harness.reality.always['update', 'a'] = lambda call: meanwhile.append(verdict())
    harness.update(shown.stack_id, {'a': 'new'})
    harness.run()
    assert (meanwhile, verdict()) == ([AcceptanceOutcome.BUSY], AcceptanceOutcome.STALE)
    assert harness.reader.resources(shown.stack_id)[0].accepted is None
    with pytest.raises(errors.NotSupported, match='has no known drift'):
        shown.accept('a')


def test_a_hidden_value_is_accepted_and_never_shown(harness):
    shown = Accepting(harness, {'a': {'value': {'get_param': 'word'}, 'link': 'l'}}, **HIDDEN)
    shown.differ('a', value='canary-2')
    assert 'canary' not in str(shown.accept('a'))
    shown.observing.look(shown.stack_id)
    described = shown.resources.describe_stack_resource(harness.context, shown.identity, 'a')
    told = [shown.drift(with_healthy=True), described, harness.reader.events(shown.stack_id)]
    assert 'canary' not in str(told)
    shown.differ('a', value='canary-3')
    assert 'canary' not in str(shown.drift())
    template = hot({'a': {'value': {'get_param': 'word'}, 'link': 'm'}}, **HIDDEN)
    preview = shown.previews.preview_update_stack(harness.context, shown.identity, template)
    assert 'canary' not in str(preview)
    assert 'canary' not in repr(harness.reader.resources(shown.stack_id)[0].accepted)
