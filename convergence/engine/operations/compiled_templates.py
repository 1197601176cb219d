"""The compiled templates that were used last."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Generic, TypeVar

from convergence import template
from convergence.concurrency import Lock
from convergence.core.model import Json

V = TypeVar('V')


class LastUsed(Generic[V]):
    """The values that were used last, by their keys.

    :param most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, V] = OrderedDict()

    def keep(self, key: str, value: V) -> None:
        """Keep a value under a key."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def get(self, key: str) -> V | None:
        """One that is kept, from now on longer than the others; None where it is not."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)


class CompiledTemplates(LastUsed[template.Compiled]):
    """Compiled templates by the ids of their rows, which never change."""


class AlikeTemplates:
    """Compiled templates by what they were made from: many stacks, such as the members of a group, share one.

    :param most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._kept: LastUsed[template.Compiled] = LastUsed(most)

    def keep(self, key: str, compiled: template.Compiled) -> None:
        """Keep what was made from something; see `made_from`. Not where it is for one stack alone."""
        if not compiled.is_personal:
            self._kept.keep(key, compiled)

    def get(self, key: str, identity: template.StackIdentity) -> template.Compiled | None:
        """The same for another stack; None where there is none."""
        kept = self._kept.get(key)
        return None if kept is None else kept.of(identity)


def made_from(content: Mapping[str, Json], project_id: str, rules: Mapping[str, bool] | None = None) -> str:
    """What tells one compiled template from another: 64 hexadecimal digits.

    :param content: of the row of the template, or what is to be stored there.
    :param rules: the types that whoever asks for it may use.
    """
    text = json.dumps([content, project_id, rules and dict(rules)], sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()
