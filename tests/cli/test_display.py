"""The content of the screen."""

import functools
import io
import itertools
from dataclasses import replace

import pytest
from rich.console import Console

from convergence.cli.exits import NotFound, Unfinished, Unreachable
from convergence.cli.report import Report, ResourceOutcome
from convergence.cli.watch.display import LiveTree, PlainLines, display_for, tree
from convergence.cli.watch.following import Follower
from convergence.cli.watch.progress import OperationProgress, Scene
from convergence.followed import Followed
from tests.cli.documents import STACK, STACK_ID, event, stack_event


def console(terminal=False, encoding='utf-8'):
    raw = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    colours = 'standard' if terminal else None
    return Console(file=raw, width=80, force_terminal=terminal, highlight=False, color_system=colours)


def written(shown):
    return shown.file.buffer.getvalue().decode(shown.file.encoding)


class Server:
    """A stack of which time goes on with each question after its state; it has no stream."""

    name, id = STACK, STACK_ID

    def __init__(self, *moments):
        self._moments = list(moments)
        self._happened = []

    def show(self):
        moment = self._moments.pop(0) if len(self._moments) > 1 else self._moments[0]
        if isinstance(moment, Exception):
            raise moment
        state, events = moment
        self._happened += events
        return {'stack_status': state, 'stack_status_reason': ''}

    def show_with_tag(self):
        return self.show(), '"t"'

    def history(self):
        return [{'id': 't', 'request_id': 'r', 'action': 'CREATE', 'status': 'RUNNING', 'reason': ''}]

    def events(self, marker=None):
        ids = [each['id'] for each in self._happened]
        return self._happened[ids.index(marker) + 1 :] if marker else list(self._happened)

    def follow(self, marker):
        raise Unreachable('all streams are taken')


def clock(step):
    """Every look at it is `step` seconds later."""
    return functools.partial(next, itertools.count(0, step))


def followed(server, shown, desired=None, since=None, timeout_s=None):
    scene = Scene(STACK, STACK_ID, desired or {'web': 'T'})
    return Follower(server, Followed('r'), display_for(shown), timeout_s, clock(2.0)).follow(scene, since)


def test_a_file_gets_a_line_for_each_change_and_no_control_characters():
    server = Server(
        ('CREATE_IN_PROGRESS', [event('web', 'CREATE_IN_PROGRESS')]),
        ('CREATE_IN_PROGRESS', []),
        ('CREATE_FAILED', [event('web', 'CREATE_FAILED', 'no\n room\x1b'), stack_event('CREATE_FAILED')]),
    )
    shown = console()
    assert isinstance(display_for(shown), PlainLines)
    assert followed(server, shown).state == 'CREATE_FAILED'
    lines = [line.split()[2:] for line in written(shown).splitlines()]
    assert lines[0] == ['web', 'T', 'CREATE_IN_PROGRESS']
    assert lines[1][:5] == ['web', 'T', 'CREATE_FAILED', 'no', 'room\N{REPLACEMENT CHARACTER}']
    assert lines[2] == [STACK, 'the', 'stack', 'CREATE_FAILED']
    assert '\x1b' not in written(shown)


def test_a_terminal_gets_a_tree_that_stays():
    server = Server(
        ('CREATE_IN_PROGRESS', [event('web', 'CREATE_IN_PROGRESS')]),
        ('CREATE_FAILED', [event('web', 'CREATE_FAILED', 'no room')]),
    )
    shown = console(terminal=True)
    assert isinstance(display_for(shown), LiveTree)
    assert followed(server, shown).state == 'CREATE_FAILED'
    last = written(shown).rpartition('\x1b[2K')[2]
    assert 'CREATE_FAILED' in last and 'no room' in last


def test_only_what_happened_in_this_operation_is_shown():
    old = event('web', 'CREATE_COMPLETE')
    server = Server(('UPDATE_COMPLETE', [old, event('web', 'UPDATE_COMPLETE')]))
    shown = console()
    followed(server, shown, since=old['id'])
    assert 'CREATE_' not in written(shown)
    assert 'UPDATE_COMPLETE' in written(shown)


def test_an_operation_that_takes_too_long_is_left_and_it_is_said_how_to_go_on():
    with pytest.raises(
        Unfinished, match=r'still in progress after 1 s; the operation continues.*stack wait site.*stack cancel site'
    ):
        followed(Server(('UPDATE_IN_PROGRESS', [])), console(), timeout_s=1)


def test_a_server_that_is_away_for_a_while_is_waited_for():
    server = Server(('UPDATE_IN_PROGRESS', []), Unreachable('away'), ('UPDATE_COMPLETE', []))
    shown = console()
    assert followed(server, shown).state == 'UPDATE_COMPLETE'
    assert 'No answer, retrying: away' in written(shown)


def test_a_server_that_stays_away_is_given_up():
    with pytest.raises(Unreachable):
        followed(Server(('UPDATE_IN_PROGRESS', []), Unreachable('away')), console())


def test_a_stack_that_is_gone_has_been_deleted():
    assert followed(Server(('DELETE_IN_PROGRESS', []), NotFound('gone')), console()).state == 'DELETE_COMPLETE'


