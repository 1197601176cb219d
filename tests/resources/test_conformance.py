"""Every built-in type through the conformance kit, and the kit itself against types that are wrong."""

from __future__ import annotations

import itertools
import os
import sys
import uuid
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import pytest

from convergence.core.model import Change, Json
from convergence.core.software import ServerReport, SoftwareConfig
from convergence.resources.attributes import attr
from convergence.resources.builtin import builtin_types
from convergence.resources.builtin.addressed import addressed_types
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.local.types import local_types
from convergence.resources.contract import (
    Done,
    FinalFailure,
    ForeignObject,
    InProgress,
    ReplacementNeeded,
    ResourceType,
    Signal,
)
from convergence.resources.schema import prop
from convergence.testing import Fixture, Recovery, conformance
from convergence.testing.software import MemorySoftware
from tests.resources.clock import Clock

CLOCK = Clock()


def builtin(name, properties, **options):
    types = {**builtin_types(CLOCK), **addressed_types(lambda: 'https://api.example.org/v1')}
    return Fixture(lambda: types[name], properties, wait=CLOCK.advance, **options)


BUILTIN = {
    'test_resource': builtin(
        'OS::Heat::TestResource',
        {'value': 'a'},
        changed={'value': 'b'},
        replaced={'value': 'b', 'update_replace': True},
        wrong=[{'attr_wait_secs': -1}, {'action_wait_secs': {'stop': 1}}],
    ),
    'test_resource_that_waits': builtin(
        'OS::Heat::TestResource',
        {'value': 'a', 'wait_secs': 2, 'action_wait_secs': {'delete': 1.5}, 'attr_wait_secs': 1},
        changed={'value': 'b', 'wait_secs': 3},
        replaced={'value': 'a', 'wait_secs': 2, 'update_replace_value': 'x'},
    ),
    'random_string': builtin(
        'OS::Heat::RandomString',
        {'length': 8},
        replaced={'length': 9},
        wrong=[
            {'length': 0},
            {'length': 1, 'character_classes': [{'min': 2}]},
            {'character_classes': [{'class': 'x'}]},
        ],
    ),
    'value': builtin(
        'OS::Heat::Value',
        {'value': '1'},
        changed={'value': '1', 'type': 'number'},
        wrong=[{'value': 'x', 'type': 'number'}, {'value': '{', 'type': 'json'}],
    ),
    'none': builtin('OS::Heat::None', {'anything': [1]}, changed={'other': {}}),
    'wait_condition_handle': builtin(
        'OS::Heat::WaitConditionHandle',
        {},
        replaced={'signal_transport': 'HEAT_SIGNAL'},
        wrong=[{'signal_transport': 'PIGEON'}],
        signals=[None, {}, {'id': 'a', 'data': {'x': [1]}, 'status': 'FAILURE', 'reason': 'r'}, {'id': 1}],
        refused=['text', [1], {'status': 'GOOD'}, {'colour': 'blue'}, {'id': [1]}],
    ),
    'update_wait_condition_handle': builtin(
        'OS::Heat::UpdateWaitConditionHandle',
        {},
        wrong=[{'signal_transport': 'CFN_SIGNAL'}],
        signals=[{'Status': 'SUCCESS', 'Reason': 'up', 'Data': 'd', 'UniqueId': '1'}],
        refused=[{}, {'id': 1}],
    ),
    'wait_condition': builtin(
        'OS::Heat::WaitCondition',
        {'handle': 'row', 'timeout': 10, 'count': 2},
        changed={'handle': 'row', 'timeout': 10, 'count': 1},
        replaced={'handle': 'another', 'timeout': 10, 'count': 2},
        wrong=[{'handle': 'row', 'timeout': 0}, {'handle': 'row', 'timeout': 1, 'count': 0}, {'timeout': 1}],
        heard={'handle': (Signal({'id': 1}, 1.0, 'row'), Signal(None, 2.0, 'row'))},
    ),
    'aws_wait_condition_handle': builtin(
        'AWS::CloudFormation::WaitConditionHandle',
        {},
        wrong=[{'signal_transport': 'CFN_SIGNAL'}],
        signals=[{'Status': 'SUCCESS', 'Reason': 'up', 'Data': 'd', 'UniqueId': '1'}],
        refused=[None, {}, {'Status': 'SUCCESS', 'Data': '', 'UniqueId': '1'}, {'status': 'SUCCESS'}],
    ),
    'aws_wait_condition': builtin(
        'AWS::CloudFormation::WaitCondition',
        {'Handle': 'row', 'Timeout': '10'},
        changed={'Handle': 'row', 'Timeout': '10', 'Count': '2'},
        replaced={'Handle': 'row', 'Timeout': '20'},
        wrong=[{'Handle': 'row', 'Timeout': 43201}, {'Handle': 'row', 'Timeout': 1, 'Count': 0}],
        heard={'handle': (Signal({'UniqueId': 1}, 1.0, 'row'), Signal({'UniqueId': 2}, 2.0, 'row'))},
    ),
    'delay': builtin(
        'OS::Heat::Delay',
        {'min_wait': 2, 'max_jitter': 3, 'actions': ['CREATE', 'DELETE', 'SUSPEND', 'RESUME']},
        changed={'min_wait': 1, 'actions': ['DELETE']},
        wrong=[{'min_wait': -1}, {'actions': ['UPDATE']}],
    ),
}


