"""Tracks the values of hidden parameters, so that no output shows them.

Two mechanisms work together. The first tracks *paths*: the compiler records the outermost call around each read of a
hidden parameter as a path in `Definition.hidden`. The paths continue through attributes to the resources that read
them. The second tracks *texts*: it masks the values wherever a resource type puts them (errors, answers, log lines);
see `convergence.secrecy`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from convergence import secrecy
from convergence.core.model import Definition, Json, Path
from convergence.template.cycles import in_order
from convergence.template.encoding import entries_of, function_of
from convergence.template.evaluation import references
from convergence.template.parameters import Parameter
from convergence.values import replace

PROPERTIES = 'properties'
METADATA = 'metadata'

MOST_PATHS = 200
"""Maximum number of hidden paths in a section. With more, the whole section is hidden."""

IsAsked = Callable[[str, str | None], bool]
"""Tells if an attribute of a resource is hidden. Empty: all attributes; None: the reference id."""


class SecretPolicy(Protocol):
    """The knowledge about attributes of resource types that may reveal secrets."""

    def tells(self, type_name: str, attribute: str | None, hidden: Collection[Path]) -> bool:
        """Return True if an attribute may reveal hidden properties.

        :param attribute: its name; empty: all attributes; None: the reference id.
        :param hidden: the paths of hidden values below the properties; not empty.
        """

    def keeps_secret(self, type_name: str, attribute: str | None) -> bool:
        """Return True if the type declares an attribute as secret."""


class AssumeLeaky:
    """The assumption for unknown types: attributes may reveal every property, reference ids reveal nothing."""

    def tells(self, type_name: str, attribute: str | None, hidden: Collection[Path]) -> bool:
        """See `SecretPolicy`."""
        return attribute is not None

    def keeps_secret(self, type_name: str, attribute: str | None) -> bool:
        """See `SecretPolicy`."""
        return False


def hidden_values(parameters: Mapping[str, Parameter]) -> frozenset[str]:
    """Return the values of hidden parameters, in the forms in which they may appear."""
    texts: set[str] = set()
    for parameter in parameters.values():
        if parameter.hidden and parameter.has_value:
            texts |= secrecy.texts(parameter.value)
            if isinstance(parameter.value, list):
                texts |= secrecy.texts(','.join(str(item) for item in parameter.value))
    return frozenset(texts)


def with_secrets(
    definitions: Mapping[str, Definition],
    parameters: Mapping[str, Parameter],
    secret_policy: SecretPolicy | None = None,
) -> dict[str, Definition]:
    """Return the definitions, each with the hidden values that it may receive and their paths.

    Hidden values come from the definition itself, or with attributes of its requirements.

    :param secret_policy: the knowledge about resource types; None: no knowledge.
    """
    return with_places(_with_texts(definitions, hidden_values(parameters)), secret_policy or AssumeLeaky())


def _with_texts(definitions: Mapping[str, Definition], hidden: frozenset[str]) -> dict[str, Definition]:
    if not hidden:
        return dict(definitions)
    met = {
        name: set(secrecy.occurring(hidden, [definition.properties, definition.metadata]))
        for name, definition in definitions.items()
    }
    dependents: dict[str, list[str]] = {}
    for name, definition in definitions.items():
        for required in definition.requires:
            dependents.setdefault(required, []).append(name)
    news = [name for name, secrets in met.items() if secrets]
    while news:
        source = news.pop()
        for name in dependents.get(source, ()):
            if not met[source] <= met[name]:
                met[name] |= met[source]
                news.append(name)
    return {
        name: replace(definition, secrets=tuple(sorted(met[name]))) if met[name] else definition
        for name, definition in definitions.items()
    }


def with_places(definitions: Mapping[str, Definition], secret_policy: SecretPolicy) -> dict[str, Definition]:
    """Return the definitions with the paths that hidden and secret values reach through attributes.

    Visits each definition once, after its requirements. Cycles are refused elsewhere.
    """
    known = dict(definitions)
    has_secrets = {
        kind: any(secret_policy.keeps_secret(kind, attribute) for attribute in (None, ''))
        for kind in {each.type for each in known.values()}
    }
    if not any(has_secrets.values()) and not any(each.hidden or each.private for each in known.values()):
        return known
    requires = {name: [one for one in each.requires if one in known] for name, each in known.items()}

    def has_to_be_asked(other: str) -> bool:
        each = known[other]
        return has_secrets[each.type] or bool(each.hidden or each.private)

    for name in in_order(requires):
        definition = known[name]
        if not any(map(has_to_be_asked, requires[name])):
            continue

        def hidden(other: str, attribute: str | None) -> bool:
            return other in known and tells_hidden(known[other], attribute, secret_policy)

        def private(other: str, attribute: str | None) -> bool:
            return other in known and tells_private(known[other], attribute, secret_policy)

        known[name] = replace(
            definition,
            hidden=outermost((*definition.hidden, *_places(definition, hidden))),
            private=outermost((*definition.private, *_places(definition, private))),
        )
    return known


def tells_hidden(definition: Definition, attribute: str | None, secret_policy: SecretPolicy) -> bool:
    """Return True if an attribute of a resource may reveal hidden parameters."""
    if attribute in definition.harmless:
        return False
    return _tells(definition, attribute, definition.hidden, secret_policy)


def tells_private(definition: Definition, attribute: str | None, secret_policy: SecretPolicy) -> bool:
    """Return True if an attribute of a resource may reveal secrets of resource types."""
    if secret_policy.keeps_secret(definition.type, attribute):
        return True
    return _tells(definition, attribute, definition.private, secret_policy)


def _tells(definition: Definition, attribute: str | None, paths: Iterable[Path], secret_policy: SecretPolicy) -> bool:
    below = within(paths, PROPERTIES)
    return bool(below) and secret_policy.tells(definition.type, attribute, below)


def _places(definition: Definition, asked: IsAsked) -> Iterator[Path]:
    for section, encoded in ((PROPERTIES, definition.properties), (METADATA, definition.metadata)):
        for path in reading(encoded, asked):
            yield (section, *path)


def reading(encoded: Json, asked: IsAsked, path: Path = ()) -> Iterator[Path]:
    """Return the paths of calls in an encoded value that read hidden values of other resources.

    :param path: the path of the value; the results begin with it.
    """
    if function_of(encoded):
        names, attributes = references(encoded)
        if any(asked(name, None) for name in names) or any(
            asked(name, key) for name, keys in attributes.items() for key in keys
        ):
            yield path
    elif isinstance(encoded, dict):
        for key, value in (entries_of(encoded) or {}).items():
            yield from reading(value, asked, (*path, key))
    elif isinstance(encoded, list):
        for index, value in enumerate(encoded):
            yield from reading(value, asked, (*path, index))


def within(paths: Iterable[Path], section: str) -> tuple[Path, ...]:
    """Return the paths below a section, relative to it."""
    return tuple(path[1:] for path in paths if path and path[0] == section)


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the sorted paths without those inside of another one. Sections with very many paths become one path."""
    found: list[Path] = []
    for path in sorted(set(paths), key=lambda path: [(isinstance(step, str), step) for step in path]):
        if not found or path[: len(found[-1])] != found[-1]:
            found.append(path)
    if len(found) > MOST_PATHS:
        return tuple(dict.fromkeys(path[:1] for path in found))
    return tuple(found)
