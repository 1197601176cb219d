"""Reads the arguments of an operation that are not part of the template, and the limits that hold for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergence import errors
from convergence.core.changes import StackChange
from convergence.core.model import DriftPolicy
from convergence.resources.reading import did_you_mean
from convergence.settings import EngineSettings, LimitSettings
from convergence.template.functions.base import type_name

_ENGINE, _LIMITS = EngineSettings(), LimitSettings()

_OFFERED = (
    'timeout_mins',
    'disable_rollback',
    'tags',
    'existing',
    'clear_parameters',
    'idempotency_key',
    'expected_traversal',
    'adopt_stack_data',
    'show_nested',
    'converge',
    'drift_policy',
)
_KNOWN_ELSEWHERE = (
    'nested_depth',
    'owner_id',
    'parent_resource',
    'stack_user_project_id',
    'strict_validate',
    'user_creds_id',
)
"""Options that clients of the field may send and this engine does not support. Ignoring them would be a false promise.
"""


@dataclass(frozen=True, slots=True)
class StackLimits:
    """The limits of operations on stacks; see the options of ``[limits]`` and ``[engine]`` of the same names."""

    max_stacks_per_project: int | None = _LIMITS.max_stacks_per_project
    stack_timeout_mins: int = _LIMITS.stack_timeout_mins
    enable_stack_adopt: bool = _ENGINE.enable_stack_adopt
    cancel_patience_s: float = _ENGINE.cancel_patience_s


@dataclass(frozen=True, slots=True)
class StackOptions:
    """The arguments of an operation that are not part of the template. None: not given.

    :param idempotency_key: identifies repeated requests to create the same stack.
    :param expected_traversal: an update is refused if the stack has another traversal.
    :param adopt_stack_data: the data of a stack to be adopted.
    :param show_nested: a preview includes nested stacks.
    :param drift_policy: see `Stack.drift_policy`.
    :param converge: an update also compares unchanged resources with reality.
    """

    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    tags: tuple[str, ...] | None = None
    existing: bool = False
    clear_parameters: tuple[str, ...] = ()
    idempotency_key: str | None = None
    expected_traversal: str | None = None
    adopt_stack_data: Any = None
    show_nested: bool = False
    converge: bool = False
    drift_policy: DriftPolicy | None = None

    @classmethod
    def of(cls, args: Mapping[str, Any] | None) -> StackOptions:
        """Read the `args` of a request.

        :raises Invalid: an argument is unknown, or has a wrong type; the text names it.
        :raises NotOffered: an argument requests an unsupported feature. Null and false request nothing.
        """
        if args is not None and not isinstance(args, Mapping):
            raise errors.Invalid(f'args: expected a map of options, not {type_name(args)}')
        args = args or {}
        for name, value in args.items():
            _refuse_unless_offered(name, value)
        return cls(
            timeout_mins=_minutes(args.get('timeout_mins')),
            disable_rollback=_flag(args, 'disable_rollback'),
            tags=_tags(args.get('tags')),
            existing=bool(_flag(args, 'existing')),
            clear_parameters=_names(args.get('clear_parameters')),
            idempotency_key=_word(args, 'idempotency_key'),
            expected_traversal=_word(args, 'expected_traversal'),
            adopt_stack_data=args.get('adopt_stack_data'),
            show_nested=bool(_flag(args, 'show_nested')),
            converge=bool(_flag(args, 'converge')),
            drift_policy=drift_policy(args.get('drift_policy')),
        )

    def changes(self) -> StackChange:
        """The columns of the stack that the options set."""
        columns: StackChange = {}
        if self.timeout_mins is not None:
            columns['timeout_mins'] = self.timeout_mins
        if self.disable_rollback is not None:
            columns['disable_rollback'] = self.disable_rollback
        if self.tags is not None:
            columns['tags'] = self.tags
        if self.drift_policy is not None:
            columns['drift_policy'] = self.drift_policy
        return columns


def _refuse_unless_offered(name: str, value: Any) -> None:
    if name in _OFFERED:
        return
    if name not in _KNOWN_ELSEWHERE:
        raise errors.Invalid(f'args: unknown option {name}{did_you_mean(name, _OFFERED)}')
    if value is not None and value is not False:
        raise errors.NotOffered(f'{name} is not offered by this installation; leave it out.')


def drift_policy(value: Any) -> DriftPolicy | None:
    """The policy with a name; None if no name was given.

    :raises Invalid: there is no such policy.
    """
    if value is None:
        return None
    if value not in tuple(DriftPolicy):
        raise errors.Invalid(f'drift_policy: {value!r} is none of {", ".join(DriftPolicy)}')
    return DriftPolicy(value)


def _minutes(value: Any) -> int | None:
    if value is None:
        return None
    try:
        minutes = int(value)
    except (TypeError, ValueError):
        raise errors.Invalid(f'timeout_mins: {value!r} is not a whole number of minutes') from None
    if minutes < 0:
        raise errors.Invalid(f'timeout_mins: {minutes} is less than 0')
    return minutes or None


def _flag(args: Mapping[str, Any], name: str) -> bool | None:
    value = args.get(name)
    if value is None or isinstance(value, bool):
        return value
    words = {'true': True, 'false': False}
    if str(value).lower() in words:
        return words[str(value).lower()]
    raise errors.Invalid(f'{name}: {value!r} is neither true nor false')


def _word(args: Mapping[str, Any], name: str) -> str | None:
    value = args.get(name)
    if value is None or (isinstance(value, str) and 0 < len(value) <= 255):
        return value
    raise errors.Invalid(f'{name}: expected a text of 1 to 255 characters')


def _tags(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = [tag.strip() for tag in value.split(',') if tag.strip()]
    if not isinstance(value, (list, tuple)):
        raise errors.Invalid(f'tags: expected a list of texts, not {type_name(value)}')
    for tag in value:
        if not isinstance(tag, str) or len(tag) > 80 or ',' in tag:
            raise errors.Invalid(f'tags: {tag!r} must be a text of at most 80 characters without a comma')
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    # A text is a sequence of texts too, but its letters are no names.
    if value is not None and (not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value)):
        raise errors.Invalid('clear_parameters: expected a list of names of parameters')
    return tuple(value or ())
