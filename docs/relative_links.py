"""A Sphinx extension: relative links, as a reader of the repository follows them, work on the site as well.

A link to a page leads to the page, one with ``#section`` to the section; a link to any other file of the repository
offers that file; a link to a directory is shown as text. The navigation of the site is made of the links
of each page in `TABLES`, in their order, so that no page says it twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOG = logging.getLogger(__name__)
TABLES = {'docs/index', 'docs/decisions/index', 'docs/reference/index', 'docs/tutorial/index'}
"""Pages whose links are the navigation."""
LINK = re.compile(r'<([\w./-]+)\.rst>`__')


class RelativeLinks(SphinxTransform):
    """Turn each relative link of a page into what it means on the site."""

    default_priority = 5

    def apply(self, **kwargs: Any) -> None:
        """Replace the links of one page."""
        for node in list(self.document.findall(nodes.reference)):
            address = node.get('refuri', '')
            if not address or re.match(r'[a-z]+:', address):
                continue
            node.replace_self(self._link(node, address))

    def _link(self, node: nodes.reference, address: str) -> list[nodes.Node]:
        name, _, section = address.partition('#')
        top = Path(self.app.srcdir).resolve()
        path = (Path(self.env.doc2path(self.env.docname)).parent / name).resolve()
        if not path.is_relative_to(top) or not path.exists():
            LOG.warning('a link leads nowhere: %s', address, location=node)
            return list(node.children)
        inside = path.relative_to(top)
        page = inside.with_suffix('').as_posix()
        if inside.suffix == '.rst' and page in self.env.found_docs:
            return [_to_page(node, self.env.docname, page, section)]
        if path.is_dir():
            return list(node.children)
        place = addnodes.download_reference(
            '', '', refdoc=self.env.docname, reftarget=f'/{inside.as_posix()}', refexplicit=True, reftype='download'
        )
        place += node.children
        return [place]


def _to_page(node: nodes.reference, here: str, page: str, section: str) -> nodes.Node:
    """A link to a page, or to a section of it: resolved when all pages are known."""
    place = addnodes.pending_xref(
        '',
        refdoc=here,
        refdomain='std',
        reftype='doc',
        reftarget=f'/{page}',
        refexplicit=True,
        refwarn=True,
        section=section,
    )
    place.source, place.line = node.source, node.line
    place += nodes.inline('', '', *node.children)
    return place


def to_sections(app: Sphinx, document: nodes.document, page: str) -> None:
    """Add the section to links that name one; a section that the other page does not have is a warning."""
    for place in document.findall(addnodes.pending_xref):
        section = place.get('section')
        if not section:
            continue
        target = place['reftarget'].lstrip('/')
        if section not in _sections(app, target):
            LOG.warning('%s has no section %s', target, section, location=place)
        address = f'{app.builder.get_relative_uri(page, target)}#{section}'
        place.replace_self(nodes.reference('', '', *place.children, internal=True, refuri=address))


def _sections(app: Sphinx, page: str) -> set[str]:
    tree = app.env.get_doctree(page)
    return {name for section in tree.findall(nodes.section) for name in section['ids']}


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Append a hidden table of contents to the pages that are tables themselves."""
    if page not in TABLES:
        return
    folder = Path(app.srcdir, page).parent
    linked = list(dict.fromkeys((folder / name).resolve() for name in LINK.findall(source[0])))
    pages = [path.relative_to(Path(app.srcdir).resolve()).as_posix() for path in linked]
    lines = ''.join(f'   /{name}\n' for name in pages if name not in TABLES or name != page)
    source[0] += f'\n\n.. toctree::\n   :hidden:\n\n{lines}'


def without_foreign_modules(app: Sphinx) -> tuple[()]:
    """Keep modules without a page, such as ``builtins``, out of the list of sources: Sphinx would link to nothing."""
    modules = getattr(app.env, '_viewcode_modules', {})
    for name in [name for name, found in modules.items() if not found]:
        del modules[name]
    return ()


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_transform(RelativeLinks)
    app.connect('source-read', add_navigation)
    app.connect('doctree-resolved', to_sections)
    app.connect('html-collect-pages', without_foreign_modules, priority=100)
    return {'version': '1', 'parallel_read_safe': True, 'parallel_write_safe': True}
