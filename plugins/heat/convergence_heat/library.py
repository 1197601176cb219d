"""Heat as a library: its classes by the names of their types, without its configuration, database or services."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

from oslo_config import cfg

from convergence.concurrency import Lock
from convergence.config import loading
from convergence.resources.contract import ResourceType

VERSIONS = '27'
"""The major version of openstack-heat whose classes are known to work here, as in setup.cfg."""


NO_METADATA = 'http://127.0.0.1:8000'
"""The metadata URL of servers with the format ``HEAT_CFNTOOLS``, which need one. No server answers there."""


_TALKATIVE = ('heat.engine.environment', 'heat.engine.attributes', 'neutronclient')
"""Loggers that warn of each deprecated type, and of each new client."""


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
        # Not from its environment, which leaves out hidden types.
        found = PluginMapping(['available_resource', 'resource']).load_all(PluginManager('heat.engine.resources'))
        return dict(sorted(found))


def load(name: str) -> ResourceType[Any]:
    """The resource type that does what one of Heat's classes does.

    :raises ImportError: openstack-heat is not installed, or has no such type, or has another version.
    """
    found = _started().get(name)
    if found is None:
        raise ImportError(f'openstack-heat {version("openstack-heat")} has no type {name}')
    from convergence_heat.kind import heat_type

    return heat_type(name, found)


_lock = Lock()


def _started() -> dict[str, type[Any]]:
    """The classes, with all that they need at work: the constraints, and where servers find their metadata."""
    with _lock:
        return _started_once()


@cache
def _started_once() -> dict[str, type[Any]]:
    found = classes()
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    with _quiet(), _shared_options():
        from heat.engine import resources

        resources.initialise()
        if not cfg.CONF.heat_metadata_server_url:
            cfg.CONF.set_override('heat_metadata_server_url', NO_METADATA)
    return found


@contextmanager
def _shared_options() -> Iterator[None]:
    """Register the options of both programs on the global configuration. Ours come first and win where names are
    equal.

    Those of Heat with such a name concern its database and its host, which are not used here.
    """
    register, register_cli = cfg.ConfigOpts.register_opt, cfg.ConfigOpts.register_cli_opt

    def tolerant(self: cfg.ConfigOpts, opt: cfg.Opt, *arguments: Any, **options: Any) -> bool:
        try:
            return bool(register(self, opt, *arguments, **options))
        except cfg.DuplicateOptError:
            return False

    def as_others(self: cfg.ConfigOpts, opt: cfg.Opt, group: Any = None, **options: Any) -> bool:
        # A worker has read its command line long before it imports a class.
        return tolerant(self, opt, group)

    cfg.ConfigOpts.register_opt = tolerant  # type: ignore[method-assign]
    cfg.ConfigOpts.register_cli_opt = as_others  # type: ignore[method-assign]
    try:
        loading.register(cfg.CONF)
        yield
    finally:
        cfg.ConfigOpts.register_opt = register  # type: ignore[method-assign]
        cfg.ConfigOpts.register_cli_opt = register_cli  # type: ignore[method-assign]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of forty clients."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        yield
