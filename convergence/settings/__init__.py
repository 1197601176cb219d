"""The settings: one frozen record for each section of the configuration file, and the declaration of its options.

Each field is declared once, with `convergence.settings.declaring.option`: its default, its bounds and its help. The
package `convergence.config` derives the options of oslo.config from these records and fills them; every other part of
the program takes the record, or a slice of it. Nothing here reads a file or knows oslo.config.
"""

from convergence.settings.api import ApiSettings
from convergence.settings.credentials import CredentialSettings
from convergence.settings.database import DatabaseSettings
from convergence.settings.engine import EngineSettings
from convergence.settings.general import GeneralSettings
from convergence.settings.limits import LimitSettings
from convergence.settings.local_provider import LocalProviderSettings
from convergence.settings.notifications import NotificationSettings
from convergence.settings.observer import ObserverSettings
from convergence.settings.plugins import PluginSettings
from convergence.settings.secrets import SecretSettings
from convergence.settings.transport import TransportSettings
from convergence.settings.worker import WorkerSettings

__all__ = (
    'ApiSettings',
    'CredentialSettings',
    'DatabaseSettings',
    'EngineSettings',
    'GeneralSettings',
    'LimitSettings',
    'LocalProviderSettings',
    'NotificationSettings',
    'ObserverSettings',
    'PluginSettings',
    'SecretSettings',
    'TransportSettings',
    'WorkerSettings',
)
