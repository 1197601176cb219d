"""Carries plugins that are written in the field's established style, unchanged, as resource types.

Such a plugin is a class with ``properties_schema`` and ``attributes_schema`` (mappings), ``handle_create`` and its
like, and ``check_create_complete`` and its like. What a handler returns is carried as JSON to the check, which may run
in another process: it must survive that. Make the resource type with `adapt`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    Observed,
    OutcomeUnknown,
    PluginFailure,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.declaring import attributes_class, properties_class, support_of
from convergence.resources.handlers import Handlers, Snippet
from convergence.resources.values import named


def adapt(plugin: type[Any]) -> ResourceType[Any]:
    """A resource type that works through the handlers of `plugin`.

    :raises TypeError: its schema has a type or a constraint that is not known.
    """
    return AdaptedType(plugin)


class _AtRest(ResourceType[Any]):
    """The handlers of check, suspend and resume."""

    _plugin: type[Any]

    @override
    def check(self, call: Call[Any]) -> Answer:
        """``handle_check``, if the plugin has it, then ``check_check_complete``."""
        if not hasattr(self._plugin, 'handle_check'):
            return super().check(call)
        return self._handle(call, Action.CHECK, lambda one: one.handle_check())

    @override
    def suspend(self, call: Call[Any]) -> Answer:
        """``handle_suspend``, if the plugin has it, then ``check_suspend_complete``."""
        if not hasattr(self._plugin, 'handle_suspend'):
            return super().suspend(call)
        return self._handle(call, Action.SUSPEND, lambda one: one.handle_suspend())

    @override
    def resume(self, call: Call[Any]) -> Answer:
        """``handle_resume``, if the plugin has it, then ``check_resume_complete``."""
        if not hasattr(self._plugin, 'handle_resume'):
            return super().resume(call)
        return self._handle(call, Action.RESUME, lambda one: one.handle_resume())

    def _handle(self, call: Call[Any], action: Action, handler: Callable[[Any], Any]) -> Answer:
        raise NotImplementedError


class AdaptedType(_AtRest):
    """Adapts a plugin of the established style to the contract. Made with `adapt`.

    Its attributes and its reference repeat what a service returns. An attribute with the name of a property is assumed
    to reveal that property and no other.
    """

    reference_of = ()

    def __init__(self, plugin: type[Any]) -> None:
        self.__doc__ = plugin.__doc__
        # A class of its own, so that any plain class will do and what it does not define has a default.
        self._plugin: type[Any] = type(plugin.__name__, (plugin, Handlers), {})
        schema = getattr(plugin, 'properties_schema', {})
        rules = tuple(getattr(plugin, 'TRANSLATIONS', ()))
        self.Properties = properties_class(plugin.__name__, schema, rules)  # type: ignore[misc]
        self.support = support_of(getattr(plugin, 'support_status', None))  # type: ignore[misc]
        self.Attributes = attributes_class(plugin.__name__, _attributes(plugin))  # type: ignore[misc]

    @override
    def create(self, call: Call[Any]) -> Answer:
        """``handle_create``, then ``check_create_complete``."""
        return self._handle(call, Action.CREATE, lambda one: one.handle_create())

    @override
    def update(self, call: Call[Any]) -> Answer:
        """``handle_update`` with the changed properties, then ``check_update_complete``."""
        after, changes = _difference(call)
        snippet = Snippet(call.name, type(self).__name__, after, call.metadata)
        template_changes = {'Properties': after} if changes else {}
        return self._handle(call, Action.UPDATE, lambda one: one.handle_update(snippet, template_changes, changes))

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """``handle_delete``, then ``check_delete_complete``. An error that says "not found" means it is gone."""
        return self._handle(call, Action.DELETE, lambda one: one.handle_delete())

    @override
    def poll(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> Answer:
        """``check_<action>_complete`` with what the handler returned."""
        one = self._instance(call)
        cookie = copy.deepcopy(progress['cookie'])  # The check may change it; the stored one must not change.
        return _guarded(one, action, lambda: self._checked(one, action, cookie))

    @override
    def needs_replacement(self, call: Call[Any]) -> bool:
        """``needs_replace_with_prop_diff``."""
        after, changes = _difference(call)
        before = named(call.previous) if call.previous is not None else {}
        return bool(self._instance(call).needs_replace_with_prop_diff(set(changes), after, before))

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Unhealthy where ``needs_replace_failed`` says so; None where the plugin has no such method."""
        verdict = self._instance(call).needs_replace_failed()
        return None if verdict is None else Observed(healthy=not verdict)

    @override
    def implements(self, hook: str) -> bool:
        """Return True for ``observe`` only if the plugin has ``needs_replace_failed``."""
        if hook == 'observe':
            return self._plugin.needs_replace_failed is not Handlers.needs_replace_failed
        return super().implements(hook)

    @override
    def reference_id(self, call: Call[Any]) -> str | None:
        """``get_reference_id``."""
        reference = self._instance(call).get_reference_id()
        return None if reference is None else str(reference)

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """``_resolve_attribute``."""
        return _as_json(self._instance(call)._resolve_attribute(name), f'attribute {name}')

    @override
    def cancel(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> None:
        """``handle_<action>_cancel`` with what the handler returned, if the plugin has it."""
        handler = getattr(self._instance(call), f'handle_{action.value.lower()}_cancel', None)
        if handler is not None:
            handler(progress['cookie'])

    @override
    def can_cancel(self, action: Action) -> bool:
        """Return True if the plugin has ``handle_<action>_cancel``."""
        return hasattr(self._plugin, f'handle_{action.value.lower()}_cancel')

    def _instance(self, call: Call[Any]) -> Any:
        one: Any = object.__new__(self._plugin)
        one.begin(call, named(call.properties))
        return one

    @override
    def _handle(self, call: Call[Any], action: Action, handler: Callable[[Any], Any]) -> Answer:
        one = self._instance(call)
        return _guarded(one, action, lambda: self._checked(one, action, handler(one)))

    def _checked(self, one: Any, action: Action, cookie: Any) -> Answer:
        complete = getattr(one, f'check_{action.value.lower()}_complete')(cookie)
        if complete:
            return Done(one.resource_id, one.changed_data())
        # Only now, because a check may change what its handler returned, to count its rounds for example.
        carried = _as_json(cookie, f'what handle_{action.value.lower()} returned')
        return InProgress({'cookie': carried}, one.resource_id, one.changed_data())


def _guarded(one: Any, action: Action, step: Callable[[], Answer]) -> Answer:
    try:
        return step()
    except PluginFailure as error:
        error.physical_id = error.physical_id or one.resource_id
        raise
    except Exception as error:
        if action is Action.DELETE and _says_not_found(error):
            raise ObjectNotFound(str(error)) from error
        if action is Action.UPDATE and type(error).__name__ == 'UpdateReplace':
            # The field's way to say, in the middle of an update, that only a new object will do.
            raise ReplacementNeeded(str(error), physical_id=one.resource_id) from error
        # Keep the id that the handler may have set before it failed: no object may be lost.
        raise OutcomeUnknown(f'{type(error).__name__}: {error}', physical_id=one.resource_id) from error


def _difference(call: Call[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all desired values, and those of them that differ from the previous ones."""
    after = named(call.properties)
    before = named(call.previous) if call.previous is not None else {}
    return after, {name: value for name, value in after.items() if name not in before or before[name] != value}


def _attributes(plugin: type[Any]) -> dict[str, Any]:
    """The attributes that a plugin declares, each telling of the property of its name."""
    declared: Mapping[str, Any] = getattr(plugin, 'attributes_schema', {})
    return {name: {**_entry(entry), 'of': (name,)} for name, entry in declared.items()}


def _entry(entry: Any) -> dict[str, Any]:
    if isinstance(entry, str):
        return {'description': entry}
    if isinstance(entry, Mapping):
        return dict(entry)
    return {key: getattr(entry, key, None) for key in ('type', 'description')}


def _as_json(value: Any, what: str) -> Json:
    try:
        carried: Json = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise FinalFailure(
            f'{what} cannot be carried to another worker ({error}); return texts, numbers, lists and maps'
        ) from error
    return carried


def _says_not_found(error: Exception) -> bool:
    codes = {getattr(error, name, None) for name in ('code', 'http_status', 'status_code')}
    return 404 in codes or 'NotFound' in type(error).__name__
