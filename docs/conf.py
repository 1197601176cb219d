"""How Sphinx makes a site of the documentation: ``make docs``. Nothing is fetched while it builds."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
# This directory, for the extensions that it has.
sys.path.insert(0, str(HERE))

import convergence  # noqa: E402 - the path comes first

project = 'Convergence'
author = 'The Convergence authors'
copyright = author
version = release = convergence.__version__

extensions = [
    'log_messages',
    'relative_links',
    'sphinx.ext.autodoc',
    'sphinx.ext.viewcode',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
]
# The source directory is the top of the repository, so that README and examples are pages too.
include_patterns = ['*.rst', 'docs/*.rst', 'docs/**/*.rst', 'examples/*.rst', 'plugins/*/*.rst']
include_patterns += ['tests/scenarios/*.rst']
exclude_patterns = ['.*', 'build', 'dist', '*.egg-info', 'convergence-data']
root_doc = 'docs/index'
default_role = 'code'
nitpicky = True
nitpick_ignore_regex = [
    # Names of the standard library and of other packages: their references are on other sites.
    ('py:.*', r'(?:typing|collections|dataclasses|enum|datetime|importlib|pathlib|oslo_\w+)\..*'),
    # What signatures name of the engine's own modules, which have no page; and variables of types.
    ('py:.*', r'convergence\.(?:core|template|resources|testing|engine|errors|worker|concurrency)\..*'),
    ('py:.*', r'[A-Z]\w*|bool \| int .*'),
]

autodoc_default_options = {'members': True, 'member-order': 'bysource', 'show-inheritance': True}
autodoc_typehints = 'signature'
autodoc_typehints_format = 'short'
python_use_unqualified_type_names = True

html_theme = 'furo'
html_title = f'Convergence {release}'
html_extra_path = ['site']
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = 'friendly'
pygments_dark_style = 'native'
