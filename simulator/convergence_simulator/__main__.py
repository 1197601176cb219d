"""``python -m convergence_simulator`` is ``convergence-simulate``."""

from __future__ import annotations

import sys

from convergence_simulator.cli.main import main

if __name__ == '__main__':
    sys.exit(main())
