"""Requests to a whole installation in this process: API, engine and worker, with Keystone's word for who asks."""

from __future__ import annotations

import atexit
import json
import logging
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import schemathesis
from falcon import testing
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from convergence.api.identity import Authentication
from convergence.api.routes import ROUTES
from convergence.config import DatabaseSettings, EngineSettings, LimitSettings, LocalProviderSettings
from convergence.db.connections.database import connect
from convergence.db.schema import migration
from tests.api.installation import Api, application, client, installed
from tests.fuzz.corpus import ENVIRONMENTS, TEMPLATE
from tests.fuzz.findings import Figures
from tests.fuzz.mutation import Mutator, encoded
from tests.services import SERVICES

PROJECT = 'p'
ROLES = {'member': 'member', 'reader': 'reader', 'admin': 'admin,member,reader', 'none': 'other', 'stranger': None}
"""The headers of keystonemiddleware for a user; None: no token."""
READS = {'GET', 'HEAD', 'OPTIONS'}
INSIDE = ('Traceback', ' object at 0x', 'NoneType', 'object has no attribute', "<class '", 'unexpected keyword')


class Complaints(logging.Handler):
    """Error texts of internal failures. A tenant must not be able to cause one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        if record.name.startswith('convergence'):
            trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ''
            error = trace.strip().rpartition('\n')[2][:200] or str(record.msg)
            self.found.setdefault(f'log of {record.name}: {error}', f'{record.getMessage()[:300]}\n{trace[-1200:]}')


@dataclass
class World:
    """An installation, a client of it, and its requests so far.

    :ivar stack: the one that requests are about, as the parts of a path.
    """

    api: Api
    role: str
    complaints: Complaints
    stack: dict[str, str] = field(default_factory=dict)
    snapshot_id: str = 'none'
    made: int = 0

    def __post_init__(self) -> None:
        self._wsgi = application(self.api.embedded.client, Authentication.KEYSTONE)
        self._member = self._asking('member')
        self.ask = self._asking(self.role)

    def _asking(self, role: str) -> Callable[..., testing.Result]:
        asked = client(self._wsgi)
        headers = self.headers(role)

        def ask(method: str, path: str, **arguments: Any) -> testing.Result:
            return asked.simulate_request(method, f'/v1/{PROJECT}/{path}', headers=headers, **arguments)

        return ask

    @staticmethod
    def headers(role: str) -> dict[str, str]:
        """Return the headers that keystonemiddleware adds to a request."""
        known = ROLES[role]
        if known is None:
            return {}
        return {'X-Identity-Status': 'Confirmed', 'X-Project-Id': PROJECT, 'X-User-Id': role, 'X-Roles': known}

    def environ(self, environ: dict[str, Any]) -> dict[str, Any]:
        """The WSGI environment of a request of this role, for an answer that has an end."""
        query = environ.get('QUERY_STRING', '').replace('follow', 'unfollow')
        said = {f'HTTP_{name.upper().replace("-", "_")}': value for name, value in self.headers(self.role).items()}
        kept = {name: value for name, value in environ.items() if not name.startswith(('HTTP_X_', 'HTTP_HOST'))}
        return {**kept, **said, 'HTTP_HOST': 'localhost', 'REMOTE_ADDR': '127.0.0.1', 'QUERY_STRING': query}

    def wsgi(self, environ: dict[str, Any], start: Any) -> Any:
        """The application, asked by this role."""
        return self._wsgi(self.environ(environ), start)

    def living(self) -> dict[str, str]:
        """A stack that is there: the one there was, or another one when it is gone."""
        if self.stack and self._member('GET', self.path()).status_code == 200:
            return self.stack
        self.made += 1
        name = f'stack-{self.made}'
        made = self._member('POST', 'stacks', json={'stack_name': name, 'template': TEMPLATE})
        assert made.status_code == 201, made.text
        self.stack = {'stack_name': name, 'stack_id': made.json['stack']['id']}
        self.settle()
        taken = self._member('POST', self.path('/snapshots'), json={'name': 'fuzz'})
        self.snapshot_id = taken.json['id'] if taken.status_code == 200 else 'none'
        self.settle()
        return self.stack

    def path(self, rest: str = '') -> str:
        """The path of the stack, below the project."""
        return f'stacks/{self.stack["stack_name"]}/{self.stack["stack_id"]}{rest}'

    def settle(self) -> None:
        """Wait for the operation on the stack to end."""
        self.api.wait(self.stack['stack_name'], self.stack['stack_id'])

    def tidy(self) -> None:
        """Remove the stacks that requests have made, but for the one that they are about."""
        for each in self._member('GET', 'stacks').json['stacks']:
            if each['id'] != self.stack.get('stack_id'):
                self._member('DELETE', f'stacks/{each["stack_name"]}/{each["id"]}')

    def member(self, method: str, path: str, **arguments: Any) -> testing.Result:
        """Send a request as a member, regardless of the role of the run."""
        return self._member(method, path, **arguments)


@contextmanager
def world(role: str = 'member', database: str = '') -> Iterator[World]:
    """An installation of one process that can start no program.

    :param database: the URL of an empty one; none: SQLite.
    """
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    with ExitStack() as stack:
        stack.callback(logging.getLogger().removeHandler, complaints)
        # Kept until this process ends: a thread that has been told to stop may be in the middle of a write.
        directory = Path(tempfile.mkdtemp(prefix='convergence-fuzz-'))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        changed = {
            'engine': EngineSettings(sweep_interval_s=0.2, enable_stack_abandon=True, enable_stack_adopt=True),
            'local_provider': LocalProviderSettings(False, directory / 'local', {}),
            'limits': LimitSettings(stack_timeout_mins=1),
        }
        if database:
            migration.sync(connect(database))
            changed['database'] = DatabaseSettings(database)
        yield World(stack.enter_context(installed(directory, **changed)), role, complaints)


# --- what is a finding ------------------------------------------------------------------------------------------


def judge(figures: Figures, role: str, method: str, path: str, answer: Any, sent: Any) -> None:
    """Count an answer. An answer that no request may get is a finding."""
    status, text = answer.status_code, answer.text
    figures.executions += 1
    figures.outcomes['501' if status == 501 else f'{status // 100}xx'] += 1
    request = f'{method} {path} {_short(sent)}'
    example = f'{role} {request} -> {status} {text[:600]}'
    plain = re.sub(r'[0-9a-f]{8}[0-9a-f-]{20,}|\d+', 'N', path)
    if status == 500 or status == 503:
        figures.found_one(f'{status} {method} {plain}', example)
    elif status >= 400 and not text.strip() and method != 'HEAD':
        figures.found_one(f'{status} without a text {method} {plain}', example)
    elif status >= 400 and any(word in text and word not in request for word in INSIDE):
        figures.found_one(f'{status} that shows the inside {method} {plain}', example)
    if status < 400 and role in ('none', 'stranger'):
        figures.found_one(f'{role} is let in: {method} {plain}', example)


def _short(sent: Any) -> str:
    return encoded(sent)[:1_200]


# --- bodies that are nearly right --------------------------------------------------------------------------------


def bodies() -> list[dict[str, Any]]:
    """Bodies of updates as people send them."""
    changed = {**TEMPLATE, 'resources': {'first': {'type': 'OS::Heat::Value', 'properties': {'value': 1}}}}
    files = {f'{number}.yaml': json.dumps(each) for number, each in enumerate(ENVIRONMENTS)}
    return [
        {'template': TEMPLATE, 'parameters': {'text': 'y'}},
        {'parameters': {'text': 'z', 'names': ['q']}, 'clear_parameters': ['number']},
        {'template': changed, 'environment': ENVIRONMENTS[2], 'timeout_mins': 3, 'tags': 'a,b'},
        {'environment': json.dumps(ENVIRONMENTS[0]), 'disable_rollback': True, 'converge': True},
        {'environment_files': list(files), 'files': files, 'environment': ENVIRONMENTS[0]},
    ]


def patch(world: World, mutator: Mutator, figures: Figures) -> None:
    """Change a stack, or look what a change would do, with a body in which something is wrong."""
    world.living()
    body = mutator.document(mutator.random.choice(bodies()))
    method = mutator.random.choice(('PATCH', 'PATCH', 'PUT'))
    rest = mutator.random.choice(('', '/preview', '/preview'))
    _send(world, figures, method, world.path(rest), body)


def create(world: World, mutator: Mutator, figures: Figures) -> None:
    """Create, preview or validate what something is wrong with."""
    body = mutator.document({**mutator.random.choice(bodies()[:1] + bodies()[2:]), 'stack_name': 'made'})
    path = mutator.random.choice(('stacks', 'stacks/preview', 'validate'))
    _send(world, figures, 'POST', path, body)
    if figures.executions % 100 == 0:
        world.tidy()


def adopt(world: World, mutator: Mutator, figures: Figures) -> None:
    """Adopt changed data of an export or a snapshot."""
    world.living()
    place = mutator.random.choice(('/export', f'/snapshots/{world.snapshot_id}'))
    found = world.member('GET', world.path(place))
    data = found.json if place == '/export' else found.json.get('snapshot', found.json).get('data', {})
    data = mutator.document(data)
    body: dict[str, Any] = {
        'stack_name': f'adopted-{figures.executions}',
        'adopt_stack_data': data if mutator.random.random() < 0.5 else encoded(data),
        'parameters': {'secret': 'canary-5512'},
    }
    _send(world, figures, 'POST', 'stacks', mutator.document(body) if mutator.random.random() < 0.3 else body)
    if figures.executions % 100 == 0:
        world.tidy()


def _send(world: World, figures: Figures, method: str, path: str, body: Any) -> None:
    content = encoded(body).encode()
    before_s = time.process_time()
    answer = world.ask(method, path, body=content, content_type='application/json')
    figures.dearest_s = max(figures.dearest_s, time.process_time() - before_s)
    judge(figures, world.role, method, f'/v1/{PROJECT}/{path}', answer, body)


# --- everything that the description of the API offers -----------------------------------------------------------


def describe(world: World) -> Any:
    """Return the schema of the API for schemathesis, with the role of this run."""
    return schemathesis.openapi.from_wsgi('/openapi.json', world.wsgi)


def everything(world: World, mutator: Mutator, figures: Figures, description: Any, examples: int = 10) -> None:
    """Ask every route what the description allows and what it forbids; most requests are about a stack that is there."""
    for route in ROUTES:
        _route(world, mutator, figures, description[route.template][route.method], examples)
    world.tidy()


def _route(world: World, mutator: Mutator, figures: Figures, operation: Any, examples: int) -> None:
    allowed, forbidden = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

    @seed(mutator.random.randrange(2**32))
    @given(case=st.one_of(allowed, forbidden))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        _aim(world, mutator, case)
        before_s = time.process_time()
        answer = case.call()
        figures.dearest_s = max(figures.dearest_s, time.process_time() - before_s)
        judge(figures, world.role, case.method, case.formatted_path, answer, repr(case.body)[:1_000])
        if case.method not in READS and world.role == 'reader' and answer.status_code < 300:
            allowed = case.formatted_path.endswith(('/preview', '/validate'))
            if not allowed:
                figures.found_one(f'a reader changes something: {case.method} {operation.path}', case.formatted_path)

    ask()


def _aim(world: World, mutator: Mutator, case: Any) -> None:
    """Let most of the made-up requests be about something that is there."""
    choose = mutator.random
    if not isinstance(case.path_parameters, dict) or choose.random() < 0.2:
        return
    stack = world.living()
    known = {
        'project_id': PROJECT,
        **stack,
        'resource_name': choose.choice(('first', 'second', 'random')),
        'snapshot_id': world.snapshot_id,
        'output_key': 'shown',
        'type_name': 'OS::Heat::Value',
        'template_version': 'heat_template_version.2018-08-31',
    }
    case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
    if isinstance(case.body, dict) and choose.random() < 0.7:
        if 'template' in case.body or choose.random() < 0.3:
            case.body['template'] = TEMPLATE
        if 'stack_name' in case.body:
            case.body['stack_name'] = f'made-{choose.randrange(10**6)}'


STEPS = {'patch': patch, 'create': create, 'adopt': adopt}
STORES = ('sqlite', 'postgresql', 'mariadb')


def empty(store: str) -> str:
    """The URL of an empty database of some kind; for SQLite none.

    It is kept until this process ends: a thread that has been told to stop may still look into it.
    """
    if store == 'sqlite':
        return ''
    server: Any = SERVICES.get(store)
    url: str = server.create()
    atexit.register(server.drop, urlsplit(url).path.strip('/'))
    return url


def run(
    name: str, role: str, mutator: Mutator, figures: Figures, going_on: Callable[[], bool], database: str = ''
) -> None:
    """Send requests of one kind until it is enough, and see whether everything inside came to an end.

    :param name: ``patch``, ``create``, ``adopt``, or ``api`` for every route.
    :param going_on: whether there is to be another one.
    :param database: the URL of an empty one; none: SQLite.
    """
    with world(role, database) as made:
        made.living()
        description = describe(made) if name == 'api' else None
        while going_on():
            if description is not None:
                everything(made, mutator, figures, description)
            else:
                STEPS[name](made, mutator, figures)
        made.living()
        made.settle()
        made.tidy()
        figures.found.update(made.complaints.found)
