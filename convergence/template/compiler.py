"""Compiles the text of a template to the definitions from which a traversal is planned."""

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
from convergence.template.incremental import ParseState, Revision
from convergence.template.installation import BARE, Installation
from convergence.template.limits import Budget, Limits, exceeded
from convergence.template.lookalikes import Lookalikes
from convergence.template.opening import open_template
from convergence.template.outputs import OutputDefinition, read_outputs
from convergence.template.parameters import OF_ALL, Parameter, StackIdentity
from convergence.template.problems import Problems
from convergence.template.secrets import hidden_values, with_secrets
from convergence.template.settled import SettledDocument
from convergence.template.sources import Copier, read
from convergence.template.substitution import substitute
from convergence.values import replace


@dataclass(frozen=True, slots=True)
class Compiled:
    """A template with its parameters filled in.

    :param version: date of the template's version.
    :param goal: the resources, in the order of the template, and the attributes that the template uses.
    :param parameters: parameters by name, pseudo parameters included.
    :param outputs: outputs by name.
    :param templates: the texts of provider templates by type name.
    :param is_personal: True if the result may depend on the name or id of the stack.
    :param parse_state: the state for an incremental parse of the next text; None if it needs a full parse.
    """

    version: str
    description: str
    goal: Goal
    parameters: Mapping[str, Parameter]
    outputs: Mapping[str, OutputDefinition]
    _document: ParsedDocument | SettledDocument = field(repr=False, compare=False)
    templates: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    is_personal: bool = False
    parse_state: ParseState | None = field(default=None, repr=False, compare=False)

    @property
    def secrets(self) -> frozenset[str]:
        """The values of hidden parameters, in the forms in which they may appear; see `convergence.secrecy`."""
        return hidden_values(self.parameters)

    @property
    def problems(self) -> Problems:
        """The errors. Only results of `analyse` can have some."""
        return self._document.problems

    @property
    def warnings(self) -> list[Problem]:
        """Probable mistakes that are no errors."""
        return self._document.problems.warnings()

    def of(self, identity: StackIdentity) -> Compiled:
        """Return the result for another stack of the project. The template must not be personal."""
        document = self._document.again() if isinstance(self._document, SettledDocument) else self._document
        return replace(self, parameters={**self.parameters, **identity.of(self.parameters)}, _document=document)

    def sharing(self, before: Goal) -> Compiled:
        """Return the result with the equal definitions of another goal, to save memory; see `Goal.sharing`."""
        own, goal, parse_state = self.goal.definitions, self.goal.sharing(before), self.parse_state
        if parse_state is not None:
            shared = {
                name: goal.definitions[name] if own[name] is each else each
                for name, each in parse_state.definitions.items()
            }
            parse_state = replace(parse_state, definitions=shared)
        return replace(self, goal=goal, parse_state=parse_state)

    def settled(self, limits: Limits) -> Compiled:
        """Return the result of a valid template at a third of its size; see `SettledDocument`.

        :param limits: the limits under which the template was read.
        """
        return replace(self, _document=SettledDocument.of(self._document, limits))

    def place(self, *path: str | int) -> Place:
        """Return the place of a value in the template, for example ``place('resources', 'web', 'properties', 'port')``.

        If the value does not exist, return the place of the nearest enclosing one.
        """
        return self._document.place(path)

    def key_place(self, *path: str | int) -> Place:
        """Return the place of the last key of a path."""
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

    :param source: YAML or JSON text, or a parsed document (errors then have no lines).
    :param identity: the stack of the template.
    :param environment: text or a parsed document; `parameters` win over its values.
    :param files: content by the name that `get_file` uses.
    :param parameters: values from the request.
    :param require_parameters: `Require.NONE` compiles without some values, to inspect a template.
    :raises StackValidationFailed: or a subclass, with all problems.
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
    """Compile a template like `compile`, but return an invalid template with its `problems`.

    Further checks can add problems, so that the author sees all of them at once. Invalid parts of the result are null
    or missing. Use such a result only to find more problems.

    :param name: name of the template in errors.
    :param undetermined: parameters whose values are not known yet; used with `Require.NONE`.
    :param facade: the known parts of the resource that the template implements: ``metadata``, ``deletion_policy``,
        ``update_policy``, and ``hidden`` for secret metadata.
    :param earlier: the result for another valid template with the same other arguments. If the texts allow it, common
        resources are not read again.
    :raises StackValidationFailed: or a subclass: the document is not a template.
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
    """The arguments of `analyse` except the template."""

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
        """Compile only the resources that differ from an earlier text.

        Return None if that is not possible, or if there is any problem: only a full parse reports its place.
        """
        limits, before = self.installation.limits, earlier.parse_state
        revision = None if before is None or earlier.warnings else Revision.of(text, before, limits)
        if revision is None:
            return None
        try:
            part = self.analysed(revision.part, revision)
        except ConvergenceError:
            return None
        parse_state = revision.whole(text, part.parse_state, limits) if part.parse_state is not None else None
        if part.problems or part.warnings or parse_state is None:
            return None
        problems = Problems()
        problems.quote(self.name, text)
        document = SettledDocument(self.name, text, limits, problems)
        personal = part.is_personal or earlier.is_personal
        return replace(part, _document=document, is_personal=personal, parse_state=parse_state)

    def analysed(self, source: str | Mapping[str, Any], revision: Revision | None = None) -> Compiled:
        """Compile a template.

        :param revision: the earlier text of which the template is a part.
        :raises NotAPart: the template is not a part of it.
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
    """Compiles a template from its parsed documents."""

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
        parse_state = ParseState.of(document, found, self._budget.spent - before)
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
            parse_state=parse_state,
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
