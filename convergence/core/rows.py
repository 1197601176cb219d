"""What the engine remembers: one frozen value for each kind of row.

Times are seconds since the epoch on the *database's* clock, so that two hosts never disagree about them.
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
    """An immutable template with all that belongs to it, so that a rollback restores parameters and files too.

    :param content: ``{'template': …, 'environment': …, 'files': …, 'parameters': …}`` as the user gave them.
    :param summary: what is shown of it wherever its stack is, so that nobody reads all of it for that:
        ``{'description': …, 'parameters': {name: text}}``, hidden values masked; and ``outputs``, what the outputs
        of the stack need of it, which is not shown itself, unless it is large.
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
        """Whether a row was made, or last changed, for this template."""
        return not self.others((row,))

    def others(self, rows: Iterable[Resource]) -> list[Resource]:
        """Those of some rows that were not."""
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

    :param template_id: the goal; None before the first traversal is planned.
    :param last_good_template_id: the newest template all of whose resources have been up; the target of a rollback.
    :param previous_good_template_id: the one that was that before it; the target of a rollback that a user asks for
        when everything wanted is in service. None where there was none.
    :param traversal_id: the current run; it and no other may change the state of the stack.
    :param timeout_mins: limit of each operation, in minutes.
    :param disable_rollback: what a failure of a create or update leads to.
    :param request_key: what the client called the request that made the stack, to know it again; unique in its project.
    :param request_digest: of what that request asked for.
    :param parent_id: the stack in which it is nested; None where it is in none. Whoever asks for stacks without saying
        which is not told of nested ones.
    :param parent_resource_id: the row of that stack whose object it is; that row's token is the id of this stack.
    :param root_id: the stack at the top of the tree; None where it is this one.
    :param nested_depth: how many stacks it is in.
    :param resource_count: how many resources its goal has, for the limit of a tree.
    :param type_rules: what the policy said of resource types to whoever gave it its goal; see
        `convergence.engine.callers.permits`. What is nested in it may hold no more.
    :param credentials_id: with which it acts for its user; None: with those of the stack that it is nested in, if any.
    :param drift_policy: what it leads to that objects are found otherwise than they were made, where the environment
        does not say it. Of a nested stack that of the one at the top holds.
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
        """The stack at the top of the tree that this one belongs to."""
        return self.root_id or self.id


@quickly_made
@dataclass(frozen=True, slots=True)
class Traversal:
    """One accepted operation on a stack; kept as the operation history.

    :param template_id: the goal; None for nothing at all (a delete, or a rollback of a create).
    :param rollback_on_failure: whether a failure of an update node starts a rollback.
    :param deadline: when the operation has taken too long.
    :param failed_phase: phase of the node that failed first; None while none has.
    :param node_count: nodes written; their numbers run from 0.
    :param complete_number: number of the node that ends the traversal.
    :param unchanged: resources that were found unchanged when the traversal was planned.
    :param cancels: whether nobody waits for what older traversals have left in the middle.
    :param failed_name: resource whose node failed first.
    :param stalled_at: since when it makes no progress; None while it does.
    :param retains: whether the rows are forgotten and their objects stay: the stack is abandoned.
    :param cause: what made it necessary, where no user asked for it: the failure that a rollback undoes;
        or what it leaves behind.
    :param left_rows: keys of the rows whose objects were left behind, as was asked for, by this traversal or an older
        one: what somebody who has held such a row makes known late stays, too.
    :param for_parent: whether a nested stack does this on behalf of the resource whose object it is.
    :param in_service_at: when everything wanted was up; None while it is not. Leftovers may go afterwards.
    :param observes: whether objects are compared with reality, also those of resources that nobody has changed.
    :param scaling: the change of a group's members for which its nested stack does this; None: for another reason.
    :param repair_attempt: which one in a row this is of the repairs that an engine has begun by itself, because objects
        changed outside of the stack; 0: it is none, a user has asked for it.
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
        """Number of the node that says that everything wanted is up: the last but one of those that were planned."""
        return self.complete_number - 1

    @property
    def late_numbers(self) -> range:
        """Numbers of the nodes that were added while the traversal ran."""
        return range(self.complete_number + 1, self.node_count)

    def reason_of(self, what: str) -> str:
        """The stack's status reason for something that the traversal does: what, and because of what."""
        return f'Stack {self.action} {what}' + (f'; {self.cause}' if self.cause else '')


