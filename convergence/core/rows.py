"""The rows of the database: one frozen class per kind of row.

Times are seconds since the epoch on the *database's* clock, so that all hosts agree about them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from convergence.core.model import (
    Action,
    Definition,
    DriftPolicy,
    Handover,
    Hook,
    Json,
    NodeStatus,
    Output,
    Phase,
    Status,
    TraversalStatus,
)
from convergence.core.scaling import Scaling
from convergence.values import quickly_made

NOT_STORED = {'stored': False}
"""Metadata of a field that has no column."""


@dataclass(frozen=True, slots=True)
class Template:
    """An immutable template with its parameters and files, so that a rollback restores them too.

    :param content: ``{'template': …, 'environment': …, 'files': …, 'parameters': …}`` as the user gave them.
    :param summary: the parts that every view of the stack shows, so that a view need not read the whole content:
        ``{'description': …, 'parameters': {name: text}}`` with hidden values masked. Also ``outputs``: the parts that
        the outputs of the stack need, unless they are large; no view shows them.
    :param equivalent_template_id: id of an earlier, equivalent template of the stack. Unchanged rows keep that id,
        which saves rewriting them.
    :param changed_names: names of the resources for which the two templates are not equivalent. A row of that name
        belongs to this template only if it has the id of this template.
    """

    id: str
    stack_id: str
    content: Mapping[str, Json]
    summary: Mapping[str, Json] = field(default_factory=dict)
    equivalent_template_id: str | None = None
    changed_names: tuple[str, ...] = ()

    def is_of(self, row: Resource) -> bool:
        """Return True if a row was created, or last changed, for this template."""
        return not self.others((row,))

    def others(self, rows: Iterable[Resource]) -> list[Resource]:
        """Return the given rows that were not created or last changed for this template."""
        equivalent_template_id, changed_names = self.equivalent_template_id, frozenset(self.changed_names)
        return [
            row
            for row in rows
            if row.template_id is None
            or (row.template_id != self.id and (row.template_id != equivalent_template_id or row.name in changed_names))
        ]


@quickly_made
@dataclass(frozen=True, slots=True)
class Stack:
    """A name in a project.

    :param template_id: id of the goal's template; None before the first traversal is planned.
    :param last_good_template_id: the newest template whose resources have all been up; the target of a rollback.
    :param previous_good_template_id: the last good template before that one; the target of a rollback that a user
        requests when all resources of the goal are in service. None if there was none.
    :param traversal_id: the current traversal; only it may change the state of the stack.
    :param timeout_mins: time limit of each operation, in minutes.
    :param disable_rollback: True if the stack stays failed after a failed create or update, False if it rolls back.
    :param request_key: key of the client for the request that created the stack, to recognise a repetition; unique in
        the project.
    :param request_digest: digest of the content of that request.
    :param parent_id: the parent stack; None for a root stack. Lists of stacks omit nested stacks by default.
    :param parent_resource_id: the row of the parent stack whose object this stack is; the token of that row is the id
        of this stack.
    :param root_id: the root stack of the tree; None if it is this stack.
    :param nested_depth: number of stacks above it in the tree.
    :param resource_count: number of resources in its goal, for the limit of the tree.
    :param type_rules: the resource types that the policy allowed the user who set the goal; see
        `convergence.engine.callers.permits`. They apply to the nested stacks as well.
    :param credentials_id: the credentials with which the stack acts for its user; None: it uses those of its parent
        stack, if any.
    :param drift_policy: the reaction to drift if the environment sets none. A nested stack follows its root stack.
    """

    id: str
    name: str
    project_id: str
    action: Action
    status: Status
    status_reason: str
    template_id: str | None
    last_good_template_id: str | None
    traversal_id: str | None
    timeout_mins: int
    disable_rollback: bool
    created_at: float
    updated_at: float | None = None
    deleted_at: float | None = None
    tags: tuple[str, ...] = ()
    request_key: str | None = None
    request_digest: str | None = None
    parent_id: str | None = None
    parent_resource_id: str | None = None
    root_id: str | None = None
    nested_depth: int = 0
    resource_count: int = 0
    type_rules: Mapping[str, bool] | None = None
    credentials_id: str | None = None
    previous_good_template_id: str | None = None
    drift_policy: DriftPolicy = DriftPolicy.REPORT

    @property
    def tree_id(self) -> str:
        """Id of the root stack of this stack's tree."""
        return self.root_id or self.id


