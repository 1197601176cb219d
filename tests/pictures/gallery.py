"""Every picture by its name. The scenarios that some of them show stand in docs/how-it-works.rst."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from simulator.tests.document import DOCUMENT, programs, story_of
from tests.pictures.architecture import architecture
from tests.pictures.sequences import sequence
from tests.pictures.states import resource_states, stack_states
from tests.pictures.traversals import diamond, played, replacement

FOLDER = DOCUMENT.parent / 'pictures'


def pictures() -> dict[str, str]:
    """All of them, drawn now."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as directory:
            return {**_of_scenarios(Path(directory)), **_of_tables()}
    finally:
        logging.disable(before)


def _of_tables() -> dict[str, str]:
    return {'architecture': architecture(), 'stack-states': stack_states(), 'resource-states': resource_states()}


def _of_scenarios(folder: Path) -> dict[str, str]:
    told = programs(DOCUMENT.read_text(encoding='utf-8'))
    paths = {}
    for name, (_, program) in told.items():
        paths[name] = folder / f'{name}.py'
        paths[name].write_text(program, encoding='utf-8')
    create = story_of('create', *told['create'])
    supersede = story_of('supersede', *told['supersede'])
    return {
        'create': sequence(create, 'How a stack of two resources is created'),
        'supersede': sequence(supersede, 'An update supersedes a creation'),
        'diamond': diamond(played(paths['diamond'])),
        'replace': replacement(played(paths['replace'])),
    }
