"""``convergence stack drift``: objects that were changed outside their stack."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from convergence.cli.arguments import NESTED_DEPTH, STACK
from convergence.cli.connection.client import Api, StackClient
from convergence.cli.exits import CommandFailed, ExitCode, Unfinished
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter
from convergence.cli.watch.operations import Follow, start_operation
from convergence.cli.watch.waiting import waitable
from convergence.documents import Document

COLUMNS = (
    *('path', 'resource_type', 'state', 'property', 'wanted', 'applied', 'live', 'accepted'),
    *('since', 'looked_at', 'reason'),
)
ASK_EVERY_S = 0.5
_DONE = {'ignore': 'ignored from now on', 'report': 'reported from now on', 'repair': 'repaired from now on'}


@click.command(epilog=EPILOG)
@STACK
@click.option('--refresh', is_flag=True, help='Compare all objects now, and wait for the result.')
@click.option(
    '--refresh-timeout',
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar='SECONDS',
    help='Timeout of --refresh in seconds. The exit code is 6 if it is reached.',
)
@click.option(
    '--set-policy',
    'policy',
    type=click.Choice(['ignore', 'report', 'repair']),
    help='Reaction to drift from now on. Repairs that had failed for good are retried.',
)
@click.option(
    '--repair',
    metavar='RESOURCE',
    help='Resource to repair, with the resources that depend on it.',
)
@click.option(
    '--accept',
    metavar='RESOURCE[.PROPERTY]',
    help='Accept the current value of one property, or of all drifted ones, until the template changes them.',
)
@click.option('--withdraw', metavar='RESOURCE', help='Resource whose accepted values to report as drift again.')
@click.option('--all', 'everything', is_flag=True, help='Include resources without drift.')
@NESTED_DEPTH
@waitable
@printing
@connected
def drift(
    api: Api,
    output: ResultPrinter,
    name: str,
    refresh: bool,
    refresh_timeout: float,
    policy: str | None,
    repair: str | None,
    accept: str | None,
    withdraw: str | None,
    everything: bool,
    nested_depth: int | None,
    **given: Any,
) -> int:
    """List drift: differences between the template, the values applied last, and the actual objects of STACK.

    The exit code is 1 if there is drift. Observers compare objects at intervals; "since" is the time of the first
    observation of a difference. --repair lists nothing: it starts an update of the resource and its dependents only,
    regardless of the drift policy.
    """
    stack = api.stack(name)
    if policy is not None:
        api.send('PATCH', stack.at('drift'), {'drift_policy': policy})
        click.echo(f'Drift of stack {stack.name} is {_DONE[policy]}.', err=True)
    if repair is not None:
        path = stack.at('resources', repair, 'repair')
        return start_operation(stack, lambda: api.begin('POST', path), 'UPDATE_COMPLETE', Follow.of(given), output)
    if accept is not None:
        _accept(stack, accept)
    if withdraw is not None:
        made = api.send('DELETE', stack.at('resources', withdraw, 'accept'))['drift']
        names = ', '.join(made['withdrawn'])
        click.echo(f'Resource {withdraw} of stack {stack.name}: values no longer accepted: {names}.', err=True)
    if refresh:
        _refresh(stack, nested_depth, refresh_timeout)
    found = dict(
        api.get(stack.at('drift'), nested_depth=nested_depth, with_healthy='true' if everything else None)['drift']
    )
    if output.is_for_people:
        output.listing(output.columns or _filled(found), _lines(found))
        click.echo(_summary(found), err=True)
    else:
        output.listing(COLUMNS, _lines(found))
    return ExitCode.FAILED if found['drifted'] else ExitCode.OK


def _accept(stack: StackClient, asked: str) -> None:
    """Accept the current value of one property, or of all drifted ones. Names of resources may contain dots."""
    names = [each['resource_name'] for each in stack.api.get(stack.at('drift'))['drift']['resources']]
    resource, dot, name = asked.rpartition('.')
    if asked in names or not dot:
        resource, name = asked, ''
    body = {'properties': [name]} if name else None
    made = stack.api.send('POST', stack.at('resources', resource, 'accept'), body)['drift']
    accepted = ', '.join(made['accepted'])
    click.echo(f'Resource {resource} of stack {stack.name}: current values accepted: {accepted}.', err=True)


def _refresh(stack: StackClient, nested_depth: int | None, timeout_s: float) -> None:
    """Request an observation of all objects, and wait for it.

    :raises CommandFailed: no observer is running.
    :raises Unfinished: the timeout is reached first.
    """
    asked = stack.api.ask('POST', stack.at('drift'), query={'nested_depth': nested_depth}).json()['drift']
    ends = time.monotonic() + timeout_s
    while asked['waiting']:
        if not asked['observers']:
            raise CommandFailed(
                'No observer is running, so objects cannot be compared. Start one: convergence-observer.'
            )
        if time.monotonic() > ends:
            raise Unfinished(f'{asked["waiting"]} objects of {stack.name} are not compared yet. Run the command again.')
        time.sleep(ASK_EVERY_S)
        asked = stack.api.get(stack.at('drift'), nested_depth=nested_depth)['drift']


def _lines(found: Document) -> Iterator[Document]:
    """Return a line for each property that differs, and one for each missing object."""
    for each in found['resources']:
        accepted = ', '.join(each['accepted']) or None
        for differing in each['properties'] or [{}]:
            values = {key: differing.get(key) for key in ('wanted', 'applied', 'live')}
            yield {**each, **values, 'property': differing.get('name'), 'accepted': accepted}


def _filled(found: Document) -> tuple[str, ...]:
    """Return the columns that have values."""
    shown: list[Any] = list(_lines(found))
    hidden = {'resource_type', 'looked_at'}
    if all(each['properties'] for each in found['resources']):
        hidden.add('reason')
    return tuple(name for name in COLUMNS if name not in hidden and any(each.get(name) is not None for each in shown))


def _summary(found: Document) -> str:
    if not found['observed']:
        reason = '' if found['observers'] else ' No observer is running.'
        return f'No object is observed yet.{reason} "--refresh" compares all objects now.'
    unseen = found['observed'] - found['seen']
    summary = f'{found["drifted"]} of {found["observed"]} observed objects have drifted'
    return summary + (f'; {unseen} are not compared yet.' if unseen else '.')


COMMANDS = (drift,)
