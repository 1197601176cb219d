"""Custom constraints about time."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from functools import cache

from croniter import croniter

from convergence.core.model import Json

LONGEST = 255
"""Maximum number of characters of a text that is parsed; no date, zone or schedule is longer."""


def check_cron(value: Json) -> str | None:
    """``cron_expression``: when to do something again and again, in the notation of cron. Empty is fine."""
    if not value:
        return None
    if not isinstance(value, str) or len(value) > LONGEST:
        return 'Invalid CRON expression: it must be a text like "*/5 * * * *"'
    try:
        croniter.expand(value)
    except (ValueError, KeyError, TypeError, OverflowError):
        return 'Invalid CRON expression: it must have five fields: minute, hour, day, month and day of the week'
    return None


def check_timezone(value: Json) -> str | None:
    """``timezone``: the name of a time zone, for example Europe/Vienna. Empty is fine."""
    if not value:
        return None
    if isinstance(value, str) and value in _zones():
        return None
    return 'Invalid timezone: it must be the name of a zone like Europe/Vienna or UTC'


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def check_iso_8601(value: Json) -> str | None:
    """``iso_8601``: a date, or a date and a time."""
    return None if _moment(value) is not None else 'it must be a date like 2026-03-01T12:00:00Z (ISO 8601)'


def check_expiration(value: Json) -> str | None:
    """``expiration``: a moment in the future. One without a zone is in UTC. Empty is fine."""
    if not value:
        return None
    moment = _moment(value)
    if moment is None:
        return 'Expiration is invalid: it must be a date like 2026-03-01T12:00:00Z (ISO 8601)'
    if (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) <= datetime.now(UTC):
        return 'Expiration is invalid: Expiration time is out of date.'
    return None


def _moment(value: Json) -> datetime | None:
    if not isinstance(value, str) or len(value) > LONGEST:
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
