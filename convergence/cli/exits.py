"""Exit codes, and the errors that lead to them."""

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
    """The exit codes of all commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNREACHABLE = 5
    UNFINISHED = 6
    SUPERSEDED = 7
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: 'done',
    ExitCode.FAILED: 'the operation failed, or the check found errors',
    ExitCode.USAGE: 'wrong command line, or unreadable file',
    ExitCode.NOT_FOUND: 'stack, resource or output not found',
    ExitCode.REFUSED: 'the server refused the request: invalid template, conflict or missing permission',
    ExitCode.UNREACHABLE: 'the server cannot be reached',
    ExitCode.UNFINISHED: 'timeout while waiting; the operation continues',
    ExitCode.SUPERSEDED: 'another operation superseded the one that the command waited for',
    ExitCode.INTERRUPTED: 'interrupted with Ctrl-C; a started operation continues',
}


def epilog() -> str:
    """Return the exit codes for ``--help``. The first character keeps click from joining the lines."""
    return '\b\nExit codes:\n' + '\n'.join(f'  {code.value:<4} {text}' for code, text in MEANINGS.items())


class CommandFailed(click.ClickException):
    """A command failed. The text names the problem, its place and the remedy."""

    exit_code: ClassVar[int] = ExitCode.FAILED

    @override
    def show(self, file: object = None) -> None:
        """Print the text to standard error."""
        text = escaped(self.message, keep='\n')
        click.echo(f'convergence: {text}', err=True)


class UsageMistake(CommandFailed):
    """An option or a file of the caller is wrong."""

    exit_code = ExitCode.USAGE


class NotFound(CommandFailed):
    """The named object does not exist."""

    exit_code = ExitCode.NOT_FOUND


class Refused(CommandFailed):
    """The server refused the request.

    :param kind: the class of the error at the server; empty if the server sent none.
    """

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, kind: str = '') -> None:
        super().__init__(message)
        self.kind = kind


class BadTemplate(Refused):
    """The server found errors in the template.

    :param problems: the errors with their places.
    """

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message, 'StackValidationFailed')
        self.problems = problems

    def about(self, template: str) -> BadTemplate:
        """Return the same error with the path of the template on this machine."""
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
        from convergence.cli.problems import as_text
        from convergence.template.authoring.check import Findings

        first = next((each.place.source for each in self.problems if each.place is not None), 'template')
        as_text(Console(stderr=True, highlight=False), [Findings(first, None, tuple(self.problems))])


class Unreachable(CommandFailed):
    """The server does not answer, or is overloaded."""

    exit_code = ExitCode.UNREACHABLE


class Unfinished(CommandFailed):
    """An operation did not end before the timeout. It continues."""

    exit_code = ExitCode.UNFINISHED


class Superseded(CommandFailed):
    """Another operation superseded the one that the command waited for."""

    exit_code = ExitCode.SUPERSEDED
