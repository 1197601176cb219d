"""Adds known drift to a preview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from convergence.core.observation import KnownObject
from convergence.documents import Document
from convergence.engine.reads import formats


def mark_drifted(lists: Mapping[str, list[Document]], known: Iterable[KnownObject]) -> None:
    """Mark each resource of a stack that has drifted.

    :param lists: resources by their fate; see `convergence.engine.preview.preview.preview_update`.
    :param known: the objects of the stack that have drifted.
    """
    drifted = {
        each.row.name: {
            'state': each.observation.found.value,
            'reason': each.observation.reason,
            'properties': list(each.observation.names),
            'since': formats.moment(each.observation.since),
        }
        for each in known
    }
    for document in (each for one in lists.values() for each in one):
        if document['path'] in drifted:
            document['changed_outside'] = drifted[document['path']]
