"""Names: a class has one owner, and each word of the glossary means one thing that is there."""

from __future__ import annotations

import ast
import enum
import re
from collections import defaultdict
from importlib import import_module
from itertools import chain

import docutils.core
import docutils.nodes
import pytest

from tests.architecture.source import PACKAGE, ROOT, SIMULATOR, sources

TWO_OWNERS = {
    'Status': 'of an action, in the core; of the support of a type, in the contract for authors of types',
    'Template': "a row of the core; and a word of the scenarios' language, whose values print themselves",
}
"""Public names of classes that may stand for two, and for which ones."""

CENTRAL = frozenset(
    {
        *(
            'action',
            'adopt',
            'backlog',
            'check',
            'claim',
            'cleanup',
            'converge',
            'definition',
            'dispatch window',
            'drain',
        ),
        *('effect', 'engine', 'event', 'fence', 'goal', 'hint', 'hook', 'in service', 'intent', 'last good template'),
        *('lease', 'leftover', 'message', 'node', 'node check', 'observation', 'operation', 'output', 'owner', 'park'),
        *('phase', 'physical id', 'plan', 'progress', 'ready', 'replace', 'resource', 'resource type', 'rollback'),
        *('signal', 'snapshot', 'stack', 'stall', 'status', 'step', 'supersede', 'sweeper', 'sync point', 'token'),
        *('traversal', 'worker'),
        *('arrive', 'clearing', 'drift', 'foreign object', 'implied', 'repairable', 'notice', 'outbox', 'relay'),
    }
)
"""The words with which the core tells what it does."""


def owners() -> dict[str, list[str]]:
    """The modules that define each public class."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources():
        if source.path.is_relative_to(PACKAGE) or source.path.is_relative_to(SIMULATOR):
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                    found[node.name].append(source.module)
    return found


def aliases() -> dict[str, list[str]]:
    """The modules that define each public name of a type; type variables are no more than letters."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources():
        if source.path.is_relative_to(PACKAGE) or source.path.is_relative_to(SIMULATOR):
            for node in source.tree.body:
                match node:
                    case ast.Assign(targets=[ast.Name(name)], value=value) if 'TypeVar' not in ast.unparse(value):
                        pass
                    case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name('TypeAlias')):
                        pass
                    case _:
                        continue
                if name[0].isupper() and not name.isupper():
                    found[name].append(source.module)
    return found


def test_a_name_of_a_type_is_that_of_no_class_and_has_one_owner():
    classes = owners()
    named = aliases()
    assert len(named) > 20
    assert {name: [*modules, *classes[name]] for name, modules in named.items() if name in classes} == {}
    assert {name: modules for name, modules in named.items() if len(modules) > 1} == {}


def test_no_class_name_has_two_owners():
    shared = {name: modules for name, modules in owners().items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in TWO_OWNERS} == {}
    assert {name: len(modules) for name, modules in shared.items()} == dict.fromkeys(TWO_OWNERS, 2)


def document(name: str) -> docutils.nodes.document:
    """A page of the documentation, parsed."""
    return docutils.core.publish_doctree((ROOT / 'docs' / name).read_text(encoding='utf-8'))


def entries() -> list[tuple[str, docutils.nodes.definition]]:
    """Each term of the glossary, with what is said of it."""
    return [
        (item.next_node(docutils.nodes.term).astext(), item.next_node(docutils.nodes.definition))
        for item in document('glossary.rst').findall(docutils.nodes.definition_list_item)
    ]


def stored_words() -> set[str]:
    """The values of the enumerations of the core."""
    modules = [import_module(source.module) for source in sources() if source.module.startswith('convergence.core.')]
    kinds = [each for module in modules for each in vars(module).values() if isinstance(each, enum.EnumMeta)]
    return {str(member.value) for kind in kinds for member in kind}


def is_there(literal: str) -> bool:
    """Whether a table, a column, a stored word, an option, a class or a member of one has such a name."""
    from convergence.config.loading import OPTIONS
    from convergence.db.schema.models import METADATA

    option = re.fullmatch(r'\[(\w+)\] (\w+)', literal)
    if option is not None:
        return option[2] in {each.name for each in OPTIONS.get(option[1], ())}
    if literal in METADATA.tables or literal in stored_words() or literal in owners():
        return True
    before, _, after = literal.partition('.')
    if before in METADATA.tables:
        return after in METADATA.tables[before].columns
    return any(hasattr(getattr(import_module(module), before), after) for module in owners().get(before, ()))


@pytest.mark.parametrize(('term', 'said'), entries(), ids=lambda each: each if isinstance(each, str) else '')
def test_what_an_entry_names_is_there(term, said):
    names = [each.astext() for each in said.findall(docutils.nodes.literal)]
    assert [name for name in names if not is_there(name)] == []


def test_a_name_that_is_not_there_is_found():
    assert not any(
        is_there(each) for each in ('resource.colour', 'COLOURED', '[engine] colour', 'Step.COLOUR', 'Colour')
    )


def test_each_word_is_explained_once_and_in_order():
    terms = [term for term, _ in entries()]
    assert terms == sorted(set(terms))


def test_every_central_word_is_explained():
    assert CENTRAL - {term for term, _ in entries()} == set()


def test_an_entry_that_lists_stored_words_lists_all_of_them():
    from convergence.core.model import Action, Phase, Status, TraversalStatus

    said = {term: {each.astext() for each in text.findall(docutils.nodes.literal)} for term, text in entries()}
    for term, kind in (('action', Action), ('phase', Phase), ('status', Status), ('traversal', TraversalStatus)):
        assert {member.value for member in kind} == {each for each in said[term] if each.isupper()}, term


@pytest.mark.parametrize('name', ['glossary.rst', 'how-it-works.rst'])
def test_a_word_in_italics_is_in_the_glossary(name):
    terms = {term for term, _ in entries()}
    forms = set(chain.from_iterable((term, f'{term}s', f'{term}d', f'{term}ed') for term in terms)) | {'italics'}
    assert {each.astext() for each in document(name).findall(docutils.nodes.emphasis)} - forms == set()
