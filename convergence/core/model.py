"""The nouns of the engine, as frozen values.

A row of the database and a value of this module are the same thing seen from two sides; `convergence.db` maps
between them. Nothing here reads a clock, makes an id or talks to anybody.
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
"""How many nodes of one traversal are cast at once, where an installation sets nothing else."""

MAX_BATCH_NODES = 5
"""Of how many nodes workers are told in one message at most, where an installation sets nothing else. No more than a
worker has threads: what waits for one there could begin elsewhere."""


class Action(StrEnum):
    """What a traversal does to a stack, or what was last done to a resource."""

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
"""What is done to objects as they are: the goal of the stack stays, and so does what its resources were made from."""


BEGINNINGS = frozenset({Action.CREATE, Action.ADOPT})
"""How a row comes to its object: it is made, or taken over from where it was."""


class Status(StrEnum):
    """How far an action got."""

    IN_PROGRESS = 'IN_PROGRESS'
    COMPLETE = 'COMPLETE'
    FAILED = 'FAILED'


class Phase(StrEnum):
    """What a node of a traversal is for."""

    UPDATE = 'UPDATE'
    CLEANUP = 'CLEANUP'
    IN_SERVICE = 'IN_SERVICE'
    COMPLETE = 'COMPLETE'


class NodeStatus(StrEnum):
    """Where a node stands. Only `READY` nodes may be worked on; only a worker that finishes one leaves `READY`."""

    WAITING = 'WAITING'
    READY = 'READY'
    DONE = 'DONE'
    FAILED = 'FAILED'


class TraversalStatus(StrEnum):
    """Where a traversal stands. `RUNNING` is the only state in which a node may start.

    In `CANCELLING` what has begun comes to its end, until the traversal's deadline; nothing else begins.
    """

    RUNNING = 'RUNNING'
    CANCELLING = 'CANCELLING'
    FAILED = 'FAILED'
    COMPLETE = 'COMPLETE'
    SUPERSEDED = 'SUPERSEDED'
    CANCELLED = 'CANCELLED'


UNDER_WAY = frozenset({TraversalStatus.RUNNING, TraversalStatus.CANCELLING})
"""The states in which actions of a traversal may be under way that somebody waits for."""


class DeletionPolicy(StrEnum):
    """What becomes of the physical object when the resource is no longer wanted."""

    DELETE = 'Delete'
    RETAIN = 'Retain'
    SNAPSHOT = 'Snapshot'


class Change(StrEnum):
    """What it takes to get from the properties as last applied to the wanted ones."""

    NONE = 'NONE'
    IN_PLACE = 'IN_PLACE'
    REPLACE = 'REPLACE'


class Handover(StrEnum):
    """How far the handover of a row to its replacement is; see `convergence.core.handover`.

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
    """How calls that fail for the moment are repeated. What is None is as the resource type, or the worker, has it.

    :param attempts: how often a call is made at most.
    :param first_s: seconds before the second time; the pause doubles with each further one.
    :param longest_s: longest pause in seconds.
    """

    attempts: int | None = None
    first_s: float | None = None
    longest_s: float | None = None

    def document(self) -> dict[str, Json]:
        """As JSON, without what is None. The inverse is `from_document`."""
        values = {'attempts': self.attempts, 'first_s': self.first_s, 'longest_s': self.longest_s}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> RetryPolicy:
        """The policy that `document` was made from."""
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})  # type: ignore[arg-type]

    def over(self, other: RetryPolicy) -> RetryPolicy:
        """This policy, with what it leaves open from another one."""
        return RetryPolicy(
            self.attempts if self.attempts is not None else other.attempts,
            self.first_s if self.first_s is not None else other.first_s,
            self.longest_s if self.longest_s is not None else other.longest_s,
        )


class DriftPolicy(StrEnum):
    """What it leads to that an object is found otherwise than it was made.

    * `IGNORE`: nothing; nobody looks.
    * `REPORT`: it is shown.
    * `REPAIR`: it is put right.
    """

    IGNORE = 'ignore'
    REPORT = 'report'
    REPAIR = 'repair'


class Restriction(StrEnum):
    """What an update may not do to a resource."""

    UPDATE = 'update'
    REPLACE = 'replace'


class Hook(StrEnum):
    """Where an operation on a resource may pause until a person lets it go on."""

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
"""The parts of a definition that its comparison leaves out, or in which numbers stand."""


class _Worked:
    """What is worked out of a value when it is asked for. No copy has it, and it is no part of what the value is."""

    __slots__ = ('canonical',)


