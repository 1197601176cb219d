"""Writes the manifest: ``python -m convergence_openstack.writing [FILE]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from convergence.resources.manifest import FORMAT, entry_of
from convergence_openstack import FILE
from convergence_openstack.library import TYPES, load


def document() -> dict[str, Any]:
    """Return the manifest as a document."""
    return {'format': FORMAT, 'types': {name: entry_of(load(name)) for name in sorted(TYPES)}}


def main(arguments: list[str]) -> None:
    """Write it into a file, or beside this module."""
    file = Path(arguments[0]) if arguments else Path(__file__).with_name(FILE)
    file.write_text(json.dumps(document(), indent=1, ensure_ascii=False) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main(sys.argv[1:])
