"""Every configuration option, and the settings that are made from them: one module for each group.

Options are for operators: names, defaults and help texts, read from files and the command line. Settings are for
code: frozen values with the right types, checked once. Only `convergence.cmd` calls `load`; everything else is
handed the settings object that concerns it and never sees a `ConfigOpts`.
"""

from convergence.config.api import ApiSettings
from convergence.config.credentials import CredentialSettings
from convergence.config.database import DatabaseSettings
from convergence.config.engine import EngineSettings
from convergence.config.limits import LimitSettings
from convergence.config.loading import (
    OPTIONS,
    Defaults,
    Settings,
    exposed_files,
    list_opts,
    load,
    register,
    settings,
    unknown_options,
)
from convergence.config.local_provider import LocalProviderSettings
from convergence.config.notifications import NotificationSettings
from convergence.config.observer import ObserverSettings
from convergence.config.plugins import PluginSettings
from convergence.config.secrets import SecretSettings
from convergence.config.transport import TransportSettings
from convergence.config.worker import WorkerSettings

__all__ = (
    'OPTIONS',
    'ApiSettings',
    'CredentialSettings',
    'DatabaseSettings',
    'Defaults',
    'EngineSettings',
    'LimitSettings',
    'LocalProviderSettings',
    'NotificationSettings',
    'ObserverSettings',
    'PluginSettings',
    'SecretSettings',
    'Settings',
    'TransportSettings',
    'WorkerSettings',
    'exposed_files',
    'list_opts',
    'load',
    'register',
    'settings',
    'unknown_options',
)