# --- the software family --------------------------------------------------------------------------------------

GIVEN = SoftwareConfig(
    '0d9c7f32-6a3c-5b0e-8c55-111111111111',
    'project-id',
    'given',
    'script',
    {
        'config': {'a': {'get_input': 'x'}},
        'inputs': [{'name': 'x', 'default': 1}, {'name': 'fixed', 'replace_on_change': True}],
        'outputs': [{'name': 'out'}],
    },
)
DEPLOYED = {'config': GIVEN.id, 'server': 's', 'input_values': {'x': 2}}
EVERY_ACTION = {'actions': ['CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME']}


def software(name, properties, **options):
    """A type of the family; what waits for a server gets its answer at once. One configuration is there before."""
    rows = MemorySoftware(CLOCK)
    rows.add_config(GIVEN)

    def wait(seconds):
        CLOCK.advance(seconds)
        for each in rows.made.values():
            rows.report(each.project_id, each.id, each.config_id, ServerReport('COMPLETE', 'done', {'out': 'x'}))

    def leftovers():
        return [*rows.made, *(key for key in rows.configs if key != GIVEN.id)]

    made = builtin(name, properties, leftovers=leftovers, **options)
    return replace(made, wait=wait, software=rows)


BUILTIN |= {
    'software_config': software(
        'OS::Heat::SoftwareConfig',
        {'group': 'script', 'config': 'x', 'inputs': [{'name': 'a', 'default': [1]}], 'outputs': [{'name': 'b'}]},
        replaced={'group': 'script', 'config': 'y'},
        wrong=[{'inputs': [{'type': 'String'}]}, {'outputs': [{'name': 'o', 'type': 'Text'}]}, {'config': {'a': 1}}],
    ),
    'structured_config': software(
        'OS::Heat::StructuredConfig', {'config': {'a': [1]}}, replaced={}, wrong=[{'config': 'text'}]
    ),
    'cloud_config': software(
        'OS::Heat::CloudConfig', {'cloud_config': {'b': 1, 'a': ['x']}}, replaced={'cloud_config': {}}
    ),
    'multipart_mime': software(
        'OS::Heat::MultipartMime',
        {'parts': [{'config': 'text'}, {'config': GIVEN.id, 'filename': 'cloud-config.txt'}]},
        replaced={'parts': []},
        wrong=[{'parts': [{'config': 'x', 'type': 'image'}]}, {'parts': [{'subtype': 'x'}]}],
    ),
    'software_component': software(
        'OS::Heat::SoftwareComponent',
        {'configs': [{'tool': 'script', 'config': 'x'}, {'tool': 'script', 'actions': ['DELETE']}]},
        replaced={'configs': [{'tool': 'script'}]},
        wrong=[
            {'configs': []},
            {'configs': [{'config': 'x'}]},
            {'configs': [{'tool': 'a', 'actions': []}]},
            {'configs': [{'tool': 'a'}, {'tool': 'b', 'actions': ['UPDATE']}]},
        ],
    ),
    'software_deployment': software(
        'OS::Heat::SoftwareDeployment',
        DEPLOYED,
        changed={**DEPLOYED, 'input_values': {'x': 3}},
        replaced={**DEPLOYED, 'server': 'another'},
        wrong=[{**DEPLOYED, 'signal_transport': 'ZAQAR_SIGNAL'}, {**DEPLOYED, 'actions': ['DANCE']}],
        signals=[None, {'out': 1, 'deploy_status_code': 0}],
        refused=['done', [1]],
    ),
    'software_deployment_in_every_action': software(
        'OS::Heat::SoftwareDeployment',
        {**DEPLOYED, **EVERY_ACTION, 'signal_transport': 'HEAT_SIGNAL'},
        changed={**DEPLOYED, **EVERY_ACTION, 'signal_transport': 'HEAT_SIGNAL', 'name': 'n'},
    ),
    'software_deployment_without_a_signal': software(
        'OS::Heat::SoftwareDeployment',
        {**DEPLOYED, **EVERY_ACTION, 'signal_transport': 'NO_SIGNAL'},
        changed={'server': 's', 'signal_transport': 'NO_SIGNAL'},
    ),
    'structured_deployment': software(
        'OS::Heat::StructuredDeployment',
        DEPLOYED,
        changed={**DEPLOYED, 'input_values': {}},
        replaced={**DEPLOYED, 'input_values_validate': 'STRICT'},
        wrong=[{**DEPLOYED, 'input_values_validate': 'MAYBE'}],
    ),
    'deployed_server': software(
        'OS::Heat::DeployedServer',
        {'name': 'a', 'metadata': {'x': 1}},
        changed={
            'name': 'b',
            'software_config_transport': 'POLL_SERVER_HEAT',
            'deployment_swift_data': {'object': 'o'},
        },
        wrong=[{'software_config_transport': 'POLL_TEMP_URL'}, {'deployment_swift_data': {'container': ''}}],
    ),
    'access_policy': software(
        'OS::Heat::AccessPolicy', {'AllowedResources': ['a']}, replaced={'AllowedResources': ['b']}
    ),
}


