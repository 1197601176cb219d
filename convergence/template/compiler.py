"""From the text of a template to definitions that a traversal can be planned from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Goal, Json
from convergence.errors import Place, Problem
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
    :param is_personal: whether anything in it depends on which stack of the project it is for.
    """

    version: str
    description: str
    goal: Goal
    parameters: Mapping[str, Parameter]
    outputs: Mapping[str, OutputDefinition]
    _document: ParsedDocument | SettledDocument = field(repr=False, compare=False)
    templates: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    is_personal: bool = False

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
) -> Compiled:
    """Like `compile`, but what can be understood of a wrong template is given back with its `problems`.

    So further checks can add what they find, and the author is told everything at once. Where something is wrong,
    the result has null or nothing; it must not be used for anything but looking for more problems.

    :param name: what to call the template in errors.
    :param undetermined: parameters that will have a value which nobody knows yet; used with `Require.NONE`.
    :param facade: what is known of the resource that the template stands for: its ``metadata``, ``deletion_policy`` and
        ``update_policy``, and whether the metadata are ``hidden``.
    :raises StackValidationFailed: or a subclass: it is no template, so there is nothing to look at.
    :raises RequestLimitExceeded: a limit is exceeded; the text names it.
    """
    problems = Problems()
    limits = installation.limits
    budget = Budget(limits)
    limits.check_names('parameters', parameters or {})
    limits.check_names('files', files or {})
    document = read(source, name, limits, problems)
    given = Copier('parameters of the request', limits, problems).copy(dict(parameters or {}))
    assert isinstance(given, dict)
    read_from = read_environment(environment, limits, problems)
    limits.check_names('parameters in the environment', read_from.parameters, read_from.defaults)
    assignment = Assignment(document, read_from, given, budget, undetermined)
    compilation = _Compilation(document, budget, identity, installation, facade or {})
    return compilation.run(read_from, assignment, files or {}, require_parameters)


class _Compilation:
    """One call of `compile`, after the documents have been read."""

    def __init__(
        self,
        document: ParsedDocument,
        budget: Budget,
        identity: StackIdentity,
        installation: Installation,
        facade: Mapping[str, Json],
    ) -> None:
        self._facade = facade
        self._document = document
        self._budget = budget
        self._identity = identity
        self._installation = installation

    def run(
        self, environment: Environment, assignment: Assignment, files: Mapping[str, str], require: Require
    ) -> Compiled:
        opened = open_template(self._document)
        document, version, maps = opened.document, opened.version, opened.maps
        self._check_count(len(maps['resources']))
        self._budget.limits.check_names('parameters of the template', maps['parameters'])
        declarations = declared(document, maps['parameters'], version, self._installation)
        check_groups(document, opened.root.get('parameter_groups'), declarations)
        values = assignment.assign(declarations, require)
        values |= self._identity.cloud_parameters() if version.is_cloud else self._identity.parameters()
        scope = Compiling(
            values,
            files,
            maps['resources'],
            self._budget,
            document.problems.suggestion,
            '',
            mappings=maps['mappings'],
            yaql=self._installation.yaql,
            inspecting=require is Require.NONE,
            facade=self._facade,
        )
        lookalikes = Lookalikes(document, version)
        conditions = Conditions(document, version, lookalikes)
        conditions.declare(maps['conditions'], scope)
        folder = Folder(document, version.functions, conditions.read, lookalikes)
        definitions = Definitions(document, version, folder, conditions)
        goal = definitions.read(maps['resources'], scope)
        goal = substitute(goal, document, environment, files, self._budget)
        goal = with_secrets(goal, values, self._installation.discretion)
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
        )

    def _check_count(self, count: int) -> None:
        limit = self._budget.limits.max_resources
        if count > limit:
            raise exceeded(
                'max_resources', limit, f'the template has {count} resources', self._document.key_place(('resources',))
            )
