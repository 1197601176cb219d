"""The display of progress: events in, lines out."""

from convergence.cli.report import ResourceOutcome, announced, happened
from convergence.cli.watch.display import choose
from convergence.cli.watch.progress import Line, OperationProgress, Part, Scene, StateKind
from tests.cli.documents import STACK, STACK_ID, event, resource, stack_event


def progress_of(desired, existing, requires=None):
    return OperationProgress(Scene(STACK, STACK_ID, desired, existing, requires or {}))


def states(progress):
    return [(progress.title(line), line.state) for line in progress.lines]


def test_a_resource_waits_is_made_and_is_done():
    progress = progress_of({'web': 'T', 'disk': 'T'}, {})
    assert [(line.state_kind, line.took_s(9.0)) for line in progress.lines] == [(StateKind.WAITING, None)] * 2
    progress.learn([event('web', 'CREATE_IN_PROGRESS')], 1.0)
    assert states(progress) == [('web', 'CREATE_IN_PROGRESS'), ('disk', '')]
    assert progress.lines[0].took_s(3.5) == 2.5
    progress.learn([event('web', 'CREATE_COMPLETE')], 4.0)
    assert progress.lines[0].state_kind is StateKind.GOOD
    assert progress.lines[0].took_s(99.0) == 3.0


def test_events_that_are_seen_again_change_nothing():
    progress = progress_of({'web': 'T'}, {})
    first, second = event('web', 'CREATE_IN_PROGRESS'), event('web', 'CREATE_COMPLETE')
    assert [line.state for line in progress.learn([first], 1.0)] == ['CREATE_IN_PROGRESS']
    assert [line.state for line in progress.learn([first, second], 2.0)] == ['CREATE_COMPLETE']
    assert progress.learn([first, second], 3.0) == []
    assert progress.lines[0].took_s(9.0) == 1.0


def test_the_object_that_goes_is_told_from_the_one_that_replaces_it():
    progress = progress_of({'web': 'T', 'disk': 'T'}, {'web': 'T', 'disk': 'T'})
    progress.learn(
        [
            event('web', 'CREATE_IN_PROGRESS'),
            event('web', 'CREATE_COMPLETE'),
            event('web', 'DELETE_IN_PROGRESS'),
        ],
        1.0,
    )
    assert states(progress) == [('web', 'CREATE_COMPLETE'), ('web (old)', 'DELETE_IN_PROGRESS'), ('disk', '')]


def test_what_is_not_wanted_any_more_has_its_line_from_the_beginning():
    progress = progress_of({'web': 'T'}, {'web': 'T', 'disk': 'T'})
    assert [(progress.title(line), line.part) for line in progress.lines] == [
        ('web', Part.DESIRED),
        ('disk', Part.LEAVING),
    ]
    progress.learn([event('disk', 'DELETE_COMPLETE')], 1.0)
    assert states(progress) == [('web', ''), ('disk', 'DELETE_COMPLETE')]


def test_a_failure_is_told_with_its_reason_and_a_retry_begins_anew():
    progress = progress_of({'web': 'T'}, {})
    failed = event('web', 'CREATE_FAILED', reason='no room')
    progress.learn([event('web', 'CREATE_IN_PROGRESS')], 1.0)
    (change,) = progress.learn([failed], 2.0)
    assert (change.state_kind, change.reason) == (StateKind.BAD, 'no room')
    progress.learn([event('web', 'UPDATE_IN_PROGRESS')], 7.0)
    assert progress.lines[0].took_s(8.0) == 1.0


def test_what_happens_to_the_stack_itself_is_told_apart():
    progress = progress_of({'web': 'T', STACK: 'T'}, {})
    progress.learn([stack_event('CREATE_IN_PROGRESS')], 1.0)
    assert progress.stack.state == 'CREATE_IN_PROGRESS'
    assert states(progress) == [('web', ''), (STACK, '')]
    progress.learn([event(STACK, 'CREATE_COMPLETE')], 2.0)
    assert states(progress) == [('web', ''), (STACK, 'CREATE_COMPLETE')]
    assert progress.stack.state == 'CREATE_IN_PROGRESS'


def test_what_is_in_nested_stacks_is_shown_below_their_resource_while_that_is_at_work():
    progress = progress_of({'web': 'T', 'disk': 'T'}, {})

    def inside(name, state, path, stack):
        progress.learn([{**event(name, state), 'stack_name': stack, 'stack_path': path}], 1.0)

    inside('web', 'CREATE_IN_PROGRESS', '', STACK)
    inside('web-1', 'CREATE_IN_PROGRESS', 'web', 'web-1')  # the nested stack itself
    inside('group', 'CREATE_IN_PROGRESS', 'web', 'web-1')
    inside('web', 'CREATE_IN_PROGRESS', 'web/group', 'group-1')
    inside('other', 'CREATE_COMPLETE', 'web', 'web-1')
    shown = [(line.path, line.depth, line.state) for line in progress.lines]
    assert shown == [
        ('web', 0, 'CREATE_IN_PROGRESS'),
        ('web/group', 1, 'CREATE_IN_PROGRESS'),
        ('web/group/web', 2, 'CREATE_IN_PROGRESS'),
        ('web/other', 1, 'CREATE_COMPLETE'),
        ('disk', 0, ''),
    ]
    inside('group', 'CREATE_FAILED', None, 'web-1')  # its resource is gone already, and its place is remembered
    inside('any', 'CREATE_FAILED', None, 'nobody-knows')
    assert [line.path for line in progress.lines if line.state_kind is StateKind.BAD] == ['web/group']
    inside('web', 'CREATE_COMPLETE', '', STACK)
    assert [line.path for line in progress.lines] == ['web', 'disk']


