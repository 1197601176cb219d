"""From the text of a template to definitions that a traversal can be planned from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Goal, Json
from convergence.errors import ConvergenceError, Place, Problem
from convergence.template.assignment import Assignment, Require
from convergence.template.conditions import Conditions
from convergence.template.declarations import check_groups, declared
from convergence.template.definitions import Definitions
from convergence.template.document import ParsedDocument
from convergence.template.environment import Environment, read_environment
from convergence.template.folding import Folder
from convergence.template.functions.base import Compiling
from convergence.template.installation import BARE, Installation
from convergence.template.limits import Budget, Limits, exceeded
from convergence.template.lookalikes import Lookalikes
from convergence.template.opening import open_template
from convergence.template.outputs import OutputDefinition, read_outputs
from convergence.template.parameters import OF_ALL, Parameter, StackIdentity
from convergence.template.problems import Problems
from convergence.template.revision import AsRead, Revision
from convergence.template.secrets import hidden_values, with_secrets
from convergence.template.settled import SettledDocument
from convergence.template.sources import Copier, read
from convergence.template.substitution import substitute
from convergence.values import replace


@dataclass(frozen=True, slots=True)
class Compiled:
    """A template with its parameters filled in.

    :param version: date of the template's version.
    :param goal: the resources, in the order of the template, and which attributes are asked of them.
    :param parameters: by name, pseudo parameters included.
    :param outputs: by name.
    :param templates: the texts of the templates that resources are, by their types.
    :param is_personal: whether anything in it may depend on which stack of the project it is for.
    :param as_read: what another text may have in common with it; None where that is not told by its lines.
    """

    version: str
    description: str
    goal: Goal
    parameters: Mapping[str, Parameter]
    outputs: Mapping[str, OutputDefinition]
    _document: ParsedDocument | SettledDocument = field(repr=False, compare=False)
    templates: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    is_personal: bool = False
    as_read: AsRead | None = field(default=None, repr=False, compare=False)

    @property
    def secrets(self) -> frozenset[str]:
        """The values of hidden parameters, as texts in which they may turn up; see `convergence.secrecy`."""
        return hidden_values(self.parameters)

    @property
    def problems(self) -> Problems:
        """What is wrong. Empty, unless it comes from `analyse`."""
        return self._document.problems

    @property
    def warnings(self) -> list[Problem]:
        """What is no error, but probably not meant so."""
        return self._document.problems.warnings()

    def of(self, identity: StackIdentity) -> Compiled:
        """The same for another stack of the project, of a template that is not personal."""
        document = self._document.again() if isinstance(self._document, SettledDocument) else self._document
        return replace(self, parameters={**self.parameters, **identity.of(self.parameters)}, _document=document)

    def sharing(self, before: Goal) -> Compiled:
        """The same, with the definitions of another goal themselves where they say the same; see `Goal.sharing`."""
        own, goal, as_read = self.goal.definitions, self.goal.sharing(before), self.as_read
        if as_read is not None:
            shared = {
                name: goal.definitions[name] if own[name] is each else each
                for name, each in as_read.definitions.items()
            }
            as_read = replace(as_read, definitions=shared)
        return replace(self, goal=goal, as_read=as_read)

    def settled(self, limits: Limits) -> Compiled:
        """The same of a template in which nothing is wrong, a third as large; see `SettledDocument`.

        :param limits: those under which it was read.
        """
        return replace(self, _document=SettledDocument.of(self._document, limits))

    def place(self, *path: str | int) -> Place:
        """Where something stands in the template, for example ``place('resources', 'web', 'properties', 'port')``.

        The nearest thing around it if it is not there itself.
        """
        return self._document.place(path)

    def key_place(self, *path: str | int) -> Place:
        """Where the key at the end of a path stands."""
        return self._document.key_place(path)


def compile(
    source: str | Mapping[str, Any],
    *,
    identity: StackIdentity,
    environment: str | Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    parameters: Mapping[str, Json] | None = None,
    installation: Installation = BARE,
    require_parameters: Require = Require.ALL,
) -> Compiled:
    """Read a template, check it, and evaluate everything that does not depend on resources.

    :param source: YAML or JSON text, or what such text describes (errors then have no lines).
    :param identity: whose template it is.
    :param environment: in the same forms; its values yield to `parameters`.
    :param files: content by the name that `get_file` uses.
    :param parameters: values that came with the request.
    :param require_parameters: `Require.NONE` compiles without some values, to look at a template.
    :raises StackValidationFailed: or a subclass, with every problem that was found.
    :raises RequestLimitExceeded: a limit is exceeded; the text names it.
    """
    compiled = analyse(
        source,
        identity=identity,
        environment=environment,
        files=files,
        parameters=parameters,
        installation=installation,
        require_parameters=require_parameters,
    )
    compiled.problems.raise_any()
    return compiled


def analyse(
    source: str | Mapping[str, Any],
    *,
    identity: StackIdentity,
    environment: str | Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    parameters: Mapping[str, Json] | None = None,
    installation: Installation = BARE,
    require_parameters: Require = Require.ALL,
    name: str = 'template',
    undetermined: Collection[str] = (),
    facade: Mapping[str, Json] | None = None,
    earlier: Compiled | None = None,
) -> Compiled:
    """Like `compile`, but what can be understood of a wrong template is given back with its `problems`.

    So further checks can add what they find, and the author is told everything at once. Where something is wrong,
    the result has null or nothing; it must not be used for anything but looking for more problems.

    :param name: what to call the template in errors.
    :param undetermined: parameters that will have a value which nobody knows yet; used with `Require.NONE`.
    :param facade: what is known of the resource that the template stands for: its ``metadata``, ``deletion_policy`` and
        ``update_policy``, and whether the metadata are ``hidden``.
    :param earlier: what was compiled from another template that is right, and from all else that is given here. What
        both have in common is not read again, where the text is such that it can be told.
    :raises StackValidationFailed: or a subclass: it is no template, so there is nothing to look at.
    :raises RequestLimitExceeded: a limit is exceeded; the text names it.
    """
    request = _Request(
        identity,
        environment,
        files or {},
        parameters or {},
        installation,
        require_parameters,
        name,
        undetermined,
        facade or {},
    )
    revised = request.revised(source, earlier) if earlier is not None and isinstance(source, str) else None
    return request.analysed(source) if revised is None else revised


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of `analyse`, but for the template itself."""

    identity: StackIdentity
    environment: str | Mapping[str, Any] | None
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    installation: Installation
    require: Require
    name: str
    undetermined: Collection[str]
    facade: Mapping[str, Json]

    def revised(self, text: str, earlier: Compiled) -> Compiled | None:
        """What a text is compiled to by reading what differs from an earlier one.

        None where that cannot be done, or where anything is wrong or warned of: who reads it as a whole gets to know
        what, and where.
        """
        limits, before = self.installation.limits, earlier.as_read
        revision = None if before is None or earlier.warnings else Revision.of(text, before, limits)
        if revision is None:
            return None
        try:
            part = self.analysed(revision.part, revision)
        except ConvergenceError:
            return None
        as_read = revision.whole(text, part.as_read, limits) if part.as_read is not None else None
        if part.problems or part.warnings or as_read is None:
            return None
        problems = Problems()
        problems.quote(self.name, text)
        document = SettledDocument(self.name, text, limits, problems)
        personal = part.is_personal or earlier.is_personal
        return replace(part, _document=document, is_personal=personal, as_read=as_read)

    def analysed(self, source: str | Mapping[str, Any], revision: Revision | None = None) -> Compiled:
        """What a template is compiled to.

        :param revision: the template is what is left to read of another one.
        :raises NoPart: it is not.
        """
        problems = Problems()
        limits = self.installation.limits
        budget = Budget(limits)
        if revision is not None:
            budget.spend(revision.earlier.spent, self.name)
        limits.check_names('parameters', self.parameters)
        limits.check_names('files', self.files)
        document = read(source, self.name, limits, problems)
        given = Copier('parameters of the request', limits, problems).copy(dict(self.parameters))
        assert isinstance(given, dict)
        environment = read_environment(self.environment, limits, problems)
        limits.check_names('parameters in the environment', environment.parameters, environment.defaults)
        assignment = Assignment(document, environment, given, budget, self.undetermined)
        return _Compilation(document, budget, self).run(environment, assignment, revision)