@quickly_made
@dataclass(frozen=True, slots=True)
class Node:
    """One step of a traversal; a row of the table ``sync_point``.

    :param number: key within the traversal.
    :param name: resource name of an update or cleanup node.
    :param resource_id: the row that the node works on. A replacement points an update node at the new row.
    :param definition: for an update node, what the template wants.
    :param asked: for an update node, the attributes that others ask for.
    :param waiting: how many predecessors are not done yet.
    :param requires: for an update node, the update nodes whose outputs it is given.
    :param required_by: the nodes to be told when this one is done; none of them is done already. Of a node that was
        done from the beginning, those that are given its output.
    :param next_in_backlog: a ready node that is to be cast when this one has been attended to: bounded dispatch.
    :param damaged: the columns that could not be read, and are as if nothing were stored there.
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
    """Live values of properties that a person has taken for wanted, until the template wants others than it did then.

    :param wanted: what the template wanted, by property; None where it said nothing.
    :param live: what counts instead, by property: the same ones.
    """

    wanted: Mapping[str, Json] = field(default_factory=dict, repr=False)
    live: Mapping[str, Json] = field(default_factory=dict, repr=False)

    def holding(self, wanted: Mapping[str, Json]) -> Acceptance | None:
        """That of the properties of which the template wants what it did; None: of none.

        :param wanted: what the template wants, resolved.
        """
        names = [name for name, before in self.wanted.items() if _text(wanted.get(name)) == _text(before)]
        if not names:
            return None
        return Acceptance({name: self.wanted[name] for name in names}, {name: self.live[name] for name in names})

    def document(self) -> dict[str, Json]:
        """As JSON, for a row. The inverse is `from_document`."""
        return {'wanted': dict(self.wanted), 'live': dict(self.live)}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Acceptance:
        """The value that `document` was made from."""
        wanted, live = document.get('wanted') or {}, document.get('live') or {}
        assert isinstance(wanted, dict)
        assert isinstance(live, dict)
        return cls(wanted, live)


def with_accepted(
    accepted: Acceptance | None, wanted: Mapping[str, Json]
) -> tuple[Mapping[str, Json], Acceptance | None]:
    """What is wanted of a resource, and what of it is not as the template says but was accepted.

    :param accepted: see `Resource.accepted`.
    :param wanted: what the template wants, resolved, as far as that is known.
    """
    held = accepted.holding(wanted) if accepted is not None else None
    return (wanted, None) if held is None else ({**wanted, **held.live}, held)


def _text(value: Json) -> str:
    """As text: Python takes True and 1 for equal. What is not known yet is like nothing else."""
    return json.dumps(value, sort_keys=True, default=repr)


@quickly_made
@dataclass(frozen=True, slots=True)
class Pending:
    """What an action in flight will have applied when it succeeds; whoever finishes the action needs it.

    :param digest: see `convergence.core.digest`.
    :param accepted: which of the properties are not as the template says, but were accepted.
    """

    definition: Definition
    properties: Mapping[str, Json]
    requires: tuple[str, ...]
    template_id: str | None
    digest: str
    metadata: Json = field(default_factory=dict)
    accepted: Acceptance | None = None

    def document(self) -> dict[str, Json]:
        """As JSON, for a row. The inverse is `from_document`. A field added later is left out at its default."""
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
        """The value that `document` was made from, by this version or another: what is missing has its default."""
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
    """A call that failed for the moment and is to be repeated.

    :param attempts: how often it was made.
    :param error: what it said the last time.
    :param clean: whether nothing has been tried since: it is certain then that the call has left nothing behind.
    """

    attempts: int
    error: str
    clean: bool = False

    def document(self) -> dict[str, Json]:
        """As JSON, for a row. The inverse is `from_document`."""
        return {'attempts': self.attempts, 'error': self.error, 'clean': self.clean}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Retry:
        """The value that `document` was made from, by this version or another: what is missing has its default."""
        attempts = document.get('attempts', 0)
        assert isinstance(attempts, int)
        return cls(attempts, str(document.get('error', '')), document.get('clean') is True)


@quickly_made
@dataclass(frozen=True, slots=True)
class Resource:
    """One physical thing, or the intention of one. A name may have several rows at once.

    :param definition: what the row was last successfully made from, or is being created from.
    :param properties: the resolved properties that went with it; deletion and comparison use these.
    :param pending: what an update in flight, or one that failed, wanted instead.
    :param data: private data of the resource type.
    :param output: reference and attributes, as handed to dependents.
    :param digest: digest of the last success; None where that is not known to be still true.
    :param requires: keys of the rows that this one was built on; the union of old and new while it changes.
    :param replaces: the row that this one was made to replace, and `replaced_by` the other way round.
    :param template_id: the template last applied or attempted.
    :param owner: the worker that holds the row; None while it is free.
    :param fence: grows with each change of owner; a write by a former owner is recognised by its old fence.
    :param token: idempotency token of the creation; None while creation was never begun.
    :param progress: what continues a long action; None while there is nothing to continue.
    :param wake_at: when a parked action wants to be polled again.
    :param began_at: when the present or last action began.
    :param traversal_id: the traversal for which it was last claimed.
    :param search_until: until then an interrupted creation may still make something, whatever is found of it now.
    :param nothing_made: whether the type has said that its creation failed and left nothing behind.
    :param clearing: whether its object is being removed so that another one can be made in the row.
    :param repairable: of a failed check: whether the object may be of use all the same, because it only differs from
        what was applied, or could not be looked at. Then the next update looks at it, and does not just replace it.
    :param accepted: live values that a person has accepted; `properties` has them. None: there are none.
    :param handover: set while its object lacks, or may lack, what another one of its name needs as well.
    :param retry: set while a call that failed for the moment is repeated.
    :param deadline: when the present action has taken too long; None where it has no limit of its own.
    :param crash_count: how many workers in a row have died in the middle of the present action.
    :param event_count: how many things have happened, to it or to what it waits for, since it was made.
    :param polled_event_count: how many of them were known when it was last polled; while there are more it does not
        sleep.
    :param hook: where the row was last paused, and `hook_traversal_id` the traversal for which.
    :param revocation: a text made by chance when its signal addresses were revoked last; empty where they never were.
        Whoever revokes them writes this and nothing else.
    :param cleared: the hook that a person has cleared last, and `cleared_traversal_id` the traversal in which. Who
        clears a hook writes these and nothing else.
    :param damaged: the columns that could not be read, and are as if nothing were stored there.
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
        """Whether the removal of its object, for another one to be made in the row, is in the middle."""
        return self.clearing and (self.action, self.status) == (Action.UPDATE, Status.IN_PROGRESS)

    @property
    def is_lost(self) -> bool:
        """Whether a creation was begun, and its end is not known: no object of it is, nor that it was complete."""
        return self.token is not None and self.physical_id is None and self.output is None

    @property
    def was_signalled(self) -> bool:
        """Whether it may have received signals: each of them has counted as something that happened."""
        return self.event_count > 0

    def waits_at(self, traversal_id: str) -> Hook | None:
        """The hook at which the row is paused for a traversal; None where it is not."""
        if self.hook is None or self.hook_traversal_id != traversal_id or self.has_passed(self.hook, traversal_id):
            return None
        return self.hook

    def has_passed(self, hook: Hook, traversal_id: str) -> bool:
        """Whether a hook has been cleared in a traversal, and none after it."""
        return self.cleared is hook and self.cleared_traversal_id == traversal_id

    @property
    def shown_type(self) -> str:
        """The type as the template wrote it that the row was made from."""
        definition = self.definition
        return definition.shown_type if definition is not None and definition.type == self.type else self.type


