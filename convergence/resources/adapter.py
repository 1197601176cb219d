"""Carries plugins that are written in the field's established style, unchanged, as resource types.

Such a plugin is a class with ``properties_schema`` and ``attributes_schema`` (mappings), ``handle_create`` and its
like, and ``check_create_complete`` and its like. What a handler returns is carried as JSON to the check, which may run
in another process: it must survive that. Make the resource type with `adapt`.
"""

from __future__ import annotations

import copy
import json
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, make_dataclass
from typing import Any

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedPattern, AllowedValues, Constraint, Length, Modulo, Range, custom
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
from convergence.resources.handlers import Handlers, Snippet
from convergence.resources.schema import PropertySchema, prop, secret
from convergence.resources.support import SUPPORTED, Status, SupportStatus
from convergence.resources.translation import Rule

_TYPES: dict[str, Any] = {
    'string': str,
    'integer': int,
    'number': float,
    'boolean': bool,
    'list': list,
    'map': dict,
    'any': Json,
}


def adapt(plugin: type[Any]) -> ResourceType[Any]:
    """A resource type that works through the handlers of `plugin`.

    :raises TypeError: its schema has a type or a constraint that is not known.
    """
    return AdaptedType(plugin)


class _AtRest(ResourceType[Any]):
    """The handlers for what is done to an object as it is."""

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
    """A plugin of the established style behind the contract. Made with `adapt`.

    Its attributes and its reference are what a service says of an object. Where an attribute has the name of a property
    it is taken to tell that property, and no other.
    """

    reference_of = ()

    def __init__(self, plugin: type[Any]) -> None:
        self.__doc__ = plugin.__doc__
        # A class of its own, so that any plain class will do and what it does not define has a default.
        self._plugin: type[Any] = type(plugin.__name__, (plugin, Handlers), {})
        schema = getattr(plugin, 'properties_schema', {})
        rules = tuple(getattr(plugin, 'TRANSLATIONS', ()))
        self.Properties = _properties_class(plugin.__name__, schema, rules)  # type: ignore[misc]
        self.support = support_of(getattr(plugin, 'support_status', None))  # type: ignore[misc]
        self.Attributes = _attributes_class(plugin)  # type: ignore[misc]

    @override
    def create(self, call: Call[Any]) -> Answer:
        """``handle_create``, then ``check_create_complete``."""
        return self._handle(call, Action.CREATE, lambda one: one.handle_create())

    @override
    def update(self, call: Call[Any]) -> Answer:
        """``handle_update`` with what has changed, then ``check_update_complete``."""
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
        cookie = copy.deepcopy(progress['cookie'])  # The check may change it; what was stored stays as it was.
        return _guarded(one, action, lambda: self._checked(one, action, cookie))

    @override
    def needs_replacement(self, call: Call[Any]) -> bool:
        """``needs_replace_with_prop_diff``."""
        after, changes = _difference(call)
        before = _named(call.previous) if call.previous is not None else {}
        return bool(self._instance(call).needs_replace_with_prop_diff(set(changes), after, before))

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Unhealthy where ``needs_replace_failed`` says so; None where the plugin has no such method."""
        verdict = self._instance(call).needs_replace_failed()
        return None if verdict is None else Observed(healthy=not verdict)

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
        """Whether the plugin has ``handle_<action>_cancel``."""
        return hasattr(self._plugin, f'handle_{action.value.lower()}_cancel')

    def _instance(self, call: Call[Any]) -> Any:
        one: Any = object.__new__(self._plugin)
        one.begin(call, _named(call.properties))
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
        # With the id that the handler may have set before it failed: nothing real may be lost sight of.
        raise OutcomeUnknown(f'{type(error).__name__}: {error}', physical_id=one.resource_id) from error


def _named(properties: Any) -> dict[str, Any]:
    """The values of properties, by their names in templates, down to the innermost map: plain dicts and lists."""
    schema = PropertySchema.of(type(properties))
    return {name: _plain(getattr(properties, declared.field)) for name, declared in schema.properties.items()}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _named(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _difference(call: Call[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All wanted values, and those of them that differ from the previous ones."""
    after = _named(call.properties)
    before = _named(call.previous) if call.previous is not None else {}
    return after, {name: value for name, value in after.items() if name not in before or before[name] != value}


