"""Shows the progress of a stack: a live tree on a terminal, one line for each change elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from convergence.cli.output import printable
from convergence.cli.watch.progress import Line, OperationProgress, StateKind

STYLES = {StateKind.WAITING: 'dim', StateKind.BUSY: 'yellow', StateKind.GOOD: 'green', StateKind.BAD: 'bold red'}
WAITING, KEPT, NOT_STARTED = 'waiting', 'unchanged', 'not started'
OUTSIDE = 'changed outside'
_STATE_WIDTH = len('ROLLBACK_IN_PROGRESS')
_BRANCH, _LAST, _THROUGH = ('├─ ', '|- '), ('└─ ', '`- '), ('│  ', '|  ')


class Display(Protocol):
    """A display for the progress of an operation."""

    def __enter__(self) -> Self:
        """Start the display."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the display. The last state stays visible."""

    def show(self, progress: OperationProgress, changes: Sequence[Line], now_s: float, note: str = '') -> None:
        """Show the current state.

        :param changes: the changes since the last call.
        :param note: a sentence to show with them.
        """


class LiveTree:
    """A tree that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._console = console

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, progress: OperationProgress, changes: Sequence[Line], now_s: float, note: str = '') -> None:
        """Redraw the tree with current times."""
        room = max(3, self._console.height - 4)
        shown = tree(progress, now_s, room, plain=not _can_draw(self._console))
        if note:
            shown.add_row(Text(note, 'yellow'), '', '', '', '')
        self._live.update(shown, refresh=True)


class PlainLines:
    """A line for each change, for files, pipes and logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._note, self._has_begun = '', False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: printed lines stay."""

    def show(self, progress: OperationProgress, changes: Sequence[Line], now_s: float, note: str = '') -> None:
        """Print the changes."""
        if not self._has_begun:
            self._has_begun = True
            for line in progress.lines:
                if drift := progress.outside(line):
                    text = f'  {now_s:6.1f} s  {_placed(progress, line):<14}  {line.type:<30}  {OUTSIDE}: {drift}'
                    self._console.print(Text(printable(text)), soft_wrap=True)
        for line in changes:
            kind = line.type or ('' if line.above else 'the stack')
            text = f'  {now_s:6.1f} s  {_placed(progress, line):<14}  {kind:<30}  {line.state}'
            if (line.state_kind is StateKind.BAD and line.reason) or (kind == 'the stack' and _news(line)):
                text = f'{text}  {" ".join(line.reason.split())}'
            self._console.print(Text(printable(text)), soft_wrap=True)
        for line in progress.lines:
            if progress.was_kept_from(line):
                text = f'  {now_s:6.1f} s  {_placed(progress, line):<14}  {line.type:<30}  {NOT_STARTED}'
                self._console.print(Text(printable(text)), soft_wrap=True)
        if note and note != self._note:
            self._console.print(Text(f'  {now_s:6.1f} s  {note}'), soft_wrap=True)
        self._note = note


def _placed(progress: OperationProgress, line: Line) -> str:
    return f'{line.above}/{progress.title(line)}' if line.above else progress.title(line)


def display_for(console: Console) -> Display:
    """Return the display for a console: a tree on a terminal, lines elsewhere."""
    return LiveTree(console) if console.is_terminal else PlainLines(console)


def tree(progress: OperationProgress, now_s: float, room: int, *, plain: bool = False) -> Table:
    """Return the tree of a stack and its resources.

    :param room: maximum number of resources to show. Complete ones are left out first.
    :param plain: True to draw with ASCII only.
    """
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    shown.add_column(
        no_wrap=True,
        min_width=min(progress.width + 3, 24),
        # A fixed width keeps the columns in place when a title grows.
    )
    shown.add_column(no_wrap=True, style='dim')
    shown.add_column(no_wrap=True, min_width=_STATE_WIDTH)
    shown.add_column(no_wrap=True, justify='right', min_width=7, style='dim')
    shown.add_column(no_wrap=True, style='dim', overflow='ellipsis')
    own = [line for line in progress.lines if not line.depth]
    done = sum(line.state_kind is StateKind.GOOD for line in own)
    counted = f'{done} of {len(own)}' if own else ''
    stack = progress.stack
    shown.add_row(Text(stack.name, 'bold'), counted, _state(stack, ''), _seconds(now_s), Text(printable(_news(stack))))
    chosen = choose(progress.lines, room)
    left_off = len(progress.lines) - len(chosen)
    for number, line in enumerate(chosen):
        title = Text.assemble((_guide(chosen, number, left_off, plain), 'dim'), printable(progress.title(line)))
        took_s = line.took_s(now_s)
        shown.add_row(
            title,
            Text(printable(line.type)),
            _state(line, _idle(progress, line)),
            '' if took_s is None else _seconds(took_s),
            Text(printable(_remark(progress, line))),
        )
    if left_off:
        shown.add_row(Text(f'{_LAST[plain]}and {left_off} more', 'dim'), '', '', '', '')
    return shown


def _guide(lines: Sequence[Line], number: int, left_off: int, plain: bool) -> str:
    """Return the guides before a line: for each level, a line follows or not."""
    drawn = ''
    for depth in range(lines[number].depth + 1):
        following = next((each.depth for each in lines[number + 1 :] if each.depth <= depth), None)
        goes_on = following == depth or (depth == 0 and left_off > 0)
        if depth == lines[number].depth:
            drawn += (_BRANCH if goes_on else _LAST)[plain]
        else:
            drawn += _THROUGH[plain] if goes_on else '   '
    return drawn


def choose(lines: Sequence[Line], room: int) -> list[Line]:
    """Return at most `room` lines in their order. Failed ones matter most, then busy, waiting and complete ones."""
    if len(lines) <= room:
        return list(lines)
    urgency = {StateKind.BAD: 0, StateKind.BUSY: 1, StateKind.WAITING: 2, StateKind.GOOD: 3}
    ranked = sorted(range(len(lines)), key=lambda index: (urgency[lines[index].state_kind], index))
    return [lines[index] for index in sorted(ranked[: room - 1])]


def _news(stack: Line) -> str:
    """Return a remark on the operation: it is being cancelled, or only deletes leftovers."""
    is_news = stack.state_kind is StateKind.BUSY and not stack.reason.endswith(' started')
    return ' '.join(stack.reason.split()) if is_news else ''


def _remark(progress: OperationProgress, line: Line) -> str:
    if line.state_kind is StateKind.BAD:
        return ' '.join(line.reason.split())
    if line.state_kind is StateKind.BUSY and progress.outside(line):
        return OUTSIDE
    if line.state_kind is StateKind.WAITING and (others := progress.waits_for(line)):
        more = f' and {len(others) - 2} more' if len(others) > 2 else ''
        return f'{"needs" if progress.is_over else "waits for"} {", ".join(others[:2])}{more}'
    return ''


def _idle(progress: OperationProgress, line: Line) -> str:
    """Return the word for a resource without events."""
    if progress.outside(line):
        return OUTSIDE
    if not progress.is_over:
        return WAITING
    return NOT_STARTED if progress.was_kept_from(line) else KEPT


def _state(line: Line, idle: str) -> Text:
    return Text(line.state or idle, STYLES[line.state_kind])


def _seconds(seconds: float) -> str:
    return f'{seconds:.1f} s' if seconds < 60 else f'{int(seconds) // 60} min {int(seconds) % 60:02d} s'


def _can_draw(console: Console) -> bool:
    try:
        (_BRANCH[0] + _LAST[0]).encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True
