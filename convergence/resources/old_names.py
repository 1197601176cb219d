"""Old names of the plugin contract. A type that uses one still works; its class raises one DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

RENAMED: Mapping[str, str] = {
    'create_settles_s': 'create_ambiguity_s',
    'removed_first': 'delete_before_create',
    'keys_before_members': 'attribute_prefix_len',
    'unfit': 'cross_check',
    'give_way': 'release_for_replacement',
    'take_back': 'reclaim',
}
"""Old names of class attributes and hooks, and their present ones."""

FLAGS: Mapping[str, str] = {
    'can_find': 'find',
    'observes': 'observe',
    'watches': 'watcher',
    'validates': 'validate',
    'prepares': 'prepare',
    'plans': 'plan',
    'implies': 'implied',
    'hears': 'notified',
    'gives_way': 'release_for_replacement',
    'adds_metadata': 'metadata',
    'can_snapshot': 'snapshot',
}
"""Methods that returned True if a type writes a hook, and that hook. `ResourceType.implements` replaces them."""


class OldNames:
    """Translates the old names; base class of `convergence.resources.contract.ResourceType`."""

    @override
    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        own = vars(cls)
        used = {old: new for old, new in RENAMED.items() if old in own and new not in own}
        for old, new in used.items():
            setattr(cls, new, own[old])
        if 'can_be_kept' in own:
            used['can_be_kept'] = 'snapshots_survive'
            cls.snapshots_survive = property(lambda self: self.can_be_kept())  # type: ignore[attr-defined]
        used |= {old: f"implements('{hook}')" for old, hook in FLAGS.items() if old in own}
        if used:
            words = ', '.join(f'{old} (now {new})' for old, new in used.items())
            warnings.warn(
                f'The resource type {cls.__qualname__} uses old names: {words}', DeprecationWarning, stacklevel=2
            )

    if not TYPE_CHECKING:  # a type checker shall find misspelt names

        def __getattr__(self, name: str) -> Any:
            if name in RENAMED:
                return getattr(self, RENAMED[name])
            if name in FLAGS:
                return lambda: self.implements(FLAGS[name])
            raise AttributeError(f'{type(self).__name__!r} object has no attribute {name!r}')

    def decided_by_old_flag(self, hook: str) -> bool | None:
        """Return the answer of the old method of the type for a hook; None if the type has no such method."""
        for old, known in FLAGS.items():
            if known == hook:
                written: Callable[[Any], bool] | None = getattr(type(self), old, None)
                return None if written is None else bool(written(self))
        return None
