"""The settings under which is measured: the defaults, without limits on sizes."""

from __future__ import annotations

from pathlib import Path

from convergence_simulator.real.launcher import Sections

from convergence.concurrency import Executor
from convergence.config import (
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    SecretSettings,
    Settings,
    TransportSettings,
    WorkerSettings,
)

KEYS = 'convergence.keys'
TEMPLATE_LIMIT_BYTES = 64 * 1024 * 1024


def settings_for(directory: Path, database_url: str, broker_url: str) -> Settings:
    """Settings for processes that share a database and a broker. No configuration file is read.

    Keys to seal with are taken from the file `KEYS` in the directory, where there is one.
    """
    keys = directory / KEYS
    return Settings(
        host='localhost',
        executor=Executor.THREADING,
        state_dir=directory,
        database=DatabaseSettings(database_url, max_retries=2, retry_interval=1),
        transport=TransportSettings(broker_url),
        engine=EngineSettings(),
        worker=WorkerSettings(),
        secrets=SecretSettings(key_file=keys.absolute() if keys.exists() else None),
        limits=LimitSettings(
            max_template_bytes=TEMPLATE_LIMIT_BYTES, max_resources_per_stack=None, max_stacks_per_project=None
        ),
        local_provider=LocalProviderSettings(enabled=False, root=directory / 'local', programs={}),
    )


def configured(directory: Path, prefix: str, database_url: str, broker_url: str) -> Sections:
    """The same, for the configuration file of processes of their own.

    :param prefix: keeps apart those who share a broker.
    """
    return {
        'DEFAULT': {'host': 'localhost', 'state_dir': directory, 'control_exchange': prefix},
        'database': {'connection': database_url},
        'transport': {'url': broker_url},
        'secrets': {'key_file': directory / KEYS},
        'limits': {
            'max_template_bytes': TEMPLATE_LIMIT_BYTES,
            'max_resources_per_stack': -1,
            'max_stacks_per_project': -1,
        },
        'api': {'port': 0, 'token_file': directory / 'token'},
    }