@quickly_made
@dataclass(frozen=True, slots=True)
class Traversal:
    """One accepted operation on a stack. The rows also are the history of operations.

    :param template_id: id of the goal's template; None if the goal is empty (a delete, or a rollback of a create).
    :param rollback_on_failure: True if the failure of an update node starts a rollback.
    :param deadline: time at which the operation has taken too long.
    :param node_count: number of stored nodes; their numbers begin with 0.
    :param complete_number: number of the node that ends the traversal.
    :param unchanged: number of resources without a change when the traversal was planned.
    :param failed_phase: phase of the first node that failed; None if none has.
    :param cancels: True if unfinished actions of older traversals are cancelled instead of finished.
    :param failed_name: name of the resource whose node failed first.
    :param stalled_at: time of the last progress before the current stall; None if the traversal makes progress.
    :param retains: True if the rows are deleted and their objects stay: the user abandons the stack.
    :param cause: the cause of an operation that no user requested, such as the failure that a rollback undoes; or the
        objects that the operation leaves behind.
    :param left_rows: ids of the rows whose objects this traversal or an older one left behind on request. An object
        that a worker reports late for such a row stays as well.
    :param for_parent: True if a nested stack runs it for the resource of the parent stack whose object it is.
    :param in_service_at: time at which all resources of the goal were up; None before. Leftovers may be deleted after
        it.
    :param observes: True if the operation compares each object with its record, also of unchanged resources.
    :param scaling: the change of a group's members that the nested stack of the group carries out; None: another
        operation.
    :param repair_attempt: number of this repair in a row of repairs that an engine started because of drift; 0: a user
        requested the operation.
    """

    id: str
    stack_id: str
    action: Action
    status: TraversalStatus
    template_id: str | None
    rollback_on_failure: bool
    started_at: float
    deadline: float
    node_count: int = 0
    complete_number: int = 0
    unchanged: int = 0
    finished_at: float | None = None
    reason: str = ''
    failed_phase: Phase | None = None
    request_id: str = ''
    cancels: bool = False
    failed_name: str | None = None
    stalled_at: float | None = None
    retains: bool = False
    cause: str = ''
    left_rows: tuple[str, ...] = ()
    for_parent: bool = False
    in_service_at: float | None = None
    observes: bool = False
    scaling: Scaling | None = None
    repair_attempt: int = 0

    @property
    def in_service_number(self) -> int:
        """Number of the node `IN_SERVICE`: the last but one of the planned nodes."""
        return self.complete_number - 1

    @property
    def late_numbers(self) -> range:
        """Numbers of the nodes that were added after the traversal had started."""
        return range(self.complete_number + 1, self.node_count)

    def reason_of(self, what: str) -> str:
        """Return the status reason of the stack for an event of the traversal, with its cause.

        :param what: the event, such as ``started``.
        """
        return f'Stack {self.action} {what}' + (f'; {self.cause}' if self.cause else '')


