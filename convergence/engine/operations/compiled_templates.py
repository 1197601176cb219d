"""The compiled templates that were used last."""

from __future__ import annotations

from collections import OrderedDict

from convergence import template
from convergence.concurrency import Lock


class CompiledTemplates:
    """Compiled templates by the ids of their rows, which never change.

    :param most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, template.Compiled] = OrderedDict()

    def keep(self, template_id: str, compiled: template.Compiled) -> None:
        """Keep a compiled template that has been stored under an id."""
        with self._lock:
            self._kept[template_id] = compiled
            self._kept.move_to_end(template_id)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def get(self, template_id: str) -> template.Compiled | None:
        """One that is kept, from now on longer than the others; None where it is not."""
        with self._lock:
            if template_id in self._kept:
                self._kept.move_to_end(template_id)
            return self._kept.get(template_id)