@pytest.mark.parametrize(
    ('name', 'case'), [(name, case) for name, fixture in BUILTIN.items() for case in conformance(fixture)], ids=str
)
def test_builtin_types_conform(name, case):
    case.run()


LOCAL = {
    'Convergence::Local::Directory': {
        'properties': {'path': 'place'},
        'changed': {'path': 'place', 'force': True},
        'replaced': {'path': 'other'},
        'wrong': [{'path': '../x'}, {'path': '/x'}, {'path': ''}, {'path': '.convergence/x'}],
        'boundaries': [(os, 'mkdir'), (os, 'rmdir')],
    },
    'Convergence::Local::File': {
        'properties': {'path': 'note', 'content': 'a'},
        'changed': {'path': 'note', 'content': 'b', 'mode': '0600'},
        'replaced': {'path': 'other'},
        'wrong': [{'path': 'a/../../x'}, {'path': 'x', 'mode': '4755'}],
        'boundaries': [(os, 'rename'), (os, 'fsync'), (os, 'unlink')],
    },
    'Convergence::Local::Process': {
        'properties': {'program': 'python', 'arguments': ['-S', '-c', 'import time; time.sleep(600)']},
        'changed': {
            'program': 'python',
            'arguments': ['-S', '-c', 'import time; time.sleep(600)'],
            'stop_timeout_s': 3,
        },
        'replaced': {'program': 'python', 'triggers': 1},
        'wrong': [{'program': 'python', 'environment': {'a=b': ''}}],
        'boundaries': [(os, 'killpg')],
    },
}