def _properties_class(name: str, schema: Mapping[str, Any], rules: Sequence[Rule] = ()) -> type[Any]:
    entries = [(_identifier(key), _annotation(entry), _declared(key, entry)) for key, entry in schema.items()]
    return make_dataclass(f'{name}Properties', entries, frozen=True, namespace={'TRANSLATIONS': rules})


def _attributes_class(plugin: type[Any]) -> type[Any]:
    schema = getattr(plugin, 'attributes_schema', {})
    entries = []
    for key, entry in schema.items():
        annotation = Json if isinstance(entry, str) else _annotation(entry)
        description = entry if isinstance(entry, str) else _told(entry, 'description', '')
        entries.append((_identifier(key), annotation, attr(str(description or ''), name=key, of=(key,))))
    return make_dataclass(f'{plugin.__name__}Attributes', entries, frozen=True)


def _declared(key: str, entry: Any) -> Any:
    options: dict[str, Any] = {
        'description': str(_told(entry, 'description', '') or ''),
        'update_allowed': bool(_told(entry, 'update_allowed', False)),
        'immutable': bool(_told(entry, 'immutable', False)),
        'constraints': [_constraint(key, one) for one in _told(entry, 'constraints', ()) or ()],
        'name': key,
        'support': support_of(_told(entry, 'support_status', None)),
    }
    if not _told(entry, 'required', False):
        options['default'] = _told(entry, 'default', None)
    declared = prop(**options)
    return secret(declared) if _told(entry, 'secret', False) else declared


def _annotation(entry: Any) -> Any:
    kind = str(_told(entry, 'type', 'any')).lower()
    if kind not in _TYPES:
        raise TypeError(f'the schema has the unknown type {kind}; known: {", ".join(_TYPES)}')
    inner = _told(entry, 'schema', None)
    if kind == 'map' and isinstance(inner, Mapping) and inner and '*' not in inner:
        return _properties_class('Nested', inner)
    if kind in ('list', 'map') and inner is not None:
        item = inner['*'] if isinstance(inner, Mapping) and '*' in inner else inner
        return list[_annotation(item)] if kind == 'list' else dict[str, _annotation(item)]  # type: ignore[misc]
    return _TYPES[kind]


def _constraint(key: str, entry: Any) -> Constraint:
    """A constraint, given as one of ours or as the field's JSON, for example ``{'range': {'min': 1}}``."""
    if not isinstance(entry, Mapping):
        if callable(getattr(entry, 'problem', None)):
            constraint: Constraint = entry
            return constraint
        raise TypeError(f'{key}: {entry!r} is no constraint')
    description = str(entry.get('description', ''))
    for name, bounded in (('length', Length), ('range', Range)):
        if name in entry:
            return bounded(entry[name].get('min'), entry[name].get('max'), description)
    if 'allowed_values' in entry:
        return AllowedValues(tuple(entry['allowed_values']), description)
    if 'allowed_pattern' in entry:
        return AllowedPattern(entry['allowed_pattern'], description)
    if 'modulo' in entry:
        return Modulo(entry['modulo']['step'], entry['modulo']['offset'], description)
    if 'custom_constraint' in entry:
        return custom(entry['custom_constraint'], description)
    raise TypeError(
        f'{key}: a constraint is one of length, range, modulo, allowed_values, allowed_pattern, custom_constraint'
    )


def support_of(told: Any) -> SupportStatus:
    """The status that a plugin tells, as a mapping or an object; supported where it tells none."""
    if told is None:
        return SUPPORTED
    previous = _told(told, 'previous_status', None)
    return SupportStatus(
        Status(str(_told(told, 'status', Status.SUPPORTED))),
        _told(told, 'version', None),
        _told(told, 'message', None),
        None if previous is None else support_of(previous),
    )


def _told(entry: Any, name: str, default: Any) -> Any:
    """What a schema says, be it a mapping or an object with attributes."""
    return entry.get(name, default) if isinstance(entry, Mapping) else getattr(entry, name, default)


def _identifier(name: str) -> str:
    text = ''.join(character if character.isalnum() else '_' for character in name)
    return f'{text}_' if keyword.iskeyword(text) or not text.isidentifier() else text


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
