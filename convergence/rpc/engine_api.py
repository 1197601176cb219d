"""The operations of an engine: one method per operation, with its arguments and its answer.

This class defines the messages (`convergence.rpc.operations`), the methods of the client, and the methods of the
server: it calls the part of the engine that has a method of the same name (`convergence.engine.service`; a test
compares the signatures). The API calls the methods by name, so that a reader, a type checker and an editor can follow
an operation from the request to the database row.

To add an operation, write one method here and one with the same name and arguments on a part of the engine. A caller
may omit an argument that has a default; for None the engine uses its own default. Arguments and answers are plain JSON.
"""

# mypy: disable-error-code="empty-body"
# The decorator `operation` supplies the bodies.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from oslo_context.context import RequestContext

from convergence.documents import AnyJson, Document

Identity: TypeAlias = Mapping[str, Any]
"""Identifies a stack: a map with `stack_id` or `stack_name`, and optionally `tenant` and `path`."""

P = ParamSpec('P')
R = TypeVar('R')


@dataclass(frozen=True, slots=True)
class StackQuery:
    """Filters of `list_stacks` and `count_stacks`. None means no restriction, or the engine's default."""

    limit: int | None = None
    marker: str | None = None
    sort_keys: list[str] | None = None
    sort_dir: str | None = None
    filters: dict[str, Any] | None = None
    show_deleted: bool = False
    show_nested: bool = False
    show_hidden: bool = False
    tags: list[str] | None = None
    tags_any: list[str] | None = None
    not_tags: list[str] | None = None
    not_tags_any: list[str] | None = None


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Filters of `list_events`. None means no restriction, or the engine's default."""

    filters: dict[str, Any] | None = None
    limit: int | None = None
    marker: str | None = None
    sort_keys: list[str] | None = None
    sort_dir: str | None = None
    nested_depth: int | None = None


def operation(
    method: Callable[Concatenate[EngineApi, RequestContext, P], R],
) -> Callable[Concatenate[EngineApi, RequestContext, P], R]:
    """Decorate a method of `EngineApi`: a call of it sends the operation of its name to an engine."""
    declared = signature(method)

    @wraps(method)
    def ask(self: EngineApi, context: RequestContext, /, *values: P.args, **named: P.kwargs) -> R:
        arguments = dict(declared.bind(self, context, *values, **named).arguments)
        del arguments['self'], arguments['context']
        answer: R = self.call(context, method.__name__, **arguments)
        return answer

    ask.is_operation = True  # type: ignore[attr-defined]
    return ask


