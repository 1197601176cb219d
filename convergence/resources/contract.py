"""The contract between the engine and the author of a resource type.

A resource type is a class with a frozen dataclass of properties and a few methods. The engine calls them in any
worker process, possibly a different one for each call, and possibly a second time after a crash; everything that
has to survive between two calls is returned to the engine and handed in again with the next call.

A call answers with `Done` or with `InProgress`. While an action is in progress the engine calls `poll` with the
progress data that the last answer carried. Errors are raised:

* `TransientFailure`: try again, after a while; the engine backs off. From `create` only where nothing was made.
* `FinalFailure`: the resource has failed with that text. From `create`, nothing was made unless it names an object: a
  service that may answer with an error although it has made something is a case for `OutcomeUnknown`.
* `OutcomeUnknown`, and any other exception: the same, and whether the call has had an effect is not known.
* `ObjectNotFound`: the physical object is not there. For a delete that is success.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from convergence.core.model import Action, Change, Json, RetryPolicy
from convergence.core.observation import ObservedState
from convergence.resources.answers import (
    Answer,
    Done,
    FinalFailure,
    ForeignObject,
    InProgress,
    Item,
    NotAsWanted,
    ObjectNotFound,
    Observed,
    OutcomeUnknown,
    PluginFailure,
    ReplacementNeeded,
    TransientFailure,
)
from convergence.resources.calls import Call, P, Recorder, Signal, Signals
from convergence.resources.drift import sight
from convergence.resources.support import SUPPORTED, SupportStatus
from convergence.resources.watching import Tell, Watcher

__all__ = [
    'Answer',
    'Call',
    'Change',
    'Done',
    'FinalFailure',
    'ForeignObject',
    'FutureValue',
    'InProgress',
    'Item',
    'NotAsWanted',
    'ObjectNotFound',
    'Observed',
    'OutcomeUnknown',
    'Outline',
    'PluginFailure',
    'Recorder',
    'ReplacementNeeded',
    'ResourceType',
    'Signal',
    'Signals',
    'Tell',
    'TransientFailure',
    'Watcher',
]
# What authors of types need they find here, wherever it stands.


@dataclass(frozen=True, slots=True)
class FutureValue:
    """Stands for a value that only other resources can tell. Two are equal where the values will be.

    :param expression: what it is computed from; of no further meaning.
    :param resource: the resource whose reference or attribute it is; empty for anything else.
    :param attribute: the attribute, None for the reference.
    """

    expression: str
    resource: str = ''
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A resource as its template has it, before anything is made.

    :param type: that it really is, whatever the environment lets the template call it.
    :param properties: by today's names, with a `FutureValue` in place of what other resources are to tell. Defaults are
        not among them.
    """

    name: str
    type: str
    properties: Mapping[str, Any]


