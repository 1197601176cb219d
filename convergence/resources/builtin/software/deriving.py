"""Derives what a deployment puts on its server from a configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from convergence.core.model import Json
from convergence.core.software import SoftwareConfig
from convergence.resources.builtin.software.component import GROUP as COMPONENT
from convergence.resources.contract import FinalFailure

Input = dict[str, Json]


def declared_in(content: Mapping[str, Json], what: str) -> list[Input]:
    """The maps of a list, such as the inputs that a configuration declares."""
    found = content.get(what)
    return [dict(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def triggered_by(action: str, source: SoftwareConfig, wanted: Sequence[str]) -> bool:
    """Return True if the server has something to run in an action.

    :param wanted: the actions of the deployment. A component lists its own.
    """
    if source.group != COMPONENT:
        return action in wanted
    content = source.content.get('config')
    named = declared_in(content, 'configs') if isinstance(content, dict) else []
    return any(action in actions for each in named if isinstance(actions := each.get('actions'), list))


def undeclared(name: str, value: Json, description: str | None = None) -> Input:
    """An input that the configuration does not declare."""
    about: Input = {} if description is None else {'description': description}
    return {'name': name, 'type': 'String', **about, 'value': value}


def values_of(inputs: Sequence[Input]) -> dict[str, Json]:
    """The values of inputs, by name."""
    return {str(each.get('name')): each.get('value') for each in inputs}


def replacing(wanted: Sequence[Input], present: Sequence[Input]) -> Iterator[str]:
    """The names of the inputs whose new value needs a new deployment."""
    before = values_of(present)
    for each in wanted:
        name = str(each.get('name'))
        if each.get('replace_on_change') is True and name in before and before[name] != each.get('value'):
            yield name


def substituted(config: Json, key: str, values: Mapping[str, Json], *, strict: bool) -> Json:
    """A configuration with values in the places of ``{key: name}``.

    :param strict: every name must have a value.
    :raises FinalFailure: one has none.
    """
    if isinstance(config, list):
        return [substituted(each, key, values, strict=strict) for each in config]
    if not isinstance(config, dict):
        return config
    name = config.get(key)
    if len(config) == 1 and isinstance(name, str):
        if strict and name not in values:
            raise FinalFailure(f'The Parameter ({name}) was not provided.')
        return values.get(name)
    return {inner: substituted(each, key, values, strict=strict) for inner, each in config.items()}
