"""``convergence software``: software configurations, and what is deployed of them where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from convergence.cli.arguments import CONFIG, DEPLOYMENT
from convergence.cli.connection.client import Api
from convergence.cli.exits import UsageMistake
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter, say
from convergence.cli.submission import pairs
from convergence.errors import ConvergenceError
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read

CONFIG_COLUMNS = ('id', 'name', 'group', 'creation_time')
DEPLOYMENT_COLUMNS = ('id', 'config_id', 'server_id', 'action', 'status', 'status_reason', 'updated_time')
_SECTIONS = ('inputs', 'outputs', 'options')
_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


@click.group(epilog=EPILOG)
def software() -> None:
    """Keep software configurations, and say where they are deployed."""


# --- configurations -------------------------------------------------------------------------------------------


@software.group(epilog=EPILOG)
def config() -> None:
    """Keep and look at software configurations."""


@config.command('list', epilog=EPILOG)
@click.option('--limit', type=click.IntRange(min=1), metavar='N', help='So many at most.')
@printing
@connected
def list_configs(api: Api, output: ResultPrinter, limit: int | None) -> None:
    """List the software configurations of the project."""
    output.listing(CONFIG_COLUMNS, api.get('software_configs', limit=limit)['software_configs'])


@config.command('show', epilog=EPILOG)
@CONFIG
@click.option('--config-only', is_flag=True, help='Only the text of the configuration.')
@printing
@connected
def show_config(api: Api, output: ResultPrinter, config_id: str, config_only: bool) -> None:
    """Show the software configuration CONFIG, an id."""
    found = dict(api.get(f'software_configs/{config_id}')['software_config'])
    if config_only:
        say(str(found.get('config') or ''))
        return
    output.record(found)


@config.command('create', epilog=EPILOG)
@click.argument('name', metavar='NAME')
@click.option(
    '--config-file', type=_FILE, metavar='FILE', help='The text of the configuration; "-" for standard input.'
)
@click.option(
    '--definition-file', type=_FILE, metavar='FILE', help='YAML with the sections inputs, outputs and options.'
)
@click.option('--group', default='Heat::Ungrouped', metavar='GROUP', show_default=True, help='What carries it out.')
@printing
@connected
def create_config(
    api: Api, output: ResultPrinter, name: str, config_file: str | None, definition_file: str | None, group: str
) -> None:
    """Keep a software configuration called NAME. It never changes: make a new one instead."""
    body: dict[str, Any] = {'name': name, 'group': group, **_definition(definition_file)}
    if config_file is not None:
        body['config'] = _text(config_file)
    output.record(api.send('POST', 'software_configs', body)['software_config'])


@config.command('delete', epilog=EPILOG)
@CONFIG
@connected
def delete_config(api: Api, config_id: str) -> None:
    """Delete the software configuration CONFIG, an id. Refused while it is deployed."""
    api.send('DELETE', f'software_configs/{config_id}')
    click.echo(f'Software configuration {config_id} is deleted.', err=True)


# --- deployments ----------------------------------------------------------------------------------------------


@software.group(epilog=EPILOG)
def deployment() -> None:
    """Say and look at what is deployed on which server."""


@deployment.command('list', epilog=EPILOG)
@click.option('--server-id', metavar='ID', help='Only those of this server.')
@printing
@connected
def list_deployments(api: Api, output: ResultPrinter, server_id: str | None) -> None:
    """List the software deployments of the project."""
    output.listing(DEPLOYMENT_COLUMNS, api.get('software_deployments', server_id=server_id)['software_deployments'])


@deployment.command('show', epilog=EPILOG)
@DEPLOYMENT
@printing
@connected
def show_deployment(api: Api, output: ResultPrinter, deployment_id: str) -> None:
    """Show the software deployment DEPLOYMENT, an id, with what it gave out."""
    output.record(api.get(f'software_deployments/{deployment_id}')['software_deployment'])


@deployment.command('create', epilog=EPILOG)
@click.option('--config', 'config_id', metavar='ID', required=True, help='The software configuration.')
@click.option('--server-id', metavar='ID', required=True, help='The server.')
@click.option('--input', 'inputs', metavar='NAME=VALUE', multiple=True, help='The value of an input; may be repeated.')
@click.option('--action', default='UPDATE', metavar='ACTION', show_default=True, help='When it is to be carried out.')
@printing
@connected
def create_deployment(
    api: Api, output: ResultPrinter, config_id: str, server_id: str, inputs: tuple[str, ...], action: str
) -> None:
    """Deploy a software configuration on a server: its agent finds it among the server's metadata."""
    body = {
        'config_id': config_id,
        'server_id': server_id,
        'input_values': pairs('--input', inputs),
        'action': action,
        'status': 'IN_PROGRESS',
    }
    output.record(api.send('POST', 'software_deployments', body)['software_deployment'])


@deployment.command('delete', epilog=EPILOG)
@DEPLOYMENT
@connected
def delete_deployment(api: Api, deployment_id: str) -> None:
    """Delete the software deployment DEPLOYMENT, an id."""
    api.send('DELETE', f'software_deployments/{deployment_id}')
    click.echo(f'Software deployment {deployment_id} is deleted.', err=True)


@deployment.command('metadata', epilog=EPILOG)
@click.argument('server_id', metavar='SERVER')
@printing
@connected
def show_metadata(api: Api, output: ResultPrinter, server_id: str) -> None:
    """Show what the agent on SERVER, an id, is to do: all that is deployed there."""
    output.record({'metadata': api.get(f'software_deployments/metadata/{server_id}')['metadata']})


# --- files ----------------------------------------------------------------------------------------------------


def _text(name: str) -> str:
    try:
        with click.open_file(name, encoding='utf-8') as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageMistake(f'{name} cannot be read: {getattr(error, "strerror", None) or error}') from None


def _definition(name: str | None) -> Mapping[str, Any]:
    if name is None:
        return {}
    problems = Problems()
    try:
        found = read(_text(name), name, Limits(), problems).root or {}
        problems.raise_any()
    except ConvergenceError as error:
        raise UsageMistake(f'{name} cannot be used: {error}') from None
    if not isinstance(found, dict) or set(found) - set(_SECTIONS):
        raise UsageMistake(f'{name} must be a map with no other sections than {", ".join(_SECTIONS)}.')
    return found
