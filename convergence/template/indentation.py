"""Detects missing indentation: entries that stand beside their section instead of below it.

The error is reported once, at its beginning. The document is then read as if it were indented, so that no further
errors follow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from convergence.core.model import Json
from convergence.template.document import Map, ParsedDocument

_INNER = ('properties', 'metadata')
"""Keys of a resource whose values are maps with any keys."""


def indented(
    document: ParsedDocument, sections: Collection[str], keys: Mapping[str, Collection[str]]
) -> ParsedDocument:
    """Return the document with each key in its intended place. Moved keys go to the problems.

    :param sections: names of all sections.
    :param keys: for each section with named entries, the keys of an entry.
    """
    root = document.root
    if not isinstance(root, Map):
        return document  # Only text can be indented wrongly.
    strays = [name for name in keys if root.get(name, ...) is None and _behind(root, name, sections, others=True)]
    for section in strays:
        root = _moved(document, root, section, _behind(root, section, sections, others=True), ())
    for section, known in keys.items():
        entries = root.get(section)
        if not isinstance(entries, Map):
            continue
        mended = _with_entries(document, entries, known, section)
        if section == 'resources':
            mended = _with_inner(document, mended, known)
        if mended is not entries:
            root = _with(root, section, mended)
    return document if root is document.root else dataclasses.replace(document, root=root, text=None)


def _with_entries(document: ParsedDocument, entries: Map, known: Collection[str], section: str) -> Map:
    for name in list(entries):
        if name in entries and entries[name] is None and name not in known:
            behind = _behind(entries, name, known, others=False)
            entries = _moved(document, entries, name, behind, (section,)) if behind else entries
    return entries


def _with_inner(document: ParsedDocument, resources: Map, known: Collection[str]) -> Map:
    for name, body in list(resources.items()):
        mended = body
        for key in _INNER:
            if isinstance(mended, Map) and mended.get(key, ...) is None:
                behind = _behind(mended, key, known, others=True)
                mended = _moved(document, mended, key, behind, ('resources', name)) if behind else mended
        resources = _with(resources, name, mended) if mended is not body else resources
    return resources


def _behind(entries: Map, name: str, known: Collection[str], *, others: bool) -> list[str]:
    """Return the keys that directly follow a key and belong below it.

    :param others: True for keys that are unknown here; False for known ones.
    """
    names = list(entries)
    found: list[str] = []
    for follower in names[names.index(name) + 1 :]:
        if (follower in known) is others:
            break
        found.append(follower)
    return found


def _moved(document: ParsedDocument, entries: Map, owner: str, names: list[str], path: tuple[str, ...]) -> Map:
    """Return a map with some keys moved below an empty one, and report the problem."""
    many = f'{", ".join(names[:-1])} and {names[-1]} stand' if len(names) > 1 else f'{names[0]} stands'
    them = 'them' if len(names) > 1 else 'it'
    document.key_problem(f'{many} beside {owner}, which is empty; indent {them} further.', (*path, names[0]))
    below, rest = Map(), Map()
    for name, value in entries.items():
        target = below if name in names else rest
        target[name], target.marks[name] = value, entries.marks[name]
    return _with(rest, owner, below)


def _with(entries: Map, name: str, value: Json) -> Map:
    changed = Map()
    changed.update(entries)
    changed.marks.update(entries.marks)
    changed[name] = value
    return changed
