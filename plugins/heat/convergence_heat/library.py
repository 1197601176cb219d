"""Heat as a library: its classes by the names of their types, without its configuration, database or services."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from oslo_config import cfg

from convergence.config import loading

VERSIONS = '27'
"""The major version of openstack-heat whose classes are known to work here, as in setup.cfg."""


def classes() -> dict[str, type[Any]]:
    """Heat's classes of resources by the names of their types, sorted; hidden ones included.

    :raises ImportError: openstack-heat is not installed, or has another version than `VERSIONS`.
    """
    installed = version('openstack-heat')
    if installed.partition('.')[0] != VERSIONS:
        raise ImportError(f'openstack-heat {installed} is installed; convergence-heat goes with {VERSIONS}')
    with _quiet(), _shared_options():
        from heat.engine import clients
        from heat.engine.plugin_manager import PluginManager, PluginMapping

        clients.initialise()
        # Not from its environment, which does not tell hidden types.
        found = PluginMapping(['available_resource', 'resource']).load_all(PluginManager('heat.engine.resources'))
        return dict(sorted(found))


@contextmanager
def _shared_options() -> Iterator[None]:
    """Both register options on the global configuration. Ours are there first, and stay where the names are the same.

    Those of Heat with such a name are of its database and its host, which nothing here has.
    """
    loading.register(cfg.CONF)
    register = cfg.ConfigOpts.register_opt

    def tolerant(self: cfg.ConfigOpts, opt: cfg.Opt, *arguments: Any, **options: Any) -> bool:
        try:
            return bool(register(self, opt, *arguments, **options))
        except cfg.DuplicateOptError:
            return False

    cfg.ConfigOpts.register_opt = tolerant  # type: ignore[method-assign]
    try:
        yield
    finally:
        cfg.ConfigOpts.register_opt = register  # type: ignore[method-assign]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of forty clients."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        yield
