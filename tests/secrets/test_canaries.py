"""Values that nobody may see are sent through a whole installation, which fails in many ways; then they are looked for.

They come as hidden parameters, secret properties, private data of a resource and details of a signal. They are found
nowhere: not in the bytes of the database, not in log lines at DEBUG, not in messages, not in answers.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from oslo_config import cfg
from sqlalchemy import Engine, Text, cast, select

from convergence import errors, logs
from convergence.cmd.embedded import Embedded
from convergence.config import SecretSettings
from convergence.core.model import Json
from convergence.db.connections.database import connect
from convergence.db.schema.models import METADATA
from convergence.db.schema.sealing import new_key
from convergence.resources.contract import Answer, Call, Done, FinalFailure, ResourceType
from convergence.resources.registry import Registry
from convergence.resources.schema import prop, secret
from convergence.rpc import memory
from tests.api.installation import LONG_S, settings

# ruff: noqa: RUF009 - prop() makes dataclass fields, like field()

HIDDEN = 'canary-1 "quoted", it\'s ünusual\nand has two lines'
PROPERTY = 'canary-2-property'
DATA = 'canary-3-data'
SIGNAL = 'canary-4-signal'
FILE = 'canary-5-file'
WORD = 'canary'
"""Every canary has it. Nothing else does."""

LOG = logging.getLogger('convergence.somebody.else')


@dataclass(frozen=True)
class VaultProperties:
    """`password` is secret by itself; `note` is as secret as what is put into it."""

    password: str = secret(prop('', update_allowed=True))
    note: Json = prop(None, update_allowed=True)
    mode: str = prop('', update_allowed=True)


@dataclass(frozen=True)
class VaultAttributes:
    """What can be asked of a vault."""

    note: str = ''
    broken: str = ''


class Vault(ResourceType[VaultProperties]):
    """Tells everything it knows, to everybody, whenever it can.

    :ivar given: the notes that it was given.
    """

    Properties: ClassVar[type[Any]] = VaultProperties
    Attributes: ClassVar[type[Any]] = VaultAttributes
    takes_signals = True

    def __init__(self) -> None:
        self.given: list[Json] = []

    def create(self, call: Call[VaultProperties]) -> Answer:
        """Log, and fail as it was told."""
        self.given.append(call.properties.note)
        told = f'{call.properties.password} {call.properties.note!r} {json.dumps(call.properties.note)}'
        LOG.debug('working with %s', told)
        if call.properties.mode == 'raises':
            raise RuntimeError(f'the other side refuses {told}')
        if call.properties.mode == 'fails':
            raise FinalFailure(f'the other side refuses {told}')
        return Done(f'vault-{call.token}', {'given': DATA})

    def update(self, call: Call[VaultProperties]) -> Answer:
        """Like `create`."""
        return self.create(call)

    def delete(self, call: Call[VaultProperties]) -> Answer:
        """Nothing is there."""
        LOG.debug('forgetting %s', call.properties.password)
        return Done()

    def attribute(self, call: Call[VaultProperties], name: str) -> Json:
        """The note, or an error that quotes it."""
        if name == 'broken':
            raise ValueError(f'cannot read {call.properties.note}')
        return str(call.properties.note)

    def signal(self, call: Call[VaultProperties], details: Json) -> str:
        """Quote what is known."""
        if details == 'nonsense':
            raise FinalFailure(f'not for {call.properties.note} with {call.properties.password}')
        return f'was told something about {call.properties.note}'


def template(mode: str = '', asked: str = 'note') -> str:
    """Two vaults: one is given the secrets, the other what the first one says."""
    return json.dumps(
        {
            'heat_template_version': '2018-08-31',
            'parameters': {'word': {'type': 'string', 'hidden': True}},
            'resources': {
                'first': {
                    'type': 'Test::Vault',
                    'properties': {'password': PROPERTY, 'note': {'get_param': 'word'}},
                    'metadata': {'about': {'get_param': 'word'}},
                },
                'second': {
                    'type': 'Test::Vault',
                    'properties': {'note': {'get_attr': ['first', asked]}, 'mode': mode},
                },
            },
            'outputs': {'own': {'value': {'get_attr': ['first', 'note']}}},
        }
    )


def environment() -> dict[str, Any]:
    """The hidden value, as an environment brings it."""
    return {'parameter_defaults': {'word': HIDDEN}}


def raw(url: str) -> dict[str, str]:
    """Everything in a database as it is stored, by table."""
    engine: Engine = connect(url)
    try:
        with engine.connect().execution_options(reads_only=True) as connection:
            return {
                name: '\n'.join(
                    str(tuple(row)) for row in connection.execute(select(*(cast(each, Text) for each in table.columns)))
                )
                for name, table in METADATA.tables.items()
            }
    finally:
        engine.dispose()


@pytest.fixture
def log(monkeypatch) -> Iterator[io.StringIO]:
    """Everything that a process logs at DEBUG; logging is put back afterwards."""
    written, root = io.StringIO(), logging.getLogger()
    before, level, hook = list(root.handlers), root.level, sys.excepthook
    monkeypatch.setattr(sys, 'stderr', written)
    conf = cfg.ConfigOpts()
    logs.register(conf)
    conf(['--debug'], project='convergence', default_config_files=[])
    logs.set_up(conf, 'convergence-test')
    yield written
    root.handlers[:] = before
    root.setLevel(level)
    sys.excepthook = hook


@pytest.fixture
def wire(monkeypatch) -> list[str]:
    """Every message and every answer, as it goes over the transport."""
    seen: list[str] = []

    def envelope(address: Any, encoded: str, *rest: Any) -> memory.Envelope:
        seen.append(encoded)
        return made(address, encoded, *rest)

    def put(self: memory.Reply, encoded: str) -> None:
        seen.append(encoded)
        answered(self, encoded)

    made, answered = memory.Envelope, memory.Reply.put
    monkeypatch.setattr(memory, 'Envelope', envelope)
    monkeypatch.setattr(memory.Reply, 'put', put)
    return seen


def without_own(answer: Any) -> Any:
    """An answer without what the user has written, and without the private data that an adoption needs."""
    if isinstance(answer, dict):
        return {
            key: without_own(value)
            for key, value in answer.items()
            if key not in ('template', 'files', 'resource_data')
        }
    return [without_own(value) for value in answer] if isinstance(answer, list) else answer


@dataclass
class User:
    """Somebody who asks an installation, and notes what is answered.

    :ivar told: everything that was answered, as text.
    """

    embedded: Embedded
    told: list[str]

    def ask(self, operation: str, *arguments: Any, **more: Any) -> Any:
        """The answer; None where there was an error."""
        try:
            answer = getattr(self.embedded.client, operation)(self.embedded.context('p'), *arguments, **more)
        except errors.ConvergenceError as error:
            self.told.append(f'{error} {error.kwargs}')
            return None
        self.told.append(json.dumps(without_own(answer), default=str, ensure_ascii=False))
        return answer

    def settle(self, stack: dict[str, Any], status: str) -> None:
        """Wait for the operation on a stack to end as expected, and ask everything about it."""
        shown = self.embedded.wait(stack, LONG_S)
        assert f'{shown["stack_action"]}_{shown["stack_status"]}' == status, shown['stack_status_reason']
        self.told.append(str(shown['stack_status_reason']))
        for operation in ('stack_explain', 'stack_graph', 'list_traversals', 'list_events', 'get_environment'):
            self.ask(operation, stack)
        self.ask('list_stack_resources', stack, with_detail=True)
        self.ask('show_stack', stack, resolve_outputs=False)
        self.ask('export_stack', stack)
        for name in ('first', 'second'):
            self.ask('describe_stack_resource', stack, name)


def test_no_canary_is_seen_in_a_life_with_every_kind_of_failure(database_url, tmp_path, log, wire):
    vault = Vault()
    types = Registry({'Test::Vault': vault})
    made = settings(tmp_path)
    made = replace(
        made,
        database=replace(made.database, connection=database_url),
        secrets=SecretSettings((new_key(),)),
    )
    if not database_url.startswith('sqlite'):
        migrated(database_url)
    with Embedded(made, types=types) as embedded:
        user = User(embedded, [])
        stack = user.ask('create_stack', 's', template(), environment(), {'note.txt': FILE}, {'disable_rollback': True})
        user.settle(stack, 'CREATE_COMPLETE')
        user.ask('resource_signal', stack, 'first', {'said': SIGNAL})
        user.ask('resource_signal', stack, 'first', 'nonsense')
        user.ask('preview_update_stack', stack, template('raises'), environment())
        for mode, status in (('raises', 'UPDATE_FAILED'), ('fails', 'UPDATE_FAILED'), ('', 'UPDATE_COMPLETE')):
            assert user.ask('update_stack', stack, template(mode), environment(), args={'disable_rollback': True})
            user.settle(stack, status)
        user.ask('update_stack', stack, template(asked='broken'), environment(), args={'disable_rollback': True})
        user.settle(stack, 'UPDATE_FAILED')
        user.ask('update_stack', stack, template('raises'), environment(), args={'disable_rollback': False})
        user.settle(stack, 'ROLLBACK_COMPLETE')
        snapshot = user.ask('stack_snapshot', stack, 'kept')
        user.settle(stack, 'SNAPSHOT_COMPLETE')
        user.ask('show_snapshot', stack, snapshot['id'])
        user.ask('update_stack', stack, template('raises'), {'parameters': {'word': 'no canary now'}})
        answers = list(user.told)
        stored = raw(database_url)
        user.settle(stack, 'ROLLBACK_COMPLETE')
        assert vault.given[-1] == HIDDEN, 'the secrets are there, or the search would prove nothing'
        assert user.ask('show_output', stack, 'own')['output_value'] == '******'
        assert user.ask('describe_stack_resource', stack, 'first', ['note'])['attributes']['note'] == '******'
        user.ask('delete_stack', stack)
        assert embedded.wait(stack, LONG_S)['stack_action'] == 'DELETE'
        user.ask('list_events', stack)
        answers += user.told[len(answers) :]
    assert not [text for text in answers if WORD in text and 'no canary' not in text]
    assert '******' in ' '.join(answers)
    for rows in (stored, raw(database_url)):
        assert not [name for name, text in rows.items() if WORD in text.replace('no canary', '')]
    lines = log.getvalue()
    assert 'working with ******' in lines
    assert "RuntimeError: the other side refuses  '******'" in lines
    assert not [line for line in lines.splitlines() if WORD in line.replace('no canary', '')]
    assert not [line for line in lines.splitlines() if 'two lines' in line]
    requests = ('create_stack', 'update_stack', 'preview_update_stack', 'resource_signal')
    others = [message for message in wire if not any(f'"method": "{name}"' in message for name in requests)]
    assert len(others) > 50
    # What the user has written shows in answers to the user, and what whoever adopts a stack needs.
    own = ('heat_template_version', 'resource_data')
    assert not [message for message in others if WORD in message and not any(word in message for word in own)]


def migrated(url: str) -> None:
    """Give a database its tables."""
    from convergence.db.schema import migration

    engine = connect(url)
    migration.sync(engine)
    engine.dispose()