def real_objects(root):
    """Files and directories of the templates, and processes that have a record."""
    found = [str(path.relative_to(root)) for path in root.rglob('*') if '.convergence' not in path.parts]
    return found + [path.name for path in root.glob('.convergence/processes/*')]


def local_fixture(name, root):
    provider = LocalProvider(root)
    return Fixture(lambda: local_types(provider)[name], leftovers=lambda: real_objects(root), **LOCAL[name])


def local_case_names():
    fixtures = {name: Fixture(ResourceType, recovery=Recovery.NONE, **LOCAL[name]) for name in LOCAL}
    for name, fixture in fixtures.items():
        for case in conformance(replace(fixture, make=Enforced, recovery=Recovery.EXPECTED)):
            yield name, str(case)


class Enforced(ResourceType):
    token_enforced = True


@pytest.mark.parametrize(('name', 'case_name'), list(local_case_names()))
def test_local_types_conform(name, case_name, tmp_path):
    (case,) = [case for case in conformance(local_fixture(name, tmp_path)) if str(case) == case_name]
    case.run()


@pytest.mark.parametrize('name', [name for name in LOCAL if not name.endswith('HttpCheck')])
def test_local_types_tell_of_their_objects(name, tmp_path):
    (case,) = [case for case in conformance(local_fixture(name, tmp_path)) if case.name == 'is_watched']
    case.run()


# --- the kit finds what is wrong ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Things:
    text: str = prop(update_allowed=True)


class Sound(ResourceType[Things]):
    """Keeps its objects in a dictionary."""

    Properties = Things
    objects: dict[str, str] = {}  # noqa: RUF012 - the world outside is one for all instances

    def create(self, call):
        self.objects[call.token] = call.properties.text
        return InProgress({'n': 1}, call.token)

    def poll(self, call, action, progress):
        return Done()

    def update(self, call):
        self.objects[call.physical_id] = call.properties.text
        return Done()

    def delete(self, call):
        self.objects.pop(call.physical_id or call.token, None)
        return Done()

    def find(self, call):
        return Done(call.token) if call.token in self.objects else None


class Forgetful(Sound):
    def find(self, call):
        return None


class Doubling(Sound):
    token_enforced = True
    numbers = itertools.count()

    def create(self, call):
        self.objects[f'{next(self.numbers)}'] = ''
        return Done(max(self.objects))

    def find(self, call):
        return None


class Leaving(Sound):
    def delete(self, call):
        return Done()


class Counting(Sound):
    def update(self, call):
        return Done(f'{call.physical_id}x')


class StrictAboutDeletes(Sound):
    def delete(self, call):
        if call.token not in self.objects:
            raise FinalFailure('it is not there')
        return super().delete(call)


class Talkative(Sound):
    def create(self, call):
        return InProgress({'object': object()}, call.token)


class Endless(Sound):
    def poll(self, call, action, progress):
        return InProgress()


class Nameless(Sound):
    def create(self, call):
        return Done()


class Holed(Sound):
    """Promises that a second create makes nothing new; then it makes something, and names that."""

    token_enforced = True
    find = ResourceType.find

    def create(self, call):
        key = call.token if call.token not in self.objects else f'{call.token}-2'
        self.objects[key] = call.properties.text
        return Done(key)

    def delete(self, call):
        del self.objects[call.physical_id]
        return Done()


class Refusing(Holed):
    """The service behind it refuses a second create, and says nothing of the first."""

    def create(self, call):
        if call.token in self.objects:
            raise FinalFailure('there is one')
        return super().create(call)