@quickly_made
@dataclass(frozen=True, slots=True)
class Definition(_Worked):
    """What a template says about one resource.

    Parameters and files are already filled in; what remains to be resolved, when the resource's turn has come,
    are references to other resources. `properties` and `metadata` are encoded by `convergence.template` (plain
    JSON, with remaining functions marked so that no user data can be taken for one).

    :param type: the type that it really is; `written_type` is what the template says, where the environment maps that
        to another one.
    :param requires: names of the resources that must be up first, sorted, each once.
    :param implied: those of them that the template does not name, but the resource's type; sorted. No further part of
        what the resource is.
    :param uses: for each of those whose attributes are used, the attributes, sorted.
    :param hooks: where operations are to pause, sorted.
    :param restrictions: what an update may not do, sorted.
    :param time_limits: seconds that an action may take, by action; others are limited by that of the stack.
    :param retry: how calls that fail for the moment are repeated.
    :param update_policy: encoded like `properties`; how groups update their members.
    :param external_id: physical id of an object that others have made: it is used, but never changed or deleted.
    :param restored_from: what a snapshot has kept of the resource, when the stack is brought back to that.
    :param nested: digest of what a nested stack is made from besides the properties: the templates, files and mappings
        of the environment that it may use. Empty for what is no nested stack.
    :param asked: of what is a nested stack, the attributes that are asked of it and that its resources tell. They are
        part of what the digest is of.
    :param secrets: values that nobody may be shown, as texts: those of hidden parameters, where they went into this
        resource or one that it requires. No part of what the resource is.
    :param hidden: where values stand that are computed from hidden parameters, here or in what the resource requires:
        paths that begin with ``properties`` or ``metadata``, of values as they are when all is resolved. No part of
        what the resource is.
    :param private: the same for what is computed from values that resource types keep secret.
    :param harmless: attributes of which it is known that they tell nothing hidden: outputs of a nested stack. No part
        of what the resource is.
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
        """Where values stand that are not shown, for whatever reason."""
        return (*self.hidden, *self.private)

    @property
    def shown_type(self) -> str:
        """The type as the template writes it."""
        return self.written_type or self.type

    def says_as(self, other: Definition) -> bool:
        """Whether both say just the same, to the letter: for Python ``1``, ``1.0`` and ``True`` are equal."""
        return self is other or (self == other and repr(_WORDS_OF(self)) == repr(_WORDS_OF(other)))

    def document(self) -> dict[str, Json]:
        """The definition as JSON, for a row. The inverse is `from_document`.

        A field that is added later is left out while it has its default: what older versions stored, and the digests
        made from it, stay what they are.
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
        """The definition that `document` was made from, whatever version did so: what is missing has its default."""
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
    """Names as a row keeps them."""
    return tuple(str(name) for name in document) if isinstance(document, list) else ()


def _paths(document: Json) -> tuple[Path, ...]:
    """Paths as a row keeps them."""
    paths = document if isinstance(document, list) else []
    return tuple(
        tuple(step for step in path if isinstance(step, str | int)) for path in paths if isinstance(path, list)
    )


@quickly_made
@dataclass(frozen=True, slots=True)
class Output:
    """What a finished update node hands to those that require it.

    :param resource_id: the row that is in service for the name.
    :param reference: what `get_resource` gives; usually the physical id.
    :param attributes: value of each attribute that the template asks for and that could be read.
    :param errors: for each attribute that could not be read, why. It fails whoever uses it, nobody else.
    :param each: the attributes that hold a value for each of several members, and how many keys lead to those values:
        further keys go into each of them.
    :param shown: attributes that the template does not ask for. They are for people who look at the resource; nothing
        depends on them.
    """

    resource_id: str
    reference: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Json] = field(default_factory=dict)
    each: Mapping[str, int] = field(default_factory=dict)

    def handed(self) -> Output:
        """What those get that require the resource."""
        return replace(self, shown={}) if self.shown else self

    def document(self) -> dict[str, Json]:
        """The output as JSON, for a row. The inverse is `from_document`.

        A field that is added later is left out while it has its default.
        """
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
        """The output that `document` was made from, by this version or another: what is missing has its default."""
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
    """What a traversal wants: the resources of one template, ready to be planned.

    An empty goal (no definitions) is how a stack is deleted.

    :param definitions: by resource name, in the order of the template.
    :param asked: for each resource name, the attributes that anybody (resources, outputs) asks of it.
    """

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def sharing(self, other: Goal) -> Goal:
        """The same goal, with the definitions of another one themselves where they say the same.

        They are held once, and what was worked out of them, or found to be right, need not be so again.
        """
        known = other.definitions
        shared = {
            name: known[name] if name in known and known[name].says_as(definition) else definition
            for name, definition in self.definitions.items()
        }
        return Goal(shared, self.asked)
