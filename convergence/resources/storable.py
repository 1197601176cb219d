"""Makes answers and errors of a resource type fit to be stored: plugin code may return anything."""

from __future__ import annotations

import json
from typing import Any

from convergence import logs
from convergence.core.model import Json
from convergence.resources.contract import Answer, Done, FinalFailure, InProgress
from convergence.template.limits import STANDARD

MOST_BYTES = STANDARD.max_stored_bytes
"""Default maximum of bytes of each kind of data of a resource, as JSON; see ``[limits] max_stored_bytes``."""

_STORED = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


def checked(answer: Any, most_bytes: int = MOST_BYTES) -> Answer:
    """The answer, if it is one and can be stored.

    :param most_bytes: as for `carried`.
    :raises FinalFailure: it cannot. Carries the physical id, if the answer has one: the object is there all the same.
    """
    if not isinstance(answer, (Done, InProgress)):
        raise FinalFailure(f'the resource type answered {type(answer).__name__} instead of Done or InProgress')
    physical_id = storable_id(answer.physical_id)
    if physical_id != answer.physical_id:
        kind = type(answer.physical_id).__name__
        raise FinalFailure(f'the physical id must be a text without control characters, not {kind}')
    try:
        carried(answer.data, 'data', most_bytes)
        carried(answer.kept, 'kept', most_bytes)
        if isinstance(answer, InProgress):
            carried(answer.progress, 'progress', most_bytes)
    except FinalFailure as error:
        raise FinalFailure(str(error), physical_id=physical_id) from error
    return answer


def carried(value: Any, what: str, most_bytes: int = MOST_BYTES) -> Json:
    """The value, if it survives a way through the database.

    :param most_bytes: how large it may be as JSON: every worker and engine that reads the row pays for it many times.
    :raises FinalFailure: it does not, or is too large; `what` says what it is.
    """
    if value is None:
        return None
    try:
        size = len(_STORED.encode(value).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise FinalFailure(f'{what} cannot be stored ({error}); use texts, numbers, lists and maps') from error
    if size > most_bytes:
        raise FinalFailure(
            f'{what}: {size} bytes are more than a resource may store; the limit [limits] max_stored_bytes is '
            f'{most_bytes}'
        )
    kept: Json = value
    return kept


def storable_id(value: Any) -> str | None:
    """The physical id, or None where it is none that could be stored."""
    return value if isinstance(value, str) and value == storable_text(value) else None


def storable_text(text: str) -> str:
    """The text with everything written out that a database would refuse: NUL and halves of characters."""
    return text.replace('\x00', '\\x00').encode('utf-8', 'backslashreplace').decode('utf-8')


def text_of(error: BaseException) -> str:
    """Return the text of an error; with the name of its class if a plugin did not raise it on purpose.

    Secrets (see `convergence.logs.masking`) are masked, because authors quote values.
    """
    text = storable_text(logs.masked(str(error).strip()))
    if isinstance(error, Exception) and type(error).__module__.startswith('convergence.') and text:
        return text
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
