"""What concerns every process."""

from __future__ import annotations

import socket

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'host',
        default=socket.gethostname(),
        sample_default='<name of this machine>',
        help='Name under which the processes of this machine appear in the service list and in log lines.',
    ),
    cfg.StrOpt(
        'executor',
        default='threading',
        choices=[
            ('threading', 'native threads; right for nearly everybody'),
            ('eventlet', 'green threads: cheap for many waiting actions, stalled by any blocking C call'),
        ],
        help='What concurrent work runs on. Chosen once per process, at its start.',
    ),
    cfg.StrOpt(
        'state_dir',
        default='convergence-data',
        help='Directory of everything that is kept when nothing else is configured: the SQLite database and what '
        'the local provider makes. A relative path counts from the working directory.',
    ),
]
