"""Lint rules: probable mistakes in valid templates. Pure: template in, findings out."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convergence.core.model import Definition, DeletionPolicy, Json
from convergence.errors import Problem
from convergence.template import Compiled
from convergence.template.authoring.bundle import Bundle, BundleNames
from convergence.template.authoring.check import TemplateChecker
from convergence.template.authoring.index import NameKind, TemplateIndex
from convergence.template.authoring.types import TypeCatalog
from convergence.template.document import ParsedDocument
from convergence.template.problems import Problems
from convergence.template.sources import read

PLAIN_SECRET = 'plain-secret'
_SECRET = re.compile(
    r'(?:^|[_\-.]|(?<=[a-z]))(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|private[_-]?key|api[_-]?key)$',
    re.IGNORECASE,
)
"""Matches the names of secrets."""


@dataclass(frozen=True, slots=True)
class LintRule:
    """A lint rule.

    :param id: its id for ``--ignore``.
    :param meaning: its description.
    :param find: yields the findings in a template.
    """

    id: str
    meaning: str
    find: Callable[[LintedTemplate], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class LintedTemplate:
    """A template without errors, ready for the lint rules."""

    document: ParsedDocument
    index: TemplateIndex
    compiled: Compiled
    types: TypeCatalog

    def entry(self, section: str, name: str) -> Mapping[str, Any]:
        """Return an entry of a section as written; empty if it is not a map."""
        root: Any = self.document.root
        found = (root.get(section) or root.get(section.capitalize()) or {}).get(name)
        return found if isinstance(found, dict) else {}

    def problem(self, rule: str, message: str, *path: str | int) -> Problem:
        """Return a finding at the last key of a path."""
        return Problem(message, self.document.key_place(path), kind=rule)


# --- unused ---------------------------------------------------------------------------------------------------


def _unused(rule: str, kind: NameKind, message: str) -> Callable[[LintedTemplate], Iterator[Problem]]:
    def find(subject: LintedTemplate) -> Iterator[Problem]:
        for name, declared in subject.index.declared(kind).items() if subject.index.is_whole else ():
            if not subject.index.uses(kind, name):
                yield subject.problem(rule, message.format(name=name), *declared.path)

    return find


# --- replacements ---------------------------------------------------------------------------------------------


def _replacing_parameters(subject: LintedTemplate) -> Iterator[Problem]:
    """Yield parameters whose change replaces an object. The old object is deleted with its data."""
    for definition, name, declared in _replacing(subject):
        for parameter in _parameters_in(_written(subject, definition).get(name)):
            found = subject.compiled.parameters.get(parameter)
            if found is None or found.pseudo or found.immutable:
                continue
            message = (
                f'A change of the parameter {parameter} replaces the resource {definition.name}: {declared} cannot be '
                'changed in place, and the old object is deleted. Declare the parameter immutable, or give the '
                'resource a deletion_policy.'
            )
            yield subject.problem('replacing-parameter', message, *_path(subject, definition, name))


def _replacing_attributes(subject: LintedTemplate) -> Iterator[Problem]:
    """Yield attributes of other resources whose change replaces an object."""
    for definition, name, declared in _replacing(subject):
        for other, attribute in sorted(_attributes_in(_written(subject, definition).get(name))):
            message = (
                f'A change of the attribute {attribute or "(all)"} of {other} replaces the resource {definition.name}: '
                f'{declared} cannot be changed in place, and the old object is deleted.'
            )
            yield subject.problem('replacing-attribute', message, *_path(subject, definition, name))


def _replacing(subject: LintedTemplate) -> Iterator[tuple[Definition, str, str]]:
    """Yield each property that cannot be changed in place, of resources whose old objects are deleted."""
    for definition in subject.compiled.goal.definitions.values():
        stays = definition.deletion_policy is not DeletionPolicy.DELETE or definition.external_id
        if definition.type not in subject.types or stays:
            continue
        described: Mapping[str, Any] = subject.types.describe(definition.type)['properties']
        for name in _written(subject, definition):
            about = described.get(name)
            if about is not None and not about.get('update_allowed') and not about.get('immutable'):
                yield definition, name, f'its property {name}'


def _written(subject: LintedTemplate, definition: Definition) -> Mapping[str, Any]:
    body = subject.entry('resources', definition.name)
    found = body.get('properties', body.get('Properties'))
    return found if isinstance(found, dict) else {}


def _path(subject: LintedTemplate, definition: Definition, name: str) -> tuple[str, ...]:
    if isinstance(subject.document.root, dict) and 'resources' in subject.document.root:
        return ('resources', definition.name, 'properties', name)
    return ('Resources', definition.name, 'Properties', name)


def _calls(node: Json) -> Iterator[tuple[str, Json]]:
    pending = [node]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if len(value) == 1:
                yield next(iter(value.items()))
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _parameters_in(node: Json) -> list[str]:
    first = [
        each[0] if isinstance(each, list) and each else each
        for name, each in _calls(node)
        if name in ('get_param', 'Ref')
    ]
    return sorted({each for each in first if isinstance(each, str)})


def _attributes_in(node: Json) -> set[tuple[str, str]]:
    found = set()
    for name, each in _calls(node):
        parts = each.split('.', 1) if name == 'Fn::GetAtt' and isinstance(each, str) else each
        if name in ('get_attr', 'Fn::GetAtt') and isinstance(parts, list) and parts:
            found.add((str(parts[0]), str(parts[1]) if len(parts) > 1 else ''))
    return found


# --- secrets --------------------------------------------------------------------------------------------------


def _plain_secrets(subject: LintedTemplate) -> Iterator[Problem]:
    """Yield secrets that are written into the template. The findings do not contain the values."""
    for definition in subject.compiled.goal.definitions.values():
        is_known = definition.type in subject.types
        secret = subject.types.secret_properties(definition.type) if is_known else frozenset()
        for name, value in _written(subject, definition).items():
            if (name in secret or _SECRET.search(name)) and _is_literal(value):
                message = (
                    f'The property {name} of {definition.name} is a secret, and all readers of the template see it. '
                    'Use a parameter with "hidden: true".'
                )
                yield subject.problem(PLAIN_SECRET, message, *_path(subject, definition, name))
    for name, parameter in subject.compiled.parameters.items():
        if parameter.hidden and not parameter.pseudo and parameter.default not in (None, ''):
            message = (
                f'The default of the hidden parameter {name} is visible to all readers of the template. Remove it.'
            )
            yield subject.problem(PLAIN_SECRET, message, *subject.index.declared(NameKind.PARAMETER)[name].path)


def _shown_secrets(subject: LintedTemplate) -> Iterator[Problem]:
    """Yield parameters with the name of a secret that are not hidden."""
    for name, parameter in subject.compiled.parameters.items():
        if not parameter.pseudo and not parameter.hidden and _SECRET.search(name):
            message = f'The parameter {name} looks like a secret, but its value is shown. Declare it "hidden: true".'
            yield subject.problem('shown-secret', message, *subject.index.declared(NameKind.PARAMETER)[name].path)


def _is_literal(value: Json) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ''


RULES = (
    LintRule(
        'unused-parameter',
        'An unused parameter.',
        _unused('unused-parameter', NameKind.PARAMETER, 'The parameter {name} is never used.'),
    ),
    LintRule(
        'unused-condition',
        'An unused condition.',
        _unused('unused-condition', NameKind.CONDITION, 'The condition {name} is never used.'),
    ),
    LintRule(
        'unused-mapping',
        'An unused mapping.',
        _unused('unused-mapping', NameKind.MAPPING, 'The mapping {name} is never used.'),
    ),
    LintRule('replacing-parameter', 'A parameter whose change deletes an object.', _replacing_parameters),
    LintRule('replacing-attribute', 'An attribute whose change deletes an object.', _replacing_attributes),
    LintRule(PLAIN_SECRET, 'A secret in the text of the template.', _plain_secrets),
    LintRule('shown-secret', 'A parameter that looks like a secret and is not hidden.', _shown_secrets),
)


def lint(subject: LintedTemplate, ignored: frozenset[str] = frozenset()) -> list[Problem]:
    """Return the findings of the rules, in the order of the template.

    :param ignored: ids of rules to leave out.
    """
    found = [problem for rule in RULES if rule.id not in ignored for problem in rule.find(subject)]
    return sorted(found, key=lambda each: (each.place.line, each.place.column) if each.place else (0, 0))


@dataclass(frozen=True, slots=True)
class LintResult:
    """The result of linting one file.

    :param name: its path.
    :param errors: problems for which an engine refuses the template; `warnings`: problems that an engine accepts.
    """

    name: str
    errors: Sequence[Problem]
    warnings: Sequence[Problem]

    def problems(self) -> Iterator[tuple[str, Problem]]:
        """Yield all problems, each with its severity."""
        yield from (('error', each) for each in self.errors)
        yield from (('warning', each) for each in self.warnings)


def lint_bundle(checker: TemplateChecker, bundle: Bundle, ignored: frozenset[str] = frozenset()) -> LintResult:
    """Check a template, and apply the lint rules if it has no errors.

    :param ignored: ids of rules to leave out.
    """
    findings = checker.check(bundle)
    found: list[Problem] = []
    if findings.compiled is not None and not findings.errors:
        document = read(bundle.text, 'template', checker.installation.limits, Problems())
        subject = LintedTemplate(document, TemplateIndex(document), findings.compiled, checker.types)
        named = [BundleNames(bundle).give(problem) for problem in lint(subject, ignored)]
        # The excerpt of a plain secret would copy it into the log of a build.
        found = [dataclasses.replace(each, excerpt='') if each.kind == PLAIN_SECRET else each for each in named]
    return LintResult(bundle.name, findings.errors, [*findings.warnings, *found])
