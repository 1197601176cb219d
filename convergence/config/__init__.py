"""Reads the configuration: the options of oslo.config, derived from `convergence.settings`, and the filled records.

Options are for operators: names, defaults and help texts, read from files and the command line. Settings are for code:
frozen records with the right types, checked once. Only `convergence.cmd` calls `load`; every other part takes the
record that concerns it and never gets a `ConfigOpts`.
"""

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
from convergence.settings import (
    ApiSettings,
    CredentialSettings,
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    NotificationSettings,
    ObserverSettings,
    PluginSettings,
    SecretSettings,
    TransportSettings,
    WorkerSettings,
)

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
