"""The known differences, their page, and the check for an installed reference."""

from pathlib import Path

import pytest
import yaml

from tests.differential.compare import PYTHON, interpreter
from tests.services import SERVICES

KNOWN = yaml.safe_load(Path(__file__).with_name('differences.yaml').read_text(encoding='utf-8'))
PAGE = (Path(__file__).parents[2] / 'docs' / 'differences.rst').read_text(encoding='utf-8')


def require_reference():
    """Skip what asks the reference where it is not installed, and have the end of the run say so."""
    if interpreter() is None:
        reason = f'install the extra differential, or name a Python that has openstack-heat in {PYTHON}'
        SERVICES.missing['the reference engine'] = reason
        pytest.skip(reason)
