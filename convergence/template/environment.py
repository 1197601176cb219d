"""Environments: parameters, type mappings and policies that accompany a template."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from convergence.core.model import DriftPolicy, Json
from convergence.errors import InvalidTemplateSection
from convergence.template.document import ParsedDocument
from convergence.template.limits import Limits
from convergence.template.mappings import SECTION as MAPPINGS
from convergence.template.mappings import Mappings, read_mappings
from convergence.template.problems import Problems
from convergence.template.sources import read

NAME = 'environment'
STRATEGIES = 'parameter_merge_strategies'
VALUES = ('parameters', 'parameter_defaults')
DRIFT_POLICIES = 'drift_policies'
_MAPS = (*VALUES, MAPPINGS, STRATEGIES, DRIFT_POLICIES)
ENCRYPTED = 'encrypted_param_names'
SINKS = 'event_sinks'
WEBHOOK_SINK = 'webhook'
SECTIONS = (*_MAPS, ENCRYPTED, SINKS)

WordT = TypeVar('WordT', bound=enum.StrEnum)


class Strategy(enum.StrEnum):
    """The rule for merging two values of a parameter from environment files."""

    OVERWRITE = 'overwrite'
    MERGE = 'merge'
    DEEP_MERGE = 'deep_merge'


@dataclass(frozen=True, slots=True)
class Environment:
    """A parsed environment.

    :param parameters: values by name; the template must declare each name.
    :param defaults: values by name for parameters that the template may declare.
    :param mappings: the mappings of types.
    :param drift_policies: reactions to drift, by type.
    :param encrypted: names of parameters that are hidden, regardless of the template.
    :param sinks: names or ids of webhooks for the events of the stack.
    :param strategies: merge strategies by parameter name; ``default`` applies to the others.
    """

    document: ParsedDocument
    parameters: Mapping[str, Json] = field(default_factory=dict)
    defaults: Mapping[str, Json] = field(default_factory=dict)
    mappings: Mappings = field(default_factory=Mappings)
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    encrypted: frozenset[str] = frozenset()
    drift_policies: Mapping[str, DriftPolicy] = field(default_factory=dict)
    sinks: tuple[str, ...] = ()


def read_environment(
    source: str | Mapping[str, Any] | None, limits: Limits, problems: Problems, name: str = NAME
) -> Environment:
    """Read an environment. None and empty text are an empty one.

    :param name: name of the environment in errors.
    :raises StackValidationFailed: it cannot be read. Lesser problems are added to `problems`.
    :raises RequestLimitExceeded: too large, too deep.
    """
    document = read(source or {}, name, limits, problems)
    root = document.root
    if root is None:
        return Environment(document)
    if not isinstance(root, dict):
        document.problem('The environment must be a map of sections.', ())
        return Environment(document)
    for section, content in root.items():
        _check_section(document, section, content)
    parameters, defaults = (content if isinstance(content := root.get(section), dict) else {} for section in VALUES)
    mappings = read_mappings(document, root.get(MAPPINGS))
    names = root.get(ENCRYPTED)
    encrypted = frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
    strategies = _chosen(document, STRATEGIES, root.get(STRATEGIES), 'The merge strategy of', Strategy)
    policies = _chosen(document, DRIFT_POLICIES, root.get(DRIFT_POLICIES), 'The drift policy of the type', DriftPolicy)
    sinks = tuple(dict.fromkeys(_sinks(root.get(SINKS))))
    return Environment(document, parameters, defaults, mappings, strategies, encrypted, policies, sinks)


def _check_section(document: ParsedDocument, section: str, content: Json) -> None:
    path = (section,)
    wrong = f'environment has wrong section "{section}"'
    if section not in SECTIONS:
        hint = document.problems.suggestion(section, SECTIONS)
        document.key_problem(wrong + hint, path, InvalidTemplateSection)
    elif content is None:
        document.key_problem(f'{wrong}: it is null; give it content or remove it', path, InvalidTemplateSection)
    elif section in _MAPS:
        if not isinstance(content, dict):
            document.problem(f'The section {section} of the environment must be a map.', path)
    elif not isinstance(content, list):
        document.problem(f'The section {section} of the environment must be a list.', path)
    elif section == SINKS:
        _check_sinks(document, content)
    elif not all(isinstance(name, str) for name in content):
        document.problem(f'The section {section} must be a list of names of parameters.', path)


def _sinks(content: Json) -> Iterator[str]:
    for sink in content if isinstance(content, list) else ():
        target = sink.get('target') if isinstance(sink, dict) and sink.get('type') == WEBHOOK_SINK else None
        if isinstance(target, str):
            yield target


def _check_sinks(document: ParsedDocument, sinks: list[Json]) -> None:
    """Read the event sinks. Only webhooks are accepted, because no event would reach other sinks."""
    for index, sink in enumerate(sinks):
        type_ = sink.get('type') if isinstance(sink, dict) else None
        if not isinstance(type_, str):
            document.problem('An event sink must be a map with at least the key type.', (SINKS, index))
        elif type_ == WEBHOOK_SINK:
            target = sink.get('target') if isinstance(sink, dict) else None
            if not (isinstance(target, str) and target and isinstance(sink, dict) and len(sink) == 2):
                document.problem(
                    'An event sink of the type "webhook" has the keys type and target alone; target is the name or id '
                    'of a webhook.',
                    (SINKS, index),
                )
        else:
            message = (
                f'Event sinks of the type "{type_}" are not offered; remove the sink, or make it one of the type '
                '"webhook", whose target is the name of a webhook: convergence webhook create URL --name NAME.'
            )
            document.problem(message, (SINKS, index))


def _chosen(document: ParsedDocument, section: str, content: Json, what: str, kind: type[WordT]) -> dict[str, WordT]:
    """Return the member of an enumeration that a section chooses for each name.

    :param what: description of the choice, for the error about an unknown word.
    """
    chosen: dict[str, WordT] = {}
    for name, word in content.items() if isinstance(content, dict) else ():
        if isinstance(word, str) and word in tuple(kind):
            chosen[name] = kind(word)
            continue
        hint = document.problems.suggestion(word, kind) if isinstance(word, str) else ''
        document.problem(f'{what} {name} must be one of {", ".join(kind)}.{hint}', (section, name))
    return chosen
