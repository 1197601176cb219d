"""Resource types whose objects are stacks.

Such a type writes the stack that it needs; all else is common. To act, it has an engine start an operation on the
nested stack, which takes a moment. Then the resource is parked. The last transaction of the nested operation finishes
the resource or wakes it; no thread waits until then and nothing polls.

The token of the resource is the id of the stack. So the id is known before the stack exists, a repeated creation makes
nothing new, and the engine refuses a late call (see `convergence.core.nesting`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from convergence.core.model import Action, Json, Path, RetryPolicy
from convergence.core.nesting import nested_snapshot
from convergence.core.object_state import ADOPTED
from convergence.resources.attributes import SHOW, AnyAttribute
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.nesting import DesiredStack, NestedStep, NestingContext, SampleTemplate
from convergence.resources.schema import remaining
from convergence.values import replace

P = TypeVar('P')

AGAIN_S = 5.0
"""Seconds after which a woken resource polls again while its stack still seems to run. Each further pause is twice as
long.
"""

MOST_LOOKS = 6
"""Number of polls, within about five minutes, after which a stack that was started and has no row counts as gone."""

SNAPSHOT = 'snapshot'
"""Key of the id of the nested snapshot in the kept data of a resource."""

SILENT = 'silent'
"""Key in the progress of an action: the template of the stack has no outputs, so they are not read."""

INSISTENTLY = RetryPolicy(attempts=1_000_000, first_s=0.5, longest_s=15.0)
"""Retries calls to an engine that does not answer until the action exceeds its time limit."""


class NestedType(ResourceType[P]):
    """Base of the types whose objects are stacks. Write `wanted`, and `attribute` for values that are no outputs.

    :cvar untold_s: seconds after which a parked resource polls its stack without an event. The event in its row is
        never lost and the sweeper finds it, so this only covers unforeseen faults.
    :cvar tells_outputs_only: True if the resource gives only its reference and the outputs of its stack. Without
        outputs its values are known before the operation ends.
    """

    untold_s: ClassVar[float] = 600.0
    tells_outputs_only: ClassVar[bool] = False

    nests = True
    snapshots_survive: ClassVar[bool] = False
    token_enforced: ClassVar[bool] = True
    create_ambiguity_s: ClassVar[float | None] = 0.0
    retry: ClassVar[RetryPolicy] = INSISTENTLY

    @abstractmethod
    def wanted(self, call: Call[P], context: NestingContext) -> DesiredStack:
        """The stack that the resource should be. Called by an engine; pure, and the same whenever it is repeated.

        :raises FinalFailure: there can be no such stack.
        """

    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """Return the known facts about the stack while the template of the resource is checked.

        :param properties: by their names in templates. `UNKNOWN` stands for values that are not known yet.
        :param files: the files sent with the template, by name.
        :param masked_paths: places in the properties whose values must be masked.
        """
        return ()

    @override
    def create(self, call: Call[P]) -> Answer:
        """Create the stack, or update it to the desired state if it exists."""
        return self._begin(call, Action.CREATE)

    @override
    def update(self, call: Call[P]) -> Answer:
        """Update the stack to the desired state, also while another operation runs."""
        return self._begin(call, Action.UPDATE)

    @override
    def delete(self, call: Call[P]) -> Answer:
        """Delete the stack, also while another operation runs."""
        return self._begin(call, Action.DELETE)

    @override
    def suspend(self, call: Call[P]) -> Answer:
        """Have all of the stack suspended."""
        return self._begin(call, Action.SUSPEND)

    @override
    def resume(self, call: Call[P]) -> Answer:
        """Have all of the stack resumed."""
        return self._begin(call, Action.RESUME)

    @override
    def check(self, call: Call[P]) -> Answer:
        """Check all resources of the stack."""
        return self._begin(call, Action.CHECK)

    @override
    def snapshot(self, call: Call[P], snapshot_id: str) -> Answer:
        """Have a snapshot of the stack taken; it has an id that follows from `snapshot_id`."""
        kept: dict[str, Json] = {SNAPSHOT: nested_snapshot(snapshot_id, call.token)}
        return replace(self._begin(call, Action.SNAPSHOT), kept=kept)

    @override
    def delete_snapshot(self, call: Call[P], snapshot_id: str, kept: Mapping[str, Json]) -> None:
        """Have that snapshot deleted."""
        if call.physical_id is not None:
            call.nested.delete_snapshot(nested_snapshot(snapshot_id, call.physical_id))

    def _begin(self, call: Call[P], action: Action, step: int = 0) -> Answer:
        answer = self._begun(call, action, step)
        if call.data.get(ADOPTED) is None:
            return answer
        # The stack is there, and has the objects that it was to take over.
        return replace(answer, data={**call.data, ADOPTED: None})

    def _begun(self, call: Call[P], action: Action, step: int) -> Answer:
        begun = call.nested.act(step)
        if begun.is_gone:
            if action is Action.DELETE:
                raise ObjectNotFound('the nested stack is gone')
            if action in (Action.CREATE, Action.UPDATE):
                raise ReplacementNeeded('the nested stack was deleted')
            raise FinalFailure('the nested stack was deleted')
        progress = progress_of(begun, step)
        if begun.traversal_id:
            return InProgress(progress, poll_after_s=self.untold_s, is_told=True)
        return self._after(call, action, progress)

    @override
    def poll(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Poll the state of the stack. Called when its operation has ended."""
        if 'resume_step' in progress:
            return self._begin(call, action, int(str(progress['resume_step'])))
        state = call.nested.state(str(progress.get('traversal') or ''))
        if action is Action.DELETE and state.is_deleted:
            return Done()
        looks = int(str(progress.get('looks', 0)))
        is_hidden = not state.is_seen and looks < MOST_LOOKS
        if state.is_deleted and not is_hidden:
            raise FinalFailure('the nested stack was deleted')
        if state.is_at_work or is_hidden:
            # Woken, and the stack still runs: an earlier operation woke it, or a replica of the database lags behind.
            again_s = min(AGAIN_S * 2 ** min(looks, 32), self.untold_s)
            return InProgress({**progress, 'looks': looks + 1}, poll_after_s=again_s, is_told=True)
        if state.has_failed:
            raise FinalFailure(state.reason)
        return self._after(call, action, progress)

    def _after(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> Answer:
        """A step is complete."""
        if 'pause_s' not in progress:
            return Done()
        step = int(str(progress.get('step', 0))) + 1
        pause_s = float(str(progress['pause_s']))
        if pause_s > 0:
            return InProgress({'resume_step': step}, poll_after_s=pause_s, is_told=True)
        return self._begin(call, action, step)

    @override
    def cancel(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> None:
        """Have stopped what the stack does on behalf of the resource."""
        call.nested.cancel()

    @override
    def can_cancel(self, action: Action) -> bool:
        """Always."""
        return True

    def is_told_by_members(self, name: str) -> bool:
        """Return True if the value of an attribute depends on resources of the stack, and not on its outputs alone."""
        return name.startswith(OF_ONE)

    def asked_of_members(self, name: str, members: Collection[str]) -> Mapping[str, str]:
        """Return the attributes of resources of the stack that make up an attribute of the resource, by their names.

        Resources do not read attributes that no template uses, such as secret or slow ones. This tells the nested
        stack which of its attributes the parent stack will use.

        :param members: the names of all resources of the stack. '' as an attribute: all attributes.
        """
        return asked_of_one(name.removeprefix(OF_ONE), members) if name.startswith(OF_ONE) else {}

    @override
    def attribute(self, call: Call[P], name: str) -> Json:
        """An output of the stack, all ``outputs``, or ``resource.<name>`` and ``resource.<name>.<attribute>``."""
        if name.startswith(OF_ONE):
            return of_member(call, name.removeprefix(OF_ONE))
        values = call.nested.values()
        if name == 'outputs':
            return dict(values.outputs)
        if name in values.errors:
            raise FinalFailure(values.errors[name])
        if name not in values.outputs:
            raise FinalFailure(f'The nested stack has no output {name}')
        return values.outputs[name]


OF_ONE = 'resource.'
"""Prefix of the attributes that one resource of the stack gives."""


def progress_of(begun: NestedStep, step: int) -> dict[str, Json]:
    """Return the progress data of an action while the stack runs."""
    progress: dict[str, Json] = {'traversal': begun.traversal_id, 'step': step}
    if begun.is_silent:
        progress[SILENT] = True
    if begun.more:
        progress['pause_s'] = begun.pause_s
    return progress


def begun_of(progress: Mapping[str, Json]) -> NestedStep | None:
    """Return the started step from its progress data; None if the stack does not run."""
    if not progress.get('traversal'):
        return None
    pause_s = float(str(progress.get('pause_s', 0.0)))
    return NestedStep(str(progress['traversal']), 'pause_s' in progress, pause_s, is_silent=bool(progress.get(SILENT)))


def asked_of_one(path: str, members: Collection[str]) -> dict[str, str]:
    """Return the resource and the attribute that `of_member` will read."""
    name = next((path[:end] for end in _ends(path) if path[:end] in members), None)
    attribute = _keys(path[len(name) + 1 :])[:1] if name is not None else []
    return {name: attribute[0]} if name is not None and attribute else {}


def of_member(call: Call[Any], path: str, further: Sequence[str] = ()) -> Json:
    """Return a value of a resource of the nested stack: ``name``, its reference, or ``name.attribute``.

    :raises FinalFailure: there is no such resource, or it has no such attribute.
    """
    resources = call.nested.values().resources
    # Names of resources may have dots in them: the longest one that fits is meant.
    name = next((path[:end] for end in _ends(path) if path[:end] in resources), None)
    if name is None:
        raise FinalFailure(f'The nested stack has no resource {path.partition(".")[0]}')
    member = resources[name]
    rest = [*_keys(path[len(name) + 1 :]), *further]
    if not rest:
        return member.get('reference')
    return _told(member, name, rest)


def _keys(path: str) -> list[str]:
    """Split a path into an attribute and the keys behind it. A path into a stack one level further down is one
    attribute.
    """
    return [path] if path.startswith(OF_ONE) else [part for part in path.split('.') if part]


def _ends(path: str) -> list[int]:
    return [len(path), *(at for at in range(len(path) - 1, 0, -1) if path[at] == '.')]


def _told(member: Mapping[str, Json], name: str, path: Sequence[str]) -> Json:
    attributes, errors = _attributes(member), member.get('errors')
    assert isinstance(errors, dict)
    wanted, *further = path
    if wanted in errors:
        raise FinalFailure(str(errors[wanted]))
    if wanted not in attributes:
        raise FinalFailure(f'The resource {name} of the nested stack does not give its attribute {wanted}')
    value: Json = attributes[wanted]
    for key in further:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def by_attribute(members: Mapping[str, Mapping[str, Json]]) -> dict[str, dict[str, Json]]:
    """Return the values of the members by attribute and member name; null for a member without the attribute."""
    told = {name: _attributes(member) for name, member in members.items()}
    keys = sorted({key for attributes in told.values() for key in attributes})
    return {key: {name: attributes.get(key) for name, attributes in told.items()} for key in keys}


def _attributes(member: Mapping[str, Json]) -> dict[str, Json]:
    attributes = member.get('attributes')
    assert isinstance(attributes, dict)
    return attributes


@dataclass(frozen=True)
class ProviderProperties:
    """Accepts all parameters of the template."""

    parameters: dict[str, Any] = remaining(description='Its parameters.')  # noqa: RUF009 - makes a field


class ProviderType(NestedType[ProviderProperties]):
    """A template that is used as a resource type.

    This is the one that acts: the template is checked, with its parameters as properties, where a stack is accepted
    (`convergence.resources.provider`), and again where the nested one is.
    """

    Properties = ProviderProperties
    Attributes = AnyAttribute
    tells_outputs_only: ClassVar[bool] = True

    @override
    def wanted(self, call: Call[ProviderProperties], context: NestingContext) -> DesiredStack:
        """The template, with the properties as its parameters."""
        type_name = call.type_name
        if type_name not in context.files:
            raise FinalFailure(f'The template {type_name} is not among the files of the stack')
        given = {name: value for name, value in call.properties.parameters.items() if value is not None}
        return DesiredStack(context.files[type_name], given)

    @override
    def attribute(self, call: Call[ProviderProperties], name: str) -> Json:
        """As of every nested stack; no service describes it, unless an output is called so."""
        if name == SHOW and name not in (*call.nested.values().outputs, *call.nested.values().errors):
            return None
        return super().attribute(call, name)

    @override
    def present_attributes(self, call: Call[ProviderProperties]) -> tuple[str, ...]:
        """The outputs of the template."""
        return call.nested.output_names()


PROVIDER = ProviderType()
"""The one instance: what it is a template of stands in the row."""