class Mute(Holed):
    """Deletes by the token, whatever the id, and says in no way what was made: the engine never gets that far."""

    token_enforced = False


class ByToken(Sound):
    """The example of the guide in small: the second create answers with the same object, and there is no find()."""

    token_enforced = True
    find = ResourceType.find

    def create(self, call):
        self.objects[call.token] = call.properties.text
        return Done(call.token)


class Late(Sound):
    """Holds what it needs for a poll in memory, where another worker will not find it."""

    def create(self, call):
        self.started = True
        return super().create(call)

    def poll(self, call, action, progress):
        return Done() if self.started else InProgress()


def failing(kind):
    Sound.objects.clear()
    fixture = Fixture(
        kind, {'text': 'a'}, changed={'text': 'b'}, leftovers=lambda: Sound.objects, wait=lambda s: None, poll_limit=5
    )
    failed = set()
    for case in conformance(fixture):
        Sound.objects.clear()
        try:
            case.run()
        except Exception:  # noqa: BLE001 - which case fails is what counts
            failed.add(str(case))
    return failed


@pytest.mark.parametrize(
    ('kind', 'case'),
    [
        (Forgetful, 'is_found_after_a_crash'),
        (Forgetful, 'survives_lost_answers'),
        (Doubling, 'is_created_twice'),
        (Leaving, 'lives'),
        (Counting, 'is_updated_twice'),
        (StrictAboutDeletes, 'is_deleted_twice'),
        (StrictAboutDeletes, 'survives_lost_answers'),
        (Holed, 'is_deleted_before_it_exists'),
        (Holed, 'is_created_twice'),
        (Refusing, 'is_deleted_before_it_exists'),
        (Mute, 'is_deleted_before_it_exists'),
        (Talkative, 'lives'),
        (Endless, 'lives'),
        (Nameless, 'lives'),
        (Late, 'lives'),
    ],
)
def test_the_kit_finds_what_is_wrong(kind, case):
    assert case in failing(kind)


@pytest.mark.parametrize('kind', [Sound, ByToken])
def test_the_kit_accepts_what_is_right(kind):
    assert failing(kind) == set()


def test_the_kit_finds_what_a_fault_leaves_behind(monkeypatch):
    class Outside:
        made: dict[str, Json] = {}  # noqa: RUF012 - as above

        @classmethod
        def make(cls, name):
            cls.made[name] = True

    class Careless(Sound):
        def create(self, call):
            Outside.make(call.token)
            self.objects[call.token] = ''
            return Done(call.token)

        def delete(self, call):
            if self.objects.pop(call.token, None) is not None:
                Outside.made.pop(call.token)
            return Done()

    fixture = Fixture(
        Careless, {'text': 'a'}, leftovers=lambda: Outside.made, boundaries=[(Outside, 'make')], wait=lambda s: None
    )
    (case,) = [case for case in conformance(fixture) if str(case) == 'survives_faults']
    with pytest.raises(AssertionError, match='left over'):
        case.run()


class TwoPieces(ResourceType[Things]):
    """A lid, then a box: the lid is recorded before the box is made, and is found in the data after a crash."""

    Properties = Things
    things: set[str] = set()  # noqa: RUF012 - shared on purpose, it is the outside world
    records = True

    def create(self, call):
        """Both have random names; only the box has the token."""
        lid = call.data.get('lid') or f'lid-{uuid.uuid4()}'
        self.things.add(lid)
        if self.records:
            call.record(data={'lid': lid})
        self.things.add(f'box-{call.token}')
        return Done(f'box-{call.token}', {'lid': lid})

    def find(self, call):
        """Only the box can be asked for."""
        return Done(f'box-{call.token}') if f'box-{call.token}' in self.things else None

    def delete(self, call):
        """Whatever is known."""
        self.things.discard(call.physical_id)
        self.things.discard(call.data.get('lid'))
        return Done()


