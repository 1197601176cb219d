"""The hooks of a resource type that act on an object: life cycle, handover, rest and snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic

from convergence.core.model import Action, Json
from convergence.resources.answers import Answer, Done, Item
from convergence.resources.calls import Call, P


class LifeCycleHooks(Generic[P]):
    """Create, change and delete an object, and find it again after a crash."""

    def prepare(self, call: Call[P]) -> Mapping[str, Json]:
        """Return private data that `create` and `find` need. Query services, but make nothing.

        Examples are a key that the type chooses, or a list of the objects that exist already. The engine stores the
        data before it calls `create`, so `find` has them after a crash. It calls `prepare` again for the same creation
        only if the answer was lost or `create` promised that it made nothing.
        """
        return {}

    def create(self, call: Call[P]) -> Answer:
        """Begin to make the physical object. The only hook that every type must write."""
        raise NotImplementedError(f'{type(self).__name__} cannot be created')

    def update(self, call: Call[P]) -> Answer:
        """Begin to change the physical object in place, from `call.previous` to `call.properties`.

        Must be idempotent: the engine repeats the call after a crash or a failure, when parts may have been applied.
        """
        return Done()

    def delete(self, call: Call[P]) -> Answer:
        """Begin to remove the physical object.

        The engine calls it only if there is an object. `call.physical_id` is None only if a complete create answered
        with no id, or if a create recorded private data and no id: then remove what the data name. If the answer to a
        create was lost, the engine first learns the id: it calls `find`, or calls `create` again if the token is
        enforced. If it can do neither, it does not call `delete`; an event and a warning name the type and the token.
        """
        return Done()

    def poll(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Return `Done` if the action is complete, else `InProgress`. Called only after `InProgress`.

        :param progress: the progress data of the last answer.
        """
        raise NotImplementedError(f'{type(self).__name__} answered InProgress but has no poll()')

    def cancel(self, call: Call[P], action: Action, progress: Mapping[str, Json]) -> None:
        """Stop the action in progress if that is possible: the stack no longer needs it. Called at most once."""

    def can_cancel(self, action: Action) -> bool:
        """Return True if `cancel` stops `action`. By default: if the type writes `cancel`.

        An action that cannot be stopped continues; the engine keeps its progress and a later operation resumes it.
        """
        return type(self).cancel is not LifeCycleHooks.cancel

    def needs_replacement(self, call: Call[P]) -> bool:
        """Return True if a change from `call.previous` to `call.properties` needs a new object.

        Called only for changes that the property schema allows in place. Runs inside a database transaction: it must
        be quick and must not make requests.
        """
        return False

    def canonical(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the properties with equivalent values written in one way, for example an id in place of a name.

        The engine compares the canonical forms of the applied and the desired properties; equal forms are no change.
        Must be quick and must not make requests: `create` and `update` store in `data` the ids that names stand for.

        :param properties: by their current names, with defaults.
        :param data: private data of the resource.
        """
        return properties

    def find(self, call: Call[P]) -> Answer | None:
        """Return the object made under `call.token`, after a crash between making it and storing its id.

        Answer `Done` or `InProgress` with its physical id, or None if there is no such object. The call holds the data
        that `call.record` stored; if nothing is found, the engine deletes the objects that those data name. Any other
        exception is no answer: the engine calls `find` again until the action exceeds its time limit.

        :raises ForeignObject: another creator made the object that is there.
        :raises ReplacementNeeded: with an id: the object is incomplete and must be replaced.
        """
        return None

    def inventory(self) -> Iterable[Item] | None:
        """Return every existing object that a resource of this type made here, with or without a row.

        ``convergence-manage orphans`` calls it when the database may have lost rows. Return None if the type cannot
        list its objects. A type whose objects carry its mark or their token (a name, a label, a record) can.
        """
        return None


class HandoverHooks(Generic[P]):
    """Hand over something that only one object can have, such as an address or a port, to a replacement."""

    def release_for_replacement(self, call: Call[P]) -> None:
        """Detach from the object what its replacement needs. Called before the replacement is made.

        Record the previous state with `call.record` before you change it, for `reclaim`. The engine repeats the call
        after a crash. It also calls it on a replacement when the old object is to have the things again; the engine
        does not keep records of that time.

        :raises ObjectNotFound: the object does not exist, so it holds nothing. This counts as success.
        :raises TransientFailure: the object still holds something; the engine calls again.
        """

    def reclaim(self, call: Call[P]) -> None:
        """Give back to the object what `release_for_replacement` detached: the object stays in use after all.

        All other objects of the resource have released by then. The engine repeats the call after a crash, and makes
        it even if the release never began or was only partly done.

        :raises ObjectNotFound: the object does not exist; the engine makes another one.
        :raises TransientFailure: another object still holds something; the engine calls again.
        """


class RestHooks(Generic[P]):
    """Suspend and resume an object."""

    def suspend(self, call: Call[P]) -> Answer:
        """Begin to suspend the object. By default there is nothing to do."""
        return Done()

    def resume(self, call: Call[P]) -> Answer:
        """Begin to resume the object. By default there is nothing to do."""
        return Done()


class SnapshotHooks(Generic[P]):
    """Keep and delete copies of the state of an object."""

    def snapshot(self, call: Call[P], snapshot_id: str) -> Answer:
        """Begin to copy the state of the object; `kept` of the answer names the copy. Write `delete_snapshot` as well.

        After a crash the engine repeats the call with the same `snapshot_id`, which must lead to the same copy. It also
        calls it before it deletes an object with the deletion policy Snapshot; the user owns that copy.
        """
        return Done()

    def delete_snapshot(self, call: Call[P], snapshot_id: str, kept: Mapping[str, Json]) -> None:
        """Remove the copy that `snapshot` made under `snapshot_id`. A missing copy counts as success.

        The object itself may be gone. `kept` is empty if `snapshot` began and its answer was lost. Raise
        `TransientFailure` until the removal is done; the engine calls again.
        """
