"""The hooks of a resource type that change no object: preview, drift, values, signals, templates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, cast

from convergence.core.model import Change, Json
from convergence.core.observation import ObservedState
from convergence.resources.answers import (
    Answer,
    Done,
    FinalFailure,
    NotAsWanted,
    ObjectNotFound,
    Observed,
    TransientFailure,
)
from convergence.resources.calls import Call, P
from convergence.resources.drift import observe_object
from convergence.resources.watching import Tell, Watcher

if TYPE_CHECKING:
    from convergence.resources.contract import ResourceType


@dataclass(frozen=True, slots=True)
class FutureValue:
    """Stands for a value that depends on other resources. Two are equal if their values will be equal.

    :param expression: the expression that computes the value; it serves comparison only.
    :param resource: the resource whose reference or attribute it is; empty for anything else.
    :param attribute: the attribute, None for the reference.
    """

    expression: str
    resource: str = ''
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A resource as its template has it, before anything is made.

    :param type: the real type, also if the environment gives it another name in the template.
    :param properties: by their current names, without defaults. A `FutureValue` stands for each value that depends on
        other resources.
    """

    name: str
    type: str
    properties: Mapping[str, Any]


class PreviewHooks(Generic[P]):
    """Check and foresee actions with the help of services, before they begin."""

    def validate(self, call: Call[P]) -> None:
        """Query services to find out if the object can be made. Make nothing. An exception fails the creation.

        The engine calls it before `prepare` and `create`, outside of every transaction, so it may take time. It calls
        it again if the creation begins again. A refusal says that nothing was made, so nothing is cleaned up.

        Previews and template validation call it too. Then there is no row and no token, and `call.credentials` may
        have none.

        :raises FinalFailure: the object cannot be made. The text names the property and the problem.
        :raises TransientFailure: the answer is not known now.
        """

    def plan(self, call: Call[P]) -> Change | None:
        """Return the effect that `update` would have with the same call: none, a change in place, or a replacement.

        Previews call it for changes that the schema and `needs_replacement` allow in place, when all values are known.
        It is never called during an action, and runs outside of every transaction: it may query services. It must not
        change anything.

        :returns: None if the effect is not known before the update.
        :raises FinalFailure: the update would fail. The text names the property and the problem.
        :raises TransientFailure: the answer is not known now.
        """
        return None


class DriftHooks(Generic[P]):
    """Compare the live object with its record."""

    def observe(self, call: Call[P]) -> Observed | None:
        """Return the live state of `call.physical_id`, or None if the type cannot read it.

        Checks and observers call it repeatedly: it must not change anything.

        :raises ObjectNotFound: the object does not exist.
        """
        return None

    def check(self, call: Call[P]) -> Answer:
        """Verify that the object exists, works, and has the properties that were applied. By default: by `observe`."""
        try:
            seen = observe_object(cast('ResourceType[Any]', self), call)
        except (ObjectNotFound, TransientFailure):
            raise
        except Exception as error:
            raise NotAsWanted(f'the object cannot be observed: {error}') from error
        if seen.found is ObservedState.UNKNOWN and call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no physical object')
        if seen.found is ObservedState.UNHEALTHY:
            raise FinalFailure(seen.reason)
        if seen.found is ObservedState.DIFFERS:
            raise NotAsWanted(seen.reason)
        return Done()

    def watcher(self, tell: Tell) -> Watcher | None:
        """Return a watcher that calls `tell` when something happens to an object, so that it is observed at once.

        Each observer process calls it once, when it has objects to watch. Return None if events cannot be watched on
        this machine. Of use only with `observe`.
        """
        return None

    def notified(self, event_type: str, payload: Mapping[str, Any]) -> Iterable[str]:
        """Return the physical ids that a notification of a service concerns. They may belong to other types.

        Notifications are those that services send by oslo.messaging. Must be quick and must not make requests.
        """
        return ()


class ValueHooks(Generic[P]):
    """Give the values that other resources and users read."""

    def reference_id(self, call: Call[P]) -> str | None:
        """Return the value of `get_resource` for this resource. By default: the physical id."""
        return call.physical_id

    def attribute(self, call: Call[P], name: str) -> Json:
        """Return the value of an attribute. Read after each action that may have changed it; see `attr`."""
        raise FinalFailure(f'attribute {name} cannot be read')

    def present_attributes(self, call: Call[P]) -> tuple[str, ...]:
        """Return the names of further attributes, for a type that answers to every name."""
        return ()

    def attribute_prefix_len(self, name: str) -> int | None:
        """Return the number of path keys that lead to the list or map of the members' values.

        The engine applies the remaining keys of a path to each member's value. None: an ordinary attribute.
        """
        return None


class SignalHooks(Generic[P]):
    """Receive signals, and show what they add to the metadata."""

    def signal(self, call: Call[P], details: Json) -> str:
        """Accept or refuse a signal before it is stored. Return the text of its event.

        The sender waits for the answer, possibly in the middle of an action of the resource. The hook changes nothing:
        actions read the signal from `call.signals()`. If `keeps_signals` is False, the hook itself stores the details
        where they belong, once, however often it is called. After a signal the engine immediately polls an action in
        progress, of the resource or of one that requires it.

        :raises FinalFailure: the signal is not valid. The sender receives the text; the signal is not stored.
        """
        return 'Signal received'

    def metadata(self, call: Call[P]) -> Json:
        """Return the metadata to show: those of the template, with additions such as those of signals."""
        return call.metadata


class TemplateHooks(Generic[P]):
    """Check a resource against the rest of its template."""

    def cross_check(self, properties: Mapping[str, Any], names: Collection[str]) -> Iterable[str]:
        """Return one sentence for each fault that only the whole template reveals.

        :param properties: by their names in templates, as far as they are known when a template is checked.
        :param names: of all resources of the template.
        """
        return ()

    def implied(self, own: Outline, template: Mapping[str, Outline]) -> Iterable[str]:
        """Return the names of the resources that one of this type depends on although its template does not say so.

        Called once, when a template is accepted; the answer is stored with the template. Must depend on nothing but
        its arguments. The template takes precedence: the engine leaves out a dependency that would close a circle.

        :param own: the resource.
        :param template: all resources of the template, by name.
        """
        return ()
