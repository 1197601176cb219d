"""What a person is told while a stack converges: events in, lines out."""

from convergence.cli.changes import Change, announced, happened
from convergence.cli.display import choose
from convergence.cli.progress import Line, Mood, Part, Progress
from tests.cli.documents import event, resource, stack_event


def states(progress):
    return [(progress.title(line), line.state) for line in progress.lines]


def test_a_resource_waits_is_made_and_is_done():
    progress = Progress({'web': 'T', 'disk': 'T'}, {})
    assert [(line.mood, line.took_s(9.0)) for line in progress.lines] == [(Mood.WAITING, None)] * 2
    progress.learn([event('web', 'CREATE', 'IN_PROGRESS')], 1.0)
    assert states(progress) == [('web', 'CREATE_IN_PROGRESS'), ('disk', '')]
    assert progress.lines[0].took_s(3.5) == 2.5
    progress.learn([event('web', 'CREATE', 'COMPLETE')], 4.0)
    assert progress.lines[0].mood is Mood.GOOD
    assert progress.lines[0].took_s(99.0) == 3.0


def test_events_that_are_seen_again_change_nothing():
    progress = Progress({'web': 'T'}, {})
    first, second = event('web', 'CREATE', 'IN_PROGRESS'), event('web', 'CREATE', 'COMPLETE')
    assert [line.state for line in progress.learn([first], 1.0)] == ['CREATE_IN_PROGRESS']
    assert [line.state for line in progress.learn([first, second], 2.0)] == ['CREATE_COMPLETE']
    assert progress.learn([first, second], 3.0) == []
    assert progress.lines[0].took_s(9.0) == 1.0


def test_the_object_that_goes_is_told_from_the_one_that_replaces_it():
    progress = Progress({'web': 'T', 'disk': 'T'}, {'web': 'T', 'disk': 'T'})
    progress.learn(
        [
            event('web', 'CREATE', 'IN_PROGRESS'),
            event('web', 'CREATE', 'COMPLETE'),
            event('web', 'DELETE', 'IN_PROGRESS'),
        ],
        1.0,
    )
    assert states(progress) == [('web', 'CREATE_COMPLETE'), ('web (old)', 'DELETE_IN_PROGRESS'), ('disk', '')]


def test_what_is_not_wanted_any_more_has_its_line_from_the_beginning():
    progress = Progress({'web': 'T'}, {'web': 'T', 'disk': 'T'})
    assert [(progress.title(line), line.part) for line in progress.lines] == [
        ('web', Part.WANTED),
        ('disk', Part.LEAVING),
    ]
    progress.learn([event('disk', 'DELETE', 'COMPLETE')], 1.0)
    assert states(progress) == [('web', ''), ('disk', 'DELETE_COMPLETE')]


def test_a_failure_is_told_with_its_reason_and_a_retry_begins_anew():
    progress = Progress({'web': 'T'}, {})
    failed = event('web', 'CREATE', 'FAILED', reason='no room')
    progress.learn([event('web', 'CREATE', 'IN_PROGRESS')], 1.0)
    (change,) = progress.learn([failed], 2.0)
    assert (change.mood, change.reason) == (Mood.BAD, 'no room')
    progress.learn([event('web', 'UPDATE', 'IN_PROGRESS')], 7.0)
    assert progress.lines[0].took_s(8.0) == 1.0


def test_what_happens_to_the_stack_itself_is_no_line():
    progress = Progress({'web': 'T'}, {})
    assert progress.learn([stack_event('CREATE', 'IN_PROGRESS')], 1.0) == []
    assert states(progress) == [('web', '')]


def test_where_there_is_little_room_what_matters_is_shown_in_its_order():
    done = [Line(f'done-{number}', 'T', Part.WANTED, 'CREATE_COMPLETE') for number in range(5)]
    busy, bad = Line('busy', 'T', Part.WANTED, 'CREATE_IN_PROGRESS'), Line('bad', 'T', Part.WANTED, 'CREATE_FAILED')
    lines = [done[0], busy, *done[1:4], bad, done[4]]
    assert choose(lines, 7) == lines
    assert choose(lines, 4) == [done[0], busy, bad]


# --- changes --------------------------------------------------------------------------------------------------


def test_what_became_of_each_resource_is_told_by_its_object_and_its_events():
    before = [resource('kept', '1'), resource('changed', '2'), resource('new-one', '3'), resource('gone', '4')]
    after = [resource('kept', '1'), resource('changed', '2'), resource('new-one', '5'), resource('more', '6')]
    events = [
        event('changed', 'UPDATE', 'IN_PROGRESS'),
        event('changed', 'UPDATE', 'COMPLETE'),
        event('kept', 'UPDATE', 'IN_PROGRESS'),
        stack_event('UPDATE', 'COMPLETE'),
    ]
    assert happened(before, after, events) == {
        'kept': Change.KEPT,
        'changed': Change.UPDATED,
        'new-one': Change.REPLACED,
        'gone': Change.REMOVED,
        'more': Change.ADDED,
    }


def test_a_resource_with_the_name_of_its_stack_is_not_the_stack():
    rows = [resource('site', '1')]
    assert happened(rows, rows, [event('site', 'UPDATE', 'COMPLETE')]) == {'site': Change.UPDATED}
    assert happened(rows, rows, [stack_event('UPDATE', 'COMPLETE')]) == {'site': Change.KEPT}


def test_a_preview_says_the_same_in_its_own_words():
    one = {key: [resource(key, '1')] for key in ('unchanged', 'updated', 'replaced', 'added', 'deleted')}
    assert list(announced(one).values()) == [
        Change.KEPT, Change.UPDATED, Change.REPLACED, Change.ADDED, Change.REMOVED,
    ]  # fmt: skip
    assert announced({'updated': []}) == {}
