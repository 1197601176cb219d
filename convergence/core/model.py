"""The basic terms of the engine as frozen values.

`convergence.db` maps these values to columns of the database and back. This module reads no clock, creates no ids and
does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import TypeAlias

from convergence.values import quickly_made, replace

Json: TypeAlias = 'bool | int | float | str | list[Json] | dict[str, Json] | None'
"""A value that survives a round trip through JSON."""

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead to a part of a value; the empty one leads to the whole."""

DISPATCH_WINDOW = 64
"""Default number of nodes of one traversal that are dispatched at the same time."""

MAX_BATCH_NODES = 5
"""Default maximum number of nodes per message to a worker. It is not above a worker's number of threads: a node that
waits for a thread could begin in another worker."""


class Action(StrEnum):
    """The operation of a traversal, or the last operation on a resource."""

    INIT = 'INIT'
    CREATE = 'CREATE'
    UPDATE = 'UPDATE'
    DELETE = 'DELETE'
    ROLLBACK = 'ROLLBACK'
    ADOPT = 'ADOPT'
    RESTORE = 'RESTORE'
    SUSPEND = 'SUSPEND'
    RESUME = 'RESUME'
    CHECK = 'CHECK'
    SNAPSHOT = 'SNAPSHOT'
    SIGNAL = 'SIGNAL'


PERFORMED = frozenset({Action.SUSPEND, Action.RESUME, Action.CHECK, Action.SNAPSHOT})
"""Actions on existing objects that keep the goal of the stack and the definitions of its resources."""


BEGINNINGS = frozenset({Action.CREATE, Action.ADOPT})
"""The actions by which a row gets its object: a new object is created, or an existing one is adopted."""


class Status(StrEnum):
    """The progress of an action."""

    IN_PROGRESS = 'IN_PROGRESS'
    COMPLETE = 'COMPLETE'
    FAILED = 'FAILED'


class Phase(StrEnum):
    """The part of a traversal that a node belongs to."""

    UPDATE = 'UPDATE'
    CLEANUP = 'CLEANUP'
    IN_SERVICE = 'IN_SERVICE'
    COMPLETE = 'COMPLETE'


class NodeStatus(StrEnum):
    """The state of a node. Workers handle only `READY` nodes; a node leaves `READY` when a worker finishes it."""

    WAITING = 'WAITING'
    READY = 'READY'
    DONE = 'DONE'
    FAILED = 'FAILED'


class TraversalStatus(StrEnum):
    """The state of a traversal. A node may start only in `RUNNING`.

    In `CANCELLING` the running actions may end until the traversal's deadline, and no other action begins.
    """

    RUNNING = 'RUNNING'
    CANCELLING = 'CANCELLING'
    FAILED = 'FAILED'
    COMPLETE = 'COMPLETE'
    SUPERSEDED = 'SUPERSEDED'
    CANCELLED = 'CANCELLED'


UNDER_WAY = frozenset({TraversalStatus.RUNNING, TraversalStatus.CANCELLING})
"""The states in which a traversal waits for its running actions."""


class DeletionPolicy(StrEnum):
    """The treatment of the object when the goal no longer contains its resource."""

    DELETE = 'Delete'
    RETAIN = 'Retain'
    SNAPSHOT = 'Snapshot'


class Change(StrEnum):
    """The kind of change from the last applied properties to the desired ones."""

    NONE = 'NONE'
    IN_PLACE = 'IN_PLACE'
    REPLACE = 'REPLACE'


