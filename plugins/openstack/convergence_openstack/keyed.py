"""Objects without a label: properties are their key, by which they are searched before they are made.

An object that appears after that search was made by this resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    ForeignObject,
    InProgress,
    ObjectNotFound,
    Observed,
)
from convergence_openstack.kind import FIRST_PAUSE_S, CloudType, Shown, looks_of, pause_s
from convergence_openstack.task import SHOWN, Task, at_work

FREE = 'free'
"""Key in the private data: no object had the key before the creation, so the present one is ours."""


class KeyedType(CloudType):
    """An object with a key of its own.

    Class attributes, besides those of `CloudType`:

    * `is_name`: True if the key is a name that the template gives: an old object of that name must go first.
    """

    is_name: ClassVar[bool] = False

    def key(self, given: Mapping[str, Any]) -> str:
        """Return the key of the object, which is its physical id."""
        raise NotImplementedError

    def there(self, task: Task, key: str) -> Shown | None:
        """The object that has a key; None: there is none."""
        raise NotImplementedError

    def make_it(self, task: Task, key: str) -> Shown:
        """Make the object."""
        raise NotImplementedError

    def remove_it(self, task: Task, key: str) -> None:
        """Have the service remove the object."""
        raise NotImplementedError

    def is_removed(self, task: Task, key: str) -> bool:
        """Return True if the object is gone; called only with `removal_takes_time`."""
        return self.there(task, key) is None

    @override
    def create(self, call: Call[Any]) -> Answer:
        """See that the key is free, keep that, and make it."""
        with at_work(call, Action.CREATE, is_repeatable=False) as task:
            self._read_properties(task)
            key = self.key(task.given)
            if not task.data.get(FREE):
                if self.there(task, key) is not None:
                    raise FinalFailure(
                        f'{call.type_name} {key} exists already, and was not made for this resource; remove it, name '
                        'another one, or take it into the stack with external_id'
                    )
                task.data[FREE] = True
                task.record()
            return self._make_keyed(task)

    @override
    def find(self, call: Call[Any]) -> Answer | None:
        """Return the object with the key, if the key was free before; otherwise make it: another one would be the
        same.
        """
        if not call.data.get(FREE):
            return None
        with at_work(call, Action.CREATE) as task:
            self._read_properties(task)
            key = self.key(task.given)
            there = self.there(task, key)
            if there is None and self.is_name:
                return None
            if there is None:
                return InProgress({'step': 'again'}, poll_after_s=0.0)
            return InProgress({'step': 'take'}, key, poll_after_s=0.0)

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """Remove the object; without an id, the one that has the key."""
        if call.physical_id is None and not call.data.get(FREE):
            return Done()
        with at_work(call, Action.DELETE) as task:
            key = call.physical_id
            if key is None:
                self._read_properties(task)
                key = self.key(task.given)
                if self.there(task, key) is None:
                    return Done()
            try:
                self.remove_it(task, key)
            except HttpException as error:
                if error.status_code != 404:
                    raise
            if not self.removal_takes_time:
                return Done()
            return InProgress({'step': 'gone', 'key': key, 'looks': 0}, poll_after_s=FIRST_PAUSE_S)

    @override
    def poll(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Take the next step: ``again`` makes the object, ``take`` continues with a found one."""
        step = progress['step']
        if step == 'again':
            with at_work(call, action, is_repeatable=False) as task:
                self._read_properties(task)
                key = self.key(task.given)
                if self.there(task, key) is not None:
                    return InProgress({'step': 'take'}, key, poll_after_s=0.0)
                return self._make_keyed(task)
        with at_work(call, action) as task:
            if step == 'gone':
                return self._gone_keyed(task, str(progress['key']), looks_of(progress))
            self._read_properties(task)
            if step == 'take':
                return self.taken(task)
            if step == 'wait':
                return self.waited(task, {}, looks_of(progress))
            return self.go_on(task, action, progress)

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Return a healthy observation if the object exists."""
        if call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no object')
        with at_work(call, Action.CHECK) as task:
            if self.there(task, call.physical_id) is None:
                raise ObjectNotFound(f'{call.type_name} {call.physical_id} is not there')
            return Observed()

    @override
    def shown(self, task: Task) -> Shown:
        """Return the object as its service shows it, empty if it is gone."""
        return task.saw(self.there(task, task.object_id) or {})

    def taken(self, task: Task) -> Answer:
        """Continue with a found object."""
        return self.waited(task, self.shown(task), 0)

    def _make_keyed(self, task: Task) -> Answer:
        key = self.key(task.given)
        try:
            shown = self.make_it(task, key)
        except HttpException as error:
            if (error.status_code or 500) < 500:
                # An object with the key is not ours from now on: our request was refused.
                task.data[FREE] = False
                task.record()
            if error.status_code == 409 and self.is_name:
                raise ForeignObject(
                    f'{task.call.type_name} {key} was made by another creator in the meantime'
                ) from error
            raise
        SHOWN.put(task.call.token, shown)
        return self.waited(task, shown, 0)

    @override
    def waited(self, task: Task, shown: Shown, looks: int) -> Answer:
        """Is it ready? Its id is the key."""
        key, data = task.call.physical_id or self.key(task.given), task.changed_data()
        if self.is_ready(task, shown):
            return Done(key, data)
        return InProgress({'step': 'wait', 'looks': looks + 1}, key, data, pause_s(looks))

    def is_ready(self, task: Task, shown: Shown) -> bool:
        """Return True if the object is ready; may query the service."""
        return True

    def _gone_keyed(self, task: Task, key: str, looks: int) -> Answer:
        if self.is_removed(task, key):
            return Done()
        return InProgress({'step': 'gone', 'key': key, 'looks': looks + 1}, poll_after_s=pause_s(looks))
