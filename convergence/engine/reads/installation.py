"""Reads templates, resource types and the processes of the installation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from convergence import errors
from convergence.core.model import Json
from convergence.db.null_ports import NO_CREDENTIALS
from convergence.db.ports import CredentialsPort, RosterPort
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.callers.credentials import SuppliedCredentials
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.goal_rows import template_description
from convergence.engine.compile.nested_preview import PreviewedStack
from convergence.engine.compile.submission import Submission
from convergence.engine.questions.inquiry import Doubt, Inquiry, doubts
from convergence.engine.questions.worker_questions import WANTS_CREDENTIALS, QuestionsPort
from convergence.engine.reads import formats
from convergence.resources.attributes import ABOUT_SHOW, SHOW
from convergence.resources.generation import TemplateLanguage, generate
from convergence.resources.registry import Registry
from convergence.resources.services import UNAVAILABLE, unavailable
from convergence.resources.support import Status
from convergence.template import Compiled
from convergence.template.functions.base import description_of
from convergence.template.limits import STANDARD, Budget
from convergence.template.parameters import StackIdentity
from convergence.template.patterns import BadPattern, Pattern
from convergence.template.versions import DIALECTS, by_full_name


class InstallationReads:
    """Reading operations that concern no stack.

    :param version: of this installation.
    :param has_database: returns True if this engine has reached its database within its lease.
    :param workers: sends questions to resource types; None: no questions.
    :param credentials: the rows of credentials that requests supply.
    """

    def __init__(
        self,
        compiler: TemplateCompiler,
        registry: Registry,
        roster: RosterPort,
        version: str,
        has_database: Callable[[], bool] = lambda: True,
        workers: QuestionsPort | None = None,
        credentials: CredentialsPort = NO_CREDENTIALS,
    ) -> None:
        self._workers = workers
        self._credentials = credentials
        self._has_database = has_database
        self._compiler = compiler
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
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Validate a template, and show its declarations. Parameters need no values.

        Resource types also check if objects with the given properties can exist, where all values are known. A check
        that could not be made is a warning.

        :param params: an environment.
        :param environment_files: names among the `files`; their merged content overrides `params`.
        :param show_nested: also show the declarations of nested templates: ``NestedParameters``, by resource.
        :param ignorable_errors: numbers of errors to ignore; 99001: a resource type is unknown.
        :param credentials: supplied by this request; types query their services with them.
        :returns: with `WANTS_CREDENTIALS` in it if credentials would allow more checks.
        :raises StackValidationFailed: carries all problems of the template.
        :raises Invalid: a number is that of no error.
        """
        ignored = _ignored(ignorable_errors)
        submission = self._compiler.submissions.read(template, params, files, environment_files)
        compiled, warnings = self._compiler.validator.inspect(
            context.project_id or '',
            submission,
            Permits.of(context),
            ignore_unknown_types=UNAVAILABLE in ignored,
        )
        document = self._declared(compiled, template)
        document['Environment'] = formats.sent_environment(submission.environment, compiled.parameters)
        if show_nested:
            foreseen = self._compiler.analyser.nested_preview.stacks(compiled, submission, context.project_id or '')
            nested = self._nested_parameters(foreseen)
            document |= {'NestedParameters': nested} if nested else {}
        lent = SuppliedCredentials.of(self._credentials, context.project_id, credentials)
        inquiry = Inquiry(credentials_id=lent.id if lent is not None else '')
        warnings += self._doubts(context, compiled, submission, inquiry)
        if inquiry.wants_credentials:
            document[WANTS_CREDENTIALS] = True
        if warnings:
            document['Warnings'] = [problem.document() for problem in warnings]
        return document

    def _doubts(
        self, context: Caller, compiled: Compiled, submission: Submission, inquiry: Inquiry
    ) -> list[errors.Problem]:
        """The checks of resource types that could not be made.

        :raises StackValidationFailed: a type says that no such object can exist; carries all such answers.
        """
        if self._workers is None:
            return []
        project_id = context.project_id or ''
        whole = [compiled, *_all(self._compiler.analyser.nested_preview.stacks(compiled, submission, project_id))]

        def doubted() -> list[Doubt]:
            identity = StackIdentity('', '', project_id)
            return [each for one in whole for each in doubts(one, identity, self._registry, inquiry)]

        doubted()
        inquiry.ask(self._workers, context)
        found = doubted()
        refused = [each.problem for each in found if each.is_certain]
        if refused:
            raise errors.StackValidationFailed(refused)
        return [each.problem for each in found]

    def _declared(self, compiled: Compiled, source: str | Mapping[str, Json]) -> Document:
        document: Document = {
            'Description': template_description(compiled),
            'Parameters': {
                name: formats.parameter_schema(parameter)
                for name, parameter in compiled.parameters.items()
                if not parameter.pseudo
            },
        }
        whole = self._compiler.submissions.document(source)
        groups = whole.get('parameter_groups') or whole.get('ParameterGroups')
        return {**document, 'ParameterGroups': groups} if groups else document

    def _nested_parameters(self, foreseen: Iterable[PreviewedStack]) -> Document:
        """The declarations of nested templates, by the names of their resources."""
        documents: Document = {}
        for each in foreseen:
            below = self._nested_parameters(each.below)
            documents[each.definition.name] = {
                'Type': each.definition.shown_type,
                **self._declared(each.compiled, each.submission.template),
                **({'NestedParameters': below} if below else {}),
            }
        return documents

    def list_resource_types(
        self,
        context: Caller,
        support_status: str | None = None,
        type_name: str | None = None,
        with_description: bool = False,
    ) -> list[Any]:
        """The names of the types that the caller may use, sorted; with descriptions, maps of name and description.

        :param support_status: only types of this status; by default all that are not ``HIDDEN``.
        :param type_name: a regular expression that the beginning of the name matches.
        :raises Invalid: `type_name` is no usable regular expression, or there is no such status.
        """
        permits = Permits.of(context)
        names: Sequence[str] = [
            name for name in self._registry.names() if permits.allows(name) and self._is_listed(name, support_status)
        ]
        if type_name:
            names = _beginning_with(type_name, names)
        if not with_description:
            return list(names)
        return [{'resource_type': name, 'description': self._registry.describe(name)['description']} for name in names]

    def _is_listed(self, name: str, wanted: str | None) -> bool:
        status = self._registry.get(name).support.status
        if wanted is None:
            return status is not Status.HIDDEN
        if wanted.upper() not in tuple(Status):
            raise errors.Invalid(f'Invalid support status and should be one of {", ".join(Status)}')
        return status == wanted.upper()

    def resource_schema(self, context: Caller, type_name: str, with_description: bool = False) -> Document:
        """Properties and attributes of a resource type.

        :raises Forbidden: the caller may not use it.
        :raises EntityNotFound: there is no such type.
        :raises ResourceTypeUnavailable: the service that it belongs to is not there.
        """
        Permits.of(context).require(type_name)
        self._require_service(type_name)
        described: dict[str, Any] = dict(self._registry.describe(type_name))
        described['attributes'] = {**described['attributes'], SHOW: ABOUT_SHOW}
        if not with_description:
            described.pop('description')
        return described

    def generate_template(self, context: Caller, type_name: str, template_type: str = 'cfn') -> Document:
        """A template with one resource of a type; its properties are parameters, its attributes outputs.

        :param template_type: ``hot`` or ``cfn``.
        :raises EntityNotFound: there is no such type.
        :raises Invalid: there is no such language.
        :raises Forbidden: the caller may not use it.
        :raises ResourceTypeUnavailable: the service that it belongs to is not there.
        """
        Permits.of(context).require(type_name)
        self._require_service(type_name)
        if template_type not in tuple(TemplateLanguage):
            raise errors.Invalid(f'template_type: {template_type!r} is not one of {", ".join(TemplateLanguage)}')
        return generate(type_name, self._registry.get(type_name), TemplateLanguage(template_type))

    def _require_service(self, type_name: str) -> None:
        service = self._registry.missing_service(type_name)
        if service is not None:
            raise errors.ResourceTypeUnavailable(unavailable(type_name, service))

    def list_template_versions(self, context: Caller) -> list[Document]:
        """The versions of the template language, in the order in which they came."""
        return [
            {
                'version': f'{key}.{version.date}',
                'type': 'cfn' if version.is_cloud else 'hot',
                'aliases': [f'{key}.{version.alias}'] if version.alias else [],
            }
            for key, versions in DIALECTS.items()
            for name, version in versions.items()
            if name == version.date
        ]

    def list_template_functions(
        self, context: Caller, template_version: str, with_condition: bool = False
    ) -> list[Document]:
        """The functions of a version of the language, with descriptions.

        :param with_condition: also functions that only conditions can use.
        :raises EntityNotFound: there is no such version.
        """
        version = by_full_name().get(template_version)
        if version is None:
            raise errors.EntityNotFound('Template version', template_version)
        functions = {**version.conditions, **version.functions} if with_condition else version.functions
        return [
            {'functions': name, 'description': description_of(function)} for name, function in sorted(functions.items())
        ]

    def list_services(self, context: Caller) -> list[Document]:
        """The processes of the installation, with their state."""
        return [formats.service(row) for row in self._roster.services()]

    def get_revision(self, context: Caller) -> str:
        """The version of this installation. Readiness probes use it: only an engine that can work answers.

        :raises DatabaseUnavailable: no heartbeat of this engine was stored within its lease.
        """
        if not self._has_database():
            raise errors.DatabaseUnavailable(
                'This engine has not reached its database for longer than [engine] lease_s; its log says why.'
            )
        return self._version


def _all(stacks: Iterable[PreviewedStack]) -> Iterator[Compiled]:
    """All nested templates, on every level."""
    for each in stacks:
        yield each.compiled
        yield from _all(each.below)


def _ignored(numbers: Sequence[str] | None) -> frozenset[str]:
    """The numbers of errors that shall be none."""
    found = frozenset(str(number).strip() for number in numbers or ())
    unknown = sorted(found - {UNAVAILABLE})
    if unknown:
        raise errors.Invalid(
            f'Invalid codes in ignore_errors : {unknown}; only {UNAVAILABLE} (a resource type is not there) '
            'can be ignored'
        )
    return found


def _beginning_with(expression: str, names: Sequence[str]) -> list[str]:
    """The names that match. In linear time: the expression comes from a user."""
    try:
        pattern = Pattern(f'(?:{expression}).*')
    except BadPattern as error:
        shown = expression[:100]
        raise errors.Invalid(f'type_name: {shown!r} cannot be used as a regular expression: {error}') from None
    budget = Budget(STANDARD)
    return [name for name in names if pattern.matches(name, budget)]