def test_what_waits_says_for_what():
    requires = {'c': ['b'], 'b': ['a', 'other'], 'd': []}
    progress = progress_of(dict.fromkeys(('a', 'other', 'b', 'c', 'd'), 'T'), {}, requires)
    lines = {line.name: line for line in progress.lines}
    assert progress.waits_for(lines['c']) == []
    progress.learn([event('a', 'CREATE_IN_PROGRESS'), event('other', 'CREATE_COMPLETE')], 1.0)
    assert progress.waits_for(lines['c']) == progress.waits_for(lines['b']) == ['a']
    assert progress.waits_for(lines['d']) == []
    progress.learn([event('a', 'CREATE_FAILED'), event('other', 'UPDATE_IN_PROGRESS')], 2.0)
    assert progress.waits_for(lines['c']) == ['other', 'a']


def test_between_two_steps_what_waits_says_whose_turn_it_is():
    names = ('a', 'b', 'c', 'd')
    requires = {'d': ['c', 'same'], 'c': ['b'], 'b': ['a']}
    scene = Scene(STACK, STACK_ID, dict.fromkeys((*names, 'same'), 'T'), {}, requires, frozenset(names))
    progress = OperationProgress(scene)
    last = next(line for line in progress.lines if line.name == 'd')
    assert progress.waits_for(last) == ['a']
    progress.learn([event('a', 'CREATE_IN_PROGRESS'), event('a', 'CREATE_COMPLETE')], 1.0)
    assert progress.waits_for(last) == ['b']
    progress.learn([event('b', 'CREATE_IN_PROGRESS')], 1.0)
    assert progress.waits_for(last) == ['b']


def test_what_is_to_be_removed_waits_for_what_needs_it():
    progress = progress_of({}, {'a': 'T', 'b': 'T'}, {'b': ['a']})
    progress.learn([event('b', 'DELETE_IN_PROGRESS')], 1.0)
    assert progress.waits_for(progress.lines[0]) == ['b']


def test_where_there_is_little_room_what_matters_is_shown_in_its_order():
    done = [Line(f'done-{number}', 'T', Part.DESIRED, 'CREATE_COMPLETE') for number in range(5)]
    busy, bad = Line('busy', 'T', Part.DESIRED, 'CREATE_IN_PROGRESS'), Line('bad', 'T', Part.DESIRED, 'CREATE_FAILED')
    lines = [done[0], busy, *done[1:4], bad, done[4]]
    assert choose(lines, 7) == lines
    assert choose(lines, 4) == [done[0], busy, bad]


# --- changes --------------------------------------------------------------------------------------------------


def test_what_became_of_each_resource_is_told_by_its_object_and_its_events():
    before = [resource('kept', '1'), resource('changed', '2'), resource('new-one', '3'), resource('gone', '4')]
    after = [resource('kept', '1'), resource('changed', '2'), resource('new-one', '5'), resource('more', '6')]
    events = [
        event('changed', 'UPDATE_IN_PROGRESS'),
        event('changed', 'UPDATE_COMPLETE'),
        event('kept', 'UPDATE_IN_PROGRESS'),
        stack_event('UPDATE_COMPLETE'),
    ]
    assert happened(before, after, events, STACK_ID) == {
        'kept': ResourceOutcome.KEPT,
        'changed': ResourceOutcome.UPDATED,
        'new-one': ResourceOutcome.REPLACED,
        'gone': ResourceOutcome.REMOVED,
        'more': ResourceOutcome.ADDED,
    }


def test_a_resource_with_the_name_of_its_stack_is_not_the_stack():
    rows = [resource('site', '1')]
    assert happened(rows, rows, [event('site', 'UPDATE_COMPLETE')], STACK_ID) == {'site': ResourceOutcome.UPDATED}
    assert happened(rows, rows, [stack_event('UPDATE_COMPLETE')], STACK_ID) == {'site': ResourceOutcome.KEPT}


def test_a_preview_says_the_same_in_its_own_words():
    one = {key: [resource(key, '1')] for key in ('unchanged', 'updated', 'replaced', 'added', 'deleted')}
    assert list(announced(one).values()) == [
        ResourceOutcome.KEPT,
        ResourceOutcome.UPDATED,
        ResourceOutcome.REPLACED,
        ResourceOutcome.ADDED,
        ResourceOutcome.REMOVED,
    ]
    assert announced({'updated': []}) == {}
