"""What callers may ask about templates, resource types and the processes of the installation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convergence import errors
from convergence.core.model import Json
from convergence.db.roster import Roster
from convergence.engine import formats
from convergence.engine.formats import Document
from convergence.engine.goals import Goals, Submission
from convergence.engine.reading import Caller
from convergence.resources.registry import Registry
from convergence.template.limits import STANDARD, Budget
from convergence.template.patterns import BadPattern, Pattern


class InstallationReads:
    """Questions that concern no stack.

    :param version: of this installation.
    """

    def __init__(self, goals: Goals, registry: Registry, roster: Roster, version: str) -> None:
        self._goals = goals
        self._registry = registry
        self._roster = roster
        self._version = version

    def validate_template(
        self,
        context: Caller,
        template: str | Mapping[str, Json],
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        environment_files: Sequence[str] | None = None,
        show_nested: bool = False,
        ignorable_errors: Sequence[str] | None = None,
    ) -> Document:
        """What a template declares; parameters need no values.

        :param params: an environment.
        :param environment_files: refused unless empty; their content has to be merged into `params`.
        :param show_nested: accepted; there are no nested stacks.
        :param ignorable_errors: accepted; no error here has a number.
        :raises StackValidationFailed: carries everything that is wrong with the template.
        """
        if environment_files:
            raise errors.NotSupported('environment_files: merge the environment files before sending the request.')
        submission = Submission(template, dict(params or {}), dict(files or {}))
        compiled = self._goals.inspect(context.project_id or '', submission)
        document: Document = {
            'Description': compiled.description,
            'Parameters': {
                name: formats.parameter_schema(parameter)
                for name, parameter in compiled.parameters.items()
                if not parameter.pseudo
            },
            'Environment': formats.environment(submission.environment, compiled.parameters),
        }
        groups = self._goals.document(template).get('parameter_groups')
        if groups:
            document['ParameterGroups'] = groups
        return document

    def list_resource_types(
        self,
        context: Caller,
        support_status: str | None = None,
        type_name: str | None = None,
        with_description: bool = False,
    ) -> list[Any]:
        """The names of the resource types, sorted; with descriptions, maps of name and description.

        :param support_status: what is offered here is all ``SUPPORTED``.
        :param type_name: a regular expression for the beginning of the name.
        :raises Invalid: `type_name` is no regular expression that can be used.
        """
        names: Sequence[str] = self._registry.names()
        if support_status is not None and support_status.upper() != 'SUPPORTED':
            names = []
        if type_name:
            names = _beginning_with(type_name, names)
        if not with_description:
            return list(names)
        return [
            {'resource_type': name, 'description': self._registry.describe(name)['description']} for name in names
        ]

    def resource_schema(self, context: Caller, type_name: str, with_description: bool = False) -> Document:
        """Properties and attributes of a resource type.

        :raises EntityNotFound: there is no such type.
        """
        described = dict(self._registry.describe(type_name))
        if not with_description:
            described.pop('description')
        return described

    def list_services(self, context: Caller) -> list[Document]:
        """The processes of the installation, and whether they are alive."""
        return [formats.service(row) for row in self._roster.services()]

    def get_revision(self, context: Caller) -> str:
        """The version of this installation."""
        return self._version


def _beginning_with(expression: str, names: Sequence[str]) -> list[str]:
    """The names that match. In linear time: the expression comes from a user."""
    try:
        pattern = Pattern(f'(?:{expression}).*')
    except BadPattern as error:
        shown = expression[:100]
        raise errors.Invalid(f'type_name: {shown!r} cannot be used as a regular expression: {error}') from None
    budget = Budget(STANDARD)
    return [name for name in names if pattern.matches(name, budget)]