class TellsLate(TwoPieces):
    """Tells of the lid only at the end."""

    things: set[str] = set()  # noqa: RUF012 - as above
    records = False


def test_what_was_recorded_is_cleaned_up_wherever_a_worker_dies():
    fixture = Fixture(TwoPieces, {'text': 'x'}, leftovers=lambda: TwoPieces.things)
    for case in conformance(fixture):
        case.run()
    late = Fixture(TellsLate, {'text': 'x'}, leftovers=lambda: TellsLate.things)
    with pytest.raises(AssertionError, match='left over after the delete: lid-'):
        next(case for case in conformance(late) if case.name == 'survives_lost_answers').run()


class KeyPair(ResourceType[Things]):
    """Known by its name alone; whoever has made it is written on it."""

    Properties = Things
    keys: dict[str, str] = {}  # noqa: RUF012 - as above

    def create(self, call):
        """A second one of a name is refused."""
        if call.properties.text in self.keys:
            raise ForeignObject(f'key {call.properties.text} is there already')
        self.keys[call.properties.text] = call.token
        return Done(call.properties.text)

    def find(self, call):
        """By name, and only its own."""
        owner = self.keys.get(call.properties.text)
        if owner is not None and owner != call.token:
            raise ForeignObject(f'key {call.properties.text} is there, and belongs to somebody else')
        return Done(call.properties.text) if owner is not None else None

    def delete(self, call):
        """By name."""
        self.keys.pop(call.physical_id, None)
        return Done()


class Telling(KeyPair):
    """Tells of keys that go."""

    listeners: list[Telling.Watcher] = []  # noqa: RUF012 - as above

    class Watcher:
        """Tells of some keys."""

        def __init__(self, tell):
            self.tell, self.wanted = tell, ()
            Telling.listeners.append(self)

        def watch(self, physical_ids):
            """These from now on."""
            self.wanted = physical_ids

        def hear(self, key):
            """A key has gone."""
            if key in self.wanted:
                self.tell(key)

        def close(self):
            """None any more."""
            Telling.listeners.remove(self)

    def watcher(self, tell):
        """See `Watcher`."""
        return self.Watcher(tell)

    def delete(self, call):
        """Everybody who watches hears of it."""
        for each in self.listeners:
            each.hear(call.physical_id)
        return super().delete(call)


class Silent(Telling):
    """Tells of nothing."""

    class Watcher(Telling.Watcher):
        """Never calls anybody."""

        def hear(self, key):
            """Keeps it."""


class Talkative(Telling):
    """Tells of every key."""

    class Watcher(Telling.Watcher):
        """Does not look what is wanted."""

        def hear(self, key):
            """Says that, and more."""
            self.tell(key)
            self.tell('another')


class Asking(KeyPair):
    """Asks the service first."""

    def validate(self, call):
        """The service knows no other names."""
        if call.properties.text not in ('x', 'y'):
            raise FinalFailure(f'no key may be called {call.properties.text}')


class Careless(Asking):
    """Makes what it should only ask for."""

    def validate(self, call):
        """As if it were a creation."""
        super().validate(call)
        self.create(call)


class Exchanged(KeyPair):
    """Nothing of it can be changed: the old one has to go before there can be another one, of the same name or not."""

    delete_before_create = True

    def needs_replacement(self, call):
        """Whatever changes."""
        return True

    def create(self, call):
        """There is one lock, whatever the key."""
        if self.keys:
            raise ForeignObject(f'there is a key already: {self.keys}')
        return super().create(call)


class Unordered(Exchanged):
    """Does not say that the old one has to go first."""

    def delete(self, call):
        """Forgets to."""
        return Done()


@dataclass(frozen=True)
class Whereabouts:
    """Where it is."""

    address: str = attr(description='Its address.')


