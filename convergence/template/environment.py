"""Environments: what travels with a template and says how it is to be understood here."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
SECTIONS = (*_MAPS, ENCRYPTED, 'event_sinks')


class Strategy(enum.StrEnum):
    """What becomes of two values of a parameter when environment files are merged."""

    OVERWRITE = 'overwrite'
    MERGE = 'merge'
    DEEP_MERGE = 'deep_merge'


@dataclass(frozen=True, slots=True)
class Environment:
    """What an environment says.

    :param parameters: values, by name; each name must be declared.
    :param defaults: values for those that the template happens to declare.
    :param mappings: which type stands for which.
    :param drift_policies: by type; what it leads to that objects are found otherwise than they were made.
    :param encrypted: names of parameters that are hidden, whatever the template says.
    :param strategies: how the parameters are merged with those of files before, by name; ``default`` is for the others.
    """

    document: ParsedDocument
    parameters: Mapping[str, Json] = field(default_factory=dict)
    defaults: Mapping[str, Json] = field(default_factory=dict)
    mappings: Mappings = field(default_factory=Mappings)
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    encrypted: frozenset[str] = frozenset()
    drift_policies: Mapping[str, DriftPolicy] = field(default_factory=dict)


def read_environment(
    source: str | Mapping[str, Any] | None, limits: Limits, problems: Problems, name: str = NAME
) -> Environment:
    """The environment. None and empty text are an empty one.

    :param name: what to call it in errors.
    :raises StackValidationFailed: nothing can be made of it. Lesser problems are added to `problems`.
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
    strategies, policies = _strategies(document, root.get(STRATEGIES)), _policies(document, root.get(DRIFT_POLICIES))
    return Environment(document, parameters, defaults, mappings, strategies, encrypted, policies)


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
    elif section == 'event_sinks':
        _refuse_sinks(document, content)
    elif not all(isinstance(name, str) for name in content):
        document.problem(f'The section {section} must be a list of names of parameters.', path)


def _refuse_sinks(document: ParsedDocument, sinks: list[Json]) -> None:
    """Accepting a sink that no event reaches would be a promise nobody keeps."""
    for index, sink in enumerate(sinks):
        type_ = sink.get('type') if isinstance(sink, dict) else None
        if not isinstance(type_, str):
            document.problem('An event sink must be a map with at least the key type.', ('event_sinks', index))
        else:
            message = (
                f'Event sinks of the type "{type_}" are not offered; remove the sink. A webhook tells what happens to '
                'a stack: convergence webhook create URL --stack STACK.'
            )
            document.problem(message, ('event_sinks', index))


def _policies(document: ParsedDocument, section: Json) -> dict[str, DriftPolicy]:
    policies: dict[str, DriftPolicy] = {}
    for name, word in section.items() if isinstance(section, dict) else ():
        if isinstance(word, str) and word in tuple(DriftPolicy):
            policies[name] = DriftPolicy(word)
            continue
        hint = document.problems.suggestion(word, DriftPolicy) if isinstance(word, str) else ''
        message = f'The drift policy of the type {name} must be one of {", ".join(DriftPolicy)}.{hint}'
        document.problem(message, (DRIFT_POLICIES, name))
    return policies


def _strategies(document: ParsedDocument, section: Json) -> dict[str, Strategy]:
    strategies: dict[str, Strategy] = {}
    for name, word in section.items() if isinstance(section, dict) else ():
        if isinstance(word, str) and word in tuple(Strategy):
            strategies[name] = Strategy(word)
            continue
        hint = document.problems.suggestion(word, Strategy) if isinstance(word, str) else ''
        message = f'The merge strategy of {name} must be one of {", ".join(Strategy)}.{hint}'
        document.problem(message, (STRATEGIES, name))
    return strategies