class EngineApi:
    """Every operation of an engine."""

    def call(self, context: Any, name: str, /, **arguments: Any) -> AnyJson:
        """Send the operation `name` to an engine and return its answer. The methods below use it."""

    # --- stacks -------------------------------------------------------------------------------------------------

    @operation
    def identify_stack(self, context: RequestContext, stack_name: str) -> Document:
        """Return the identity of the stack with that name or id."""

    @operation
    def list_stacks(self, context: RequestContext, query: StackQuery | None = None) -> list[Document]:
        """Return summaries of the stacks that the query selects."""

    @operation
    def count_stacks(self, context: RequestContext, query: StackQuery | None = None) -> int:
        """Return the number of stacks that the query selects."""

    @operation
    def show_stack(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resolve_outputs: bool | None = None,
        with_unreadable: bool | None = None,
    ) -> list[Document]:
        """Return the details of one stack, as a list with one element."""

    @operation
    def create_stack(
        self,
        context: RequestContext,
        stack_name: str,
        template: str | Mapping[str, Any] | None,
        params: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Create a stack. Return its identity as soon as the engine has accepted it (CREATE_IN_PROGRESS).

        `credentials`: the answer of `plan_credentials`, with the data that their creation in Keystone added.
        """

    @operation
    def preview_stack(
        self,
        context: RequestContext,
        stack_name: str,
        template: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Return the stack that `create_stack` would create, with its resources.

        The answer contains `wants_credentials` if resource types could check more with credentials made for this
        request.
        """

    @operation
    def update_stack(
        self,
        context: RequestContext,
        stack_identity: Identity,
        template: str | Mapping[str, Any] | None,
        params: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Update a stack to a new template; None keeps the current template. Return its identity.

        `credentials` as in `create_stack`.
        """

    @operation
    def preview_update_stack(
        self,
        context: RequestContext,
        stack_identity: Identity,
        template: str | Mapping[str, Any] | None,
        params: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: Sequence[str] | None = None,
    ) -> dict[str, list[Document]]:
        """Return the changes of an update: lists of unchanged, updated, replaced, added and deleted resources."""

    @operation
    def delete_stack(
        self,
        context: RequestContext,
        stack_identity: Identity,
        expected_traversal: str | None = None,
        leave: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin to delete a stack, in any state. `leave` names resources whose objects stay.

        `credentials` as in `create_stack`.
        """

    @operation
    def plan_credentials(
        self,
        context: RequestContext,
        kind: str,
        roles: Sequence[str],
        secret: str | None = None,
        stack_identity: Identity | None = None,
        repair: bool | None = None,
    ) -> Document:
        """Plan the credentials for an operation of the caller. Return their id, and whether the stack already has them.

        If the stack has none, the caller creates them next. With `repair` the engine replaces only credentials that
        no longer work.

        `kind`: a `convergence.credentials.model.Method`. `roles`: names of the roles that the user passes on.
        `secret`: the sealed secret of an application credential.
        """

    @operation
    def discard_credentials(self, context: RequestContext, credentials_id: str) -> None:
        """Remove planned credentials, because the engine refused the operation that they were planned for."""

    @operation
    def stack_cancel_update(
        self,
        context: RequestContext,
        stack_identity: Identity,
        cancel_with_rollback: bool | None = None,
        now: bool | None = None,
    ) -> None:
        """Cancel the operation in progress.

        With `cancel_with_rollback` the stack rolls back to its last good template. With `now` the cancel does not wait
        for running actions.
        """

    @operation
    def stack_rollback(
        self, context: RequestContext, stack_identity: Identity, expected_traversal: str | None = None
    ) -> Document:
        """Roll a stack back to its state before its last operation, even if that has ended. Return its identity."""

    @operation
    def preview_rollback(
        self, context: RequestContext, stack_identity: Identity, show_nested: bool | None = None
    ) -> dict[str, list[Document]]:
        """Return the changes of a rollback: lists of unchanged, updated, replaced, added and deleted resources."""

    @operation
    def stack_suspend(self, context: RequestContext, stack_identity: Identity) -> None:
        """Suspend every resource of a stack."""

    @operation
    def stack_resume(self, context: RequestContext, stack_identity: Identity) -> None:
        """Resume every resource of a suspended stack."""

    @operation
    def stack_check(self, context: RequestContext, stack_identity: Identity) -> None:
        """Check the object of every resource of a stack with its resource type."""

    @operation
    def abandon_stack(self, context: RequestContext, stack_identity: Identity) -> Document:
        """Delete a stack and keep its objects. Return the data from which a new stack can adopt them."""

    @operation
    def export_stack(self, context: RequestContext, stack_identity: Identity) -> Document:
        """Return the data from which a new stack can adopt the objects of this one. Changes nothing."""

    # --- template, outputs and state of a stack -----------------------------------------------------------------

    @operation
    def get_template(self, context: RequestContext, stack_identity: Identity) -> Document:
        """Return the template of a stack."""

    @operation
    def get_environment(self, context: RequestContext, stack_identity: Identity) -> Document:
        """Return the environment of a stack, with hidden parameters masked."""

    @operation
    def get_files(self, context: RequestContext, stack_identity: Identity) -> dict[str, str]:
        """Return the files of the template of a stack, by name."""

    @operation
    def list_outputs(self, context: RequestContext, stack_identity: Identity) -> list[Document]:
        """Return the outputs of a stack without their values."""

    @operation
    def show_output(self, context: RequestContext, stack_identity: Identity, output_key: str) -> Document:
        """Return one output with its value."""

    @operation
    def stack_explain(
        self, context: RequestContext, stack_identity: Identity, nested_depth: int | None = None
    ) -> Document:
        """Explain the state of a stack: the causes of failures, and the steps it waits for."""

    @operation
    def stack_drift(
        self,
        context: RequestContext,
        stack_identity: Identity,
        nested_depth: int | None = None,
        with_healthy: bool | None = None,
    ) -> Document:
        """Return the known drift of the resources of a stack."""

    @operation
    def observe_stack(
        self, context: RequestContext, stack_identity: Identity, nested_depth: int | None = None
    ) -> Document:
        """Request that observers compare the objects of a stack with their records as soon as possible."""

    @operation
    def set_drift_policy(self, context: RequestContext, stack_identity: Identity, policy: str) -> Document:
        """Set the drift policy of a stack: the reaction to drift of its objects."""

    @operation
    def repair_resource(self, context: RequestContext, stack_identity: Identity, resource_name: str) -> Document:
        """Compare the objects of one resource and of its dependents with their records, and repair differences."""

    @operation
    def accept_drift(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        properties: Sequence[str] | None = None,
    ) -> Document:
        """Accept live values of a resource as correct, until the template of the stack sets other values than now."""

    @operation
    def withdraw_acceptance(self, context: RequestContext, stack_identity: Identity, resource_name: str) -> Document:
        """Withdraw the acceptance of live values of a resource: the values of the template apply again."""

    @operation
    def stack_graph(
        self, context: RequestContext, stack_identity: Identity, nested_depth: int | None = None
    ) -> Document:
        """Return the nodes of the traversal of a stack, their states and their requirements."""

    @operation
    def list_traversals(
        self,
        context: RequestContext,
        stack_identity: Identity,
        limit: int | None = None,
        nested_depth: int | None = None,
    ) -> list[Document]:
        """Return the operations on a stack, newest first."""

    # --- snapshots ----------------------------------------------------------------------------------------------

    @operation
    def stack_snapshot(self, context: RequestContext, stack_identity: Identity, name: str | None = None) -> Document:
        """Begin to take a snapshot of a stack. Return the snapshot."""

    @operation
    def stack_list_snapshots(self, context: RequestContext, stack_identity: Identity) -> list[Document]:
        """Return the snapshots of a stack."""

    @operation
    def show_snapshot(self, context: RequestContext, stack_identity: Identity, snapshot_id: str) -> Document:
        """Return one snapshot with its data."""

    @operation
    def delete_snapshot(self, context: RequestContext, stack_identity: Identity, snapshot_id: str) -> None:
        """Begin to delete a snapshot."""

    @operation
    def stack_restore(self, context: RequestContext, stack_identity: Identity, snapshot_id: str) -> None:
        """Restore a stack from a snapshot."""

    # --- resources and events -----------------------------------------------------------------------------------

    @operation
    def list_stack_resources(
        self,
        context: RequestContext,
        stack_identity: Identity,
        nested_depth: int | None = None,
        with_detail: bool | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[Document]:
        """Return the resources of a stack: at most `limit`, beginning after the resource named `marker`."""

    @operation
    def describe_stack_resource(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        with_attr: Sequence[str] | bool | None = None,
    ) -> Document:
        """Return the details of one resource."""

    @operation
    def resource_signal(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        details: Any = None,
        sync_call: bool | None = None,
    ) -> AnyJson:
        """Send a signal to a resource."""

    @operation
    def resource_signal_by_address(
        self, context: RequestContext, resource_id: str, proof: str, expires: Any = None, details: Any = None
    ) -> None:
        """Send a signal to a resource for a caller who has proved that he knows its signal address."""

    @operation
    def resource_signal_address(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        expires_in_s: float | None = None,
        revoke: bool | None = None,
    ) -> Document:
        """Return an address that accepts signals to a resource without a token. `revoke` makes earlier ones invalid."""

    @operation
    def resource_mark_unhealthy(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        mark_unhealthy: bool,
        resource_status_reason: str | None = None,
    ) -> None:
        """Mark a resource as unhealthy, so that the next update replaces it, or remove the mark."""

    @operation
    def list_events(
        self, context: RequestContext, stack_identity: Identity, query: EventQuery | None = None
    ) -> list[Document]:
        """Return the events of a stack that the query selects."""

    # --- templates and types ------------------------------------------------------------------------------------

    @operation
    def validate_template(
        self,
        context: RequestContext,
        template: str | Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        environment_files: Sequence[str] | None = None,
        show_nested: bool | None = None,
        ignorable_errors: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Return the declarations of a template, or its errors. `wants_credentials` as in `preview_stack`."""

    @operation
    def list_resource_types(
        self,
        context: RequestContext,
        support_status: str | None = None,
        type_name: str | None = None,
        with_description: bool | None = None,
    ) -> list[Any]:
        """Return the names of resource types, or objects with a description. `type_name` is a pattern."""

    @operation
    def resource_schema(
        self, context: RequestContext, type_name: str, with_description: bool | None = None
    ) -> Document:
        """Return the properties and attributes of a resource type."""

    @operation
    def generate_template(self, context: RequestContext, type_name: str, template_type: str | None = None) -> Document:
        """Return a template with one resource of that type and a parameter for each of its properties."""

    @operation
    def list_template_versions(self, context: RequestContext) -> list[Document]:
        """Return the versions of the template language."""

    @operation
    def list_template_functions(
        self, context: RequestContext, template_version: str, with_condition: bool | None = None
    ) -> list[Document]:
        """Return the functions of one version of the template language."""

    # --- the installation ---------------------------------------------------------------------------------------

    @operation
    def list_services(self, context: RequestContext) -> list[Document]:
        """Return the processes of the installation, and for each if it is alive."""

    @operation
    def service_beat(
        self,
        context: RequestContext,
        service_id: str,
        kind: str,
        host: str,
        version: str,
        lease_s: float,
        load: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a heartbeat of a process without access to the database, such as the API."""

    @operation
    def service_leave(self, context: RequestContext, service_id: str) -> None:
        """Sign off a process that used `service_beat`, because it ends."""

    @operation
    def get_revision(self, context: RequestContext) -> str:
        """Return the version of the engine that answers."""

    @operation
    def get_progress(self, context: RequestContext) -> Document:
        """Return the progress of the installation: its processes, operations in progress, and late operations."""

    # --- software -----------------------------------------------------------------------------------------------

    @operation
    def list_software_configs(
        self, context: RequestContext, limit: int | None = None, marker: str | None = None
    ) -> list[Document]:
        """Return the software configurations of a project."""

    @operation
    def show_software_config(self, context: RequestContext, config_id: str) -> Document:
        """Return one software configuration."""

    @operation
    def create_software_config(
        self,
        context: RequestContext,
        group: str | None,
        name: str | None,
        config: Any,
        inputs: Sequence[Mapping[str, Any]] | None = None,
        outputs: Sequence[Mapping[str, Any]] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Document:
        """Store a software configuration. Return it."""

    @operation
    def delete_software_config(self, context: RequestContext, config_id: str) -> None:
        """Delete a software configuration."""

    @operation
    def list_software_deployments(self, context: RequestContext, server_id: str | None = None) -> list[Document]:
        """Return the software deployments of a project, or of one server."""

    @operation
    def show_software_deployment(self, context: RequestContext, deployment_id: str) -> Document:
        """Return one software deployment."""

    @operation
    def metadata_software_deployments(self, context: RequestContext, server_id: str) -> list[Document]:
        """Return the deployments that the agent on a server must carry out."""

    @operation
    def create_software_deployment(
        self,
        context: RequestContext,
        server_id: str,
        config_id: str | None,
        input_values: Any = None,
        output_values: Any = None,
        action: Any = None,
        status: Any = None,
        status_reason: Any = None,
        stack_user_project_id: Any = None,
    ) -> Document:
        """Store a software deployment. Return it."""

    @operation
    def update_software_deployment(
        self,
        context: RequestContext,
        deployment_id: str,
        config_id: Any = None,
        input_values: Any = None,
        output_values: Any = None,
        action: Any = None,
        status: Any = None,
        status_reason: Any = None,
        stack_user_project_id: Any = None,
    ) -> Document:
        """Change a software deployment. Return it."""

    @operation
    def delete_software_deployment(self, context: RequestContext, deployment_id: str) -> None:
        """Delete a software deployment."""

    # --- webhooks -----------------------------------------------------------------------------------------------

    @operation
    def create_webhook(
        self, context: RequestContext, url: str, name: str | None = None, stack_identity: Identity | None = None
    ) -> Document:
        """Store a webhook. Return it with its key."""

    @operation
    def list_webhooks(self, context: RequestContext, stack_identity: Identity | None = None) -> list[Document]:
        """Return the webhooks of a project, or of one stack."""

    @operation
    def show_webhook(self, context: RequestContext, webhook_id: str) -> Document:
        """Return one webhook and the results of its deliveries."""

    @operation
    def delete_webhook(self, context: RequestContext, webhook_id: str) -> None:
        """Delete a webhook."""

    @operation
    def test_webhook(self, context: RequestContext, webhook_id: str) -> Document:
        """Send a test notice to a webhook now. Return the result of the delivery."""

    # --- nested stacks, for workers -----------------------------------------------------------------------------

    @operation
    def act_on_nested_stack(
        self,
        context: RequestContext,
        resource_id: str,
        fence: int,
        step: int = 0,
        node: int | None = None,
        ends: Document | None = None,
    ) -> Document:
        """Start the operation on a nested stack that the row of its resource names. For workers.

        Return the operation that the engine started.
        """

    @operation
    def act_on_nested_stacks(self, context: RequestContext, asked: Sequence[Document]) -> list[Document | None]:
        """Start the operations on several nested stacks that the rows of their resources name. For workers.

        `asked` and the answer contain, per stack, the arguments and the answer of `act_on_nested_stack`. An answer is
        null if the worker must call `act_on_nested_stack` for that stack.
        """

    @operation
    def cancel_nested_stack(self, context: RequestContext, resource_id: str, fence: int) -> None:
        """Cancel the operation that a nested stack carries out for its resource. For workers."""

    @operation
    def delete_nested_snapshot(self, context: RequestContext, stack_id: str, snapshot_id: str) -> None:
        """Begin to delete a snapshot of a nested stack that belongs to a snapshot of its parent stack. For workers."""

    @operation
    def read_nested_stack(self, context: RequestContext, stack_id: str) -> Document:
        """Return the readable values of a nested stack: its outputs, and each resource's reference and attributes.

        For workers.
        """
