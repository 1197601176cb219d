"""Functions that make addresses."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import quote, urlencode, urlunsplit

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.encoding import entries_of, escaped
from convergence.template.functions.base import Evaluating, EvaluationFailed, Function, is_call, type_name, wrong_keys
from convergence.template.functions.text import index_of

_TEXTS = ('scheme', 'username', 'password', 'host', 'path', 'fragment')
_KEYS = ('scheme', 'username', 'password', 'host', 'port', 'path', 'query', 'fragment')
_LAST_PORT = 65_535


class MakeUrl(Function):
    """The URL made of its parts."""

    name: ClassVar[str] = 'make_url'
    code: ClassVar[str] = 'make_url'

    @override
    def check(self, argument: Json) -> None:
        """Require a map of parts."""
        if is_call(argument):
            return
        parts = entries_of(argument)
        if parts is None or not set(parts) <= set(_KEYS):
            raise wrong_keys(f'make_url needs a map with keys among {", ".join(_KEYS)}', parts or (), _KEYS)
        for name in _TEXTS:
            text = parts.get(name)
            if isinstance(text, dict | list) and not is_call(text):
                raise EvaluationFailed(f'make_url: {name} must be a string, not {type_name(text)}.')
        query, port, scheme = parts.get('query'), parts.get('port'), parts.get('scheme')
        if not (query is None or isinstance(query, dict)):
            raise EvaluationFailed(f'make_url: query must be a map, not {type_name(query)}.')
        if not (port is None or is_call(port)):
            number = index_of(port)
            if number is None or not 0 < number <= _LAST_PORT:
                raise EvaluationFailed(f'make_url: Invalid port, must be between 1 and {_LAST_PORT}.')
        if isinstance(scheme, str) and (':' in scheme or '/' in scheme):
            raise EvaluationFailed('make_url: Invalid scheme, it must not contain a colon or a slash.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the URL."""
        self.check(escaped(argument))
        assert isinstance(argument, dict)
        text = {name: '' if argument.get(name) is None else str(argument[name]) for name in _TEXTS}
        netloc = _netloc(text, argument.get('port'))
        path = quote(text['path'])
        if netloc and path and not path.startswith('/'):
            path = f'/{path}'
        url = urlunsplit((text['scheme'], netloc, path, _query(argument.get('query')), quote(text['fragment'])))
        scope.budget.spend_text(len(url), self.name)
        return url


def _netloc(text: dict[str, str], port: Json) -> str:
    user = quote(text['username'], safe='')
    if text['password']:
        user += f':{quote(text["password"], safe="")}'
    host = text['host']
    inner = quote(host.removeprefix('[').removesuffix(']'), safe=':')
    host = f'[{inner}]' if ':' in host else quote(host, safe='')
    return f'{user}{"@" if user else ""}{host}{f":{port}" if port is not None else ""}'


def _query(query: Json) -> str:
    if not isinstance(query, dict):
        return ''
    return urlencode({name: '' if value is None else str(value) for name, value in query.items()})
