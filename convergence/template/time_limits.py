"""Time limits of a resource's actions and its retry policy, from `convergence` in its metadata.

The language has no keys for them, but every version leaves the metadata to its users::

    metadata:
      convergence:
        time_limits: {create: 600, delete: 120}   # seconds; one number stands for all actions
        retry: {attempts: 8, first_s: 2, longest_s: 60}
"""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.model import Action, Json, Path, RetryPolicy
from convergence.template.document import ParsedDocument
from convergence.template.encoding import entries_of

KEY = 'convergence'
ACTIONS = {'create': Action.CREATE, 'update': Action.UPDATE, 'delete': Action.DELETE}
LONGEST_S = 365 * 86400.0
MOST_ATTEMPTS = 1000


def read_time_limits_and_retry(
    document: ParsedDocument, metadata: Json, path: Path
) -> tuple[Mapping[Action, float], RetryPolicy | None]:
    """Return the time limits in seconds by action, and the retry policy. Errors go to the problems.

    :param metadata: the encoded metadata.
    :param path: its path.
    """
    wanted = (entries_of(metadata) or {}).get(KEY) if isinstance(metadata, dict) else None
    if wanted is None:
        return {}, None
    entries = _map(document, wanted, (*path, KEY))
    _refuse_others(document, entries, ('time_limits', 'retry'), (*path, KEY))
    limits = _time_limits(document, entries.get('time_limits'), (*path, KEY, 'time_limits'))
    return limits, _retry(document, entries.get('retry'), (*path, KEY, 'retry'))


def _time_limits(document: ParsedDocument, value: Json, path: Path) -> dict[Action, float]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        limit_s = _seconds(document, value, path)
        return {} if limit_s is None else dict.fromkeys(ACTIONS.values(), limit_s)
    entries = _map(document, value, path)
    _refuse_others(document, entries, tuple(ACTIONS), path)
    read = {ACTIONS[key]: _seconds(document, each, (*path, key)) for key, each in entries.items() if key in ACTIONS}
    return {action: limit_s for action, limit_s in read.items() if limit_s is not None}


def _retry(document: ParsedDocument, value: Json, path: Path) -> RetryPolicy | None:
    if value is None:
        return None
    entries = _map(document, value, path)
    _refuse_others(document, entries, ('attempts', 'first_s', 'longest_s'), path)
    attempts = entries.get('attempts')
    if attempts is not None and (
        not isinstance(attempts, int) or isinstance(attempts, bool) or not 1 <= attempts <= MOST_ATTEMPTS
    ):
        document.problem(f'attempts must be a whole number from 1 to {MOST_ATTEMPTS}.', (*path, 'attempts'))
        attempts = None
    first_s, longest_s = (
        None if entries.get(key) is None else _seconds(document, entries[key], (*path, key))
        for key in ('first_s', 'longest_s')
    )
    return RetryPolicy(attempts, first_s, longest_s)


def _map(document: ParsedDocument, value: Json, path: Path) -> dict[str, Json]:
    entries = entries_of(value) if isinstance(value, dict) else None
    if entries is None:
        document.problem(f'{path[-1]} must be a map that does not depend on other resources.', path)
    return dict(entries or {})


def _refuse_others(document: ParsedDocument, entries: Mapping[str, Json], known: tuple[str, ...], path: Path) -> None:
    for key in entries:
        if key not in known:
            hint = document.problems.suggestion(key, known)
            document.key_problem(f'"{key[:80]}" has no meaning here; use {", ".join(known)}.{hint}', (*path, key))


def _seconds(document: ParsedDocument, value: Json, path: Path) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_S:
        return float(value)
    document.problem(f'{path[-1]} must be a number of seconds, more than 0 and at most {LONGEST_S:.0f}.', path)
    return None
