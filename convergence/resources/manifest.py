"""Resource types that a file describes. They are imported when one of their methods is called for the first time.

A package with many types, or with types that are slow to import, offers a `Manifest` instead of the types themselves,
as an entry point of the group ``convergence.resource_manifests``. Engines, the API and checkers of templates read the
schemas from it; workers import the types that they use. `entry_of` writes the entry of a type, ``Manifest.read`` reads
a manifest.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from importlib.resources.abc import Traversable
from typing import Any, TypeAlias

from typing_extensions import override

from convergence.concurrency import Lock
from convergence.core.model import Action, Json, RetryPolicy
from convergence.errors import StackValidationFailed
from convergence.resources.attributes import AnyAttribute, describe_attributes
from convergence.resources.constraints import CustomConstraint
from convergence.resources.contract import HOOKS, Call, FinalFailure, Outline, ResourceType
from convergence.resources.custom import installed_checks
from convergence.resources.declaring import attributes_class, properties_class, support_of
from convergence.resources.old_names import FLAGS, RENAMED
from convergence.resources.plugins import Offering, offers
from convergence.resources.reading import Strictness
from convergence.resources.schema import PropertySchema
from convergence.resources.shapes import DeclaredProperties
from convergence.resources.support import SUPPORTED
from convergence.resources.translation import Append, Drop, Rename, Rule
from convergence.resources.values import named
from convergence.values import replace

LOG = logging.getLogger(__name__)

NAMESPACE = 'convergence.resource_manifests'

FORMAT = 1
"""The form of manifests that is written; only this one is read."""

LoadType: TypeAlias = Callable[[str], ResourceType[Any]]
"""Imports a type, by its name in templates."""

ImpliedBy: TypeAlias = Callable[[Outline, Mapping[str, Outline]], Iterable[str]]
"""Says what `ResourceType.implied` says."""

CanonicalBy: TypeAlias = Callable[[str, Mapping[str, Json], Mapping[str, Json]], Mapping[str, Json]]
"""Says what `ResourceType.canonical` says, of a type by its name."""

NotifiedBy: TypeAlias = Callable[[str, Mapping[str, Any]], Iterable[str]]
"""Says what `ResourceType.notified` says."""

_FLAGS = (
    'token_enforced',
    'create_ambiguity_s',
    'takes_signals',
    'keeps_signals',
    'renewed_by_updates',
    'delete_before_create',
    'observe_interval_s',
    'snapshots_survive',
)
_METHODS = tuple(hook for hook in HOOKS if hook != 'can_cancel')
"""The hooks that are called on the type itself; `cancels` of an entry answers `can_cancel`."""

_RULES: Mapping[str, type[Any]] = {'rename': Rename, 'append': Append, 'drop': Drop}


class CannotImport(FinalFailure):
    """A worker cannot import a type, so it called no method."""


class ManifestType(ResourceType[Any]):
    """A type that a manifest describes. Its methods import the real class and call the method of the same name there.

    `Manifest.types` makes each one with a class of its own that has just the methods that its type writes.

    :param name: its name in templates.
    :param entry: the result of `entry_of`.
    """

    def __init__(self, name: str, entry: Mapping[str, Any], load: LoadType) -> None:
        self.__doc__ = entry['description']
        self.name = name
        self._entry, self._load = entry, load
        self._lock = Lock()
        self._loaded: ResourceType[Any] | None = None
        self._made: dict[str, type[Any] | None] = {}
        for flag in _FLAGS:
            if flag in entry:
                setattr(self, flag, entry[flag])
        self.support = support_of(entry.get('support_status'))  # type: ignore[misc]
        self.retry = RetryPolicy.from_document(entry.get('retry', {}))  # type: ignore[misc]
        limits = entry.get('time_limits', {})
        self.time_limits = {Action(action): limit for action, limit in limits.items()}  # type: ignore[misc]
        if 'deaf_in' in entry:
            self.deaf_in = frozenset(map(Action, entry['deaf_in']))  # type: ignore[misc]
        if 'reference_of' in entry:
            self.reference_of = tuple(entry['reference_of'])  # type: ignore[misc]
        if 'set_by_service' in entry:
            self.set_by_service = tuple(entry['set_by_service'])  # type: ignore[misc]

    @property
    @override
    def Properties(self) -> type[Any]:  # type: ignore[override]
        """The dataclass of properties. Made at the first use, because most types of a manifest are never used."""
        made = self._dataclass('Properties', lambda: _properties(self.name, self._entry))
        assert made is not None
        return made

    @property
    @override
    def Attributes(self) -> type[Any] | None:  # type: ignore[override]
        """The dataclass of attributes, or None, as above."""
        return self._dataclass('Attributes', lambda: _attributes(self.name, self._entry))

    @property
    @override
    def UpdatePolicy(self) -> type[Any] | None:  # type: ignore[override]
        """The dataclass of the update policy, or None, as above."""
        return self._dataclass('UpdatePolicy', lambda: _update_policy(self.name, self._entry))

    def loaded(self) -> ResourceType[Any]:
        """The type itself, imported by now.

        :raises CannotImport: it cannot be imported on this machine.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._imported()
            return self._loaded

    def call_loaded(self, method: str, *arguments: Any) -> Any:
        """Call a method of the type itself.

        :param arguments: a `Call` among them gets the properties as the type itself declares them.
        :raises CannotImport: the type cannot be imported.
        :raises FinalFailure: it refuses the properties.
        """
        kind = self.loaded()
        strictness = Strictness.STRICT if method in ('validate', 'plan', 'create', 'update') else Strictness.LENIENT
        handed = [_handed(kind, each, strictness) if isinstance(each, Call) else each for each in arguments]
        return getattr(kind, method)(*handed)

    def _imported(self) -> ResourceType[Any]:
        try:
            kind = self._load(self.name)
        except (Exception, SystemExit) as error:
            LOG.error('The resource type %s cannot be imported: %s: %s', self.name, type(error).__name__, error)
            raise CannotImport(
                f'The resource type {self.name} is known, and cannot be imported by this worker '
                f'({type(error).__name__}: {error}); install what its package needs wherever workers run'
            ) from error
        if not isinstance(kind, ResourceType):
            raise CannotImport(f'The resource type {self.name} is a {type(kind).__name__}, and no resource type')
        LOG.debug('The resource type %s is imported', self.name)
        return kind

    def _dataclass(self, name: str, make: Callable[[], type[Any] | None]) -> type[Any] | None:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]


