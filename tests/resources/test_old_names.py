"""Types that were written with the old names of the contract keep working."""

from dataclasses import dataclass

import pytest

from convergence import plugin
from convergence.resources import nesting
from convergence.resources.manifest import Manifest, entry_of
from convergence.resources.old_names import FLAGS, RENAMED
from convergence.resources.registry import Registry


@dataclass(frozen=True)
class Nothing:
    """No properties."""


def old_type():
    """A type with every old name."""

    class Old(plugin.ResourceType):
        """As of yesterday."""

        Properties = Nothing
        removed_first = True
        create_settles_s = 3.0

        def keys_before_members(self, name):
            return 2

        def unfit(self, properties, names):
            return ['it does not fit']

        def give_way(self, call):
            raise plugin.ObjectNotFound('released')

        def take_back(self, call):
            raise plugin.ObjectNotFound('reclaimed')

        def find(self, call):
            return None

        def can_find(self):
            return False

        def snapshot(self, call, snapshot_id):
            return plugin.Done()

        def can_be_kept(self):
            return False

    return Old


def test_an_old_type_works_and_warns_once():
    with pytest.warns(
        DeprecationWarning, match=r'Old uses old names: .*removed_first \(now delete_before_create\)'
    ) as told:
        kind = old_type()()
    assert len(told) == 1
    assert all(name in str(told[0].message) for name in (*RENAMED, 'can_find', 'can_be_kept'))
    assert kind.delete_before_create
    assert kind.create_ambiguity_s == 3.0
    assert kind.attribute_prefix_len('a') == 2
    assert list(kind.cross_check({}, ())) == ['it does not fit']
    with pytest.raises(plugin.ObjectNotFound, match='released'):
        kind.release_for_replacement(None)
    with pytest.raises(plugin.ObjectNotFound, match='reclaimed'):
        kind.reclaim(None)
    assert not kind.implements('find')
    assert kind.implements('snapshot') and not kind.keeps_snapshots_of_deleted()
    registry = Registry({'Old': kind})
    assert registry.is_exclusive('Old') and registry.gives_way('Old') and registry.can_snapshot('Old')


def test_the_old_names_can_still_be_read():
    class New(plugin.ResourceType):
        Properties = Nothing
        delete_before_create = True

        def observe(self, call):
            return None

    kind = New()
    assert kind.removed_first
    assert {old for old in FLAGS if getattr(kind, old)()} == {'observes'}
    assert kind.unfit({}, ()) == ()
    with pytest.raises(AttributeError, match='motto'):
        kind.motto  # noqa: B018 - it is to fail


def test_a_manifest_with_the_old_names_is_read():
    entry = {
        'description': 'Old.',
        'properties': {},
        'attributes': {},
        'methods': ['create', 'find', 'give_way', 'take_back', 'unfit', 'snapshot'],
        'abilities': ['gives_way', 'can_snapshot'],
        'removed_first': True,
    }
    kind = Manifest({'format': 1, 'types': {'Old': entry}}).types()['Old']
    assert kind.delete_before_create
    assert [
        hook for hook in ('find', 'release_for_replacement', 'reclaim', 'cross_check') if kind.implements(hook)
    ] == [
        'release_for_replacement',
        'reclaim',
        'cross_check',
    ]
    assert kind.implements('snapshot') and not kind.keeps_snapshots_of_deleted()


def test_a_manifest_tells_hooks_that_are_written_and_have_no_effect():
    with pytest.warns(DeprecationWarning):
        entry = entry_of(old_type()())
    assert entry['unimplemented'] == ['find']
    kind = Manifest({'format': 1, 'types': {'Old': entry}}).types()['Old']
    assert not kind.implements('find') and kind.implements('release_for_replacement')


@pytest.mark.parametrize(
    ('old', 'new'), [('StackWanted', nesting.DesiredStack), ('ForeseenTemplate', nesting.SampleTemplate)]
)
def test_the_values_of_nested_stacks_can_be_imported_by_their_old_names(old, new):
    with pytest.warns(DeprecationWarning, match=f'{old} is now called {new.__name__}'):
        assert getattr(nesting, old) is new


def test_other_names_of_the_module_are_errors():
    with pytest.raises(AttributeError, match='StackWonted'):
        nesting.StackWonted  # noqa: B018 - it is to fail
