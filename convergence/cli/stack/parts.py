"""``convergence stack template``, ``environment``, ``file``, ``metadata`` and ``mark-unhealthy``."""

from __future__ import annotations

import click

from convergence.cli.arguments import RESOURCE, STACK
from convergence.cli.connection.client import Api
from convergence.cli.exits import NotFound
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter, say, say_yaml


@click.command('mark-unhealthy', epilog=EPILOG)
@STACK
@RESOURCE
@click.option('--reason', metavar='TEXT', help='Text for the status reason of the resource.')
@click.option('--reset', is_flag=True, help='Clear the unhealthy mark.')
@connected
def mark_unhealthy(api: Api, name: str, resource: str, reason: str | None, reset: bool) -> None:
    """Mark RESOURCE as unhealthy. The next update of STACK replaces it."""
    body: dict[str, object] = {'mark_unhealthy': not reset}
    if reason is not None:
        body['resource_status_reason'] = reason
    stack = api.stack(name)
    api.send('PATCH', stack.at('resources', resource), body)
    state = (
        'is no longer marked as unhealthy'
        if reset
        else 'is marked as unhealthy; the next update of the stack replaces it'
    )
    click.echo(f'{resource} of stack {stack.name} {state}.', err=True)


@click.command(epilog=EPILOG)
@STACK
@RESOURCE
@printing
@connected
def metadata(api: Api, output: ResultPrinter, name: str, resource: str) -> None:
    """Show the metadata of RESOURCE."""
    output.record(api.get(api.stack(name).at('resources', resource, 'metadata'))['metadata'])


@click.command(epilog=EPILOG)
@STACK
@connected
def template(api: Api, name: str) -> None:
    """Print the template of STACK, as YAML."""
    say_yaml(api.get(api.stack(name).at('template')))


@click.command(epilog=EPILOG)
@STACK
@connected
def environment(api: Api, name: str) -> None:
    """Print the environment of STACK, as YAML. Values of hidden parameters are masked."""
    say_yaml(api.get(api.stack(name).at('environment')))


@click.command(epilog=EPILOG)
@STACK
@click.argument('file', required=False)
@printing
@connected
def files(api: Api, output: ResultPrinter, name: str, file: str | None) -> None:
    """List the files that came with the template of STACK, or print FILE."""
    found: dict[str, str] = api.get(api.stack(name).at('files')) or {}
    if file is None:
        output.listing(
            ('file', 'bytes'), [{'file': key, 'bytes': len(text.encode())} for key, text in sorted(found.items())]
        )
    elif file in found:
        say(found[file], nl=not found[file].endswith('\n'))
    else:
        raise NotFound(f'Stack {name} has no file {file}. Its files: {", ".join(sorted(found)) or "none"}.')


COMMANDS = (mark_unhealthy, metadata, template, environment, files)
