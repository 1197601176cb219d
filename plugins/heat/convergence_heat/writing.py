"""Writes the manifest of Heat's types: ``python -m convergence_heat.writing [FILE]``."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

from convergence.resources.manifest import FORMAT
from convergence_heat import FILE
from convergence_heat.describing import entry
from convergence_heat.library import classes


def text() -> str:
    """The manifest of the installed openstack-heat, as its file has it.

    :raises ImportError: openstack-heat is not installed, or has a version that does not go with this one.
    """
    types = [f'{json.dumps(name)}: {json.dumps(entry(name, plugin))}' for name, plugin in classes().items()]
    made_of = f'openstack-heat {version("openstack-heat")}'
    # A type a line, so that a new version of Heat shows which ones it has changed.
    lines = ',\n'.join(types)
    return f'{{"format": {FORMAT}, "made_of": "{made_of}", "types": {{\n{lines}\n}}}}\n'


def main() -> None:
    """Write the file that is named, or the one of the package."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name(FILE)
    path.write_text(text(), encoding='utf-8')


if __name__ == '__main__':
    main()
