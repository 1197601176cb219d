"""Loads entry points of installed packages and survives any error that a package raises when it is imported."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from stevedore.extension import ExtensionManager
from typing_extensions import override

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offering:
    """An object that a package offers under a name.

    :param name: of the entry point, or of the entry in a manifest.
    :param package: the distribution; empty if it is not known.
    :param source: its name for operators: the name of a manifest, or else of the distribution.
    """

    name: str
    package: str
    source: str
    offered: Any


def offers(namespace: str, what: str) -> list[Offering]:
    """Return all entry points of a group, sorted; a name may occur twice. One that cannot be loaded is logged and left
    out.

    :param what: the kind of thing, for the log.
    """
    found = []
    for extension in _Loader(namespace, what):
        package = getattr(extension.entry_point.dist, 'name', None) or ''
        found.append(Offering(extension.name, package, package, extension.plugin))
    return sorted(found, key=lambda offer: (offer.name, offer.package))


def load(namespace: str, what: str) -> dict[str, Any]:
    """Return the objects of a group by the names of their entry points. One that cannot be loaded is logged and left
    out.

    :param what: the kind of thing, for the log.
    """
    return {extension.name: extension.plugin for extension in _Loader(namespace, what)}


class _Loader(ExtensionManager[Any]):
    def __init__(self, namespace: str, what: str) -> None:
        def failed(_manager: Any, entry_point: Any, error: BaseException) -> None:
            LOG.error(
                'The %s %s (%s) cannot be loaded and is left out; repair its package: %s',
                what,
                entry_point.name,
                entry_point.value,
                error,
            )

        super().__init__(namespace, on_load_failure_callback=failed)

    @override
    def _load_one_plugin(self, ep: Any, *args: Any, **kwargs: Any) -> Any:
        # stevedore lets AssertionError and SystemExit through, which would end the process.
        try:
            return super()._load_one_plugin(ep, *args, **kwargs)
        except (AssertionError, SystemExit) as error:
            raise ImportError(f'{type(error).__name__} while it was imported: {error}') from error
