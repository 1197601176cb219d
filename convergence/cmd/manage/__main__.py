"""``python -m convergence.cmd.manage`` is ``convergence-manage``."""

from __future__ import annotations

import sys

from convergence.cmd.manage.command import main

if __name__ == '__main__':
    sys.exit(main())
