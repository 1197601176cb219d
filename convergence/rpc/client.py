"""What one process asks of another.

Casts are hints: they answer whether they were handed to the broker, and never raise because it is away. Calls raise
the errors of `convergence.errors`, as if the engine were in this process.
"""

from __future__ import annotations

from typing import Any, cast

from oslo_context.context import RequestContext
from oslo_messaging import TransportOptions
from oslo_messaging.rpc.client import RPCVersionCapError

from convergence import errors
from convergence.rpc import messages
from convergence.rpc.messages import OPERATIONS, EventQuery, Message, StackQuery
from convergence.rpc.transport import Transport, describe_failure

Document = dict[str, Any]
"""A JSON object."""


class Caster:
    """Sends hints to one topic."""

    def __init__(self, transport: Transport, topic: str, version: str, version_cap: str | None = None) -> None:
        client = transport.client(topic, version, version_cap)
        self._transport = transport
        self._one = client.prepare()
        self._all = client.prepare(fanout=True)

    def to_one(self, message: Message, context: RequestContext | None = None) -> bool:
        """Send to one server of the topic. False: it could not be sent."""
        return self._send(self._one, message, context)

    def to_all(self, message: Message, context: RequestContext | None = None) -> bool:
        """Send to every server of the topic. False: it could not be sent."""
        return self._send(self._all, message, context)

    def _send(self, target: Any, message: Message, context: RequestContext | None) -> bool:
        document = message.encode()
        outage = self._transport.outage
        if outage.pausing():
            return False
        try:
            target.cast(context, message.METHOD, **document)
        except RPCVersionCapError as error:
            messages.refuse(message.METHOD, f'not sent, the version cap is {error.version_cap}')
            return False
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            outage.begin(str(self._transport.unavailable(error)))
            return False
        outage.end()
        return True


class WorkerClient:
    """Wakes and stops workers."""

    def __init__(self, transport: Transport, *, version_cap: str | None = None) -> None:
        self._checks = Caster(transport, messages.WORKER_TOPIC, messages.WORKER_VERSION, version_cap)
        self._cancels = Caster(transport, messages.CANCEL_TOPIC, messages.CANCEL_VERSION, version_cap)

    def check_resource(self, traversal_id: str, node: int, *, context: RequestContext | None = None) -> bool:
        """Tell one worker that a node may be ready. False: not sent, the sweeper will."""
        return self._checks.to_one(messages.CheckResource(traversal_id, node), context)

    def cancel(self, stack_id: str, traversal_id: str, *, context: RequestContext | None = None) -> bool:
        """Tell every worker to stop what it does for a traversal. False: not sent; the database says so anyway."""
        return self._cancels.to_all(messages.Cancel(stack_id, traversal_id), context)


