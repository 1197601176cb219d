"""Settings of every process."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class GeneralSettings:
    """The section ``DEFAULT``."""

    host: str = option(
        socket.gethostname(),
        'Name of this machine in the service list and in log lines.',
        sample='<name of this machine>',
    )
    executor: str = option(
        'threading',
        'Kind of threads that run concurrent work. A process reads it once, when it starts.',
        choices=[
            ('threading', 'native threads; right for most installations'),
            ('eventlet', 'green threads: cheap for many waiting actions, but any blocking C call stalls all of them'),
        ],
    )
    state_dir: str = option(
        'convergence-data',
        'Directory of the default SQLite database, of the files of the local provider and of the API token. A relative '
        'path counts from the working directory.',
    )
