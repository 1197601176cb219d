"""Prints a plan."""

from __future__ import annotations

import difflib
import json
from typing import Any

from rich.console import Console
from rich.text import Text

from convergence import logs
from convergence.cli.output import printable
from convergence.cli.stack.plan import Plan, PlannedAction, PlannedResource, PropertyChange, ordered

_MARKS = {
    PlannedAction.UNCHANGED: ('=', 'dim'),
    PlannedAction.ADDED: ('+', 'green'),
    PlannedAction.UPDATED: ('~', 'yellow'),
    PlannedAction.REPLACED: ('±', 'yellow'),
    PlannedAction.LEFT: ('!', 'yellow'),
    PlannedAction.DELETED: ('-', 'red'),
}
_PLAIN = {'±': '-/+'}
_VERBS = {
    (PlannedAction.UNCHANGED, True): 'is unchanged',
    (PlannedAction.ADDED, True): 'is added',
    (PlannedAction.UPDATED, True): 'is updated in place',
    (PlannedAction.UPDATED, False): 'may be updated in place',
    (PlannedAction.REPLACED, True): 'is replaced',
    (PlannedAction.REPLACED, False): 'may be replaced',
    (PlannedAction.LEFT, True): 'is deleted, and its object is kept',
    (PlannedAction.DELETED, True): 'is removed',
}
_LONGEST = 200


def show(console: Console, plan: Plan) -> None:
    """Print each change with its properties, then the summary."""
    for change in ordered(plan.changes):
        _show(console, change)
    console.print(Text(plan.summary, 'bold'), soft_wrap=True)


def _show(console: Console, change: PlannedResource) -> None:
    mark, style = _MARKS[change.fate]
    try:
        mark.encode(console.encoding)
    except UnicodeEncodeError:
        mark = _PLAIN.get(mark, mark)
    lead = '  ' * (len(change.path) - 1)
    line = Text.assemble(lead, (f'{mark} ', style), (printable(change.name), 'bold'), f'  {printable(change.type)}  ')
    line.append(_VERBS.get((change.fate, change.certain), 'may change'), style)
    if change.reason:
        line.append(f': {printable(change.reason)}', 'dim')
    console.print(line, soft_wrap=True)
    if change.changed_outside:
        drift = f'    changed outside: {printable(change.changed_outside)}'
        console.print(Text.assemble(lead, (drift, 'yellow')), soft_wrap=True)
    for each in change.properties:
        for text in _property(change, each):
            console.print(Text.assemble(lead, text), soft_wrap=True)


def _property(change: PlannedResource, each: PropertyChange) -> list[Text]:
    name = f'    {printable(each.name)}: '
    if change.fate is PlannedAction.ADDED:
        return [Text(f'{name}{_value(each.after)}', 'dim')]
    remark = '  (needs a new object)' if each.needs_new_object else ''
    before, after = each.before, each.after
    if isinstance(before, str) and isinstance(after, str) and '\n' in before + after:
        diff = difflib.unified_diff(_masked(before).splitlines(), _masked(after).splitlines(), lineterm='', n=1)
        lines = list(diff)[2:]
        colours = {'+': 'green', '-': 'red'}
        changed = [Text(f'      {printable(line)}', colours.get(line[:1], 'dim')) for line in lines]
        return [Text(f'{name.rstrip()}{remark}'), *changed]
    return [Text.assemble(name, (_value(before), 'red'), ' -> ', (_value(after), 'green'), (remark, 'yellow'))]


def _value(value: Any) -> str:
    if value is None:
        return '(not set)'
    text = _masked(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    text = printable(text.replace('\n', '\\n'))
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]} ... ({len(text)} characters)'


def _masked(text: str) -> str:
    """Mask texts that look like passwords. A value computed from a hidden parameter may not be hidden itself."""
    return logs.mask(text)