class Host(ResourceType[Things]):
    """Each has the one address that there is, unless it was taken from it."""

    Properties = Things
    Attributes = Whereabouts
    hosts: dict[str, bool] = {}  # noqa: RUF012 - as above

    def create(self, call):
        """A second one with the address is refused."""
        if any(self.hosts.values()):
            raise FinalFailure('the address is taken')
        self.hosts[call.token] = True
        return Done(call.token)

    def find(self, call):
        """By its token."""
        return Done(call.token) if call.token in self.hosts else None

    def delete(self, call):
        """By its id."""
        self.hosts.pop(call.physical_id, None)
        return Done()

    def needs_replacement(self, call):
        """Whatever changes."""
        return True

    def release_for_replacement(self, call):
        """The address is free."""
        call.record(data={'had': self.hosts[call.physical_id] or call.data.get('had', False)})
        self.hosts[call.physical_id] = False

    def reclaim(self, call):
        """It has the address again."""
        if call.data.get('had') and not any(self.hosts.values()):
            self.hosts[call.physical_id] = True

    def attribute(self, call, name):
        """Where it is."""
        return 'here' if self.hosts[call.physical_id] else ''


class Stubborn(Host):
    """Keeps what it has."""

    def release_for_replacement(self, call):
        """Does nothing."""


class Forgetful(Host):
    """Does not write down what it had, as it is called again."""

    def release_for_replacement(self, call):
        """The second time it had nothing."""
        call.record(data={'had': self.hosts[call.physical_id]})
        self.hosts[call.physical_id] = False


class Greedy(KeyPair):
    """Takes whatever has the name."""

    def create(self, call):
        """As if it were its own."""
        self.keys[call.properties.text] = call.token
        return Done(call.properties.text)


@contextmanager
def taken():
    """Somebody else has the key."""
    KeyPair.keys['x'] = 'somebody'
    try:
        yield 'x'
    finally:
        KeyPair.keys.clear()


def test_what_somebody_else_has_made_is_left_alone():
    fixture = Fixture(KeyPair, {'text': 'x'}, leftovers=lambda: KeyPair.keys, taken=taken)
    assert 'leaves_others_alone' in {case.name for case in conformance(fixture)}
    for case in conformance(fixture):
        case.run()
    greedy = conformance(replace(fixture, make=Greedy))
    with pytest.raises(AssertionError, match='although another creator has made such an object'):
        next(case for case in greedy if case.name == 'leaves_others_alone').run()


def test_what_has_a_name_for_a_key_is_removed_before_it_is_made_again():
    fixture = Fixture(Exchanged, {'text': 'x'}, replaced={'text': 'y'}, leftovers=lambda: KeyPair.keys)
    assert 'makes_room' in {case.name for case in conformance(fixture)}
    for case in conformance(fixture):
        case.run()
    with pytest.raises(AssertionError):
        next(case for case in conformance(replace(fixture, make=Unordered)) if case.name == 'makes_room').run()
    KeyPair.keys.clear()


def test_what_another_object_needs_is_given_up_and_taken_back():
    fixture = Fixture(Host, {'text': 'x'}, replaced={'text': 'y'}, leftovers=lambda: Host.hosts)
    assert 'gives_way' in {case.name for case in conformance(fixture)}
    for case in conformance(fixture):
        case.run()
    for wrong, told in ((Stubborn, 'the address is taken'), (Forgetful, 'has not given back')):
        with pytest.raises(AssertionError, match=told):
            next(case for case in conformance(replace(fixture, make=wrong)) if case.name == 'gives_way').run()
        Host.hosts.clear()


def test_what_happens_to_an_object_is_told_and_nothing_else(monkeypatch):
    monkeypatch.setattr(sys.modules[conformance.__module__], 'WATCHER_LIMIT_S', 0.0)
    fixture = Fixture(Telling, {'text': 'x'}, leftovers=lambda: KeyPair.keys)
    for kind, told in ((Telling, ''), (Silent, 'does not report'), (Talkative, 'are not watched')):
        (case,) = [case for case in conformance(replace(fixture, make=kind)) if case.name == 'is_watched']
        with pytest.raises(AssertionError, match=told) if told else nullcontext():
            case.run()
        assert Telling.listeners == []


