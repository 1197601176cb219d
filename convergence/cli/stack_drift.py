"""``convergence stack drift``: what of a stack is otherwise than it was made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from convergence.cli.arguments import NESTED_DEPTH, STACK
from convergence.cli.client import Api, StackClient
from convergence.cli.exits import CommandFailed, ExitCode, Unfinished
from convergence.cli.operations import Follow, begun
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter
from convergence.cli.waiting import waitable
from convergence.documents import Document

COLUMNS = (
    *('path', 'resource_type', 'state', 'property', 'wanted', 'applied', 'live', 'accepted'),
    *('since', 'observed_at', 'reason'),
)
ASK_EVERY_S = 0.5
_DONE = {'ignore': 'ignored from now on', 'report': 'shown from now on', 'repair': 'put right from now on'}


@click.command(epilog=EPILOG)
@STACK
@click.option('--refresh', is_flag=True, help='Have all objects looked at now, and wait for that.')
@click.option(
    '--refresh-timeout',
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar='SECONDS',
    help='Wait for --refresh so long at most, and end with 6 if that was not enough.',
)
@click.option(
    '--set-policy',
    'policy',
    type=click.Choice(['ignore', 'report', 'repair']),
    help='From now on do this when an object is found changed; repairs that were given up are tried again.',
)
@click.option(
    '--repair',
    metavar='RESOURCE',
    help='Compare this resource, and what reads it, with what is there, and put right what differs.',
)
@click.option(
    '--accept',
    metavar='RESOURCE[.PROPERTY]',
    help='Take what is there for wanted, of one property or of all that differ, until the template changes them.',
)
@click.option('--withdraw', metavar='RESOURCE', help='Take back what was accepted of this resource: it differs again.')
@click.option('--all', 'everything', is_flag=True, help='Also list what is as it was made.')
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
    """List what changed outside of STACK: what its template wants, what was applied last, and what is there.

    Ends with 1 where something did. Observers look now and then; "since" is when one first saw it so. With --repair
    nothing is listed: an update begins that touches this resource and what reads it alone, whatever the policy says.
    """
    stack = api.stack(name)
    if policy is not None:
        api.send('PATCH', stack.at('drift'), {'drift_policy': policy})
        click.echo(f'What changes outside of stack {stack.name} is {_DONE[policy]}.', err=True)
    if repair is not None:
        path = stack.at('resources', repair, 'repair')
        return begun(stack, lambda: api.send('POST', path), 'UPDATE_COMPLETE', Follow.of(given), output)
    if accept is not None:
        _accept(stack, accept)
    if withdraw is not None:
        made = api.send('DELETE', stack.at('resources', withdraw, 'accept'))['drift']
        names = ', '.join(made['withdrawn'])
        click.echo(f'Of {withdraw} in stack {stack.name} is accepted no more: {names}.', err=True)
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
    """Take what is there of a resource, or of one property, for wanted. Names of resources may have dots themselves."""
    names = [each['resource_name'] for each in stack.api.get(stack.at('drift'))['drift']['resources']]
    resource, dot, name = asked.rpartition('.')
    if asked in names or not dot:
        resource, name = asked, ''
    body = {'properties': [name]} if name else None
    made = stack.api.send('POST', stack.at('resources', resource, 'accept'), body)['drift']
    accepted = ', '.join(made['accepted'])
    click.echo(f'Of {resource} in stack {stack.name} is wanted from now on what is there: {accepted}.', err=True)


def _refresh(stack: StackClient, nested_depth: int | None, timeout_s: float) -> None:
    """Have all objects looked at, and wait for that.

    :raises CommandFailed: nobody looks.
    :raises Unfinished: it takes longer.
    """
    asked = stack.api.ask('POST', stack.at('drift'), query={'nested_depth': nested_depth}).json()['drift']
    ends = time.monotonic() + timeout_s
    while asked['waiting']:
        if not asked['observers']:
            raise CommandFailed('No observer is running, so nobody looks. Start one: convergence-observer.')
        if time.monotonic() > ends:
            raise Unfinished(f'{asked["waiting"]} objects of {stack.name} have not been looked at yet; ask again.')
        time.sleep(ASK_EVERY_S)
        asked = stack.api.get(stack.at('drift'), nested_depth=nested_depth)['drift']


def _lines(found: Document) -> Iterator[Document]:
    """A line for each property that differs, and one for each object of which there is none."""
    for each in found['resources']:
        accepted = ', '.join(each['accepted']) or None
        for differing in each['properties'] or [{}]:
            values = {key: differing.get(key) for key in ('wanted', 'applied', 'live')}
            yield {**each, **values, 'property': differing.get('name'), 'accepted': accepted}


def _filled(found: Document) -> tuple[str, ...]:
    """The columns in which something stands; of the reason no more than what the others do not say."""
    shown: list[Any] = list(_lines(found))
    hidden = {'resource_type', 'observed_at'}
    if all(each['properties'] for each in found['resources']):
        hidden.add('reason')
    return tuple(name for name in COLUMNS if name not in hidden and any(each.get(name) is not None for each in shown))


def _summary(found: Document) -> str:
    if not found['observed']:
        nobody = '' if found['observers'] else ' No observer is running.'
        return f'Nothing of it is observed.{nobody} "--refresh" has it looked at.'
    unseen = found['observed'] - found['seen']
    told = f'{found["drifted"]} of {found["observed"]} observed objects changed outside of the stack'
    return told + (f'; at {unseen} nobody has looked yet.' if unseen else '.')


COMMANDS = (drift,)