@quickly_made
@dataclass(frozen=True, slots=True)
class Node:
    """One step of a traversal; a row of the table ``sync_point``.

    :param number: key within the traversal.
    :param name: resource name of an update or cleanup node.
    :param resource_id: the row that the node works on. A replacement points an update node at the new row.
    :param definition: for an update node, the definition in the template.
    :param asked: for an update node, the attributes that other parts of the template use.
    :param waiting: number of required nodes that are not done yet.
    :param requires: for an update node, numbers of the update nodes whose outputs it reads.
    :param required_by: numbers of the nodes that wait for this one; none of them is done. For a node that was planned
        as done, the nodes that read its output.
    :param next_in_backlog: number of a ready node to dispatch when a worker has handled this one; it keeps the dispatch
        window.
    :param damaged: names of the columns that could not be read; their fields are empty.
    """

    traversal_id: str
    number: int
    phase: Phase
    status: NodeStatus
    name: str | None = None
    resource_id: str | None = None
    definition: Definition | None = None
    asked: tuple[str, ...] = ()
    waiting: int = 0
    requires: tuple[int, ...] = ()
    required_by: tuple[int, ...] = ()
    output: Output | None = None
    next_in_backlog: int | None = None
    damaged: tuple[str, ...] = field(default=(), metadata=NOT_STORED)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Live values of properties that a user has accepted, until the template sets other values than at that time.

    :param wanted: the values of the template at that time, by property; None if it set none.
    :param live: the accepted values, for the same properties.
    """

    wanted: Mapping[str, Json] = field(default_factory=dict, repr=False)
    live: Mapping[str, Json] = field(default_factory=dict, repr=False)

    def holding(self, wanted: Mapping[str, Json]) -> Acceptance | None:
        """Return the acceptance for the properties whose value in the template is unchanged; None if there are none.

        :param wanted: the resolved values of the template now.
        """
        names = [name for name, before in self.wanted.items() if _text(wanted.get(name)) == _text(before)]
        if not names:
            return None
        return Acceptance({name: self.wanted[name] for name in names}, {name: self.live[name] for name in names})

    def document(self) -> dict[str, Json]:
        """Return the value as JSON, for a row. The inverse is `from_document`."""
        return {'wanted': dict(self.wanted), 'live': dict(self.live)}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Acceptance:
        """Restore the value from `document`."""
        wanted, live = document.get('wanted') or {}, document.get('live') or {}
        assert isinstance(wanted, dict)
        assert isinstance(live, dict)
        return cls(wanted, live)


def with_accepted(
    accepted: Acceptance | None, wanted: Mapping[str, Json]
) -> tuple[Mapping[str, Json], Acceptance | None]:
    """Return the desired properties of a resource, and the acceptance that still applies to them.

    :param accepted: see `Resource.accepted`.
    :param wanted: the values of the template, resolved as far as they are known.
    """
    held = accepted.holding(wanted) if accepted is not None else None
    return (wanted, None) if held is None else ({**wanted, **held.live}, held)


def _text(value: Json) -> str:
    """Return a value as text for a comparison: in Python True equals 1. An unknown value equals only itself."""
    return json.dumps(value, sort_keys=True, default=repr)


@quickly_made
@dataclass(frozen=True, slots=True)
class Pending:
    """The values that a row gets when the action in progress succeeds. Any worker can finish the action with them.

    :param digest: see `convergence.core.digest`.
    :param accepted: the acceptance that applies to the properties; None if there is none.
    """

    definition: Definition
    properties: Mapping[str, Json]
    requires: tuple[str, ...]
    template_id: str | None
    digest: str
    metadata: Json = field(default_factory=dict)
    accepted: Acceptance | None = None

    def document(self) -> dict[str, Json]:
        """Return the value as JSON, for a row. The inverse is `from_document`. Omits newer fields at their default."""
        added: dict[str, Json] = {} if self.accepted is None else {'accepted': self.accepted.document()}
        return {
            'definition': self.definition.document(),
            'properties': dict(self.properties),
            'requires': list(self.requires),
            'template_id': self.template_id,
            'digest': self.digest,
            'metadata': self.metadata,
            **added,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Pending:
        """Restore the value from `document`, which another version may have written. Missing fields get defaults."""
        definition, properties = document['definition'], document.get('properties') or {}
        requires, template_id = document.get('requires') or [], document.get('template_id')
        accepted = document.get('accepted')
        assert isinstance(definition, dict)
        assert isinstance(properties, dict)
        assert isinstance(requires, list)
        return cls(
            definition=Definition.from_document(definition),
            properties=properties,
            requires=tuple(str(key) for key in requires),
            template_id=None if template_id is None else str(template_id),
            digest=str(document.get('digest', '')),
            metadata=document.get('metadata', {}),
            accepted=Acceptance.from_document(accepted) if isinstance(accepted, dict) else None,
        )


@dataclass(frozen=True, slots=True)
class Retry:
    """A call of a resource type that had a transient failure and will be retried.

    :param attempts: number of calls so far.
    :param error: text of the last error.
    :param clean: True if the last call certainly created nothing and no worker has called the type since.
    """

    attempts: int
    error: str
    clean: bool = False

    def document(self) -> dict[str, Json]:
        """Return the value as JSON, for a row. The inverse is `from_document`."""
        return {'attempts': self.attempts, 'error': self.error, 'clean': self.clean}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Retry:
        """Restore the value from `document`, which another version may have written. Missing fields get defaults."""
        attempts = document.get('attempts', 0)
        assert isinstance(attempts, int)
        return cls(attempts, str(document.get('error', '')), document.get('clean') is True)


@quickly_made
@dataclass(frozen=True, slots=True)
class Resource:
    """One object, or the intent to create one. A name may have several rows at once.

    :param physical_id: id of the object in its service; None if the object has none or none was created yet.
    :param definition: the definition of the last success, or of the creation in progress.
    :param properties: the resolved properties that belong to it; deletion and comparison use them.
    :param pending: the values of an update in progress, or of one that failed.
    :param data: private data of the resource type.
    :param output: reference and attributes for the dependents.
    :param digest: digest of the last success; None if the object may have changed since.
    :param requires: ids of the rows that this one depends on; during a change, of both the old and the new ones.
    :param replaces: id of the row that this one replaces; `replaced_by` is the inverse.
    :param template_id: the template that was last applied or attempted.
    :param owner: the worker that has claimed the row; None if the row is free.
    :param fence: grows with each change of owner; the database refuses writes with an older fence.
    :param token: idempotency token of the creation; None if no creation has begun.
    :param progress: data to continue a long action; None if there is nothing to continue.
    :param wake_at: time of the next poll of a parked action.
    :param began_at: start of the current or last action.
    :param search_until: until this time an interrupted creation may still create an object, even if none is found.
    :param traversal_id: the traversal for which the row was last claimed.
    :param retry: set while a call with a transient failure is retried.
    :param deadline: time at which the current action has taken too long; None if it has no limit of its own.
    :param crash_count: number of workers in a row that died during the current action.
    :param event_count: number of events since the row exists: of the resource, and of resources it waits for.
    :param polled_event_count: number of events that the last poll knew; if there are more, the row is polled at once.
    :param hook: the hook at which the row was last paused; `hook_traversal_id` is the traversal for which.
    :param cleared: the hook that a user last cleared; `cleared_traversal_id` is the traversal in which. Clearing a hook
        writes only these two columns.
    :param revocation: random text from the last revocation of its signal addresses; empty if there was none. A
        revocation writes only this column.
    :param nothing_made: True if the type has reported that its creation failed and left no object behind.
    :param clearing: True if its object is being deleted so that another one can be created in the row.
    :param repairable: for a failed check, True if the object may still be usable, because it only differs from its
        record or could not be read. The next update then compares the object instead of replacing it.
    :param accepted: live values that a user has accepted; `properties` contains them. None: there are none.
    :param handover: set while its object has released, or may have released, a part that another object of the same
        name needs.
    :param damaged: names of the columns that could not be read; their fields are empty.
    """

    id: str
    stack_id: str
    name: str
    type: str
    action: Action
    status: Status
    created_at: float
    status_reason: str = ''
    physical_id: str | None = None
    definition: Definition | None = None
    properties: Mapping[str, Json] = field(default_factory=dict)
    pending: Pending | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    output: Output | None = None
    digest: str | None = None
    requires: tuple[str, ...] = ()
    replaces: str | None = None
    replaced_by: str | None = None
    template_id: str | None = None
    owner: str | None = None
    fence: int = 0
    token: str | None = None
    progress: Mapping[str, Json] | None = None
    wake_at: float | None = None
    updated_at: float | None = None
    began_at: float | None = None
    search_until: float | None = None
    traversal_id: str | None = None
    retry: Retry | None = None
    deadline: float | None = None
    crash_count: int = 0
    event_count: int = 0
    polled_event_count: int = 0
    hook: Hook | None = None
    hook_traversal_id: str | None = None
    cleared: Hook | None = None
    cleared_traversal_id: str | None = None
    revocation: str = ''
    nothing_made: bool = False
    clearing: bool = False
    repairable: bool = False
    accepted: Acceptance | None = None
    handover: Handover | None = None
    damaged: tuple[str, ...] = field(default=(), metadata=NOT_STORED)

    @property
    def is_cleared(self) -> bool:
        """True if its object is being deleted at the moment, so that another one can be created in the row."""
        return self.clearing and (self.action, self.status) == (Action.UPDATE, Status.IN_PROGRESS)

    @property
    def is_lost(self) -> bool:
        """True if a creation has begun and its outcome is unknown: there is neither a physical id nor an output."""
        return self.token is not None and self.physical_id is None and self.output is None

    @property
    def was_signalled(self) -> bool:
        """True if the row may have received signals: each of them counts as an event."""
        return self.event_count > 0

    def waits_at(self, traversal_id: str) -> Hook | None:
        """Return the hook at which the row is paused for a traversal, or None."""
        if self.hook is None or self.hook_traversal_id != traversal_id or self.has_passed(self.hook, traversal_id):
            return None
        return self.hook

    def has_passed(self, hook: Hook, traversal_id: str) -> bool:
        """Return True if a hook was cleared in a traversal, and no other hook after it."""
        return self.cleared is hook and self.cleared_traversal_id == traversal_id

    @property
    def shown_type(self) -> str:
        """The type as written in the template of the row."""
        definition = self.definition
        return definition.shown_type if definition is not None and definition.type == self.type else self.type


@quickly_made
@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stack (without a resource name) or of one of its resources.

    :param id: a unique id. The order of a stack's events is the order in which they were stored.
    """

    id: str
    stack_id: str
    action: Action
    status: Status
    reason: str
    at: float
    resource_name: str | None = None
    resource_type: str | None = None
    physical_id: str | None = None
    sequence: int | None = None

    @classmethod
    def of_stack(cls, event_id: str, stack_id: str, action: Action, status: Status, reason: str, at: float) -> Event:
        """Return an event of a stack as a whole."""
        return cls(event_id, stack_id, action, status, reason, at, physical_id=stack_id)

    @classmethod
    def of_resource(cls, event_id: str, row: Resource, action: Action, status: Status, reason: str, at: float) -> Event:
        """Return an event of a resource, with the type as written in its template."""
        told = (row.name, row.shown_type, row.physical_id)
        return cls(event_id, row.stack_id, action, status, reason, at, *told)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a stack at some time, and the data to restore it. Its id is that of the traversal that took it.

    :param status: status of the traversal that takes it.
    :param content: the stack in the form that a new stack could adopt.
    :param deleting: True if an operation deletes it, with all data that resource types store for it.
    """

    id: str
    stack_id: str
    name: str | None
    status: Status
    status_reason: str
    created_at: float
    content: Mapping[str, Json] = field(default_factory=dict)
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotItem:
    """The data of one resource in a snapshot. The row exists before the first call of the resource type for it.

    :param physical_id: id of the object in the snapshot.
    :param properties: properties of the resource at that time; `data` is its private data.
    :param kept: data that the type needs to restore the object, and to delete its copy.
    """

    snapshot_id: str
    resource_id: str
    stack_id: str
    name: str
    type: str
    physical_id: str | None = None
    properties: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    kept: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReceivedSignal:
    """A signal that a resource has received. The order of signals is the order in which they were stored.

    :param details: content of the signal: any JSON that the resource type accepts.
    """

    id: str
    stack_id: str
    resource_id: str
    at: float
    details: Json = None
    sequence: int | None = None
