"""The source code of the package, parsed: what the architecture tests look at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / 'convergence'
SIMULATOR = ROOT / 'simulator'


@dataclass(frozen=True)
class Source:
    """One file. `name` is its path from the top, `module` what it is imported as."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Path from the top of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def module(self) -> str:
        """Dotted name."""
        return self.name.removesuffix('.py').removesuffix('/__init__').removeprefix('simulator/').replace('/', '.')

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All that it consists of, found once: dozens of tests go through it."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """Line and dotted name of everything that it imports, wherever in the file."""
        found: list[tuple[int, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found += [(node.lineno, f'{node.module}.{alias.name}') for alias in node.names]
        return tuple(found)


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the package, of the simulator and of the migrations, each once."""
    links = {path for path in PACKAGE.iterdir() if path.is_symlink()}
    paths = [path for path in PACKAGE.rglob('*.py') if not links.intersection(path.parents)]
    paths += (ROOT / 'migrations').rglob('*.py')
    paths += (SIMULATOR / 'convergence_simulator').rglob('*.py')
    return tuple(parse(path) for path in sorted(paths))


def parse(path: Path) -> Source:
    """One file, parsed."""
    text = path.read_text(encoding='utf-8')
    return Source(path, text, ast.parse(text, filename=str(path)))


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is a package or something inside it."""
    return name == package or name.startswith(f'{package}.')


def public(tree: ast.Module | ast.ClassDef, prefix: str = '') -> Iterator[tuple[str, ast.AST]]:
    """Every public class, function and method, with its dotted name inside the file."""
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith('_'):
            continue
        yield f'{prefix}{node.name}', node
        if isinstance(node, ast.ClassDef):
            yield from public(node, f'{prefix}{node.name}.')
