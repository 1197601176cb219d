"""``convergence stack cancel``, ``rollback``, ``suspend``, ``resume`` and ``check``."""

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
from convergence.cli.watch.operations import ANY, Follow, start_operation
from convergence.cli.watch.waiting import waitable


def _acted(
    api: Api,
    name: str,
    action: str,
    expected: str,
    given: dict[str, Any],
    output: ResultPrinter,
    options: Mapping[str, Any] | None = None,
) -> int:
    stack = api.stack(name)
    return start_operation(stack, lambda: stack.act(action, options), expected, Follow.of(given), output)


@click.command(epilog=EPILOG)
@STACK
@click.option('--now', is_flag=True, help='Stop running steps at once.')
@waitable
@printing
@connected
def cancel(api: Api, output: ResultPrinter, name: str, now: bool, **given: Any) -> int:
    """Cancel the running operation without a rollback.

    Works for every operation, including delete and rollback. No new steps start, in nested stacks neither. Running
    steps may finish within ten minutes, or another limit of the server; then they are stopped. The stack becomes
    ..._FAILED. It can be updated or deleted at any time.
    """
    return _acted(api, name, 'cancel_without_rollback', ANY, given, output, {'now': True} if now else None)


@click.command(epilog=EPILOG)
@STACK
@click.option('--dry-run', is_flag=True, help='Show the plan, and change nothing.')
@click.option('--show-nested', is_flag=True, help='With --dry-run, include nested stacks.')
@waitable
@printing
@connected
def rollback(api: Api, output: ResultPrinter, name: str, dry_run: bool, show_nested: bool, **given: Any) -> int:
    """Return the stack to its previous state.

    A running create or update is ended and undone. After a failed update, the stack returns to the last complete
    state; after a complete update, to the complete state before it. A second rollback undoes the first. Refused while
    another operation is running.
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
    """Suspend the resources of a stack, dependent resources first.

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
    """Check that all objects of a stack exist and are healthy.

    A resource that is not becomes CHECK_FAILED, and so does the stack. The next update replaces the resource. With
    --wait the exit code is 1.
    """
    return _acted(api, name, 'check', 'CHECK_COMPLETE', given, output)


COMMANDS = (cancel, rollback, suspend, resume, check)