class Manifest:
    """The types of a package.

    :param document: ``format``, and ``types``: the result of `entry_of` for each name. An entry with ``withheld``, the
        end of a sentence, is not offered; an error about that name repeats the sentence.
    :param load: imports a type. Called in workers, once for each type, when it is first used. None: the types serve
        checks of templates only.
    :param implied: functions that replace `ResourceType.implied`, by the names of types. Engines call them when they
        accept a template, so they should import nothing heavy.
    :param canonical: the same for `ResourceType.canonical`, of all types.
    :param notified: functions that replace `ResourceType.notified`, by the names of types.
    :raises ValueError: the document has another format.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        load: LoadType | None = None,
        implied: Mapping[str, ImpliedBy] | None = None,
        canonical: CanonicalBy | None = None,
        notified: Mapping[str, NotifiedBy] | None = None,
    ) -> None:
        if document.get('format') != FORMAT:
            raise ValueError(
                f'a manifest of resource types has the format {document.get("format")}, and {FORMAT} is read; install '
                'versions of Convergence and of the package that belong together'
            )
        entries: Mapping[str, Any] = document['types']
        self._offered = {name: _present(entry) for name, entry in entries.items() if 'withheld' not in entry}
        self._load = load or _not_made
        self._implied = implied or {}
        self._canonical = canonical
        self._notified = notified or {}
        self.is_for_checks_only = load is None
        self.withheld = {name: str(entry['withheld']) for name, entry in entries.items() if 'withheld' in entry}
        """The reasons why types are not offered, by name."""

    @classmethod
    def read(
        cls,
        file: Traversable,
        load: LoadType | None = None,
        implied: Mapping[str, ImpliedBy] | None = None,
        canonical: CanonicalBy | None = None,
        notified: Mapping[str, NotifiedBy] | None = None,
    ) -> Manifest:
        """The manifest in a file of a package, which is JSON.

        :raises ValueError: as above, or it is not JSON.
        :raises OSError: the file cannot be read.
        """
        return cls(json.loads(file.read_text(encoding='utf-8')), load, implied, canonical, notified)

    def types(self) -> dict[str, ResourceType[Any]]:
        """The types that are offered, by name. Nothing of them is imported."""
        return {
            name: _class_of(name, entry, self._implied.get(name), self._canonical, self._notified.get(name))(
                name, entry, self._load
            )
            for name, entry in self._offered.items()
        }


def _not_made(name: str) -> ResourceType[Any]:
    raise ImportError(f'the package that describes {name} has no class for it')


def installed_manifests(namespace: str = NAMESPACE) -> list[Offering]:
    """Return the manifests of installed packages, by the names of their entry points. A broken one is logged."""
    found = []
    for offer in offers(namespace, 'manifest'):
        try:
            manifest = offer.offered if isinstance(offer.offered, Manifest) else offer.offered()
            if not isinstance(manifest, Manifest):
                raise TypeError(f'{type(manifest).__qualname__} is no Manifest')
        except (Exception, SystemExit) as error:  # noqa: BLE001 - plugin code may raise anything
            LOG.error('The manifest %s is unusable and is left out: %s: %s', offer.name, type(error).__name__, error)
        else:
            found.append(Offering(offer.name, offer.package, offer.name, manifest))
    return found


def entry_of(kind: ResourceType[Any]) -> dict[str, Json]:
    """Return the entry of a type for a manifest.

    :raises TypeError: the type has a feature that only its own class can express: objects that are stacks, a `Rewrite`
        of properties, attributes without declared names, nested maps with free keys beside declared ones.
    """
    if kind.nests:
        raise TypeError(f'the objects of {type(kind).__qualname__} are stacks; offer it as an entry point of its own')
    schema = PropertySchema.of(kind.Properties)
    entry: dict[str, Json] = {
        'description': (kind.__doc__ or '').strip().partition('\n')[0],
        'properties': schema.describe(whole=True),
        'attributes': _told_attributes(kind),
        'methods': [name for name in _METHODS if _writes(kind, name)],
    }
    more: dict[str, Json] = {
        'rules': [_told_rule(rule) for rule in schema.rules],
        'remaining': '' if schema.rest is None else {'description': 'Further properties.'},
        'update_policy': PropertySchema.of(kind.UpdatePolicy).describe(whole=True) if kind.UpdatePolicy else {},
        'support_status': kind.support.document() if kind.support != SUPPORTED else {},
        'retry': kind.retry.document(),
        'time_limits': {action.value: limit for action, limit in kind.time_limits.items()},
        'unimplemented': [name for name in _METHODS if _writes(kind, name) and not kind.implements(name)],
        'cancels': [action.value for action in Action if kind.can_cancel(action)],
    }
    entry |= {key: value for key, value in more.items() if value}
    entry |= {flag: getattr(kind, flag) for flag in _FLAGS if getattr(kind, flag) != getattr(ResourceType, flag)}
    if kind.deaf_in != ResourceType.deaf_in:
        entry['deaf_in'] = [action.value for action in Action if action in kind.deaf_in]
    if kind.reference_of is not None:
        entry['reference_of'] = [*kind.reference_of]
    if kind.set_by_service:
        entry['set_by_service'] = [*kind.set_by_service]
    return entry


def _writes(kind: ResourceType[Any], method: str) -> bool:
    return getattr(type(kind), method) is not getattr(ResourceType, method)


def _told_attributes(kind: ResourceType[Any]) -> Json:
    """The attributes by name; None: the type answers to every name."""
    declared = kind.Attributes
    if declared is not None and (hasattr(declared, 'also') or hasattr(declared, 'beginnings')):
        raise TypeError(f'{declared.__qualname__} has attributes that are not declared one by one')
    if declared is not None and issubclass(declared, AnyAttribute):
        return None
    return describe_attributes(kind, whole=True)


def _told_rule(rule: Rule) -> dict[str, Json]:
    for name, known in _RULES.items():
        if type(rule) is known:
            told: dict[str, Json] = {name: list(rule.path)}
            return told if isinstance(rule, Drop) else {**told, 'to': rule.to}  # type: ignore[union-attr]
    raise TypeError(f'{rule!r} cannot be written to a manifest; rules that can: {", ".join(_RULES)}')


def _rule(told: Mapping[str, Any]) -> Rule:
    name = next(name for name in _RULES if name in told)
    made: Rule = _RULES[name](tuple(told[name]), *([told['to']] if 'to' in told else []))
    return made


def _properties(name: str, entry: Mapping[str, Any]) -> type[Any]:
    rules = [_rule(told) for told in entry.get('rules', ())]
    rest = entry['remaining']['description'] if 'remaining' in entry else None
    return properties_class(_last(name), entry['properties'], rules, named=_where_it_can, rest=rest)


def _attributes(name: str, entry: Mapping[str, Any]) -> type[Any] | None:
    told = entry['attributes']
    return AnyAttribute if told is None else attributes_class(_last(name), told)


def _update_policy(name: str, entry: Mapping[str, Any]) -> type[Any] | None:
    told = entry.get('update_policy')
    return properties_class(f'{_last(name)}Policy', told, named=_where_it_can) if told else None


def _last(name: str) -> str:
    return name.rpartition('::')[2]


def _where_it_can(name: str, description: str) -> CustomConstraint:
    """Return a custom constraint. If its service is not reachable here, the type checks the value in a worker."""

    def check(value: Json) -> str | None:
        checks = installed_checks().tolerating()
        return None if checks.unchecked(name) else checks.check(name, value)

    return CustomConstraint(name, description, check)


def _class_of(
    name: str,
    entry: Mapping[str, Any],
    implied: ImpliedBy | None,
    canonical: CanonicalBy | None,
    notified: NotifiedBy | None,
) -> type[ManifestType]:
    """Make a class that has the methods that the type writes, and no other: `implements` depends on them."""
    cancels = entry.get('cancels', ())
    body: dict[str, Any] = {method: _delegated(method) for method in entry['methods']}
    body['can_cancel'] = lambda self, action: action.value in cancels
    if implied is not None:
        body['implied'] = lambda self, own, template: implied(own, template)
    if canonical is not None:
        body['canonical'] = lambda self, properties, data: canonical(name, properties, data)
    if notified is not None:
        body['notified'] = lambda self, event_type, payload: notified(event_type, payload)
    implemented = {*body} - {*entry.get('unimplemented', ())}
    body['implements'] = lambda self, hook: hook in implemented
    return type(_last(name), (ManifestType,), body)


def _delegated(method: str) -> Callable[..., Any]:
    return lambda self, *arguments: self.call_loaded(method, *arguments)


def _present(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry with the present names of hooks and flags, where an older version of Convergence wrote it."""
    methods = [RENAMED.get(name, name) for name in entry['methods']]
    present = {RENAMED.get(key, key): value for key, value in entry.items()} | {'methods': methods}
    if 'abilities' in entry:
        able = entry['abilities']
        lacking = {hook for flag, hook in FLAGS.items() if flag not in (*able, 'observes', 'watches', 'hears')}
        present['unimplemented'] = [name for name in methods if name in lacking]
        present['snapshots_survive'] = 'can_snapshot' not in able or 'can_be_kept' in able
    return present


def _handed(kind: ResourceType[Any], call: Call[Any], strictness: Strictness) -> Call[Any]:
    """The same call for the type itself, whose properties are another dataclass."""
    schema = PropertySchema.of(kind.Properties)

    def read(properties: Any, how: Strictness) -> DeclaredProperties:
        if properties is None or isinstance(properties, kind.Properties):
            return properties
        try:
            return schema.parse(named(properties, given=True), how)
        except StackValidationFailed as error:
            raise FinalFailure(str(error)) from error

    return replace(call, properties=read(call.properties, strictness), previous=read(call.previous, Strictness.LENIENT))