class Handover(StrEnum):
    """The stage of the handover from a row to its replacement; see `convergence.core.handover`.

    * `RELEASING`: the object is to release its exclusive parts in the traversal that claimed the row last.
    * `RELEASED`: it has released them, and its row is replaced next.
    * `RECLAIMING`: a plan chose the row again, and its object reclaims its exclusive parts.
    * `DEPRIVED`: a plan chose another row of the same name, which takes the exclusive parts of this one.
    """

    RELEASING = 'RELEASING'
    RELEASED = 'RELEASED'
    RECLAIMING = 'RECLAIMING'
    DEPRIVED = 'DEPRIVED'


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The retries of calls with a transient failure. For None the value of the resource type or the worker applies.

    :param attempts: maximum number of calls.
    :param first_s: seconds before the first retry; the pause doubles with each further retry.
    :param longest_s: longest pause in seconds.
    """

    attempts: int | None = None
    first_s: float | None = None
    longest_s: float | None = None

    def document(self) -> dict[str, Json]:
        """Return the policy as JSON, without the fields that are None. The inverse is `from_document`."""
        values = {'attempts': self.attempts, 'first_s': self.first_s, 'longest_s': self.longest_s}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> RetryPolicy:
        """Restore the policy from `document`."""
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})  # type: ignore[arg-type]

    def over(self, other: RetryPolicy) -> RetryPolicy:
        """Return this policy, with the fields that are None taken from another one."""
        return RetryPolicy(
            self.attempts if self.attempts is not None else other.attempts,
            self.first_s if self.first_s is not None else other.first_s,
            self.longest_s if self.longest_s is not None else other.longest_s,
        )


class DriftPolicy(StrEnum):
    """The reaction to drift of an object.

    * `IGNORE`: observers do not observe the object.
    * `REPORT`: users see the drift.
    * `REPAIR`: an engine starts a repair.
    """

    IGNORE = 'ignore'
    REPORT = 'report'
    REPAIR = 'repair'


class Restriction(StrEnum):
    """A change that an update must not make to a resource."""

    UPDATE = 'update'
    REPLACE = 'replace'


class Hook(StrEnum):
    """A point at which an operation on a resource pauses until a user clears the hook."""

    PRE_CREATE = 'pre-create'
    PRE_UPDATE = 'pre-update'
    PRE_DELETE = 'pre-delete'
    POST_CREATE = 'post-create'
    POST_UPDATE = 'post-update'
    POST_DELETE = 'post-delete'


_WORDS_OF = attrgetter(
    'properties',
    'metadata',
    'update_policy',
    'time_limits',
    'retry',
    'restored_from',
    'secrets',
    'hidden',
    'private',
    'harmless',
    'implied',
    'asked',
)
"""The fields of a definition that ``==`` ignores or that contain numbers, which ``==`` compares too loosely."""


class _Worked:
    """A slot for a result that is computed from a value on demand. Copies and comparisons ignore it."""

    __slots__ = ('canonical',)


@quickly_made
@dataclass(frozen=True, slots=True)
class Definition(_Worked):
    """The definition of one resource in a template.

    The template compiler has inserted parameters and files. References to other resources remain; a worker resolves
    them when it handles the resource. `convergence.template` encodes `properties` and `metadata`: plain JSON in which
    the remaining functions are marked, so that user data are never taken for a function.

    Comparisons ignore `implied`, `secrets`, `hidden`, `private`, `harmless` and `asked`.

    :param type: the type after the mappings of the environment.
    :param requires: names of the resources that must be up first, sorted and unique.
    :param uses: for each required resource whose attributes the definition uses, their sorted names.
    :param written_type: the type in the template, if the environment maps it to another one; else empty.
    :param hooks: sorted hooks at which operations pause.
    :param restrictions: sorted changes that an update must not make.
    :param time_limits: time limits in seconds, by action; for other actions the limit of the stack applies.
    :param retry: retries of calls with a transient failure; None: the default of the type or the worker.
    :param update_policy: the way in which a group updates its members, encoded like `properties`.
    :param external_id: physical id of a foreign object, which the stack uses but never changes or deletes.
    :param restored_from: the snapshot data of the resource, if the stack is being restored.
    :param nested: digest of the templates, files and mappings of the environment that a nested stack may use; empty if
        the resource is not a nested stack.
    :param secrets: secret values as texts: the values of hidden parameters that this resource or a required one uses.
    :param hidden: paths of values that are computed from hidden parameters, here or in a required resource. Each path
        begins with ``properties`` or ``metadata`` and applies to the resolved values.
    :param private: paths of values that are computed from values that resource types keep secret.
    :param harmless: names of attributes that are known to contain nothing hidden: outputs of a nested stack.
    :param implied: sorted names of the required resources that the resource type adds.
    :param asked: for a nested stack, the attributes of it that other parts of the template use and that its resources
        supply. The digest `nested` covers them.
    """

    name: str
    type: str
    properties: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE
    uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    written_type: str = ''
    hooks: tuple[Hook, ...] = ()
    restrictions: tuple[Restriction, ...] = ()
    time_limits: Mapping[Action, float] = field(default_factory=dict)
    retry: RetryPolicy | None = None
    update_policy: Json = field(default_factory=dict)
    external_id: str | None = None
    restored_from: Json = None
    nested: str = ''
    description: str = ''
    secrets: tuple[str, ...] = field(default=(), repr=False, compare=False)
    hidden: tuple[Path, ...] = field(default=(), compare=False)
    private: tuple[Path, ...] = field(default=(), compare=False)
    harmless: tuple[str, ...] = field(default=(), compare=False)
    implied: tuple[str, ...] = field(default=(), compare=False)
    asked: tuple[str, ...] = field(default=(), compare=False)

    @property
    def masked_paths(self) -> tuple[Path, ...]:
        """The paths of all values that are not shown."""
        return (*self.hidden, *self.private)

    @property
    def shown_type(self) -> str:
        """The type as the template writes it."""
        return self.written_type or self.type

    def says_as(self, other: Definition) -> bool:
        """Return True if both are identical in text. ``==`` is not enough: in Python ``1`` equals ``True``."""
        return self is other or (self == other and repr(_WORDS_OF(self)) == repr(_WORDS_OF(other)))

    def document(self) -> dict[str, Json]:
        """Return the definition as JSON, for a row. The inverse is `from_document`.

        The document omits newer fields at their default, so that documents of older versions and their digests stay
        valid.
        """
        document: dict[str, Json] = {
            'name': self.name,
            'type': self.type,
            'properties': self.properties,
            'metadata': self.metadata,
            'requires': list(self.requires),
            'deletion_policy': self.deletion_policy.value,
            'uses': {name: list(attributes) for name, attributes in self.uses.items()},
        }
        if self.written_type:
            document['written_type'] = self.written_type
        if self.hooks:
            document['hooks'] = [hook.value for hook in self.hooks]
        if self.restrictions:
            document['restrictions'] = [restriction.value for restriction in self.restrictions]
        if self.time_limits:
            document['time_limits'] = {action.value: limit_s for action, limit_s in self.time_limits.items()}
        if self.retry is not None:
            document['retry'] = self.retry.document()
        if self.update_policy:
            document['update_policy'] = self.update_policy
        if self.external_id is not None:
            document['external_id'] = self.external_id
        if self.restored_from is not None:
            document['restored_from'] = self.restored_from
        if self.nested:
            document['nested'] = self.nested
        if self.description:
            document['description'] = self.description
        if self.secrets:
            document['secrets'] = list(self.secrets)
        if self.hidden:
            document['hidden'] = [list(path) for path in self.hidden]
        if self.private:
            document['private'] = [list(path) for path in self.private]
        if self.harmless:
            document['harmless'] = list(self.harmless)
        if self.implied:
            document['implied'] = list(self.implied)
        if self.asked:
            document['asked'] = list(self.asked)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Definition:
        """Restore the definition from `document`, which any version may have written. Missing fields get defaults."""
        requires, uses = document.get('requires') or [], document.get('uses') or {}
        hooks, restrictions = document.get('hooks') or [], document.get('restrictions') or []
        secrets, harmless = document.get('secrets') or [], document.get('harmless') or []
        assert isinstance(secrets, list)
        assert isinstance(harmless, list)
        assert isinstance(hooks, list)
        assert isinstance(restrictions, list)
        limits, policy = document.get('time_limits') or {}, document.get('retry')
        assert isinstance(requires, list)
        assert isinstance(uses, dict)
        assert isinstance(limits, dict)
        return cls(
            name=str(document['name']),
            type=str(document['type']),
            properties=document.get('properties', {}),
            metadata=document.get('metadata', {}),
            requires=tuple(str(name) for name in requires),
            deletion_policy=DeletionPolicy(str(document.get('deletion_policy', DeletionPolicy.DELETE))),
            uses={name: tuple(map(str, keys)) for name, keys in uses.items() if isinstance(keys, list)},
            written_type=str(document.get('written_type', '')),
            hooks=tuple(Hook(str(hook)) for hook in hooks),
            restrictions=tuple(Restriction(str(restriction)) for restriction in restrictions),
            time_limits={Action(name): float(str(limit_s)) for name, limit_s in limits.items()},
            retry=RetryPolicy.from_document(policy) if isinstance(policy, dict) else None,
            update_policy=document.get('update_policy', {}),
            external_id=None if document.get('external_id') is None else str(document['external_id']),
            restored_from=document.get('restored_from'),
            nested=str(document.get('nested', '')),
            description=str(document.get('description', '')),
            secrets=tuple(str(secret) for secret in secrets),
            hidden=_paths(document.get('hidden')),
            private=_paths(document.get('private')),
            harmless=tuple(str(name) for name in harmless),
            implied=_names(document.get('implied')),
            asked=_names(document.get('asked')),
        )


def _names(document: Json) -> tuple[str, ...]:
    """Return names from their stored form."""
    return tuple(str(name) for name in document) if isinstance(document, list) else ()


def _paths(document: Json) -> tuple[Path, ...]:
    """Return paths from their stored form."""
    paths = document if isinstance(document, list) else []
    return tuple(
        tuple(step for step in path if isinstance(step, str | int)) for path in paths if isinstance(path, list)
    )


@quickly_made
@dataclass(frozen=True, slots=True)
class Output:
    """The output of a finished update node for the nodes that require it.

    :param resource_id: the row that is in service for the name.
    :param reference: the result of `get_resource`; usually the physical id.
    :param attributes: values of the attributes that the template uses and that could be read.
    :param errors: for each attribute that could not be read, the reason. Only a resource that uses it fails.
    :param shown: values of attributes that the template does not use. Users see them; no resource depends on them.
    :param each: for each attribute with one value per member, the number of keys that lead to these values; further
        keys apply to each of the values.
    """

    resource_id: str
    reference: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Json] = field(default_factory=dict)
    each: Mapping[str, int] = field(default_factory=dict)

    def handed(self) -> Output:
        """Return the output for the nodes that require this one: without `shown`."""
        return replace(self, shown={}) if self.shown else self

    def document(self) -> dict[str, Json]:
        """Return the output as JSON, for a row. The inverse is `from_document`. Omits newer fields at their default."""
        document: dict[str, Json] = {'resource_id': self.resource_id, 'reference': self.reference}
        if self.attributes:
            document['attributes'] = dict(self.attributes)
        if self.errors:
            document['errors'] = dict(self.errors)
        if self.shown:
            document['shown'] = dict(self.shown)
        if self.each:
            document['each'] = dict(self.each)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Output:
        """Restore the output from `document`, which another version may have written. Missing fields get defaults."""
        attributes, errors = document.get('attributes') or {}, document.get('errors') or {}
        assert isinstance(attributes, dict)
        shown = document.get('shown') or {}
        assert isinstance(errors, dict)
        assert isinstance(shown, dict)
        each = document.get('each') or {}
        assert isinstance(each, dict)
        reference = document.get('reference')
        return cls(
            resource_id=str(document['resource_id']),
            reference=None if reference is None else str(reference),
            attributes=attributes,
            errors={name: str(text) for name, text in errors.items()},
            shown=shown,
            each={name: int(str(count)) for name, count in each.items()},
        )


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a traversal: the resources of one template, ready to be planned.

    A stack is deleted by a traversal with an empty goal (no definitions).

    :param definitions: by resource name, in the order of the template.
    :param asked: for each resource name, the attributes that other resources or the outputs of the template use.
    """

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def sharing(self, other: Goal) -> Goal:
        """Return the same goal that shares identical definitions with another one.

        This saves memory, and results computed from the shared definitions need not be computed again.
        """
        known = other.definitions
        shared = {
            name: known[name] if name in known and known[name].says_as(definition) else definition
            for name, definition in self.definitions.items()
        }
        return Goal(shared, self.asked)
