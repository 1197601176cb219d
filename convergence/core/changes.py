"""Changes of rows: some columns of one table, with their new values.

`convergence.core.rows` describes the columns. A column that is missing here never changes after its row was inserted,
or has an effect of its own: `CountEvent`, `TellParent`, `ClearHook` and `RevokeAddresses` write columns that the owner
of a row never writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from convergence.core.model import Action, Definition, DriftPolicy, Handover, Hook, Json, NodeStatus, Output, Status
from convergence.core.rows import Acceptance, Pending, Retry


class StackChange(TypedDict, total=False):
    """Columns of a stack."""

    action: Action
    status: Status
    status_reason: str
    template_id: str | None
    last_good_template_id: str | None
    previous_good_template_id: str | None
    traversal_id: str | None
    timeout_mins: int
    disable_rollback: bool
    updated_at: float | None
    deleted_at: float | None
    tags: tuple[str, ...]
    parent_id: str | None
    parent_resource_id: str | None
    root_id: str | None
    nested_depth: int
    resource_count: int
    type_rules: Mapping[str, bool] | None
    credentials_id: str | None
    drift_policy: DriftPolicy


class ResourceChange(TypedDict, total=False):
    """Columns of a resource."""

    type: str
    action: Action
    status: Status
    status_reason: str
    physical_id: str | None
    definition: Definition | None
    properties: Mapping[str, Json]
    pending: Pending | None
    data: Mapping[str, Json]
    output: Output | None
    digest: str | None
    requires: tuple[str, ...]
    replaced_by: str | None
    template_id: str | None
    owner: str | None
    fence: int
    token: str | None
    progress: Mapping[str, Json] | None
    wake_at: float | None
    updated_at: float | None
    began_at: float | None
    search_until: float | None
    traversal_id: str | None
    retry: Retry | None
    deadline: float | None
    crash_count: int
    polled_event_count: int
    hook: Hook | None
    hook_traversal_id: str | None
    nothing_made: bool
    clearing: bool
    repairable: bool
    accepted: Acceptance | None
    handover: Handover | None


class NodeChange(TypedDict, total=False):
    """Columns of a node."""

    status: NodeStatus
    waiting: int
    output: Output | None
