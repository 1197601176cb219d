"""Reads the bodies that say what a stack should be, as the operations of the engine want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence import errors
from convergence.api.faults import bad_request
from convergence.api.queries import flag, number
from convergence.documents import AnyJson

SentBody = Mapping[str, Any]


def template(body: SentBody, *, required: bool = True) -> AnyJson:
    """The template of a body, as text or as a map; None where there is none and none is needed.

    :raises HttpProblem: 400, there is none.
    :raises NotOffered: it is to be fetched from somewhere else.
    """
    found = body.get('template')
    if found:
        return found
    if body.get('template_url'):
        raise errors.NotOffered(
            'template_url: this installation does not fetch templates. Send the template itself, as template.'
        )
    if required:
        raise bad_request('No template specified')
    return None


def arguments(body: SentBody) -> dict[str, Any]:
    """What comes with a template: `params`, `files` and `environment_files`.

    :raises NotOffered: files are to be fetched from somewhere else.
    """
    if body.get('files_container'):
        raise errors.NotOffered(
            'files_container: this installation does not fetch files. Send the files themselves, as files.'
        )
    return {
        'params': environment(body),
        'files': body.get('files') or None,
        'environment_files': body.get('environment_files') or None,
    }


def environment(body: SentBody) -> list[AnyJson] | None:
    """The environment of a body with its parameters laid over it; None where there is neither."""
    sent, parameters = body.get('environment'), body.get('parameters')
    layers = [sent] if sent else []
    if parameters:
        layers.append({'parameters': parameters})
    return layers or None


def options(body: SentBody, **more: Any) -> dict[str, Any] | None:
    """What comes beside a template: the `args` of an operation.

    :param more: further ones; None: leave it out.
    """
    found: dict[str, Any] = {}
    if body.get('timeout_mins') is not None:
        found['timeout_mins'] = number('timeout_mins', body['timeout_mins'])
    for name in ('disable_rollback', 'converge'):
        if body.get(name) is not None:
            found[name] = flag(name, body[name])
    for name in ('tags', 'drift_policy'):
        if body.get(name) is not None:
            found[name] = body[name]
    if body.get('clear_parameters'):
        found['clear_parameters'] = body['clear_parameters']
    found.update({name: value for name, value in more.items() if value is not None})
    return found or None
