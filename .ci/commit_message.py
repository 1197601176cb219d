"""Check a commit message: ``area: imperative subject``, at most 72 characters, then a body that says why.

    python .ci/commit_message.py FILE

pre-commit runs this before each commit (hook commit-msg). Merges need no body and may have any subject.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUBJECT_LENGTH = 72
"""Longest subject: what git log --oneline shows on a terminal of 80 columns."""
SUBJECT = re.compile(r'(?P<area>[a-z][\w./-]*(?:, [a-z][\w./-]*)*): (?P<verb>[a-z][\w-]*)\b.*[^.\s]')
IMPERATIVE = {
    'address',
    'bring',
    'embed',
    'feed',
    'focus',
    'need',
    'process',
    'ring',
    'seed',
    'shed',
    'speed',
    'spring',
}
"""Verbs that look like another form of a verb and are none."""
GENERATED = ('Merge ', 'fixup! ', 'squash! ')


def problems(message: str) -> list[str]:
    """Return the faults of a commit message, one sentence each."""
    lines = [line.rstrip() for line in message.splitlines() if not line.startswith('#')]
    while lines and not lines[0]:
        del lines[0]
    if not lines:
        return ['The message is empty.']
    subject, *rest = lines
    if subject.startswith(GENERATED):
        return []
    found = []
    if len(subject) > SUBJECT_LENGTH:
        found.append(f'The subject has {len(subject)} characters; the limit is {SUBJECT_LENGTH}.')
    parts = SUBJECT.fullmatch(subject)
    if parts is None:
        found.append('The subject must have the form "area: imperative", for example "db: name the columns".')
    elif is_inflected(parts['verb']):
        found.append(f'"{parts["verb"]}" is not imperative: write "add", not "added", "adds" or "adding".')
    if rest and rest[0]:
        found.append('An empty line must separate the subject from the body.')
    if not any(rest):
        found.append('A body must say why, and what was measured if anything was.')
    return found


def is_inflected(verb: str) -> bool:
    """Return True if a verb looks like a past tense, a third person or a participle."""
    return verb not in IMPERATIVE and re.search(r'(?:ed|ing|[^s]s)$', verb) is not None


def main(path: str) -> int:
    """Print the faults of the message in a file; return 1 if there are any."""
    found = problems(Path(path).read_text(encoding='utf-8'))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
