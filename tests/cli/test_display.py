"""What stands on the screen."""

import io

import pytest
from rich.console import Console

from convergence.cli.changes import Change
from convergence.cli.display import LiveTable, PlainLines, display_for, follow, table
from convergence.cli.progress import Progress
from convergence.cli.report import Report
from convergence.cli.stack import StackHandle, event_id
from convergence.errors import RetryLater
from tests.cli.documents import event, resource, stack_event


def console(terminal=False, encoding='utf-8'):
    raw = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    colours = 'standard' if terminal else None
    return Console(file=raw, width=80, force_terminal=terminal, highlight=False, color_system=colours)


def written(shown):
    return shown.file.buffer.getvalue().decode(shown.file.encoding)


class Engine:
    """Answers about a stack as if time went on with each question after its state."""

    def __init__(self, *moments):
        self._moments = list(moments)
        self._happened = [stack_event('CREATE', 'IN_PROGRESS')]

    def show_stack(self, context, stack_identity, resolve_outputs=True):
        state, events = self._moments.pop(0) if len(self._moments) > 1 else self._moments[0]
        self._happened += events
        action, _, status = state.partition('_')
        return [{'stack_action': action, 'stack_status': status, 'stack_status_reason': ''}]

    def list_events(self, context, stack_identity, query=None):
        ids = [event_id(each) for each in self._happened]
        events = self._happened[ids.index(query.marker) + 1 :] if query.marker else self._happened
        return events[::-1][: query.limit] if query.sort_dir == 'desc' else events


def handle(engine):
    return StackHandle(engine, None, {'stack_name': 'site'})


def test_a_file_gets_a_line_for_each_change_and_no_control_characters():
    engine = Engine(
        ('CREATE_IN_PROGRESS', [event('web', 'CREATE', 'IN_PROGRESS')]),
        ('CREATE_IN_PROGRESS', []),
        ('CREATE_COMPLETE', [event('web', 'CREATE', 'COMPLETE'), stack_event('CREATE', 'COMPLETE')]),
    )
    shown = console()
    display = display_for(shown)
    assert isinstance(display, PlainLines)
    assert follow(handle(engine), Progress({'web': 'T'}, {}), display, since=None, timeout_s=60) == 'CREATE_COMPLETE'
    lines = written(shown).splitlines()
    assert [line.split()[2:] for line in lines] == [['web', 'T', 'CREATE_IN_PROGRESS'], ['web', 'T', 'CREATE_COMPLETE']]
    assert '\x1b' not in written(shown)


def test_a_terminal_gets_a_table_that_stays():
    engine = Engine(
        ('CREATE_IN_PROGRESS', [event('web', 'CREATE', 'IN_PROGRESS')]),
        ('CREATE_FAILED', [event('web', 'CREATE', 'FAILED')]),
    )
    shown = console(terminal=True)
    display = display_for(shown)
    assert isinstance(display, LiveTable)
    assert follow(handle(engine), Progress({'web': 'T'}, {}), display, since=None, timeout_s=60) == 'CREATE_FAILED'
    last = written(shown).rpartition('CREATE_IN_PROGRESS')[2]
    assert 'CREATE_FAILED' in last


def test_only_what_happened_in_this_operation_is_shown():
    engine = Engine(('UPDATE_COMPLETE', [event('web', 'UPDATE', 'COMPLETE')]))
    old = event('web', 'CREATE', 'COMPLETE')
    engine._happened.append(old)
    stack, shown = handle(engine), console()
    assert stack.last_event() == event_id(old)
    follow(stack, Progress({'web': 'T'}, {}), display_for(shown), since=stack.last_event(), timeout_s=60)
    assert 'CREATE' not in written(shown)
    assert 'UPDATE_COMPLETE' in written(shown)


def test_an_operation_that_takes_too_long_is_left_with_its_state():
    engine = Engine(('UPDATE_IN_PROGRESS', []))
    with pytest.raises(RetryLater, match='The stack site is still UPDATE_IN_PROGRESS after 0 s; it goes on'):
        follow(handle(engine), Progress({}, {}), display_for(console()), since=None, timeout_s=0)


def test_the_table_fits_eighty_columns_and_a_small_window():
    kind = 'Convergence::Local::HttpCheck'
    progress = Progress({f'resource-{number}': kind for number in range(30)}, {})
    progress.learn([event('resource-29', 'ROLLBACK', 'IN_PROGRESS', kind=kind)], 0.0)
    shown = console()
    shown.print(table(progress, 1234.5, 'waiting', room=10))
    lines = written(shown).splitlines()
    assert len(lines) == 10
    assert max(map(len, lines)) <= 80
    assert lines[-2].split() == ['resource-29', kind, 'ROLLBACK_IN_PROGRESS', '1234.5', 's']
    assert lines[-1].split() == ['and', '21', 'more']


def test_texts_of_users_are_no_markup():
    progress = Progress({'[red]x[/red]': '[bold]'}, {})
    shown = console()
    shown.print(table(progress, 0.0, 'kept', room=10))
    report = Report(shown)
    report.outputs([{'output_key': '[k]', 'output_value': ['[/v]']}])
    report.check('[c]', True)
    for text in ('[red]x[/red]', '[bold]', '[k]', '["[/v]"]', '[c]'):
        assert text in written(shown)


def test_an_output_without_a_value_says_why():
    shown = console()
    Report(shown).outputs([{'output_key': 'url', 'output_value': None, 'output_error': 'web is not there'}])
    assert 'no value: web is not there' in written(shown)


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
    same = {'a': Change.KEPT, 'b': Change.REPLACED}
    assert report.comparison(same, dict(reversed(same.items())))
    assert not report.comparison(same, {'a': Change.KEPT, 'b': Change.UPDATED})
    assert not report.comparison(same, {'a': Change.KEPT})
    last = written(report.console).splitlines()[-1]
    assert last.split() == ['b', 'replaced', 'nothing', '\N{BALLOT X}']


def test_a_handle_reads_a_stack():
    class Client:
        def show_stack(self, context, stack_identity, resolve_outputs=True):
            return [{'outputs': [{'output_key': 'a', 'output_value': 1}]}]

        def get_template(self, context, stack_identity):
            return {'resources': {'b': {'type': 'X'}, 'a': {'type': 'Y'}}}

        def list_stack_resources(self, context, stack_identity):
            return [resource('a', '1')]

        def list_events(self, context, stack_identity, query=None):
            return []

    stack = StackHandle(Client(), None, {'stack_name': 's'})
    assert list(stack.wanted().items()) == [('b', 'X'), ('a', 'Y')]
    assert stack.outputs() == [{'output_key': 'a', 'output_value': 1}]
    assert [one['resource_name'] for one in stack.resources()] == ['a']
    assert stack.last_event() is None
