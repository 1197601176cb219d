"""Log lines about actions that did not succeed.

A failure that a resource type reports is one line. An error that no type is meant to raise also logs its traceback,
once for each place in the code that raises it.
"""

from __future__ import annotations

import logging
import traceback

from convergence.core.claim import Claim
from convergence.resources.contract import PluginFailure
from convergence.resources.storable import text_of

LOG = logging.getLogger(__name__)

MOST_TEXTS = 1000
"""Maximum number of remembered places in the code. Beyond it all are forgotten, and tracebacks are logged again."""

_shown: set[tuple[str, str, str]] = set()


def log_failure(claim: Claim, what: str, error: BaseException) -> None:
    """Log an action that ended with an error.

    :param what: the end of the action as a verb, for example ``failed``.
    """
    LOG.warning(
        '%s of %s %s: %s',
        claim.action,
        claim.resource.name,
        what,
        ' '.join(text_of(error).split()),
        exc_info=error if not isinstance(error, PluginFailure) and _is_new(claim, error) else None,
    )


def _is_new(claim: Claim, error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    place = f'{frames[-1].filename}:{frames[-1].lineno}' if frames else ''
    key = (claim.resource.type, type(error).__name__, place)
    if key in _shown:
        return False
    if len(_shown) >= MOST_TEXTS:
        _shown.clear()
    _shown.add(key)
    return True
