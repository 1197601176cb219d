"""Reads a template, its environments, and the files that they name.

Paths in ``get_file``, in the types of resources and in ``resource_registry`` are relative to the file that contains
them. Each file keeps the name that the template uses, because the engine looks it up by that name.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from convergence.errors import Place, Problem, RequestLimitExceeded, StackValidationFailed
from convergence.template.authoring.bundle import UNREADABLE, Bundle, named_files
from convergence.template.document import ParsedDocument
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read

STANDARD_INPUT = '-'

_REMOTE = ('http', 'https', 'swift', 'swift+http', 'swift+https', 'ftp')


def load(path: str, environments: Sequence[str], limits: Limits, written: str | None = None) -> Bundle:
    """Read a template, its environments and files.

    :param path: path of the template; ``-``: standard input.
    :param environments: paths of environments.
    :param written: the text of the template in an editor; None: read the file.
    :raises OSError: the template or an environment cannot be read.
    :raises StackValidationFailed: one of them is not text.
    """
    most = limits.max_expanded_bytes
    text = _text(path, most) if written is None else written
    texts = {name: _text(name, most) for name in environments}
    collection = _Collection(limits)
    collection.collect(text, path, 'template')
    for name, content in texts.items():
        collection.collect(content, name, name)
    homes = [_home(each) for each in (path, *environments)]
    return Bundle(path, text, texts, collection.files, tuple(collection.problems), collection.outside(homes))


class _Collection:
    """The files that were found so far."""

    def __init__(self, limits: Limits) -> None:
        self.files: dict[str, str] = {}
        self.problems: list[Problem] = []
        self._limits = limits
        self._origins: dict[str, Path] = {}

    def outside(self, homes: Sequence[Path]) -> tuple[str, ...]:
        """Return the files outside the given directories, with links resolved."""
        read_from = sorted({self._origins[name] for name in self.files})
        return tuple(str(each) for each in read_from if not any(each.is_relative_to(home) for home in homes))

    def collect(self, text: str, path: str, source: str) -> None:
        """Read the files that a document names, and recursively those that templates among them name.

        :param path: path of the document.
        :param source: name of the document in problems.
        """
        directory = Path.cwd() if path == STANDARD_INPUT else Path(path).parent
        try:
            document = read(text, source, self._limits, Problems())
        except (StackValidationFailed, RequestLimitExceeded):
            return  # The check of the document reports this error.
        for name, where, is_template in named_files(document):
            place = document.place(where)
            if urlsplit(name).scheme in _REMOTE:
                self._problem(f'The file {name} is not on this machine. Download it, and name the local file.', place)
                continue
            if '\0' in name:
                self._problem('The name of the file has invalid characters.', place)
                continue
            found = _located(name, directory, document)
            if name in self._origins:
                if self._origins[name] != found.resolve():
                    self._problem(f'The name {name} stands for two files: {self._origins[name]} and {found}.', place)
                continue
            self._origins[name] = found.resolve()
            self._read(name, found, place, is_template)

    def _read(self, name: str, found: Path, place: Place, is_template: bool) -> None:
        try:
            if found.exists() and not found.is_file():
                # A device or a pipe may be endless, and the template may come from another author.
                self._problem(f'{found} is not a regular file.', place)
                return
            self.files[name] = _text(str(found), self._limits.max_expanded_bytes)
        except StackValidationFailed as error:
            self._problem(error.problems[0].message, place)
        except OSError as error:
            near = difflib.get_close_matches(found.name, _names_in(found.parent), n=1)
            hint = f'Did you mean "{near[0]}"?' if near else ''
            self._problem(f'The file {found} cannot be read: {error.strerror or error}.', place, hint)
        else:
            if is_template:
                self.collect(self.files[name], str(found), name)

    def _problem(self, message: str, place: Place, hint: str = '') -> None:
        self.problems.append(Problem(message, place, hint, UNREADABLE))


def _home(path: str) -> Path:
    """Return the directory of a document that the user names."""
    return Path.cwd() if path == STANDARD_INPUT else Path(path).resolve().parent


def _text(path: str, most_bytes: int) -> str:
    """Return the text of a file.

    :raises StackValidationFailed: it is too large, or not UTF-8.
    """
    with contextlib.nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else open(path, 'rb') as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        problem = Problem(f'The file has more than {most_bytes} bytes.', Place(1, 1, path), kind=UNREADABLE)
        raise StackValidationFailed([problem])
    encoding = 'utf-16' if data[:2] in (b'\xff\xfe', b'\xfe\xff') else 'utf-8-sig'
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        column = error.start - data.rfind(b'\n', 0, error.start)
        problem = Problem('The file is not UTF-8 text.', Place(line, column, path), kind=UNREADABLE)
        raise StackValidationFailed([problem]) from None


def _located(name: str, directory: Path, document: ParsedDocument) -> Path:
    """Return the path of a named file."""
    parts = urlsplit(name)
    if parts.scheme == 'file':
        return Path(unquote(parts.path))
    registry = document.root.get('resource_registry') if isinstance(document.root, dict) else None
    base = registry.get('base_url') if isinstance(registry, dict) else None
    if isinstance(base, str) and urlsplit(base).scheme in ('', 'file'):
        return directory / unquote(urlsplit(base).path) / name
    return directory / name


def _names_in(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir()]
    except OSError:
        return []
