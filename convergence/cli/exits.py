"""How a command ends: the exit codes, and the errors that lead to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

import click
from rich.console import Console
from typing_extensions import override

from convergence.errors import Problem
from convergence.escaping import escaped


class ExitCode(IntEnum):
    """What a script can tell from how a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNREACHABLE = 5
    UNFINISHED = 6
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: 'done',
    ExitCode.FAILED: 'the operation failed, or what was looked at is wrong',
    ExitCode.USAGE: 'wrong command line, or a file that cannot be read',
    ExitCode.NOT_FOUND: 'there is no such stack, resource or output',
    ExitCode.REFUSED: 'the server refused: a template that is wrong, a conflict, no permission',
    ExitCode.UNREACHABLE: 'no server answers',
    ExitCode.UNFINISHED: 'the time given for waiting is over; the operation goes on',
    ExitCode.INTERRUPTED: 'interrupted with Ctrl-C; an operation that was begun goes on',
}


def epilog() -> str:
    """The exit codes, for ``--help``. The first character keeps click from joining the lines."""
    return '\b\nExit codes:\n' + '\n'.join(f'  {code.value:<4} {text}' for code, text in MEANINGS.items())


class CommandFailed(click.ClickException):
    """A command cannot be carried out. The text says what is wrong, where, and what to do next."""

    exit_code: ClassVar[int] = ExitCode.FAILED

    @override
    def show(self, file: object = None) -> None:
        """Print the text to standard error."""
        text = escaped(self.message, keep='\n')
        click.echo(f'convergence: {text}', err=True)


class UsageMistake(CommandFailed):
    """Options or files of the caller are wrong."""

    exit_code = ExitCode.USAGE


class NotFound(CommandFailed):
    """There is nothing of that name."""

    exit_code = ExitCode.NOT_FOUND


class Refused(CommandFailed):
    """The server understood the request and does not carry it out.

    :param kind: the class of the error at the server; empty where it said none.
    """

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, kind: str = '') -> None:
        super().__init__(message)
        self.kind = kind


class BadTemplate(Refused):
    """The server has found mistakes.

    :param problems: each of them, with its place.
    """

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message, 'StackValidationFailed')
        self.problems = problems

    def about(self, template: str) -> BadTemplate:
        """The same, with the name by which the user knows the template."""
        named = [
            dataclasses.replace(each, place=dataclasses.replace(each.place, source=template))
            if each.place is not None and each.place.source == 'template'
            else each
            for each in self.problems
        ]
        return BadTemplate(self.message, named)

    @override
    def show(self, file: object = None) -> None:
        """Print each problem with its place and a caret, as ``convergence template validate`` does."""
        from convergence.cli.template.report import as_text
        from convergence.template.authoring.check import Findings

        first = next((each.place.source for each in self.problems if each.place is not None), 'template')
        as_text(Console(stderr=True, highlight=False), [Findings(first, None, tuple(self.problems))])


class Unreachable(CommandFailed):
    """No server answers, or it cannot serve anybody at this moment."""

    exit_code = ExitCode.UNREACHABLE


class Unfinished(CommandFailed):
    """An operation has not come to its end in the time that was given; it goes on."""

    exit_code = ExitCode.UNFINISHED
