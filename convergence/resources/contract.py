"""The contract between the engine and the author of a resource type. Import it from `convergence.plugin`.

A resource type is a class with a frozen dataclass of properties and a few methods, called hooks. The engine calls them
in any worker process, possibly in a different one for each call, and possibly a second time after a crash. A type keeps
nothing in memory between two calls: it returns data to the engine, which hands them in again with the next call.

A hook answers with `Done` or with `InProgress`. While an action is in progress the engine calls `poll` with the
progress data of the last answer. Errors are raised:

* `TransientFailure`: the engine calls again after a pause that grows. From `create` only if nothing was made.
* `FinalFailure`: the resource fails with that text. From `create` it promises that nothing was made, unless it names an
  object. If a service may answer with an error although it made something, raise `OutcomeUnknown`.
* `OutcomeUnknown`, and any other exception: the resource fails, and the call may have taken effect.
* `ObjectNotFound`: the physical object does not exist. For a delete this is success.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from convergence.core.model import Action, Change, RetryPolicy
from convergence.resources.action_hooks import HandoverHooks, LifeCycleHooks, RestHooks, SnapshotHooks
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
from convergence.resources.old_names import OldNames
from convergence.resources.query_hooks import (
    DriftHooks,
    FutureValue,
    Outline,
    PreviewHooks,
    SignalHooks,
    TemplateHooks,
    ValueHooks,
)
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

GROUPS = (
    LifeCycleHooks,
    HandoverHooks,
    RestHooks,
    SnapshotHooks,
    PreviewHooks,
    DriftHooks,
    ValueHooks,
    SignalHooks,
    TemplateHooks,
)
"""The groups of hooks, in the order of the documentation."""

HOOKS = tuple(
    name for group in GROUPS for name, value in vars(group).items() if callable(value) and not name.startswith('_')
)
"""The names of all hooks: the methods that a resource type may write."""


class ResourceType(
    LifeCycleHooks[P],
    HandoverHooks[P],
    RestHooks[P],
    SnapshotHooks[P],
    PreviewHooks[P],
    DriftHooks[P],
    ValueHooks[P],
    SignalHooks[P],
    TemplateHooks[P],
    OldNames,
):
    """Base class of resource types. Only `create` must be written; every other hook has a default.

    Class attributes:

    * `Properties`: a frozen dataclass; `convergence.resources.schema.prop` declares each field.
    * `Attributes`: a frozen dataclass (or None) whose fields name and type the readable attributes.
    * `UpdatePolicy`: a frozen dataclass, like `Properties`, that declares the section ``update_policy`` of a resource.
      None: the engine does not check that section.
    * `token_enforced`: True if a second `create` with the same token and properties makes nothing new and answers with
      the object of the first one.
    * `create_ambiguity_s`: seconds during which an interrupted `create` may still make something, counted from the last
      heartbeat of its worker or from a failure that promises nothing. Until then an empty answer of `find` proves
      nothing. 0 if nothing continues after the worker's death. None: ``[engine] create_ambiguity_s``.
    * `support`: the support status that users see.
    * `retry`: how the engine repeats calls that raise `TransientFailure`. Missing parts come from the configuration of
      the worker. A template may override it for one resource.
    * `time_limits`: seconds that an action may take before it is cancelled and fails. A template may override them.
    * `takes_signals`: True if users and programs may signal a resource; write `signal` as well.
    * `keeps_signals`: True if the engine stores signals for actions to read. False if `signal` itself stores their
      details where they belong.
    * `deaf_in`: the actions during which, and after which, a resource refuses signals.
    * `renewed_by_updates`: True if every update of the stack makes a new object.
    * `delete_before_create`: True if only one object can have the name that the template gives. A replacement is made
      after the old object is deleted; for a while there is none.
    * `nests`: True if the objects are stacks; see `convergence.resources.nested`.
    * `snapshots_survive`: True if a snapshot is of use after its object is deleted, so that the deletion policy
      Snapshot is allowed. Counts only if the type writes `snapshot`.
    * `set_by_service`: names of properties whose live value never counts as drift: the service sets them.
    * `observe_interval_s`: maximum number of seconds between two observations of an object. None: ``[observer]
      interval_s``.
    * `reference_of`: names of the properties that a `reference_id` of the type's own may reveal. None: any.
    """

    Properties: ClassVar[type[Any]]
    Attributes: ClassVar[type[Any] | None] = None
    UpdatePolicy: ClassVar[type[Any] | None] = None
    token_enforced: ClassVar[bool] = False
    create_ambiguity_s: ClassVar[float | None] = None
    support: ClassVar[SupportStatus] = SUPPORTED
    retry: ClassVar[RetryPolicy] = RetryPolicy()
    time_limits: ClassVar[Mapping[Action, float]] = {}
    takes_signals: ClassVar[bool] = False
    keeps_signals: ClassVar[bool] = True
    deaf_in: ClassVar[frozenset[Action]] = frozenset({Action.SUSPEND, Action.DELETE})
    renewed_by_updates: ClassVar[bool] = False
    delete_before_create: ClassVar[bool] = False
    nests: ClassVar[bool] = False
    snapshots_survive: ClassVar[bool] = True
    set_by_service: ClassVar[tuple[str, ...]] = ()
    observe_interval_s: ClassVar[float | None] = None
    reference_of: ClassVar[tuple[str, ...] | None] = None

    def implements(self, hook: str) -> bool:
        """Return True if the type writes the hook of that name, which then does something.

        A type that decides at run time overrides this method.
        """
        decided = self.decided_by_old_flag(hook)
        return getattr(type(self), hook) is not getattr(ResourceType, hook) if decided is None else decided

    def keeps_snapshots_of_deleted(self) -> bool:
        """Return True if the deletion policy Snapshot is allowed."""
        return self.implements('snapshot') and self.snapshots_survive
