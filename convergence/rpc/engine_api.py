"""What an engine can be asked: one method for each operation, with its arguments and its answer.

Everything else follows from this class: the messages (`convergence.rpc.operations`), the client, whose methods these
are, and the server, which hands a call to the part of the engine that has a method of the same name
(`convergence.engine.service`; a test holds their signatures together). The API names the methods themselves, so that
a reader, a type checker and an editor can follow an operation from the request to the row.

To add an operation: one method here and one of the same name and arguments on a part of the engine. An argument with a
default may be left out, and None is left to the engine. Arguments and answers are plain JSON.
"""

# mypy: disable-error-code="empty-body"
# The bodies are made by `operation`.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from oslo_context.context import RequestContext

from convergence.documents import AnyJson, Document

Identity: TypeAlias = Mapping[str, Any]
"""A stack: `stack_id`, or `stack_name`; further `tenant` and `path`."""

P = ParamSpec('P')
R = TypeVar('R')


@dataclass(frozen=True, slots=True)
class StackQuery:
    """Which stacks `list_stacks` and `count_stacks` are about. None: no restriction, or the engine's default."""

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
    """Which events of a stack `list_events` is about. None: no restriction, or the engine's default."""

    filters: dict[str, Any] | None = None
    limit: int | None = None
    marker: str | None = None
    sort_keys: list[str] | None = None
    sort_dir: str | None = None
    nested_depth: int | None = None