class Caller:
    """Asks any one engine and waits for the answer.

    :param limit_bytes: largest request, with template and files.
    :param version_cap: newest engine version to speak while older engines still run.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        limit_bytes: int = messages.CALL_LIMIT_BYTES,
        version_cap: str | None = None,
    ) -> None:
        self._transport = transport
        self._limit_bytes = limit_bytes
        self._casts = Caster(transport, messages.ENGINE_TOPIC, messages.ENGINE_VERSION, version_cap)
        client = transport.client(messages.ENGINE_TOPIC, messages.ENGINE_VERSION, version_cap)
        # A queue that no engine ever made is known at once; without this the caller would wait for its timeout.
        client.transport_options = TransportOptions(at_least_once=True)
        self._versions = {each.since: client.prepare(version=each.since) for each in OPERATIONS.values()}

    def call(self, context: RequestContext, name: str, **arguments: Any) -> Any:
        """Carry out the operation `name` of `convergence.rpc.messages.OPERATIONS`.

        :raises ConvergenceError: what the engine raised, by class, with its text and all that it carries.
        :raises MessagingUnavailable: no broker, no engine, or no answer in time.
        :raises RequestLimitExceeded: the request is too large.
        """
        operation = OPERATIONS[name]
        document = operation.encode(arguments, self._limit_bytes)
        self._transport.prepare_call()
        try:
            return self._versions[operation.since].call(context, name, **document)
        except errors.ConvergenceError as error:
            raise _local(error) from None
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            raise describe_failure(self._transport, error, name) from None


class StackChanges(Caller):
    """Operations that change a stack."""

    def create_stack(
        self,
        context: RequestContext,
        stack_name: str,
        template: Document | str,
        params: Document | None = None,
        files: Document | None = None,
        args: Document | None = None,
        environment_files: list[str] | None = None,
    ) -> Document:
        """Accept a new stack. Its identity; the stack is `CREATE_IN_PROGRESS` by then."""
        return cast(
            Document,
            self.call(
                context,
                'create_stack',
                stack_name=stack_name,
                template=template,
                params=params,
                files=files,
                args=args,
                environment_files=environment_files,
            ),
        )

    def update_stack(
        self,
        context: RequestContext,
        stack_identity: Document,
        template: Document | str | None,
        params: Document | None = None,
        files: Document | None = None,
        args: Document | None = None,
        environment_files: list[str] | None = None,
    ) -> Document:
        """Give a stack a new goal; None as the template keeps the present one. Its identity."""
        return cast(
            Document,
            self.call(
                context,
                'update_stack',
                stack_identity=stack_identity,
                template=template,
                params=params,
                files=files,
                args=args,
                environment_files=environment_files,
            ),
        )

    def preview_update_stack(
        self,
        context: RequestContext,
        stack_identity: Document,
        template: Document | str | None,
        params: Document | None = None,
        files: Document | None = None,
        args: Document | None = None,
        environment_files: list[str] | None = None,
    ) -> Document:
        """What an update would do: `unchanged`, `updated`, `replaced`, `added`, `deleted`, each a list of resources."""
        return cast(
            Document,
            self.call(
                context,
                'preview_update_stack',
                stack_identity=stack_identity,
                template=template,
                params=params,
                files=files,
                args=args,
                environment_files=environment_files,
            ),
        )

    def delete_stack(self, context: RequestContext, stack_identity: Document) -> None:
        """Begin to delete a stack, in whatever state it is."""
        self.call(context, 'delete_stack', stack_identity=stack_identity)

    def stack_cancel_update(
        self, context: RequestContext, stack_identity: Document, cancel_with_rollback: bool = True
    ) -> None:
        """Stop the operation in progress and, if so wanted, go back to the last good template."""
        self.call(
            context, 'stack_cancel_update', stack_identity=stack_identity, cancel_with_rollback=cancel_with_rollback
        )

    def settle(self, stack_id: str, traversal_id: str, *, context: RequestContext | None = None) -> bool:
        """Tell an engine that a traversal may have ended. A cast; False: not sent, the sweeper will notice."""
        return self._casts.to_one(messages.Settle(stack_id, traversal_id), context)


class StackReads(Caller):
    """Operations that tell about a stack. An unknown stack is an `EntityNotFound`."""

    def identify_stack(self, context: RequestContext, stack_name: str) -> Document:
        """The identity of the stack with that name or id."""
        return cast(Document, self.call(context, 'identify_stack', stack_name=stack_name))

    def list_stacks(self, context: RequestContext, query: StackQuery | None = None) -> list[Document]:
        """Summaries of the stacks that the query selects."""
        return cast(list[Document], self.call(context, 'list_stacks', query=query))

    def count_stacks(self, context: RequestContext, query: StackQuery | None = None) -> int:
        """How many stacks the query selects."""
        return cast(int, self.call(context, 'count_stacks', query=query))

    def show_stack(
        self, context: RequestContext, stack_identity: Document, resolve_outputs: bool = True
    ) -> list[Document]:
        """Everything about one stack, as a list of one."""
        return cast(
            list[Document],
            self.call(context, 'show_stack', stack_identity=stack_identity, resolve_outputs=resolve_outputs),
        )

    def get_template(self, context: RequestContext, stack_identity: Document) -> Document:
        """The stack's template."""
        return cast(Document, self.call(context, 'get_template', stack_identity=stack_identity))

    def get_environment(self, context: RequestContext, stack_identity: Document) -> Document:
        """The stack's environment, hidden parameters masked."""
        return cast(Document, self.call(context, 'get_environment', stack_identity=stack_identity))

    def get_files(self, context: RequestContext, stack_identity: Document) -> Document:
        """The files that came with the stack's template, by name."""
        return cast(Document, self.call(context, 'get_files', stack_identity=stack_identity))

    def list_outputs(self, context: RequestContext, stack_identity: Document) -> list[Document]:
        """The stack's outputs without their values."""
        return cast(list[Document], self.call(context, 'list_outputs', stack_identity=stack_identity))

    def show_output(self, context: RequestContext, stack_identity: Document, output_key: str) -> Document:
        """One output with its value."""
        return cast(Document, self.call(context, 'show_output', stack_identity=stack_identity, output_key=output_key))

    def list_stack_resources(
        self,
        context: RequestContext,
        stack_identity: Document,
        nested_depth: int = 0,
        with_detail: bool = False,
        filters: Document | None = None,
    ) -> list[Document]:
        """The stack's resources."""
        return cast(
            list[Document],
            self.call(
                context,
                'list_stack_resources',
                stack_identity=stack_identity,
                nested_depth=nested_depth,
                with_detail=with_detail,
                filters=filters,
            ),
        )

    def describe_stack_resource(
        self, context: RequestContext, stack_identity: Document, resource_name: str, with_attr: list[str] | None = None
    ) -> Document:
        """Everything about one resource."""
        return cast(
            Document,
            self.call(
                context,
                'describe_stack_resource',
                stack_identity=stack_identity,
                resource_name=resource_name,
                with_attr=with_attr,
            ),
        )

    def list_events(
        self, context: RequestContext, stack_identity: Document, query: EventQuery | None = None
    ) -> list[Document]:
        """What happened to the stack, as far as the query selects it."""
        return cast(list[Document], self.call(context, 'list_events', stack_identity=stack_identity, query=query))

    def stack_explain(self, context: RequestContext, stack_identity: Document) -> Document:
        """Why the stack is as it is, and what it is waiting for."""
        return cast(Document, self.call(context, 'stack_explain', stack_identity=stack_identity))