class ResourceType(Generic[P]):
    """Base class of resource types. Only `create` must be written; everything else has a sensible default.

    Class attributes:

    * `Properties`: a frozen dataclass; each field is declared with `convergence.resources.schema.prop`.
    * `Attributes`: a frozen dataclass (or None) whose fields name and type the readable attributes.
    * `UpdatePolicy`: a frozen dataclass, like `Properties`, of what may stand in the section ``update_policy`` of a
      resource; None: it is not looked at.
    * `token_enforced`: True where a second `create` with the same token and properties makes nothing new, and answers
      with the object that the first one has made.
    * `create_settles_s`: for how many seconds a `create` that was cut off may still make something, counted from the
      last sign of life of the worker that called it, or from a failure that promises nothing: until then, that `find`
      finds nothing proves nothing. 0 where nothing goes on after the worker's death. None: as the operator has
      configured it.
    * `support`: how far users may rely on the type.
    * `retry`: how calls that raise `TransientFailure` are repeated; what it leaves open is the worker's configuration.
      A template may say otherwise for one resource.
    * `time_limits`: seconds that an action may take before it is cancelled and fails. As above.
    * `takes_signals`: whether people and programs outside may signal a resource; write `signal` as well.
    * `keeps_signals`: whether what they say is kept for actions to read. False where `signal` takes it to where it
      belongs.
    * `deaf_in`: the actions in which, and after which, a resource takes no signals.
    * `renewed_by_updates`: True where every update of the stack is to make a new object.
    * `delete_before_create`: True where there can be one object only of a name that the template gives: a replacement is made
      when the old one is gone, and for a while there is none.
    * `nests`: True where the objects are stacks; see `convergence.resources.nested`.
    * `set_by_service`: names of properties whose live value is no difference, whatever it is: the service sets them.
    * `observe_interval_s`: the longest pause in seconds between two looks of observers at an object. None: as the
      operator has configured it.
    * `reference_of`: names of the properties of which a `reference_id` of the type's own tells something. None: any.
    """

    Properties: ClassVar[type[Any]]
    Attributes: ClassVar[type[Any] | None] = None
    UpdatePolicy: ClassVar[type[Any] | None] = None
    token_enforced: ClassVar[bool] = False
    create_settles_s: ClassVar[float | None] = None
    support: ClassVar[SupportStatus] = SUPPORTED
    retry: ClassVar[RetryPolicy] = RetryPolicy()
    time_limits: ClassVar[Mapping[Action, float]] = {}
    takes_signals: ClassVar[bool] = False
    keeps_signals: ClassVar[bool] = True
    deaf_in: ClassVar[frozenset[Action]] = frozenset({Action.SUSPEND, Action.DELETE})
    renewed_by_updates: ClassVar[bool] = False
    delete_before_create: ClassVar[bool] = False
    nests: ClassVar[bool] = False
    set_by_service: ClassVar[tuple[str, ...]] = ()
    observe_interval_s: ClassVar[float | None] = None
    reference_of: ClassVar[tuple[str, ...] | None] = None

    def create(self, call: Call[P]) -> Answer:
        """Begin to make the physical object."""
        raise NotImplementedError(f'{type(self).__name__} cannot be created')

    def validate(self, call: Call[P]) -> None:
        """Ask services whether there can be such an object, and make nothing. What it raises fails the creation.

        Called before `prepare` and `create`, outside of every transaction; it may take its time. What it refuses was
        never made, whatever it raises, and needs no clean-up. Called again where the creation begins again.

        Also called when somebody only asks: by a preview, and when a template is validated. There is no row then, and
        no token; `call.credentials` may have none.

        :raises FinalFailure: there cannot be; the text names the property and what is wrong with it.
        :raises TransientFailure: nobody can tell at the moment.
        """

    def validates(self) -> bool:
        """Whether `validate` asks: true where it is written."""
        return type(self).validate is not ResourceType.validate

    def plan(self, call: Call[P]) -> Change | None:
        """What `update` would do with the same call: nothing, change the object in place, or ask for another one.

        Asked for previews, of changes that the schema and `needs_replacement` allow in place, when all values are
        known; never while an action goes on, and outside of every transaction: it may ask services. It changes nothing.

        :returns: None where that is not known yet, or not before it is done.
        :raises FinalFailure: the update would fail; the text names the property and what is wrong with it.
        :raises TransientFailure: nobody can tell at the moment.
        """
        return None

    def plans(self) -> bool:
        """Whether `plan` says anything: true where it is written."""
        return type(self).plan is not ResourceType.plan

    def prepare(self, call: Call[P]) -> Mapping[str, Json]:
        """Look and choose before the object is made, and make nothing: the private data with which `create` is called.

        They are stored first, so `find` has them after a crash: the key that was chosen, or what was there before. Not
        called again for the same creation, unless its answer was lost, or `create` has promised that nothing was made.
        """
        return {}

    def prepares(self) -> bool:
        """Whether `prepare` looks: true where it is written."""
        return type(self).prepare is not ResourceType.prepare

    def update(self, call: Call[P]) -> Answer:
        """Begin to change the physical object from `call.previous` to `call.properties` in place.

        Must be idempotent: after a crash or a failure it is called again, and parts may have been applied.
        """
        return Done()

    def delete(self, call: Call[P]) -> Answer:
        """Begin to remove the physical object.

        Called only where there is one: `call.physical_id` is None only if a create was complete and answered none, or
        has told of private data and no id: then what the data tell of is to be removed. Where the answer to a create
        was lost the engine learns the id first: it asks `find`, or creates again where the token is enforced. Where it
        can do neither, `delete` is not called, and an event and a warning say so.
        """
        return Done()

    def give_way(self, call: Call[P]) -> None:
        """Take from the object what another one of its name needs, before that is made in its place.

        An address, a port: what there can be only once, and both are to have. What it was is recorded first, by
        `call.record`, for `take_back`. Called again after a crash, and of what was to be a replacement where the old
        object is to have it again: that keeps nothing of what is recorded then.

        :raises ObjectNotFound: there is no object any more, so it has nothing: that is success.
        :raises TransientFailure: it has it still; it is called again.
        """

    def take_back(self, call: Call[P]) -> None:
        """Give the object again what `give_way` took from it: it is wanted after all. The others have given way by now.

        Called again after a crash; also where it never came to `give_way`, or only to a part of it.

        :raises ObjectNotFound: there is no object any more; another one is made.
        :raises TransientFailure: somebody else has it still; it is called again.
        """

    def gives_way(self) -> bool:
        """Whether `give_way` takes anything: true where it is written."""
        return type(self).give_way is not ResourceType.give_way

    def poll(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Is the long action done? Called only after `InProgress`."""
        raise NotImplementedError(f'{type(self).__name__} answered InProgress but has no poll()')

    def find(self, call: Call[P]) -> Answer | None:
        """The object made under `call.token`, after a crash between making it and storing its id.

        What `call.record` has stored by then is in the call. Where nothing is found, what it names is deleted.
        `Done` or `InProgress` with its physical id, or None where there is none. Whatever it raises is no answer: it is
        asked again, until the action has taken too long.

        :raises ForeignObject: this is an answer: what is there is not what was made under the token.
        :raises ReplacementNeeded: so is this, with an id: the object lacks something, and is better made anew.
        """
        return None

    def can_find(self) -> bool:
        """Whether `find` looks: true where `find` is written."""
        return type(self).find is not ResourceType.find

    def inventory(self) -> Iterable[Item] | None:
        """All objects that any resource of this type has made here and that exist, whether a row knows them or not.

        An operator asks for it where the database may have lost rows. None where the type cannot tell; a type whose
        objects carry its mark or their token (a name, a label, a record of its own) can.
        """
        return None

    def observe(self, call: Call[P]) -> Observed | None:
        """What is really there for `call.physical_id`; None where the type cannot tell.

        Asked in checks, and by observers again and again: it changes nothing.

        :raises ObjectNotFound: nothing is there.
        """
        return None

    def observes(self) -> bool:
        """Whether `observe` looks: true where it is written."""
        return type(self).observe is not ResourceType.observe

    def watcher(self, tell: Tell) -> Watcher | None:
        """What calls `tell` when something happens to objects of this type: they are looked at before it is time.

        Asked for once by each observer, when there is something to watch. None where that cannot be told here.
        """
        return None

    def watches(self) -> bool:
        """Whether `watcher` gives one: true where it is written. Of use only with `observe`."""
        return type(self).watcher is not ResourceType.watcher

    def notified(self, event_type: str, payload: Mapping[str, Any]) -> Iterable[str]:
        """The physical ids of those that a notification of a service is about, be they objects of this type or not.

        Notifications are those that services send by oslo.messaging. It must be quick and talk to nobody.
        """
        return ()

    def hears(self) -> bool:
        """Whether `notified` reads notifications: true where it is written."""
        return type(self).notified is not ResourceType.notified

    def needs_replacement(self, call: Call[P]) -> bool:
        """Must a change from `call.previous` to `call.properties` make a new object?

        Asked only for changes that the property schema would allow in place. Runs inside a database transaction:
        it must be quick and must not talk to anybody.
        """
        return False

    def canonical(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """The properties, with one way of writing for all that mean the same: an id in place of a name, for example.

        Asked of what was applied last and of what is wanted, where the two differ; what is equal then is no change. It
        must be quick and talk to nobody: what a name stands for is in `data` since `create` or `update` found it out.

        :param properties: by their names of today, with defaults.
        :param data: private data of the resource.
        """
        return properties

    def reference_id(self, call: Call[P]) -> str | None:
        """What `get_resource` gives for this resource."""
        return call.physical_id

    def attribute(self, call: Call[P], name: str) -> Json:
        """Value of an attribute. Read after the action that may have changed it, asked for or not; see `attr`."""
        raise FinalFailure(f'attribute {name} cannot be read')

    def present_attributes(self, call: Call[P]) -> tuple[str, ...]:
        """Of a type that answers to every name: the names of the attributes besides those that it declares."""
        return ()

    def attribute_prefix_len(self, name: str) -> int | None:
        """Whether an attribute holds a value for each of several members, so that keys of a path go into each of them.

        :returns: how many keys of a path lead to the list or map of those values; None: the attribute is like others.
        """
        return None

    def signal(self, call: Call[P], details: Json) -> str:
        """Look at a signal before it is stored; what the event says of it.

        Called while whoever sends it waits for the answer, possibly in the middle of an action of the resource. It
        changes nothing: actions find the signal in `call.signals()`. Where `keeps_signals` is False it writes down what
        was said, once, however often it is called. An action that is in progress, of the resource or of one that
        requires it, is polled at once when a signal was taken.

        :raises FinalFailure: the signal makes no sense; the sender is told why, and it is not stored.
        """
        return 'Signal received'

    def metadata(self, call: Call[P]) -> Json:
        """The metadata as it is shown: that of the template, and whatever signals, or others, have added to it."""
        return call.metadata

    def adds_metadata(self) -> bool:
        """Whether `metadata` shows more than the template: true where `metadata` is written."""
        return type(self).metadata is not ResourceType.metadata

    def cross_check(self, properties: Mapping[str, Any], names: Collection[str]) -> Iterable[str]:
        """What is wrong with properties that only the rest of the template can tell, a sentence each.

        :param properties: by their names in templates, as far as they are known when a template is checked.
        :param names: of all resources of the template.
        """
        return ()

    def implied(self, own: Outline, template: Mapping[str, Outline]) -> Iterable[str]:
        """Names of the resources that one of this type comes after, although its template does not say so.

        Asked once, when a template is accepted, and kept with it; depends on nothing but what it is given. What the
        template itself says is stronger: a requirement that would close a circle is left out.

        :param own: the resource.
        :param template: all resources of the template, by name.
        """
        return ()

    def implies(self) -> bool:
        """Whether `implied` says anything: true where it is written."""
        return type(self).implied is not ResourceType.implied

    def cancel(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> None:
        """The action in progress is no longer wanted; stop it if that is possible. Called at most once."""

    def can_cancel(self, action: Action) -> bool:
        """Whether `cancel` stops `action`: true where `cancel` is written.

        An action that nobody stops goes on by itself; its progress is kept, and a later operation takes it up.
        """
        return type(self).cancel is not ResourceType.cancel

    def check(self, call: Call[P]) -> Answer:
        """Verify that the object is there, works, and is as it was made."""
        try:
            seen = sight(self, call)
        except (ObjectNotFound, TransientFailure):
            raise
        except Exception as error:
            raise NotAsWanted(f'it cannot be looked at: {error}') from error
        if seen.found is ObservedState.UNKNOWN and call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no physical object')
        if seen.found is ObservedState.UNHEALTHY:
            raise FinalFailure(seen.reason)
        if seen.found is ObservedState.DIFFERS:
            raise NotAsWanted(seen.reason)
        return Done()

    def suspend(self, call: Call[P]) -> Answer:
        """Put the object to rest."""
        return Done()

    def resume(self, call: Call[P]) -> Answer:
        """Wake the object up."""
        return Done()

    def snapshot(self, call: Call[P], snapshot_id: str) -> Answer:
        """Begin to keep what the object is now; `kept` of the answer says where. Write `delete_snapshot` as well.

        After a crash it is called again with the same `snapshot_id`, which must then lead to the same thing. Also
        called before an object is deleted whose deletion policy is Snapshot; what is kept then belongs to the user.
        """
        return Done()

    def delete_snapshot(self, call: Call[P], snapshot_id: str, kept: Mapping[str, Json]) -> None:
        """Remove what was kept under `snapshot_id`; that there is nothing is success.

        The object itself may be gone, and `kept` empty where `snapshot` has begun and nobody heard its answer. Raise
        `TransientFailure` as long as it is not done: it is called again.
        """

    def can_snapshot(self) -> bool:
        """Whether the type keeps anything for snapshots: true where `snapshot` is written."""
        return type(self).snapshot is not ResourceType.snapshot

    def can_be_kept(self) -> bool:
        """Whether the deletion policy Snapshot can be followed: what was kept is of use without the object's row."""
        return self.can_snapshot()
