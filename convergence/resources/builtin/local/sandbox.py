"""File operations that cannot leave one directory.

Each path is checked here, however it came: as a property, as the id of an object that is to be taken over, or from a
row. Every step from the root to the target is opened relative to the one before and without following symbolic links,
so neither ``..`` nor a link, not even one that appears while we work, leads outside. Only regular files are opened:
a pipe or a device may hold a thread, or never end.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from convergence.resources.contract import FinalFailure, ObjectNotFound

STATE = '.convergence'
"""Directory below the root in which the provider keeps its own records; closed to templates."""

NAME_LIMIT_BYTES = 240
"""Longest name of a file or directory: file systems take 255 bytes, and a file that is being written has a suffix."""
PATH_LIMIT_BYTES = 1024
READ_LIMIT_BYTES = 8 * 1024 * 1024
"""Largest file that is read."""
_PIECE_BYTES = 64 * 1024
"""Bytes of one read: a buffer for the largest file costs more than the read of a small file."""

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNPRINTABLE = frozenset(('Cc', 'Cf', 'Cs', 'Zl', 'Zp'))
"""Categories of the characters that move the cursor, begin a line or turn the direction of a text."""
_JOINERS = frozenset('\u200c\u200d')
"""Belong to the spelling of some languages."""


def checked(path: str) -> str:
    """`path` in its one normal spelling.

    :raises ValueError: it is empty, absolute, climbs with ``..``, enters the provider's own records, is too long for a
        file system, or has characters that would make a listing of it lie.
    """
    parts = PurePosixPath(path).parts
    if not parts or '\0' in path:
        raise ValueError('the path must be below the root directory')
    if path.startswith('/') or '..' in parts:
        raise ValueError('the path must be relative to the root directory and must not contain ..')
    if parts[0] == STATE:
        raise ValueError(f'{STATE} belongs to the local provider')
    for character in '' if path.isprintable() else path:
        if unicodedata.category(character) in _UNPRINTABLE and character not in _JOINERS:
            raise ValueError(f'the path must not contain the character U+{ord(character):04X}, which cannot be seen')
    if any(len(part.encode()) > NAME_LIMIT_BYTES for part in parts):
        raise ValueError(f'the path has a name of more than {NAME_LIMIT_BYTES} bytes')
    if len(path.encode()) > PATH_LIMIT_BYTES:
        raise ValueError(f'the path has more than {PATH_LIMIT_BYTES} bytes')
    return '/'.join(parts)


class Sandbox:
    """Files and directories below `root`. Paths are relative to it.

    :raises FinalFailure: from every method, where a path is not one that `checked` accepts, or leads through a symbolic
        link or something in the way.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def absolute(self, path: str) -> str:
        """The absolute path, for people and programs."""
        return str(self._root / _below_root(path))

    def exists(self, path: str) -> bool:
        """Return True if the path exists."""
        try:
            with self._parent(path) as (parent, name):
                os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, ObjectNotFound):
            return False
        return True

    def is_directory(self, path: str) -> bool:
        """Return True if the path is a directory."""
        try:
            with self._parent(path) as (parent, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except (FileNotFoundError, ObjectNotFound):
            return False

    def make_directory(self, path: str) -> None:
        """Make a directory; one that is there already is fine. The parent must exist."""
        with self._parent(path) as (parent, name):
            try:
                os.mkdir(name, mode=0o755, dir_fd=parent)
            except FileExistsError:
                os.close(self._enter(parent, name, path))

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory.

        :raises OSError: it is not empty; FileNotFoundError: it is not there.
        """
        with self._parent(path) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it; links are removed, not followed."""
        with self._parent(path) as (parent, name):
            shutil.rmtree(name, dir_fd=parent)

    def entries(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        with self._parent(path) as (parent, name):
            descriptor = self._enter(parent, name, path)
            try:
                return sorted(os.listdir(descriptor))
            finally:
                os.close(descriptor)

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Put a file there, all at once: a reader sees the old content or the new."""
        with self._parent(path) as (parent, name):
            if _is_directory(parent, name):
                raise FinalFailure(f'{path} is a directory; choose another path for the file')
            temporary = f'.{name}.{secrets.token_hex(4)}'
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, mode=0o600, dir_fd=parent)
            try:
                with os.fdopen(descriptor, 'wb') as file:
                    file.write(content)
                    file.flush()
                    os.fchmod(file.fileno(), mode)
                    os.fsync(file.fileno())
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                _remove_if_there(parent, temporary)
                raise

    def read(self, path: str) -> tuple[bytes, int]:
        """Content and permission bits of a file.

        :raises ObjectNotFound: it is not there.
        :raises FinalFailure: it is no regular file, or a larger one than is ever read.
        """
        with self._parent(path) as (parent, name):
            descriptor = _open_regular(parent, name, path, os.O_RDONLY)
            try:
                content = bytearray()
                while piece := os.read(descriptor, _PIECE_BYTES):
                    content += piece
                    if len(content) > READ_LIMIT_BYTES:
                        raise FinalFailure(f'{path} has more than {READ_LIMIT_BYTES} bytes; it is not read')
                return bytes(content), stat.S_IMODE(os.fstat(descriptor).st_mode)
            finally:
                os.close(descriptor)

    def open_log(self, path: str) -> int:
        """A descriptor that appends to a file, which is made where needed."""
        with self._parent(path) as (parent, name):
            return _open_regular(parent, name, path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def open_directory(self, path: str | None) -> int:
        """A descriptor of a directory; None is the root."""
        if path is None:
            return os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with self._parent(path) as (parent, name):
            return self._enter(parent, name, path)

    def remove_file(self, path: str) -> None:
        """Remove a file.

        :raises ObjectNotFound: it is not there.
        """
        with self._parent(path) as (parent, name):
            try:
                os.unlink(name, dir_fd=parent)
            except FileNotFoundError as error:
                raise ObjectNotFound(f'{path} does not exist') from error

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The opened directory that holds `path`, and the last name of it."""
        *parents, name = _below_root(path).split('/')
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for parent in parents:
                entered = self._enter(descriptor, parent, path)
                os.close(descriptor)
                descriptor = entered
            yield descriptor, name
        finally:
            os.close(descriptor)

    def _enter(self, parent: int, name: str, path: str) -> int:
        try:
            return os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
        except FileNotFoundError as error:
            raise ObjectNotFound(f'{path}: the directory {name} does not exist') from error
        except OSError as error:
            raise FinalFailure(f'{path}: {name} is a symbolic link or no directory; it is not entered') from error


def _below_root(path: str) -> str:
    try:
        return checked(path)
    except ValueError as error:
        raise FinalFailure(f'{path[:100]!a} cannot be used: {error}') from None


def _open_regular(parent: int, name: str, path: str, flags: int) -> int:
    """Return a descriptor of a regular file. Does not block on anything else with that name, such as a pipe."""
    try:
        # A device may do something already when it is opened.
        if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise FinalFailure(f'{path} is no regular file; it is not opened')
    except FileNotFoundError as error:
        if not flags & os.O_CREAT:
            raise ObjectNotFound(f'{path} does not exist') from error
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, mode=0o600, dir_fd=parent)
    except FileNotFoundError as error:
        raise ObjectNotFound(f'{path} does not exist') from error
    except OSError as error:
        raise FinalFailure(f'{path} cannot be opened: {error.strerror}') from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FinalFailure(f'{path} is no regular file; it is not opened')
    os.set_blocking(descriptor, True)
    return descriptor


def _is_directory(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _remove_if_there(parent: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
