"""Software configurations and deployments: data that agents on servers fetch, and report back on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convergence import errors
from convergence.core.model import Json
from convergence.core.software import DEFAULT_GROUP, SoftwareConfig, SoftwareDeployment, for_agents
from convergence.db.repositories.software import SoftwareRows
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.reads.formats import moment

_LONGEST = 255
_TEXTS = {'action': _LONGEST, 'status': _LONGEST, 'stack_user_project_id': 64}
"""Fields of a deployment with texts of limited length, and the number of characters that are kept of each."""


class Software:
    """Stores configurations and deployments of the callers' projects."""

    def __init__(self, rows: SoftwareRows, new_id: Callable[[], str]) -> None:
        self._rows = rows
        self._new_id = new_id

    # --- configurations ---------------------------------------------------------------------------------------

    def list_software_configs(
        self, context: Caller, limit: int | None = None, marker: str | None = None
    ) -> list[Document]:
        """The configurations of the caller's project, newest first, without their contents.

        :raises EntityNotFound: the marker is no configuration of the project.
        :raises Invalid: the limit is invalid.
        """
        if limit is not None and limit < 0:
            raise errors.Invalid(f'limit must not be negative, and is {limit}')
        if marker is not None:
            self._config(context, marker)
        found = self._rows.configs(context.project_id, limit=limit or None, marker=marker)
        return [config_document(each, with_content=False) for each in found]

    def show_software_config(self, context: Caller, config_id: str) -> Document:
        """One configuration.

        :raises EntityNotFound: the project has no such configuration.
        """
        return config_document(self._config(context, config_id))

    def create_software_config(
        self,
        context: Caller,
        group: str | None,
        name: str | None,
        config: Json,
        inputs: Sequence[Mapping[str, Json]] | None = None,
        outputs: Sequence[Mapping[str, Json]] | None = None,
        options: Mapping[str, Json] | None = None,
    ) -> Document:
        """Store a configuration, and return it.

        :raises Invalid: an input or output has no name.
        """
        content: dict[str, Json] = {
            'config': config if config is not None else '',
            'inputs': [_declared(each, 'inputs') for each in inputs or ()],
            'outputs': [_declared(each, 'outputs') for each in outputs or ()],
            'options': dict(options or {}),
        }
        wanted = SoftwareConfig(
            self._new_id(),
            context.project_id,
            _short(name or '', 'name'),
            _short(group or DEFAULT_GROUP, 'group'),
            content,
        )
        return config_document(self._rows.add_config(wanted))

    def delete_software_config(self, context: Caller, config_id: str) -> None:
        """Delete a configuration.

        :raises EntityNotFound: the project has no such configuration.
        :raises Invalid: a deployment has it.
        """
        self._config(context, config_id)
        if not self._rows.remove_config(context.project_id, config_id):
            raise errors.Invalid(f'Software config with id {config_id} can not be deleted as it is referenced.')

    # --- deployments ------------------------------------------------------------------------------------------

    def list_software_deployments(self, context: Caller, server_id: str | None = None) -> list[Document]:
        """The deployments of the caller's project, or of one server."""
        return [deployment_document(each) for each in self._rows.deployments(context.project_id, server_id)]

    def show_software_deployment(self, context: Caller, deployment_id: str) -> Document:
        """One deployment.

        :raises EntityNotFound: the project has no such deployment.
        """
        return deployment_document(self._deployment(context, deployment_id))

    def create_software_deployment(
        self, context: Caller, server_id: str, config_id: str | None, **values: Any
    ) -> Document:
        """Store a deployment, and return it.

        :param values: as in `update_software_deployment`.
        :raises EntityNotFound: the project has no such configuration.
        :raises Invalid: a value makes no sense.
        """
        made = SoftwareDeployment(
            self._new_id(), context.project_id, _short(server_id, 'server_id'), config_id, **_given(values)
        )
        if not self._rows.add_deployment(made):
            raise _no_config(config_id)
        return self.show_software_deployment(context, made.id)

    def update_software_deployment(self, context: Caller, deployment_id: str, **values: Any) -> Document:
        """Change a deployment, and return it. None keeps a value.

        :param values: `config_id`, `input_values`, `output_values`, `action`, `status`, `status_reason` and
            `stack_user_project_id`.
        :raises EntityNotFound: the project has no such deployment, or no such configuration.
        :raises Invalid: a value is invalid.
        """
        present = self._deployment(context, deployment_id)
        if not self._rows.change_deployment(present.project_id, deployment_id, _given(values)):
            raise _no_config(values.get('config_id'))
        return self.show_software_deployment(context, deployment_id)

    def delete_software_deployment(self, context: Caller, deployment_id: str) -> None:
        """Delete a deployment; the configuration stays.

        :raises EntityNotFound: the project has no such deployment.
        """
        present = self._deployment(context, deployment_id)
        self._rows.remove_deployment(present.project_id, deployment_id)

    def metadata_software_deployments(self, context: Caller, server_id: str) -> list[Document]:
        """The work of an agent on a server: the configurations by name, their inputs with the deployments' values."""
        pairs = [
            (each, config)
            for each in self._rows.deployments(context.project_id, server_id)
            if each.config_id is not None and (config := self._rows.config(each.project_id, each.config_id)) is not None
        ]
        return [{**told, 'creation_time': moment(config.created_at)} for config, told in for_agents(pairs)]

    # --- parts ------------------------------------------------------------------------------------------------

    def _config(self, context: Caller, config_id: str) -> SoftwareConfig:
        found = self._rows.config(context.project_id, config_id)
        if found is None:
            raise _no_config(config_id)
        return found

    def _deployment(self, context: Caller, deployment_id: str) -> SoftwareDeployment:
        found = self._rows.deployment(context.project_id, deployment_id)
        if found is None:
            raise errors.EntityNotFound(f'Deployment with id {deployment_id} not found')
        return found


def config_document(config: SoftwareConfig, *, with_content: bool = True) -> Document:
    """A configuration as callers see it."""
    document: Document = {
        'id': config.id,
        'group': config.group,
        'name': config.name,
        'creation_time': moment(config.created_at),
    }
    return {**document, **config.content} if with_content else document


def deployment_document(deployment: SoftwareDeployment) -> Document:
    """A deployment as callers see it."""
    return {
        'id': deployment.id,
        'server_id': deployment.server_id,
        'config_id': deployment.config_id,
        'input_values': deployment.input_values,
        'output_values': deployment.output_values,
        'action': deployment.action,
        'status': deployment.status,
        'status_reason': deployment.status_reason,
        'creation_time': moment(deployment.created_at),
        'updated_time': moment(deployment.updated_at),
    }


def _no_config(config_id: object) -> errors.EntityNotFound:
    return errors.EntityNotFound(f'Software config with id {config_id} not found')


def _declared(declared: Mapping[str, Json], what: str) -> dict[str, Json]:
    name = declared.get('name') if isinstance(declared, Mapping) else None
    if not isinstance(name, str) or not name:
        raise errors.Invalid(f'{what}: each must be a map with a name')
    return {'type': 'String', **declared}


def _short(text: str, what: str, longest: int = _LONGEST) -> str:
    if len(text) > longest:
        raise errors.Invalid(f'{what} must not be longer than {longest} characters')
    return text


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values to be changed."""
    given = {name: value for name, value in values.items() if value is not None}
    for name, longest in _TEXTS.items():
        _short(given.get(name, ''), name, longest)
    return given
