"""``convergence stack hook``: where an operation is paused, and how it goes on."""

from __future__ import annotations

import click

from convergence.cli.arguments import RESOURCES, STACK
from convergence.cli.client import Api, Document, StackClient
from convergence.cli.exits import NotFound
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter
from convergence.core.model import Hook

COLUMNS = ('resource_name', 'hook', 'resource_type', 'resource_status', 'age_s')


@click.group(epilog=EPILOG)
def hook() -> None:
    """Look at the hooks at which a stack is paused, and clear them.

    An environment sets hooks on resources; an operation waits at each until somebody clears it.
    """


@hook.command('list', epilog=EPILOG)
@STACK
@printing
@connected
def list_(api: Api, output: ResultPrinter, name: str) -> None:
    """List the resources of STACK that wait at a hook at this moment."""
    output.listing(COLUMNS, _paused(api.stack(name)))


@hook.command(epilog=EPILOG)
@STACK
@RESOURCES
@click.option(
    '--hook',
    'wanted',
    type=click.Choice([each.value for each in Hook]),
    help='The hook.  [default: the one it waits at]',
)
@connected
def clear(api: Api, name: str, resources: tuple[str, ...], wanted: str | None) -> None:
    """Let each RESOURCE of STACK go on from its hook."""
    stack = api.stack(name)
    hooks = dict.fromkeys(resources, wanted) if wanted else _hooks(stack, resources)
    for resource, found in hooks.items():
        api.send('POST', stack.at('resources', resource, 'signal'), {'unset_hook': found})
        click.echo(f'Hook {found} of {resource} is cleared.', err=True)


def _hooks(stack: StackClient, resources: tuple[str, ...]) -> dict[str, str]:
    """The hook at which each resource waits.

    :raises NotFound: one waits at none. Nothing is cleared then.
    """
    paused = {str(each['resource_name']): str(each['hook']) for each in _paused(stack)}
    idle = [each for each in resources if each not in paused]
    if idle:
        known = ', '.join(f'{name} ({at})' for name, at in paused.items()) or 'none'
        raise NotFound(f'{", ".join(idle)} of stack {stack.name} waits at no hook now; those that do: {known}.')
    return {name: paused[name] for name in resources}


def _paused(stack: StackClient) -> list[Document]:
    return [each for each in stack.explain().get('frontier') or () if each.get('hook')]
