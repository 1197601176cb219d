"""What a resource type answers or raises, made fit to be stored: somebody else's code may hand out anything."""

from __future__ import annotations

import json
from typing import Any

from convergence import logs
from convergence.core.model import Json
from convergence.resources.contract import Answer, Done, FinalFailure, InProgress


def checked(answer: Any) -> Answer:
    """The answer, if it is one and can be stored.

    :raises FinalFailure: it cannot. Carries the physical id, if the answer has one: the object is there all the same.
    """
    if not isinstance(answer, (Done, InProgress)):
        raise FinalFailure(f'the resource type answered {type(answer).__name__} instead of Done or InProgress')
    physical_id = storable_id(answer.physical_id)
    if physical_id != answer.physical_id:
        kind = type(answer.physical_id).__name__
        raise FinalFailure(f'the physical id must be a text without control characters, not {kind}')
    try:
        carried(answer.data, 'data')
        carried(answer.kept, 'kept')
        if isinstance(answer, InProgress):
            carried(answer.progress, 'progress')
    except FinalFailure as error:
        raise FinalFailure(str(error), physical_id=physical_id) from error
    return answer


def carried(value: Any, what: str) -> Json:
    """The value, if it survives a way through the database.

    :raises FinalFailure: it does not; `what` says what it is.
    """
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FinalFailure(f'{what} cannot be stored ({error}); use texts, numbers, lists and maps') from error
    return value  # type: ignore[no-any-return]


def storable_id(value: Any) -> str | None:
    """The physical id, or None where it is none that could be stored."""
    return value if isinstance(value, str) and value == storable_text(value) else None


def storable_text(text: str) -> str:
    """The text with everything written out that a database would refuse: NUL and halves of characters."""
    return text.replace('\x00', '\\x00').encode('utf-8', 'backslashreplace').decode('utf-8')


def text_of(error: BaseException) -> str:
    """The error as its author meant it to be read; with its class where that was not meant to be raised.

    What is concealed here and now (see `convergence.logs.concealing`) is masked: authors quote values.
    """
    text = storable_text(logs.concealed(str(error).strip()))
    if isinstance(error, Exception) and type(error).__module__.startswith('convergence.') and text:
        return text
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