class _Compilation:
    """What is made of a template after the documents have been read."""

    def __init__(self, document: ParsedDocument, budget: Budget, request: _Request) -> None:
        self._document = document
        self._budget = budget
        self._request = request
        self._installation = request.installation

    def run(self, environment: Environment, assignment: Assignment, revision: Revision | None) -> Compiled:
        opened = open_template(self._document)
        document, version, maps = opened.document, opened.version, opened.maps
        if revision is not None:
            revision.refuse_other(opened.root)
        names = maps['resources'] if revision is None else revision.names
        self._check_count(len(names))
        self._budget.limits.check_names('parameters of the template', maps['parameters'])
        declarations = declared(document, maps['parameters'], version, self._installation)
        check_groups(document, opened.root.get('parameter_groups'), declarations)
        identity = self._request.identity
        values = assignment.assign(declarations, self._request.require)
        values |= identity.cloud_parameters() if version.is_cloud else identity.parameters()
        scope = self._scope(values, names, maps['mappings'])
        lookalikes = Lookalikes(document, version)
        conditions = Conditions(document, version, lookalikes)
        conditions.declare(maps['conditions'], scope)
        definitions = Definitions(
            document, version, Folder(document, version.functions, conditions.read, lookalikes), conditions
        )
        before, files = self._budget.spent, self._request.files
        found = definitions.read(maps['resources'], scope, revision.unchanged if revision is not None else {})
        as_read = AsRead.of(document, found, self._budget.spent - before)
        goal = substitute(found, document, environment, files, self._budget)
        goal = with_secrets(goal, values, self._installation.secret_policy)
        outputs = read_outputs(maps['outputs'], definitions, scope)
        asked = {name: tuple(sorted(definitions.asked[name])) for name in goal if name in definitions.asked}
        templates = {found.type: files[found.type] for found in goal.values() if found.type in files}
        return Compiled(
            version.date,
            opened.description(),
            Goal(goal, asked),
            values,
            outputs,
            document,
            templates,
            is_personal=not scope.of_the_stack <= OF_ALL,
            as_read=as_read,
        )

    def _scope(
        self, values: Mapping[str, Parameter], names: Mapping[str, object], mappings: Mapping[str, Json]
    ) -> Compiling:
        return Compiling(
            values,
            self._request.files,
            names,
            self._budget,
            self._document.problems.suggestion,
            '',
            mappings=mappings,
            yaql=self._installation.yaql,
            inspecting=self._request.require is Require.NONE,
            facade=self._request.facade,
        )

    def _check_count(self, count: int) -> None:
        limit = self._budget.limits.max_resources
        if count > limit:
            raise exceeded(
                'max_resources', limit, f'the template has {count} resources', self._document.key_place(('resources',))
            )