def test_what_a_service_would_refuse_is_found_out_without_making_anything():
    fixture = Fixture(Asking, {'text': 'x'}, impossible=[{'text': 'no'}], leftovers=lambda: KeyPair.keys)
    assert 'is_validated' in {case.name for case in conformance(fixture)}
    for case in conformance(fixture):
        case.run()
    for wrong, told in (
        (replace(fixture, impossible=[{'text': 'y'}]), 'takes'),
        (replace(fixture, make=Careless), 'x'),
    ):
        with pytest.raises(AssertionError, match=told):
            next(case for case in conformance(wrong) if case.name == 'is_validated').run()
        KeyPair.keys.clear()


# --- what an update would do ----------------------------------------------------------------------------------


class Foreseeing(Sound):
    """Knows before an update what it will do: the same in other letters is nothing, a longer text another object."""

    objects: dict[str, str] = {}  # noqa: RUF012 - as above

    def plan(self, call):
        """By a service that changes nothing."""
        before, after = call.previous.text, call.properties.text
        if len(after) > len(before):
            return Change.REPLACE
        return Change.NONE if after.lower() == before.lower() else Change.IN_PLACE

    def update(self, call):
        """As it was planned."""
        change = Foreseeing.plan(self, call)
        if change is Change.REPLACE:
            raise ReplacementNeeded('it is too long')
        return super().update(call) if change is Change.IN_PLACE else Done()


class Undecided(Foreseeing):
    """Never knows."""

    def plan(self, call):
        """Allowed, and of no use."""


class Fickle(Foreseeing):
    """Says something else each time."""

    count = itertools.count()

    def plan(self, call):
        """Whatever comes next."""
        return (Change.IN_PLACE, Change.NONE)[next(self.count) % 2]


class Overdone(Foreseeing):
    """Does what it should only tell."""

    def plan(self, call):
        """As if it were the update."""
        self.create(replace(call, token='another'))
        return super().plan(call)


class Wordy(Foreseeing):
    """Answers in words."""

    def plan(self, call):
        """Not in the terms of the contract."""
        return 'in place'


class Timid(Foreseeing):
    """Fears for its object."""

    def plan(self, call):
        """Says what is never so."""
        return Change.REPLACE


PLANNED = (({'text': 'X'}, Change.NONE), ({'text': 'xyz'}, Change.REPLACE))


def planning(kind, planned=PLANNED):
    fixture = Fixture(
        kind, {'text': 'x'}, changed={'text': 'y'}, planned=planned, leftovers=lambda: [*Foreseeing.objects]
    )
    return next(case for case in conformance(fixture) if case.name == 'is_planned')


def test_a_plan_that_says_what_the_update_does_conforms():
    planning(Foreseeing).run()


def test_a_type_that_never_knows_conforms_where_nothing_is_promised():
    planning(Undecided, ()).run()


@pytest.mark.parametrize(
    ('kind', 'planned', 'told'),
    [
        (Undecided, PLANNED, 'says nothing and not NONE'),
        (Fickle, (), 'another result when it is called again'),
        (Overdone, PLANNED, 'has changed something'),
        (Wordy, PLANNED, "answers 'in place'"),
        (Timid, (), 'returns REPLACE for an update that needs no new object'),
        (Foreseeing, (({'text': 'y'}, Change.REPLACE),), 'says IN_PLACE'),
    ],
)
def test_the_kit_finds_what_is_wrong_with_a_plan(kind, planned, told):
    with pytest.raises(AssertionError, match=told):
        planning(kind, planned).run()
    Foreseeing.objects.clear()


def test_types_without_a_plan_are_not_asked_for_one():
    assert 'is_planned' not in {case.name for case in conformance(Fixture(Sound, {'text': 'x'}))}
