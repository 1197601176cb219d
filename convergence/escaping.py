"""Makes characters visible that would do something to a terminal, or to a reader of lines, instead of being read.

Clients choose names, reasons and paths. In a log, a line break in one of them forges a line; on a terminal, an escape
sequence moves the cursor or sets the title; and a bidirectional control shows a text in another order than it has.
"""

from __future__ import annotations

import re

# C0, DEL and C1; the separators that some programs take for line breaks; bidirectional controls; halves of characters.
_ACTIVE = re.compile('[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]')
_SHORT = {'\n': '\\n', '\r': '\\r', '\t': '\\t'}


def escaped(text: str, keep: str = '') -> str:
    r"""`text` with such characters as JSON would write them: ``\n``, ``\u001b``. Doing this twice changes nothing more.

    :param keep: characters that stay as they are.
    """
    return _ACTIVE.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), text)


def has_active(text: str) -> bool:
    """Whether `escaped` would change anything."""
    return _ACTIVE.search(text) is not None


def _written(character: str) -> str:
    return _SHORT.get(character) or f'\\u{ord(character):04x}'
