"""A small Keystone: gives tokens for passwords, has a catalog, verifies tokens, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASSWORDS = {'ann': 'canary-password-71', 'ben': 'other-password', 'service': 'service-password'}
ROLES = {'ann': ['member', 'reader'], 'ben': ['reader'], 'service': ['service']}
NEVER, ALWAYS = '2000-01-01T00:00:00.000000Z', '2999-01-01T00:00:00.000000Z'


@dataclass
class Keystone:
    """What it knows.

    :param projects: ids by name.
    :param catalog: URLs of the orchestration service, by region; without project at the end.
    :param tokens: the body of each token by its id.
    """

    url: str
    projects: dict[str, str] = field(default_factory=lambda: {'demo': 'd' * 32, 'other': 'e' * 32})
    catalog: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_broken: bool = False

    def options(self, user: str = 'ann', project: str = 'demo') -> dict[str, str]:
        """How to log in, as in ``clouds.yaml``."""
        domain = {'user_domain_name': 'Default', 'project_domain_name': 'Default'}
        return {
            'auth_url': f'{self.url}/v3',
            'username': user,
            'password': PASSWORDS[user],
            'project_name': project,
            **domain,
        }

    def issue(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """A token for a request; None: the credentials are wrong."""
        identity = request['auth']['identity']
        if 'token' in identity['methods']:
            known = self.tokens.get(identity['token']['id'])
            name = known['token']['user']['id'] if known else ''
        else:
            user = identity['password']['user']
            name = user.get('name') or user['id']
            if PASSWORDS.get(name) != user['password']:
                return None
        scope = request['auth'].get('scope', {}).get('project', {})
        id_ = scope.get('id') or self.projects.get(scope.get('name', ''), '')
        if not name or not id_:
            return None
        domain = {'id': 'default', 'name': 'Default'}
        endpoints = [
            {'id': region, 'interface': 'public', 'region': region, 'region_id': region, 'url': f'{url}/v1/{id_}'}
            for region, url in self.catalog.items()
        ]
        own = [
            {'id': interface, 'interface': interface, 'region': 'north', 'region_id': 'north', 'url': self.url}
            for interface in ('public', 'internal', 'admin')
        ]
        body = {
            'methods': identity['methods'],
            'user': {'id': name, 'name': name, 'domain': domain},
            'project': {'id': id_, 'name': scope.get('name') or id_, 'domain': domain},
            'roles': [{'id': role, 'name': role} for role in ROLES[name]],
            'catalog': [
                {'type': 'orchestration', 'name': 'orchestration', 'id': 'o', 'endpoints': endpoints},
                {'type': 'identity', 'name': 'keystone', 'id': 'k', 'endpoints': own},
            ],
            'issued_at': NEVER,
            'expires_at': ALWAYS,
        }
        token = uuid.uuid4().hex
        self.tokens[token] = {'token': body}
        return token, self.tokens[token]


@contextmanager
def running() -> Iterator[Keystone]:
    """A Keystone at a free port of this machine."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), _Handler)
    server.keystone = keystone = Keystone(f'http://127.0.0.1:{server.server_port}')  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True)
    thread.start()
    try:
        yield keystone
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self) -> None:
        keystone: Keystone = self.server.keystone  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        issued = None if keystone.is_broken else keystone.issue(request)
        if keystone.is_broken:
            self._answer(503, {'error': {'message': 'out of order', 'code': 503}})
        elif issued is None:
            self._answer(401, {'error': {'message': 'The request needs authentication.', 'code': 401}})
        else:
            self._answer(201, issued[1], {'X-Subject-Token': issued[0]})

    def do_GET(self) -> None:
        keystone: Keystone = self.server.keystone  # type: ignore[attr-defined]
        if self.path.rstrip('/') in ('', '/v3'):
            link = [{'rel': 'self', 'href': f'{keystone.url}/v3/'}]
            version = {'id': 'v3.14', 'status': 'stable', 'links': link}
            known = {'version': version} if 'v3' in self.path else {'versions': {'values': [version]}}
            self._answer(200 if 'v3' in self.path else 300, known)
            return
        subject = self.headers.get('X-Subject-Token', '')
        if self.headers.get('X-Auth-Token') in keystone.tokens and subject in keystone.tokens:
            self._answer(200, keystone.tokens[subject], {'X-Subject-Token': subject})
        else:
            self._answer(404, {'error': {'message': 'Could not find token.', 'code': 404}})

    def _answer(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""
