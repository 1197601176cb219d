"""``make bench``: see `tests.bench.program`."""

import logging
import sys

logging.captureWarnings(True)  # libraries warn while they are imported; nobody is told

from tests.bench.program import main  # noqa: E402 - not before that

if __name__ == '__main__':
    sys.exit(main())
