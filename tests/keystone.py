"""A small Keystone: gives tokens for passwords, trusts and application credentials, has a catalog, verifies tokens, and
remembers what it was asked.

It is as strict as the real one where credentials of stacks depend on it: who may make, use, look at and remove what.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PASSWORDS = {'ann': 'canary-password-71', 'ben': 'other-password', 'service': 'service-password'}
ROLES = {'ann': ['member', 'reader'], 'ben': ['reader'], 'service': ['service']}
NEVER, ALWAYS = '2000-01-01T00:00:00.000000Z', '2999-01-01T00:00:00.000000Z'
TRUST = 'OS-TRUST:trust'

Body = dict[str, Any]


class Refusal(Exception):
    """An answer that is an error.

    :param status: of the answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Keystone:
    """What it knows.

    :param projects: ids by name.
    :param catalog: URLs of the orchestration service, by region; without project at the end.
    :param tokens: the body of each token by its id.
    :param roles: the roles of each user, in every project; change them to take one away.
    :param trusts: by id, as they are shown, with the names of their roles.
    :param application_credentials: by id; with their secret.
    :param requests: what it was asked, without queries: ``GET /v3/…``.
    :param lasts_s: for how many seconds tokens are good.
    """

    url: str
    projects: dict[str, str] = field(default_factory=lambda: {'demo': 'd' * 32, 'other': 'e' * 32})
    catalog: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Body] = field(default_factory=dict)
    is_broken: bool = False
    roles: dict[str, list[str]] = field(default_factory=lambda: {name: list(held) for name, held in ROLES.items()})
    trusts: dict[str, Body] = field(default_factory=dict)
    application_credentials: dict[str, Body] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    lasts_s: float | None = None

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

    def token(self, user: str = 'ann', project: str = 'demo') -> str:
        """A token of a user for a project."""
        named = {'name': user, 'password': PASSWORDS[user], 'domain': {'name': 'Default'}}
        identity = {'methods': ['password'], 'password': {'user': named}}
        return self.issue({'auth': {'identity': identity, 'scope': {'project': {'id': self.projects[project]}}}})[0]

    def revoke_tokens(self) -> None:
        """From now on no token is good that was given before."""
        self.tokens.clear()

    # --- tokens -----------------------------------------------------------------------------------------------

    def issue(self, request: Body) -> tuple[str, Body]:
        """A token for a request.

        :raises Refusal: the credentials are wrong, or do not open what is asked for.
        """
        identity, scope = request['auth']['identity'], request['auth'].get('scope', {})
        more: Body = {}
        name, known = self._who(identity)
        if known is not None:
            more['application_credential'] = {'id': known['id'], 'restricted': not known['unrestricted']}
            project_id, roles = known['project_id'], known['roles']
        elif TRUST in scope:
            trust = self.trusts.get(scope[TRUST]['id'])
            if trust is None:
                raise Refusal(404, 'Could not find trust')
            if trust['trustee_user_id'] != name:
                raise Refusal(403, 'User is not a trustee.')
            more[TRUST] = {'id': trust['id'], 'impersonation': True}
            name, project_id, roles = trust['trustor_user_id'], trust['project_id'], trust['roles']
        else:
            project = scope.get('project', {})
            project_id = project.get('id') or self.projects.get(project.get('name', ''), '')
            roles = self.roles.get(name, [])
        if not project_id:
            raise Refusal(401, 'The request needs authentication.')
        if not roles or not set(roles) <= set(self.roles.get(name, [])):
            if known is not None:
                del self.application_credentials[known['id']]  # the real one removes them with the role
            raise Refusal(403 if TRUST in scope else 401, 'The user has not (any more) the roles that are passed on.')
        body = {
            'methods': identity['methods'],
            'user': {'id': name, 'name': name, 'domain': {'id': 'default', 'name': 'Default'}},
            'project': {'id': project_id, 'name': project_id, 'domain': {'id': 'default', 'name': 'Default'}},
            'roles': [{'id': role, 'name': role} for role in roles],
            'catalog': self._catalog(project_id),
            'issued_at': NEVER,
            'expires_at': ALWAYS if self.lasts_s is None else _moment(time.time() + self.lasts_s),
            **more,
        }
        token = uuid.uuid4().hex
        self.tokens[token] = {'token': body}
        return token, self.tokens[token]

    def _who(self, identity: Body) -> tuple[str, Body | None]:
        """Whose credentials these are, and which application credential, if it is one."""
        if 'token' in identity['methods']:
            return self.asked_by(identity['token']['id'])['user']['id'], None
        if 'application_credential' in identity['methods']:
            given = identity['application_credential']
            for known in self.application_credentials.values():
                named = (known['name'], known['user_id']) == (given.get('name'), given.get('user', {}).get('id'))
                if (named or known['id'] == given.get('id')) and known['secret'] == given['secret']:
                    return known['user_id'], known
            raise Refusal(401, 'The request needs authentication.')
        user = identity['password']['user']
        name = str(user.get('name') or user['id'])
        if PASSWORDS.get(name) != user['password'] or name not in self.roles:
            raise Refusal(401, 'The request needs authentication.')
        return name, None

    def asked_by(self, token: str | None) -> Body:
        """What a token says.

        :raises Refusal: it is not good, or not any more.
        """
        found = self.tokens.get(token or '')
        if found is None or found['token']['expires_at'] < _moment(time.time()):
            raise Refusal(401, 'The request you have made requires authentication.')
        body: Body = found['token']
        return body

    def _catalog(self, project_id: str) -> list[Body]:
        endpoints = [
            {
                'id': region,
                'interface': 'public',
                'region': region,
                'region_id': region,
                'url': f'{url}/v1/{project_id}',
            }
            for region, url in self.catalog.items()
        ]
        own = [
            {'id': interface, 'interface': interface, 'region': 'north', 'region_id': 'north', 'url': self.url}
            for interface in ('public', 'internal', 'admin')
        ]
        return [
            {'type': 'orchestration', 'name': 'orchestration', 'id': 'o', 'endpoints': endpoints},
            {'type': 'identity', 'name': 'keystone', 'id': 'k', 'endpoints': own},
        ]

    # --- what acts for users ----------------------------------------------------------------------------------

    def make_trust(self, asker: Body, trust: Body) -> Body:
        """A trust, made by its trustor."""
        self._require_unrestricted(asker)
        roles = [role['name'] for role in trust['roles']]
        if asker['user']['id'] != trust['trustor_user_id'] or TRUST in asker:
            raise Refusal(403, 'The authenticated user should match the trustor.')
        if not roles or not set(roles) <= {role['name'] for role in asker['roles']}:
            raise Refusal(403, 'The trustor has not the roles.')
        made = {**trust, 'id': uuid.uuid4().hex, 'roles': roles, 'deleted_at': None, 'redelegation_count': 0}
        self.trusts[made['id']] = made
        return {'trust': made}

    def list_trusts(self, asker: Body, trustee: str) -> Body:
        """The trusts of a trustee."""
        if trustee != asker['user']['id']:
            raise Refusal(403, 'You are not authorized to list these trusts.')
        return {'trusts': [each for each in self.trusts.values() if each['trustee_user_id'] == trustee]}

    def show_trust(self, asker: Body, trust_id: str) -> Body:
        """One trust, for the two that it is about."""
        trust = self._trust(trust_id)
        if asker['user']['id'] not in (trust['trustor_user_id'], trust['trustee_user_id']):
            raise Refusal(403, 'You are not authorized to look at this trust.')
        return {'trust': trust}

    def remove_trust(self, asker: Body, trust_id: str) -> None:
        """Its trustor may, and an administrator."""
        self._require_unrestricted(asker)
        trust = self._trust(trust_id)
        if asker['user']['id'] != trust['trustor_user_id'] and 'admin' not in [role['id'] for role in asker['roles']]:
            raise Refusal(403, 'You are not authorized to remove this trust.')
        del self.trusts[trust_id]

    def _trust(self, trust_id: str) -> Body:
        if trust_id not in self.trusts:
            raise Refusal(404, 'Could not find trust')
        return self.trusts[trust_id]

    def make_application_credential(self, asker: Body, user_id: str, wanted: Body) -> Body:
        """An application credential, made by its user."""
        self._require_own(asker, user_id)
        if any((each['name'], each['user_id']) == (wanted['name'], user_id) for each in self._all()):
            raise Refusal(409, 'There is one of that name.')
        roles = [role['name'] for role in wanted['roles']]
        made = {
            'unrestricted': False,
            **wanted,
            'id': uuid.uuid4().hex,
            'user_id': user_id,
            'project_id': asker['project']['id'],
            'roles': roles,
        }
        self.application_credentials[made['id']] = made
        return {'application_credential': made}

    def remove_application_credential(self, asker: Body, user_id: str, id_: str) -> None:
        """Its user may."""
        self._require_own(asker, user_id)
        if self.application_credentials.pop(id_, None) is None:
            raise Refusal(404, 'Could not find application credential')

    def _all(self) -> list[Body]:
        return list(self.application_credentials.values())

    def _require_own(self, asker: Body, user_id: str) -> None:
        self._require_unrestricted(asker)
        if asker['user']['id'] != user_id:
            raise Refusal(403, 'They are of another user.')

    @staticmethod
    def _require_unrestricted(asker: Body) -> None:
        if asker.get('application_credential', {}).get('restricted'):
            raise Refusal(403, 'A restricted application credential may not manage others, nor trusts.')


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


