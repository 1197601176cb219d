"""The stack and the request that a class of Heat sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from heat.common import context, exception, identifier
from heat.engine import environment
from oslo_utils import timeutils

from convergence.resources.contract import Call, FinalFailure
from convergence_heat.session import CallSession

TIMEOUT_S = 3600
"""The timeout of a stack for classes that read it. No action ends by it."""


class ActingContext(context.RequestContext):  # type: ignore[misc]
    """The request as Heat's clients see it: a session, a project, a region. Opened at the first use by a client.

    :param project_id: of the stack.
    :param open_session: opens the session of the call; returns the address of Keystone and the region too.
    """

    def __init__(self, project_id: str, open_session: Callable[[], tuple[CallSession, str, str]]) -> None:
        super().__init__(project_id=project_id, is_admin=False, roles=[], overwrite=False)
        self._open = open_session
        self.opened: CallSession | None = None

    @property
    def keystone_session(self) -> CallSession:
        """Return the session of the call, opened at its first use."""
        if self.opened is None:
            self.opened, self.auth_url, region = self._open()
            self.region_name = region or None
        return self.opened

    @property
    def auth_plugin(self) -> Any:
        """Return the plugin that gets the tokens of the session."""
        return self.keystone_session.auth


class _NoNode:
    """The node of a resource in the stack's definition: empty, because our rows hold it."""

    _resource_data = None
    state = ('INIT', 'COMPLETE')


class _Definition:
    def __getitem__(self, name: str) -> _NoNode:
        return _NoNode()

    def enabled_rsrc_names(self) -> set[str]:
        return set()

    def enabled_output_names(self) -> set[str]:
        return set()

    def all_rsrc_names(self) -> set[str]:
        return set()


class _Sections:
    """The template, as far as classes say where in it something is wrong."""

    RESOURCES = 'resources'

    @staticmethod
    def get_section_name(section: str) -> str:
        return section.lower()


class SeenStack:
    """The stack of a call, as far as classes read it. It holds no other resources."""

    CREATE, UPDATE, DELETE, ROLLBACK = 'CREATE', 'UPDATE', 'DELETE', 'ROLLBACK'
    CHECK, SUSPEND, RESUME, SNAPSHOT, RESTORE = 'CHECK', 'SUSPEND', 'RESUME', 'SNAPSHOT', 'RESTORE'
    COMPLETE, FAILED, IN_PROGRESS = 'COMPLETE', 'FAILED', 'IN_PROGRESS'
    status = 'IN_PROGRESS'
    convergence = in_convergence_check = strict_validate = disable_rollback = True
    adopt_stack_data = parent_resource_name = owner_id = user_creds_id = stack_user_project_id = None
    nested_depth = 0
    t = _Sections()
    timeout_mins = TIMEOUT_S // 60

    def __init__(self, call: Call[Any], acting: ActingContext, action: str) -> None:
        self.context, self.action = acting, action
        self.id, self.name, self.tenant_id = call.stack_id, call.stack_name, call.project_id
        self.created_time = self.updated_time = timeutils.utcnow()
        self.defn = _Definition()
        self.env = environment.Environment()
        self.resources: Mapping[str, Any] = {}
        self.before: Mapping[str, Any] = {}

    @property
    def clients(self) -> Any:
        """The clients of all services."""
        return self.context.clients

    def _backup_stack(self) -> Any:
        """Return the store of replaced resources: those of `before`."""
        return SimpleNamespace(resources=self.before)

    def identifier(self) -> Any:
        """Return the identifier of the stack for Heat."""
        return identifier.HeatIdentifier(self.tenant_id, self.name, self.id)

    def timeout_secs(self) -> int:
        """See `TIMEOUT_S`."""
        return TIMEOUT_S

    def values(self) -> list[Any]:
        """Return no other resources."""
        return []

    def resource_by_refid(self, refid: str) -> None:
        """The resource with a reference: none is known."""

    def db_resource_get(self, name: str) -> None:
        """The row of a resource: there is none of Heat's."""


class EngineCalls:
    """The calls of Heat's engine that Server makes: it reads a software configuration, which is one of ours.

    :param software: of the call.
    """

    def __init__(self, call: Call[Any]) -> None:
        self._software = call.software
        self._name = call.type_name or call.name

    def show_software_config(self, acting: Any, config_id: str) -> dict[str, Any]:
        """The configuration as Heat's API shows it.

        :raises NotFound: there is none with that id.
        """
        found = self._software.config(config_id)
        if found is None:
            raise exception.NotFound
        return {'id': found.id, 'name': found.name, 'group': found.group, **found.content}

    @contextmanager
    def ignore_error_by_name(self, name: str) -> Any:
        """Continue after the block if an error of that name occurs."""
        try:
            yield
        except Exception as error:
            if type(error).__name__ != name:
                raise

    def __getattr__(self, name: str) -> Any:
        raise FinalFailure(f'{self._name} needs the engine of Heat to {name}; there is none here')