def test_the_tree_fits_eighty_columns_and_a_small_window():
    kind = 'Convergence::Local::HttpCheck'
    progress = OperationProgress(Scene(STACK, STACK_ID, {f'resource-{number}': kind for number in range(30)}))
    progress.learn([event('resource-29', 'ROLLBACK_IN_PROGRESS')], 0.0)
    shown = console()
    shown.print(tree(progress, 34.5, room=10, plain=True))
    lines = written(shown).splitlines()
    assert len(lines) == 11
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:4] == [STACK, '0', 'of', '30']
    assert lines[-2].split() == ['|-', 'resource-29', kind, 'ROLLBACK_IN_PROGRESS', '34.5', 's']
    assert lines[-1].split() == ['`-', 'and', '21', 'more']


@pytest.mark.parametrize(
    ('well', 'words'),
    [(False, {'not-begun': 'not started', 'kept': 'unchanged', 'to-go': 'not started'}), (True, 'unchanged')],
)
def test_what_a_failure_kept_from_beginning_is_told_from_what_was_to_stay_as_it_is(well, words):
    names = ('bad', 'not-begun', 'kept')
    scene = Scene(
        STACK,
        STACK_ID,
        dict.fromkeys(names, 'T'),
        dict.fromkeys((*names, 'to-go'), 'T'),
        {'not-begun': ['bad']},
        frozenset(('bad', 'not-begun')),
    )
    progress = OperationProgress(scene)
    progress.learn([event('bad', 'UPDATE_FAILED', reason='no room')], 1.0)
    progress.end(well=well)
    shown = console()
    shown.print(tree(progress, 1.0, room=10, plain=True))
    found = {line[3:].split()[0]: line for line in written(shown).splitlines()}
    for name in ('not-begun', 'kept', 'to-go'):
        assert (words if isinstance(words, str) else words[name]) in found[name]
    assert 'waits for' not in found['not-begun']
    plain = console()
    PlainLines(plain).show(progress, [], 1.0)
    assert written(plain).count('not started') == (0 if well else 2)


def test_what_changed_outside_is_said_until_it_is_put_right():
    outside = dict.fromkeys(('kept', 'mended'), 'content changed outside of the stack')
    scene = Scene(STACK, STACK_ID, dict.fromkeys(('kept', 'mended', 'as-made'), 'T'), planned=frozenset(('mended',)))
    progress, plain, shown = OperationProgress(replace(scene, outside=outside)), console(), console()
    lines = PlainLines(plain)
    lines.show(progress, progress.learn([event('mended', 'UPDATE_IN_PROGRESS')], 0.0), 0.0)
    shown.print(tree(progress, 1.0, room=10, plain=True))
    assert written(shown).count('changed outside') == 2
    assert 'waits for' not in written(shown)
    lines.show(progress, progress.learn([event('mended', 'UPDATE_COMPLETE')], 1.0), 1.0)
    assert written(plain).count('changed outside: content changed') == 2
    after = console()
    after.print(tree(progress, 1.0, room=10, plain=True))
    told = [line for line in written(after).splitlines() if 'changed outside' in line]
    assert [line.split()[1] for line in told] == ['kept']


def test_nested_stacks_are_drawn_as_branches():
    progress = OperationProgress(Scene(STACK, STACK_ID, {'web': 'T', 'disk': 'T'}))
    for name, path in (('web', ''), ('group', 'web'), ('a', 'web/group'), ('b', 'web'), ('disk', '')):
        progress.learn([{**event(name, 'CREATE_IN_PROGRESS'), 'stack_name': path or STACK, 'stack_path': path}], 0.0)
    shown = console()
    shown.print(tree(progress, 0.0, room=10))
    drawn = [line.partition('  CREATE')[0].partition('  T')[0].rstrip() for line in written(shown).splitlines()]
    assert drawn[1:] == ['├─ web', '│  ├─ group', '│  │  └─ a', '│  └─ b', '└─ disk']
    assert 'web/group/a' in _plain(progress)


def _plain(progress):
    shown = console()
    PlainLines(shown).show(progress, progress.lines, 0.0)
    return written(shown)


def test_texts_of_users_are_no_markup():
    progress = OperationProgress(Scene(STACK, STACK_ID, {'[red]x[/red]': '[bold]'}))
    shown = console()
    shown.print(tree(progress, 0.0, room=10))
    report = Report(shown)
    report.check('[c]', True)
    for text in ('[red]x[/red]', '[bold]', '[c]'):
        assert text in written(shown)


def test_checks_are_counted_and_say_what_was_found():
    report = Report(console())
    assert report.check('The page answers', True, 'unused')
    assert not report.check('Nothing is left', False, 'a file')
    assert (report.passed, report.failed) == (1, ['Nothing is left'])
    assert 'Nothing is left: a file' in written(report.console)
    assert 'unused' not in written(report.console)


def test_marks_are_spelled_where_the_terminal_cannot_draw_them():
    report = Report(console(encoding='ascii'))
    report.check('fine', True)
    report.check('broken', False)
    assert [line.split() for line in written(report.console).splitlines()] == [['ok', 'fine'], ['NO', 'broken']]


def test_what_was_announced_is_compared_with_what_came():
    report = Report(console())
    same = {'a': ResourceOutcome.KEPT, 'b': ResourceOutcome.REPLACED}
    assert report.comparison(same, dict(reversed(same.items())))
    assert not report.comparison(same, {'a': ResourceOutcome.KEPT, 'b': ResourceOutcome.UPDATED})
    assert not report.comparison(same, {'a': ResourceOutcome.KEPT})
    last = written(report.console).splitlines()[-1]
    assert last.split() == ['b', 'replaced', 'nothing', '\N{BALLOT X}']
