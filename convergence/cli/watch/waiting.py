"""``--wait``: follows an operation to its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from convergence.cli.arguments import CommandT
from convergence.cli.connection.client import StackClient
from convergence.cli.exits import CommandFailed, ExitCode
from convergence.cli.output import ResultPrinter, printable, state_style
from convergence.cli.watch.display import display_for
from convergence.cli.watch.following import DELETED, Ending, Follower, OperationStart, console, how_to_go_on, is_good
from convergence.cli.watch.progress import Scene
from convergence.documents import Document
from convergence.followed import Followed

ALL_LEVELS = 100
"""Levels of nested stacks to show: more than an installation allows."""


_OPTIONS = (
    click.option(
        '--wait',
        is_flag=True,
        help='Wait for the end of the operation, and show its progress. The exit code is 7 if another operation '
        'supersedes it.',
    ),
    click.option(
        '--wait-timeout',
        type=click.FloatRange(min=0),
        metavar='SECONDS',
        help='Timeout of --wait in seconds. The operation continues after it.',
    ),
)


def waitable(command: CommandT) -> CommandT:
    """Give a command ``--wait`` and ``--wait-timeout``."""
    wrapped: Any = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def watch(
    stack: StackClient, followed: Followed, start: OperationStart, scene: Scene, timeout_s: float | None
) -> Ending | None:
    """Show an operation until its end. Return None after Ctrl-C.

    :raises Superseded: another operation took over.
    """
    shown = console()
    follower = Follower(replace(stack, nested_depth=ALL_LEVELS), followed, display_for(shown), timeout_s)
    try:
        return follower.follow(scene, start.since)
    except KeyboardInterrupt:
        shown.print(
            Text(f'The operation on {stack.name} continues. {how_to_go_on(stack.name)}', 'yellow'), soft_wrap=True
        )
        return None


def print_result(
    stack: StackClient,
    ending: Ending | None,
    expected: str,
    output: ResultPrinter,
    document: Callable[[], Document] | None = None,
) -> int:
    """Print the result of an operation and the stack. Return the exit code.

    :param expected: the expected final state; empty: every state except failures.
    :param document: returns the document to print; None: the stack.
    """
    if ending is None:
        return ExitCode.INTERRUPTED
    shown = console()
    good = ending.state == expected if expected else is_good(ending.state)
    text = Text.assemble(
        'Stack ',
        (printable(stack.name), 'bold'),
        ' is ',
        (ending.state, state_style(ending.state)),
        f' after {ending.took_s:.1f} s.',
    )
    shown.print(text, soft_wrap=True)
    if not good:
        print_failure(shown, stack, ending)
    if document is not None:
        output.record(document())
    elif ending.state != DELETED:
        output.record(stack_summary(stack.show(outputs=good)))
    return ExitCode.OK if good else ExitCode.FAILED


def stack_summary(document: Document) -> Document:
    """Return the part of a stack to show after an operation."""
    shown = {name: document.get(name) for name in ('id', 'stack_name', 'stack_status', 'stack_status_reason')}
    outputs = document.get('outputs')
    if outputs:
        shown['outputs'] = {each['output_key']: each.get('output_value') for each in outputs}
    return shown


def print_failure(shown: Console, stack: StackClient, ending: Ending) -> None:
    """Print the first failure and its consequences."""
    try:
        explained = stack.explain()
    except CommandFailed:
        explained = {}
    if not print_cause(shown, explained) and ending.reason:
        shown.print(Text(f'Reason: {printable(ending.reason)}'), soft_wrap=True)


def print_cause(shown: Console, explained: Document) -> bool:
    """Print the root cause of an explanation and its consequences. Return True if there is one."""
    cause = explained.get('root_cause')
    if not cause:
        return False
    line = Text.assemble(
        ('Root cause: ', 'bold red'),
        (printable(cause.get('path') or cause['resource_name']), 'bold'),
        f' ({cause["action"]}): ',
        printable(cause.get('reason') or 'no reason given'),
    )
    shown.print(line, soft_wrap=True)
    for each in explained.get('following') or ():
        reason = printable(each.get('reason') or '')
        text = f'  as a consequence: {printable(each["resource_name"])}  {each.get("resource_status") or ""}  {reason}'
        shown.print(Text(text.rstrip(), 'dim'), soft_wrap=True)
    return True


def waiting_in(explained: Document) -> list[Document]:
    """Return the steps that an operation waits for. Steps in nested stacks are named by their paths."""
    found = list(explained.get('frontier') or ())
    for nested in explained.get('nested') or ():
        for each in nested.get('frontier') or ():
            name = '/'.join((nested['path'], each['resource_name'] or each['phase']))
            found.append({**each, 'resource_name': name, 'links': nested['links'], 'stack_id': nested['stack_id']})
    return found
