"""Stacks that are made from objects which are there already: what a caller says of them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergence import documents, errors, signing
from convergence.core.adoption import ADOPTED
from convergence.core.model import Json
from convergence.core.request import Offer
from convergence.engine.compile.submission import Submission
from convergence.secrecy import MASK
from convergence.template.functions.base import type_name
from convergence.template.merging import laid_over


@dataclass(frozen=True, slots=True)
class Adoption:
    """What a caller says of a stack that is to be adopted.

    :param offered: the objects that are there, by resource name.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json]
    files: Mapping[str, str]
    offered: Mapping[str, Offer]

    @classmethod
    def read(cls, data: Any) -> Adoption:
        """The data of `data_of`, as a map or as its JSON.

        :raises Invalid: it is something else; the text says where.
        """
        if isinstance(data, str):
            try:
                data = documents.parse(data)
            except ValueError as error:
                raise errors.Invalid(f'adopt_stack_data {error}') from None
        if not isinstance(data, dict):
            raise errors.Invalid(f'adopt_stack_data: a map is wanted, not {type_name(data)}')
        source = data.get('template')
        if not isinstance(source, (dict, str)) or not source:
            raise errors.Invalid('adopt_stack_data: it has no template')
        return cls(source, _map(data, 'environment'), _texts(data, 'files'), offered_by(data))

    def over(self, params: Mapping[str, Json], files: Mapping[str, str] | None) -> Submission:
        """What the stack is to be, with what the request says itself laid over it.

        :param params: the sections of the request's environment.
        :raises Invalid: values that the data hide are missing.
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
    """The objects that some data name, by resource name: of a stack, or of one that is nested in it.

    :raises Invalid: they are something else; the text says where.
    """
    resources = _map(data, 'resources')
    return {name: offer for name in resources if (offer := _offer(name, _map(resources, name))) is not None}


def _offer(name: str, document: Mapping[str, Any]) -> Offer | None:
    if isinstance(document.get('resources'), dict):
        offered_by(document)  # what is wrong below is told now
        return Offer(None, {ADOPTED: {'resources': document['resources']}})
    physical_id = document.get('resource_id')
    if physical_id is None or physical_id == '':
        return None
    if not isinstance(physical_id, str):
        raise errors.Invalid(f'adopt_stack_data: the resource_id of {name} must be a text')
    return Offer(physical_id, _renewed(_map(document, 'resource_data')))


def _renewed(data: dict[str, Any]) -> dict[str, Any]:
    """Private data with a new key for signal addresses, where there is one: what stands there others have seen."""
    return {**data, signing.KEY: secrets.token_urlsafe(32)} if signing.KEY in data else data