def operation(
    method: Callable[Concatenate[EngineApi, RequestContext, P], R],
) -> Callable[Concatenate[EngineApi, RequestContext, P], R]:
    """Have a method of `EngineApi` ask an engine for what it is named after."""
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
        """Carry out the operation `name`: the way in which the methods below ask."""

    # --- stacks -------------------------------------------------------------------------------------------------

    @operation
    def identify_stack(self, context: RequestContext, stack_name: str) -> Document:
        """The identity of the stack with that name or id."""

    @operation
    def list_stacks(self, context: RequestContext, query: StackQuery | None = None) -> list[Document]:
        """Summaries of the stacks that the query selects."""

    @operation
    def count_stacks(self, context: RequestContext, query: StackQuery | None = None) -> int:
        """How many stacks the query selects."""

    @operation
    def show_stack(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resolve_outputs: bool | None = None,
        with_unreadable: bool | None = None,
    ) -> list[Document]:
        """Everything about one stack, as a list of one."""

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
        """Accept a new stack. Its identity; the stack is CREATE_IN_PROGRESS by then.

        `credentials` are those that `plan_credentials` has told, with what has become known of them since.
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
        """The stack that would be created, with its resources.

        `wants_credentials` in it where types could tell more with some that are made for this request.
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
        """Give a stack a new goal; None as the template keeps the present one. Its identity.

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
        """What an update would do: unchanged, updated, replaced, added, deleted, each a list of resources."""

    @operation
    def delete_stack(
        self,
        context: RequestContext,
        stack_identity: Identity,
        expected_traversal: str | None = None,
        leave: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin to delete a stack in whatever state; leave: names of resources whose objects stay.

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
        """Which credentials an operation of the caller is to bring: their id, and whether the stack has them already.

        If not, they are about to be made. With `repair` only those are replaced with which the stack cannot act.

        `kind`: a `convergence.credentials.model.Method`. `roles`: what they are to pass on. `secret`: that of an
        application credential, sealed.
        """

    @operation
    def discard_credentials(self, context: RequestContext, credentials_id: str) -> None:
        """The operation for which credentials were planned is refused: remove them."""

    @operation
    def stack_cancel_update(
        self,
        context: RequestContext,
        stack_identity: Identity,
        cancel_with_rollback: bool | None = None,
        now: bool | None = None,
    ) -> None:
        """Stop the operation in progress; go back to the last good template if so wanted. now: wait for nothing."""

    @operation
    def stack_rollback(
        self, context: RequestContext, stack_identity: Identity, expected_traversal: str | None = None
    ) -> Document:
        """Bring a stack back to what it was before its last operation, also when that is over. Its identity."""

    @operation
    def preview_rollback(
        self, context: RequestContext, stack_identity: Identity, show_nested: bool | None = None
    ) -> dict[str, list[Document]]:
        """What a rollback would do: unchanged, updated, replaced, added, deleted, each a list of resources."""

    @operation
    def stack_suspend(self, context: RequestContext, stack_identity: Identity) -> None:
        """Suspend every resource of a stack."""

    @operation
    def stack_resume(self, context: RequestContext, stack_identity: Identity) -> None:
        """Resume every resource of a suspended stack."""

    @operation
    def stack_check(self, context: RequestContext, stack_identity: Identity) -> None:
        """Compare every resource of a stack with what is really there."""

    @operation
    def abandon_stack(self, context: RequestContext, stack_identity: Identity) -> Document:
        """Forget a stack and leave what it made; the data from which it can be adopted."""

    @operation
    def export_stack(self, context: RequestContext, stack_identity: Identity) -> Document:
        """The data from which a stack could be adopted; nothing changes."""

    # --- what a stack was made from, and what came of it --------------------------------------------------------

    @operation
    def get_template(self, context: RequestContext, stack_identity: Identity) -> Document:
        """The template of a stack."""

    @operation
    def get_environment(self, context: RequestContext, stack_identity: Identity) -> Document:
        """The environment of a stack, hidden parameters masked."""

    @operation
    def get_files(self, context: RequestContext, stack_identity: Identity) -> dict[str, str]:
        """The files that came with the template of a stack, by name."""

    @operation
    def list_outputs(self, context: RequestContext, stack_identity: Identity) -> list[Document]:
        """The outputs of a stack without their values."""

    @operation
    def show_output(self, context: RequestContext, stack_identity: Identity, output_key: str) -> Document:
        """One output with its value."""

    @operation
    def stack_explain(
        self, context: RequestContext, stack_identity: Identity, nested_depth: int | None = None
    ) -> Document:
        """Why a stack is as it is, and what it is waiting for."""

    @operation
    def stack_drift(
        self,
        context: RequestContext,
        stack_identity: Identity,
        nested_depth: int | None = None,
        with_healthy: bool | None = None,
    ) -> Document:
        """What of a stack is known to be otherwise than it was made."""

    @operation
    def observe_stack(
        self, context: RequestContext, stack_identity: Identity, nested_depth: int | None = None
    ) -> Document:
        """Have the objects of a stack looked at as soon as possible."""

    @operation
    def set_drift_policy(self, context: RequestContext, stack_identity: Identity, policy: str) -> Document:
        """Change what it leads to that objects of a stack are found otherwise than they were made."""

    @operation
    def repair_resource(self, context: RequestContext, stack_identity: Identity, resource_name: str) -> Document:
        """Compare one resource, and what reads it, with reality, and put right what differs."""

    @operation
    def accept_drift(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        properties: Sequence[str] | None = None,
    ) -> Document:
        """Take live values of a resource for wanted, until its template wants other ones than it does now."""

    @operation
    def withdraw_acceptance(self, context: RequestContext, stack_identity: Identity, resource_name: str) -> Document:
        """Take back what was accepted of a resource: what its template said then counts again."""

    @operation
    def stack_graph(
        self, context: RequestContext, stack_identity: Identity, nested_depth: int | None = None
    ) -> Document:
        """The nodes of the traversal of a stack, their states, and what requires what."""

    @operation
    def list_traversals(
        self,
        context: RequestContext,
        stack_identity: Identity,
        limit: int | None = None,
        nested_depth: int | None = None,
    ) -> list[Document]:
        """The operations on a stack, the newest first."""

    # --- snapshots ----------------------------------------------------------------------------------------------

    @operation
    def stack_snapshot(self, context: RequestContext, stack_identity: Identity, name: str | None = None) -> Document:
        """Begin to take a snapshot of a stack; the snapshot."""

    @operation
    def stack_list_snapshots(self, context: RequestContext, stack_identity: Identity) -> list[Document]:
        """The snapshots of a stack."""

    @operation
    def show_snapshot(self, context: RequestContext, stack_identity: Identity, snapshot_id: str) -> Document:
        """One snapshot with its data."""

    @operation
    def delete_snapshot(self, context: RequestContext, stack_identity: Identity, snapshot_id: str) -> None:
        """Begin to delete a snapshot."""

    @operation
    def stack_restore(self, context: RequestContext, stack_identity: Identity, snapshot_id: str) -> None:
        """Bring a stack back to a snapshot."""

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
        """The resources of a stack: all, or those behind the one called `marker`, `limit` at most."""

    @operation
    def describe_stack_resource(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        with_attr: Sequence[str] | bool | None = None,
    ) -> Document:
        """Everything about one resource."""

    @operation
    def resource_signal(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        details: Any = None,
        sync_call: bool | None = None,
    ) -> AnyJson:
        """Hand a signal to a resource."""

    @operation
    def resource_signal_by_address(
        self, context: RequestContext, resource_id: str, proof: str, expires: Any = None, details: Any = None
    ) -> None:
        """Hand a signal to a resource for somebody who knows a signal address of it."""

    @operation
    def resource_signal_address(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        expires_in_s: float | None = None,
        revoke: bool | None = None,
    ) -> Document:
        """An address at which a resource can be signalled without a token; revoke: the others are void then."""

    @operation
    def resource_mark_unhealthy(
        self,
        context: RequestContext,
        stack_identity: Identity,
        resource_name: str,
        mark_unhealthy: bool,
        resource_status_reason: str | None = None,
    ) -> None:
        """Say that a resource is broken, so that the next update replaces it, or that it is well again."""

    @operation
    def list_events(
        self, context: RequestContext, stack_identity: Identity, query: EventQuery | None = None
    ) -> list[Document]:
        """What happened to a stack, as far as the query selects it."""

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
        """What a template declares, or what is wrong with it; `wants_credentials` as in a preview."""

    @operation
    def list_resource_types(
        self,
        context: RequestContext,
        support_status: str | None = None,
        type_name: str | None = None,
        with_description: bool | None = None,
    ) -> list[Any]:
        """Names of the resource types, or objects with a description; type_name is a pattern."""

    @operation
    def resource_schema(
        self, context: RequestContext, type_name: str, with_description: bool | None = None
    ) -> Document:
        """Properties and attributes of a resource type."""

    @operation
    def generate_template(self, context: RequestContext, type_name: str, template_type: str | None = None) -> Document:
        """A template with a resource of that type and all its properties as parameters."""

    @operation
    def list_template_versions(self, context: RequestContext) -> list[Document]:
        """The versions of the template language."""

    @operation
    def list_template_functions(
        self, context: RequestContext, template_version: str, with_condition: bool | None = None
    ) -> list[Document]:
        """The functions that a version of the template language has."""

    # --- the installation ---------------------------------------------------------------------------------------

    @operation
    def list_services(self, context: RequestContext) -> list[Document]:
        """The processes of the installation and whether they are alive."""

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
        """A process without access to the database, such as the API, is alive."""

    @operation
    def service_leave(self, context: RequestContext, service_id: str) -> None:
        """Such a process ends."""

    @operation
    def get_revision(self, context: RequestContext) -> str:
        """The version of the engine that answers."""

    @operation
    def get_progress(self, context: RequestContext) -> Document:
        """Whether work gets on: processes, operations in progress, late ones."""

    # --- software -----------------------------------------------------------------------------------------------

    @operation
    def list_software_configs(
        self, context: RequestContext, limit: int | None = None, marker: str | None = None
    ) -> list[Document]:
        """The software configurations of a project."""

    @operation
    def show_software_config(self, context: RequestContext, config_id: str) -> Document:
        """One software configuration."""

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
        """Keep a software configuration, and show it."""

    @operation
    def delete_software_config(self, context: RequestContext, config_id: str) -> None:
        """Delete a software configuration."""

    @operation
    def list_software_deployments(self, context: RequestContext, server_id: str | None = None) -> list[Document]:
        """The software deployments of a project."""

    @operation
    def show_software_deployment(self, context: RequestContext, deployment_id: str) -> Document:
        """One software deployment."""

    @operation
    def metadata_software_deployments(self, context: RequestContext, server_id: str) -> list[Document]:
        """What the agent on a server is to do."""

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
        """Keep a software deployment, and show it."""

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
        """Change a software deployment, and show it."""

    @operation
    def delete_software_deployment(self, context: RequestContext, deployment_id: str) -> None:
        """Delete a software deployment."""

    # --- webhooks -----------------------------------------------------------------------------------------------

    @operation
    def create_webhook(
        self, context: RequestContext, url: str, name: str | None = None, stack_identity: Identity | None = None
    ) -> Document:
        """Keep a webhook, and show it with its key."""

    @operation
    def list_webhooks(self, context: RequestContext, stack_identity: Identity | None = None) -> list[Document]:
        """The webhooks of a project, or those of one stack."""

    @operation
    def show_webhook(self, context: RequestContext, webhook_id: str) -> Document:
        """One webhook, and how telling it goes."""

    @operation
    def delete_webhook(self, context: RequestContext, webhook_id: str) -> None:
        """Delete a webhook."""

    @operation
    def test_webhook(self, context: RequestContext, webhook_id: str) -> Document:
        """Tell a webhook now that this is a test; how that went."""

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
        """Begin for a nested stack what the row of its resource says; for workers. What was begun."""

    @operation
    def act_on_nested_stacks(self, context: RequestContext, asked: Sequence[Document]) -> list[Document | None]:
        """Begin for some nested stacks what the rows of their resources say; for workers.

        For each the arguments, and the answer, of `act_on_nested_stack`; null where it is to be asked for by itself.
        """

    @operation
    def cancel_nested_stack(self, context: RequestContext, resource_id: str, fence: int) -> None:
        """Stop what a nested stack does on behalf of its resource; for workers."""

    @operation
    def delete_nested_snapshot(self, context: RequestContext, stack_id: str, snapshot_id: str) -> None:
        """Begin to delete a snapshot of a nested stack that was taken with the stack around it; for workers."""

    @operation
    def read_nested_stack(self, context: RequestContext, stack_id: str) -> Document:
        """What a nested stack tells to others: outputs, and of each resource reference and attributes; for workers."""