@quickly_made
@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a stack (no resource name) or to one of its resources.

    :param id: a unique id; events of a stack are ordered by the order in which they were stored.
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
        """What happened to a stack as a whole."""
        return cls(event_id, stack_id, action, status, reason, at, physical_id=stack_id)

    @classmethod
    def of_resource(cls, event_id: str, row: Resource, action: Action, status: Status, reason: str, at: float) -> Event:
        """What happened to a resource, which is told under the type that its template has written."""
        told = (row.name, row.shown_type, row.physical_id)
        return cls(event_id, row.stack_id, action, status, reason, at, *told)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stack as it was at some moment, and what to bring it back from. Its id is that of the traversal that took it.

    :param status: how far the taking of it got: that of the traversal.
    :param content: what the stack was, in the form in which it could be adopted.
    :param deleting: whether it is being deleted, with all that resource types keep for it.
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
    """What a resource type keeps of one resource for a snapshot; there from before the type is first asked to.

    :param physical_id: of the object of which it is a snapshot.
    :param properties: those of the resource at that time, and `data` its private data.
    :param kept: what the type needs to restore it, and to delete what it keeps.
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
    """What somebody outside has told a resource. Signals are ordered by the order in which they were stored.

    :param details: what was said; whatever the resource's type takes.
    """

    id: str
    stack_id: str
    resource_id: str
    at: float
    details: Json = None
    sequence: int | None = None
