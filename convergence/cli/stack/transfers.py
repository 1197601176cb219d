"""``convergence stack export``, ``abandon`` and ``adopt``: move stacks between installations."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from convergence.cli.arguments import STACK
from convergence.cli.connection.client import Api
from convergence.cli.exits import ExitCode, UsageMistake
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter, say
from convergence.cli.submission import request_body, template_options
from convergence.cli.watch.operations import Follow, follow_creation
from convergence.cli.watch.waiting import stack_summary, waitable

_OUTPUT = click.option(
    '-o',
    '--output',
    'path',
    type=click.Path(dir_okay=False, path_type=Path),
    metavar='FILE',
    help='New file to write, readable only by you.  [default: print]',
)


@click.command(epilog=EPILOG)
@STACK
@_OUTPUT
@connected
def export(api: Api, name: str, path: Path | None) -> None:
    """Print the data of a stack for "adopt", as JSON. Changes nothing.

    Values of hidden parameters are masked.
    """
    stack = api.stack(name)
    _put(_reserved(path), path, api.get(stack.at('export')))


@click.command(epilog=EPILOG)
@STACK
@click.option('-y', '--yes', is_flag=True, help='Skip the confirmation.')
@_OUTPUT
@connected
def abandon(api: Api, name: str, yes: bool, path: Path | None) -> None:
    """Delete a stack, and keep its objects. Prints the data for "adopt" as JSON; keep it.

    Needs the option [engine] enable_stack_abandon.
    """
    stack = api.stack(name)
    if not yes and sys.stdin.isatty():
        api.announce()
        click.confirm(f'Delete stack {stack.name}, and keep its objects?', abort=True, err=True)
    file = _reserved(path)  # Open the file first: after the request the data exists nowhere else.
    try:
        data = api.send('DELETE', stack.at('abandon'))
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise
    _put(file, path, data)


@click.command(epilog=EPILOG)
@click.argument('name', metavar='NAME')
@click.option(
    '--data',
    'source',
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar='FILE',
    required=True,
    help='File with the output of "export" or "abandon". "-": standard input.',
)
@template_options
@waitable
@printing
@connected
def adopt(api: Api, output: ResultPrinter, name: str, source: str, **given: Any) -> int:
    """Create a stack from existing objects, with the data of "abandon".

    The objects belong to the new stack and are deleted with it. The data masks hidden parameters; give their values
    with --parameter-file. Needs the option [engine] enable_stack_adopt.
    """
    body = {'stack_name': name, **request_body(None, given), 'adopt_stack_data': _text(source)}
    stack = api.create(body)
    follow = Follow.of(given)
    if follow.wait:
        return follow_creation(stack, 'ADOPT_COMPLETE', follow, output)
    output.record(stack_summary(stack.show()))
    return ExitCode.OK


def _text(source: str) -> str:
    try:
        with click.open_file(source, encoding='utf-8') as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageMistake(f'{source} cannot be read: {getattr(error, "strerror", None) or error}') from None


def _reserved(path: Path | None) -> int | None:
    """Return a new open file; None without a path."""
    if path is None:
        return None
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageMistake(f'{path} cannot be created: {error.strerror}. Nothing was changed.') from None


def _put(file: int | None, path: Path | None, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if file is None:
        say(text)
        return
    try:
        with os.fdopen(file, 'w', encoding='utf-8') as opened:
            opened.write(f'{text}\n')
    except OSError as error:
        say(text)
        raise UsageMistake(f'{path} cannot be written: {error.strerror}. The data is printed instead.') from None


COMMANDS = (export, abandon, adopt)
