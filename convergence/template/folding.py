"""Walks through values of a template and replaces the functions: by their values, or by calls that remain."""

from __future__ import annotations

from convergence.core.model import Json
from convergence.template.document import Document
from convergence.template.encoding import wrap
from convergence.template.functions.base import Compiling, EvaluationFailed, Function, is_call
from convergence.template.versions import Version

Path = tuple[str | int, ...]


class Folder:
    """Folds the values of one document. What is wrong goes to the problems of the document."""

    def __init__(self, document: Document, version: Version) -> None:
        self._document = document
        self._functions = version.functions
        self._remaining = 0
        self._refused = 0

    def fold(self, node: Json, path: Path, scope: Compiling) -> Json:
        """The value, encoded.

        :param path: where it stands.
        :raises RequestLimitExceeded: it would be too large.
        """
        if isinstance(node, dict):
            if len(node) == 1:
                key, argument = next(iter(node.items()))
                function = self._functions.get(key)
                if function is not None:
                    return self._call(function, argument, (*path, key), scope)
            return wrap({key: self.fold(value, (*path, key), scope) for key, value in node.items()})
        if isinstance(node, list):
            return [self.fold(value, (*path, index), scope) for index, value in enumerate(node)]
        return node

    def _call(self, function: Function, argument: Json, path: Path, scope: Compiling) -> Json:
        remaining, refused = self._remaining, self._refused
        encoded = self.fold(argument, path, scope)
        if self._refused != refused:
            return None  # one problem is told; what follows from it is not
        try:
            result = function.fold(encoded, self._remaining == remaining, scope)
        except EvaluationFailed as error:
            self._refused += 1
            self._document.problem(str(error), path, error.kind)
            return None
        if is_call(result):
            self._remaining += 1
        return result