class InstallationReads(Caller):
    """Operations about templates and the installation, without a stack."""

    def validate_template(
        self,
        context: RequestContext,
        template: Document | str,
        params: Document | None = None,
        files: Document | None = None,
        environment_files: list[str] | None = None,
        show_nested: bool = False,
        ignorable_errors: list[str] | None = None,
    ) -> Document:
        """The template's description and parameters, or what is wrong with it."""
        return cast(
            Document,
            self.call(
                context,
                'validate_template',
                template=template,
                params=params,
                files=files,
                environment_files=environment_files,
                show_nested=show_nested,
                ignorable_errors=ignorable_errors,
            ),
        )

    def list_resource_types(
        self,
        context: RequestContext,
        support_status: str | None = None,
        type_name: str | None = None,
        with_description: bool = False,
    ) -> list[Any]:
        """Names of the resource types, or with `with_description` objects.

        :param type_name: a pattern that the names must match.
        """
        return cast(
            list[Any],
            self.call(
                context,
                'list_resource_types',
                support_status=support_status,
                type_name=type_name,
                with_description=with_description,
            ),
        )

    def resource_schema(self, context: RequestContext, type_name: str, with_description: bool = False) -> Document:
        """Properties and attributes of a resource type."""
        return cast(
            Document, self.call(context, 'resource_schema', type_name=type_name, with_description=with_description)
        )

    def list_services(self, context: RequestContext) -> list[Document]:
        """The processes of the installation and whether they are alive."""
        return cast(list[Document], self.call(context, 'list_services'))

    def get_revision(self, context: RequestContext) -> str:
        """The version of the engine that answers."""
        return cast(str, self.call(context, 'get_revision'))


class EngineClient(StackChanges, StackReads, InstallationReads):
    """Everything that can be asked of an engine."""


def _local(remote: errors.ConvergenceError) -> errors.ConvergenceError:
    """The error that the engine raised, without the traces that the transport adds to its text and its class."""
    for kind in type(remote).__mro__:
        if kind.__module__ == errors.__name__:
            return cast(errors.ConvergenceError, kind(*remote.args, **remote.kwargs))
    return remote
