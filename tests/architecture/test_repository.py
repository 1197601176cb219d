"""The repository as a whole: it names no machine, its documents link to what is there, its commands exist."""

import ast
import configparser
import dataclasses
import re
import subprocess

import docutils.core
import docutils.utils
import pytest

from tests.architecture.source import PACKAGE, ROOT

# The brackets keep this file from finding itself.
FOREIGN = re.compile(r'/wor[k]/|/hom[e]/[a-z]|/roo[t]/|pyp[i]\.(?:org|python)|pytho[n]hosted')


def tracked() -> list[str]:
    """Text files of the repository: those git knows, or in a tarball without git every plausible one."""
    done = subprocess.run(['git', 'ls-files', '-z'], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return [name for name in done.stdout.split('\0') if name and (ROOT / name).is_file()]
    suffixes = {'.py', '.rst', '.cfg', '.toml', '.ini', '.yaml', '.conf', '.sample', '.service'}
    folders = ('convergence', 'docs', 'etc', 'examples', 'migrations', 'plugins', 'simulator', 'tests')
    found = [path for folder in folders for path in (ROOT / folder).rglob('*') if path.suffix in suffixes]
    return [str(path.relative_to(ROOT)) for path in found]


def test_no_machine_and_no_registry_is_named():
    found = []
    for name in tracked():
        text = (ROOT / name).read_text(encoding='utf-8', errors='replace')
        found += [
            f'{name}:{number} {line.strip()}'
            for number, line in enumerate(text.splitlines(), 1)
            if FOREIGN.search(line)
        ]
    assert found == []


def documents() -> list[str]:
    """Every document that people read."""
    paths = [*ROOT.glob('*.rst'), *(ROOT / 'docs').rglob('*.rst')]
    paths += [
        *ROOT.glob('plugins/*/README.rst'),
        ROOT / 'simulator' / 'README.rst',
        ROOT / 'examples' / 'README.rst',
        ROOT / 'tests' / 'scenarios' / 'README.rst',
    ]
    # The reference is made by Sphinx, which looks at it itself: make docs.
    made = {path for path in paths if path.parent.name == 'reference' and path.name != 'index.rst'}
    return sorted(str(path.relative_to(ROOT)) for path in paths if path not in made)


@pytest.mark.parametrize('name', documents())
def test_a_document_is_well_formed_and_its_links_lead_somewhere(name):
    path = ROOT / name
    text = path.read_text(encoding='utf-8')
    settings = {'report_level': docutils.utils.Reporter.WARNING_LEVEL, 'halt_level': 2, 'file_insertion_enabled': False}
    tree = docutils.core.publish_doctree(text, source_path=str(path), settings_overrides=settings)
    dead = []
    for node in tree.findall(docutils.nodes.reference):
        target = node.get('refuri', '').partition('#')[0]
        if target and '://' not in target and not target.startswith('mailto:') and not (path.parent / target).exists():
            dead.append(target)
    assert dead == []


def test_contributors_are_told_what_to_run_for_each_package():
    text = (ROOT / 'CONTRIBUTING.rst').read_text(encoding='utf-8')
    packages = {path.parent.name for path in (ROOT / 'convergence').glob('*/__init__.py')} - {'migrations'}
    assert packages - set(re.findall(r'^``convergence/(\w+)``', text, re.MULTILINE)) == set()
    assert [
        name for name in re.findall(r'(?:\bsimulator/)?\btests/[\w./]*\w', text) if not (ROOT / name).exists()
    ] == []


def test_the_readme_says_what_each_folder_is_for():
    said = (ROOT / 'README.rst').read_text(encoding='utf-8').partition('Where everything lives\n====')[2]
    packages = [f'convergence/{path.name}/' for path in PACKAGE.iterdir() if (path / '__init__.py').is_file()]
    folders = [*packages, *(f'plugins/{path.name}/' for path in (ROOT / 'plugins').iterdir() if path.is_dir())]
    folders.remove('convergence/migrations/')  # a link
    assert [folder for folder in sorted(folders) if f'``{folder}``' not in said] == []


def test_every_document_can_be_reached_from_the_index():
    seen, todo = set(), [ROOT / 'docs' / 'index.rst']
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        tree = docutils.core.publish_doctree(path.read_text(encoding='utf-8'), source_path=str(path))
        for node in tree.findall(docutils.nodes.reference):
            target = node.get('refuri', '').partition('#')[0]
            linked = (path.parent / target).resolve()
            if target.endswith('.rst') and '://' not in target and linked.exists():
                todo.append(linked)
    unreachable = {path.resolve() for path in (ROOT / 'docs').rglob('*.rst')} - seen
    assert sorted(str(path.relative_to(ROOT)) for path in unreachable) == []


def entry_points() -> list[str]:
    """What setup.cfg promises, as ``group: name = target``."""
    parser = configparser.ConfigParser(delimiters=('=',))
    parser.optionxform = str
    parser.read(ROOT / 'setup.cfg')
    return [
        f'{group}: {line.strip()}'
        for group, lines in parser['options.entry_points'].items()
        for line in lines.splitlines()
        if line.strip()
    ]


@pytest.mark.parametrize('promise', entry_points())
def test_every_entry_point_leads_somewhere(promise):
    from importlib import import_module

    module, _, attribute = promise.rpartition('=')[2].strip().partition(':')
    assert callable(getattr(import_module(module), attribute))


def test_the_built_in_types_are_offered_by_the_installation():
    """`Registry.installed` knows entry points only: a type that has none would work in tests and nowhere else."""
    from convergence.resources.builtin import builtin_types

    offered = {
        line.removeprefix('convergence.resource_types: ').partition(' = ')[0]
        for line in entry_points()
        if line.startswith('convergence.resource_types: ')
    }
    assert offered == set(builtin_types())


def test_every_option_has_an_effect():
    """An option that nothing reads is a promise to operators that is not kept."""
    from convergence import config
    from tests.architecture.source import sources

    read = {
        node.attr
        for source in sources()
        if not source.module.startswith('convergence.config')
        for node in source.nodes
        if isinstance(node, ast.Attribute)
    }
    settings = [kind for kind in vars(config).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    unread = {f'{kind.__name__}.{field.name}' for kind in settings for field in dataclasses.fields(kind)}
    unread -= {'Settings.state_dir', 'ApiSettings.insecure'}  # take effect in config: paths are made from them, or not
    assert {name for name in unread if name.partition('.')[2] not in read} == set()
