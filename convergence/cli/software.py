"""``convergence software``: software configurations and their deployments on servers."""

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
    """Manage software configurations and deployments."""


# --- configurations -------------------------------------------------------------------------------------------


@software.group(epilog=EPILOG)
def config() -> None:
    """Manage software configurations."""


@config.command('list', epilog=EPILOG)
@click.option('--limit', type=click.IntRange(min=1), metavar='N', help='Maximum number of configurations.')
@printing
@connected
def list_configs(api: Api, output: ResultPrinter, limit: int | None) -> None:
    """List the software configurations of the project."""
    output.listing(CONFIG_COLUMNS, api.get('software_configs', limit=limit)['software_configs'])


@config.command('show', epilog=EPILOG)
@CONFIG
@click.option('--config-only', is_flag=True, help='Print only the text of the configuration.')
@printing
@connected
def show_config(api: Api, output: ResultPrinter, config_id: str, config_only: bool) -> None:
    """Show the software configuration with the id CONFIG."""
    found = dict(api.get(f'software_configs/{config_id}')['software_config'])
    if config_only:
        say(str(found.get('config') or ''))
        return
    output.record(found)


@config.command('create', epilog=EPILOG)
@click.argument('name', metavar='NAME')
@click.option(
    '--config-file', type=_FILE, metavar='FILE', help='File with the text of the configuration. "-": standard input.'
)
@click.option(
    '--definition-file', type=_FILE, metavar='FILE', help='YAML file with the sections inputs, outputs and options.'
)
@click.option(
    '--group',
    default='Heat::Ungrouped',
    metavar='GROUP',
    show_default=True,
    help='Name of the tool that applies the configuration on a server.',
)
@printing
@connected
def create_config(
    api: Api, output: ResultPrinter, name: str, config_file: str | None, definition_file: str | None, group: str
) -> None:
    """Create a software configuration. It cannot be changed later; create a new one instead."""
    body: dict[str, Any] = {'name': name, 'group': group, **_definition(definition_file)}
    if config_file is not None:
        body['config'] = _text(config_file)
    output.record(api.send('POST', 'software_configs', body)['software_config'])


@config.command('delete', epilog=EPILOG)
@CONFIG
@connected
def delete_config(api: Api, config_id: str) -> None:
    """Delete the software configuration with the id CONFIG. Deployed configurations cannot be deleted."""
    api.send('DELETE', f'software_configs/{config_id}')
    click.echo(f'Software configuration {config_id} is deleted.', err=True)


# --- deployments ----------------------------------------------------------------------------------------------


@software.group(epilog=EPILOG)
def deployment() -> None:
    """Manage the deployments of software configurations on servers."""


@deployment.command('list', epilog=EPILOG)
@click.option('--server-id', metavar='ID', help='Id of the server whose deployments to list.')
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
    """Show the software deployment with the id DEPLOYMENT and its outputs."""
    output.record(api.get(f'software_deployments/{deployment_id}')['software_deployment'])


@deployment.command('create', epilog=EPILOG)
@click.option('--config', 'config_id', metavar='ID', required=True, help='Id of the software configuration.')
@click.option('--server-id', metavar='ID', required=True, help='Id of the server.')
@click.option('--input', 'inputs', metavar='NAME=VALUE', multiple=True, help='Value of an input. May be repeated.')
@click.option(
    '--action',
    default='UPDATE',
    metavar='ACTION',
    show_default=True,
    help='Stack action on which to apply the configuration.',
)
@printing
@connected
def create_deployment(
    api: Api, output: ResultPrinter, config_id: str, server_id: str, inputs: tuple[str, ...], action: str
) -> None:
    """Deploy a software configuration on a server. The agent on the server reads it from the server's metadata."""
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
    """Delete the software deployment with the id DEPLOYMENT."""
    api.send('DELETE', f'software_deployments/{deployment_id}')
    click.echo(f'Software deployment {deployment_id} is deleted.', err=True)


@deployment.command('metadata', epilog=EPILOG)
@click.argument('server_id', metavar='SERVER')
@printing
@connected
def show_metadata(api: Api, output: ResultPrinter, server_id: str) -> None:
    """Show the metadata for the agent on SERVER (an id): all deployments of that server."""
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
        raise UsageMistake(f'{name} must be a map with the sections {", ".join(_SECTIONS)}.')
    return found