def _moment(seconds: float) -> str:
    return time.strftime('%Y-%m-%dT%H:%M:%S.000000Z', time.gmtime(seconds))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        keystone: Keystone = self.server.keystone  # type: ignore[attr-defined]
        size = int(self.headers.get('Content-Length') or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        at = urlsplit(self.path)
        keystone.requests.append(f'{self.command} {at.path}')
        try:
            if keystone.is_broken:
                raise Refusal(503, 'out of order')
            self._answer(*self._carried_out(keystone, at.path.rstrip('/'), parse_qs(at.query), body))
        except Refusal as error:
            self._answer(error.status, {'error': {'message': str(error), 'code': error.status}})

    def _carried_out(
        self, keystone: Keystone, path: str, query: dict[str, list[str]], body: Body
    ) -> tuple[int, Body, dict[str, str]]:
        """Status, body and headers of the answer."""
        token, parts = self.headers.get('X-Auth-Token'), path.split('/')[2:]
        match self.command, parts:
            case 'GET', []:
                return self._versions(keystone, path)
            case 'POST', ['auth', 'tokens']:
                issued, about = keystone.issue(body)
                return 201, about, {'X-Subject-Token': issued}
            case 'GET', ['auth', 'tokens']:
                subject = self.headers.get('X-Subject-Token', '')
                keystone.asked_by(token)
                if subject not in keystone.tokens:
                    raise Refusal(404, 'Could not find token.')
                return 200, {'token': keystone.asked_by(subject)}, {'X-Subject-Token': subject}
            case 'GET', ['auth', 'projects']:
                return 200, {'projects': [keystone.asked_by(token)['project']]}, {}
            case 'POST', ['OS-TRUST', 'trusts']:
                return 201, keystone.make_trust(keystone.asked_by(token), body['trust']), {}
            case 'GET', ['OS-TRUST', 'trusts']:
                return 200, keystone.list_trusts(keystone.asked_by(token), query['trustee_user_id'][0]), {}
            case 'GET', ['OS-TRUST', 'trusts', trust_id]:
                return 200, keystone.show_trust(keystone.asked_by(token), trust_id), {}
            case 'DELETE', ['OS-TRUST', 'trusts', trust_id]:
                keystone.remove_trust(keystone.asked_by(token), trust_id)
                return 204, {}, {}
            case 'POST', ['users', user_id, 'application_credentials']:
                wanted = body['application_credential']
                return 201, keystone.make_application_credential(keystone.asked_by(token), user_id, wanted), {}
            case 'DELETE', ['users', user_id, 'application_credentials', id_]:
                keystone.remove_application_credential(keystone.asked_by(token), user_id, id_)
                return 204, {}, {}
        raise Refusal(404, f'There is nothing at {path}')

    @staticmethod
    def _versions(keystone: Keystone, path: str) -> tuple[int, Body, dict[str, str]]:
        link = [{'rel': 'self', 'href': f'{keystone.url}/v3/'}]
        version = {'id': 'v3.14', 'status': 'stable', 'links': link}
        if 'v3' in path:
            return 200, {'version': version}, {}
        return 300, {'versions': {'values': [version]}}, {}

    def _answer(self, status: int, body: Body, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode() if status != 204 else b''
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""
