"""Reads bodies with the goal of a stack into arguments of engine operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence import errors
from convergence.api.faults import bad_request
from convergence.api.queries import flag, number
from convergence.documents import AnyJson

SentBody = Mapping[str, Any]


def template(body: SentBody, *, required: bool = True) -> AnyJson:
    """Return the template of a body, as text or as a map; None if an optional one is missing.

    :raises HttpProblem: 400 without a required template.
    :raises NotOffered: the body names a URL instead.
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
    """Return the arguments beside a template: `params`, `files` and `environment_files`.

    :raises NotOffered: the body names a container of files instead.
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
    """Return the environment of a body merged with its parameters; None without both."""
    sent, parameters = body.get('environment'), body.get('parameters')
    layers = [sent] if sent else []
    if parameters:
        layers.append({'parameters': parameters})
    return layers or None


def options(body: SentBody, **more: Any) -> dict[str, Any] | None:
    """Return the `args` of an operation.

    :param more: further options; those that are None are left out.
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
