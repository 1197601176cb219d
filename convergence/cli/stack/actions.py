"""The commands of ``convergence stack`` that do something with a stack as it is, or end what is being done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console

from convergence.cli.arguments import STACK
from convergence.cli.connection.client import Api
from convergence.cli.exits import ExitCode
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import Format, ResultPrinter
from convergence.cli.stack import plan as plans
from convergence.cli.stack import plan_report
from convergence.cli.watch.operations import ANY, Follow, begun
from convergence.cli.watch.waiting import waitable


def _acted(
    api: Api,
    name: str,
    action: str,
    wanted: str,
    given: dict[str, Any],
    output: ResultPrinter,
    options: Mapping[str, Any] | None = None,
) -> int:
    stack = api.stack(name)
    return begun(stack, lambda: stack.act(action, options), wanted, Follow.of(given), output)


@click.command(epilog=EPILOG)
@STACK
@click.option('--now', is_flag=True, help='Wait for nothing: stop at once what is running.')
@waitable
@printing
@connected
def cancel(api: Api, output: ResultPrinter, name: str, now: bool, **given: Any) -> int:
    """End the operation that is going on, and leave everything as it is then.

    Works for every operation, a delete and a rollback too. Nothing new begins, in nested stacks neither. What is
    running comes to its end, if it does so in ten minutes (the server may have another limit); then it is stopped.
    After that the stack is ..._FAILED; update or delete it next, or at any time before.
    """
    return _acted(api, name, 'cancel_without_rollback', ANY, given, output, {'now': True} if now else None)


@click.command(epilog=EPILOG)
@STACK
@click.option('--dry-run', is_flag=True, help='Show what would be done, and do nothing.')
@click.option(
    '--show-nested', is_flag=True, help='With --dry-run, also what becomes of the resources of nested stacks.'
)
@waitable
@printing
@connected
def rollback(api: Api, output: ResultPrinter, name: str, dry_run: bool, show_nested: bool, **given: Any) -> int:
    """Go back to what the stack was before, also when everything is complete.

    A creation or update that is going on is ended and taken back. After an update that failed, the stack goes back to
    what was last complete; after one that is complete, to what was complete before that. Done once more, it goes
    forward again. Refused while anything else is going on.
    """
    stack = api.stack(name)
    if not dry_run:
        return _acted(api, name, 'rollback', 'ROLLBACK_COMPLETE', given, output)
    lists = api.get(stack.at('rollback', 'preview'), show_nested='true' if show_nested else None)['resource_changes']
    plan = plans.of_update(stack.name, lists, '')
    if output.form is Format.TABLE:
        plan_report.show(Console(highlight=False), plan)
    else:
        output.record(plan.document())
    return ExitCode.OK


@click.command(epilog=EPILOG)
@STACK
@waitable
@printing
@connected
def suspend(api: Api, output: ResultPrinter, name: str, **given: Any) -> int:
    """Suspend the resources of a stack: those that need others first. "resume" brings them back.

    A suspended stack can only be resumed or deleted.
    """
    return _acted(api, name, 'suspend', 'SUSPEND_COMPLETE', given, output)


@click.command(epilog=EPILOG)
@STACK
@waitable
@printing
@connected
def resume(api: Api, output: ResultPrinter, name: str, **given: Any) -> int:
    """Resume a suspended stack."""
    return _acted(api, name, 'resume', 'RESUME_COMPLETE', given, output)


@click.command(epilog=EPILOG)
@STACK
@waitable
@printing
@connected
def check(api: Api, output: ResultPrinter, name: str, **given: Any) -> int:
    """Look whether everything that a stack has is really there and well.

    What is not becomes CHECK_FAILED, and so does the stack; the next update replaces it. Exit code 1 with --wait.
    """
    return _acted(api, name, 'check', 'CHECK_COMPLETE', given, output)


COMMANDS = (cancel, rollback, suspend, resume, check)
