"""Adoption: reads the data of a stack to be made from existing objects."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergence import documents, errors, signing
from convergence.core.model import Json
from convergence.core.object_state import ADOPTED
from convergence.core.request import Offer
from convergence.engine.compile.submission import Submission
from convergence.secrecy import MASK
from convergence.template.functions.base import type_name
from convergence.template.merging import laid_over


@dataclass(frozen=True, slots=True)
class Adoption:
    """A stack to be adopted, as the caller describes it.

    :param offered: the existing objects, by resource name.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json]
    files: Mapping[str, str]
    offered: Mapping[str, Offer]

    @classmethod
    def read(cls, data: Any) -> Adoption:
        """Read exported data, as a map or as its JSON.

        :raises Invalid: it is something else; the text says where.
        """
        if isinstance(data, str):
            try:
                data = documents.parse(data)
            except ValueError as error:
                raise errors.Invalid(f'adopt_stack_data {error}') from None
        if not isinstance(data, dict):
            raise errors.Invalid(f'adopt_stack_data: expected a map, not {type_name(data)}')
        source = data.get('template')
        if not isinstance(source, (dict, str)) or not source:
            raise errors.Invalid('adopt_stack_data: it has no template')
        return cls(source, _map(data, 'environment'), _texts(data, 'files'), offered_by(data))

    def over(self, params: Mapping[str, Json], files: Mapping[str, str] | None) -> Submission:
        """The submission of the stack; the request's own values override those of the data.

        :param params: the sections of the request's environment.
        :raises Invalid: values that the data mask are missing.
        """
        defaults = self.environment.get('parameter_defaults')
        own = {'parameter_defaults': _known(defaults)} if isinstance(defaults, dict) else {}
        environment = laid_over({**self.environment, **own}, params)
        values = environment.get('parameters')
        masked = [name for name, value in values.items() if value == MASK] if isinstance(values, dict) else []
        if masked:
            raise errors.Invalid(
                f'adopt_stack_data: the values of {", ".join(sorted(masked))} are hidden in the data; '
                'give them as parameters of the request'
            )
        return Submission(self.template, environment, {**self.files, **(files or {})})


def _known(defaults: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in defaults.items() if value != MASK}


def _map(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise errors.Invalid(f'adopt_stack_data: {name} must be a map, not {type_name(value)}')
    return value


def _texts(document: Mapping[str, Any], name: str) -> dict[str, str]:
    texts = _map(document, name)
    for key, text in texts.items():
        if not isinstance(text, str):
            raise errors.Invalid(f'adopt_stack_data: {name}: {key} must be a text, not {type_name(text)}')
    return texts


def offered_by(data: Mapping[str, Any]) -> dict[str, Offer]:
    """The existing objects in exported data of a stack or a nested stack, by resource name.

    :raises Invalid: they are something else; the text says where.
    """
    resources = _map(data, 'resources')
    return {name: offer for name in resources if (offer := _offer(name, _map(resources, name))) is not None}


def _offer(name: str, document: Mapping[str, Any]) -> Offer | None:
    if isinstance(document.get('resources'), dict):
        offered_by(document)  # report the problems of nested data now
        return Offer(None, {ADOPTED: {'resources': document['resources']}})
    physical_id = document.get('resource_id')
    if physical_id is None or physical_id == '':
        return None
    if not isinstance(physical_id, str):
        raise errors.Invalid(f'adopt_stack_data: the resource_id of {name} must be a text')
    return Offer(physical_id, _renewed(_map(document, 'resource_data')))


def _renewed(data: dict[str, Any]) -> dict[str, Any]:
    """Private data with a new key for signal addresses, because others have seen the old one in the exported data."""
    return {**data, signing.KEY: secrets.token_urlsafe(32)} if signing.KEY in data else data
