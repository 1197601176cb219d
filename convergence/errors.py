"""Every exception that Convergence raises on purpose.

The class names are part of the RPC contract: a remote caller and the REST layer tell errors apart by name.
The base class says who must act:

* `UserError`: the request is wrong; nothing was stored; change it and repeat it.
* `RetryLater`: the request is valid, but cannot be served now; the same request may succeed later.
* `OperatorError`: the installation is wrong; an operator must change configuration or a service.
* `Conflict`: a row has changed since it was read; read and decide again. An external caller repeats the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from typing_extensions import override


class ConvergenceError(Exception):
    """Base of all errors that are raised on purpose. The text addresses the user who sent the request.

    The constructor of each class accepts the text alone; further data comes from `kwargs`, so that another process can
    raise the same error.
    """

    @property
    def kwargs(self) -> dict[str, Any]:
        """Return the arguments of the constructor besides the text, as JSON. oslo.messaging reads this attribute."""
        return {}


class UserError(ConvergenceError):
    """The request is wrong. Nothing was stored or changed."""


class RetryLater(ConvergenceError):
    """The request could not be served now; repeating it later may succeed."""


class OperatorError(ConvergenceError):
    """Configuration, database or broker need the attention of an operator."""


class Conflict(ConvergenceError):
    """A row has changed since it was read. The handler reads again and decides again."""


class OlderState(Conflict):
    """A row shows a state older than a known commit.

    Either a server lags behind for a while, or the database has lost that commit for good.
    """


class LostClaim(ConvergenceError):
    """Another worker has claimed the row of a resource, so the database refuses writes under the earlier claim."""

    @classmethod
    def of(cls, resource_id: str) -> Self:
        """Return the error for the row with that id."""
        return cls(f'Claim lost: another worker has claimed the row {resource_id}; nothing was written.')


# --- requests -------------------------------------------------------------------------------------------------


class Invalid(UserError):
    """An argument has a wrong type or value."""


class EntityNotFound(UserError):
    """The named object does not exist, or belongs to another project.

    :param entity: the kind of object, for example ``Stack``.
    :param name: the name or id in the request.
    """

    def __init__(self, entity: str, name: str = '') -> None:
        super().__init__(f'The {entity} ({name}) could not be found.' if name else entity)


class ResourceNotFound(EntityNotFound):
    """The stack has no such resource."""


class ResourceNotAvailable(UserError):
    """The resource exists but has not been created yet."""


class StackExists(UserError):
    """Another live stack of the same project has this name."""


class ActionInProgress(RetryLater):
    """The stack is busy with an action that cannot be superseded by this request."""


class RequestKeyReused(UserError):
    """An earlier, different request had the same idempotency key."""


class PreconditionFailed(UserError):
    """The stack has changed since the caller read it, and the request was conditional on that."""


class NotSupported(UserError):
    """The state of the stack does not allow the request, or this installation does not offer it."""


class GoalUnreadable(NotSupported):
    """The stored template of a stack is unreadable, and the request needs it."""


class ResourceActionNotSupported(NotSupported):
    """The resource type does not support the action."""


class NotOffered(NotSupported):
    """This installation does not offer the request, in any state of the stack."""


class Forbidden(UserError):
    """The caller may not do this."""


class CredentialsRefused(Forbidden):
    """A stack cannot act for its user: Keystone refuses, or the stack has no credentials.

    The text names the remedy.
    """


class RequestLimitExceeded(UserError):
    """A limit on sizes or counts would be exceeded. The text names the limit and the option that sets it."""


def require_room(count: int, most: int | None) -> None:
    """Check that a tree of stacks has at most `most` resources.

    :param most: None means no limit.
    :raises RequestLimitExceeded: it has more.
    """
    if most is not None and count > most:
        raise RequestLimitExceeded(
            f'Maximum resources per stack exceeded: the tree of stacks would have {count}, and the limit is {most} '
            '([limits] max_resources_per_stack).'
        )


# --- templates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a document. Lines and columns count from 1.

    Both are 0 in a document that was not sent as text: only the path is known.

    :param source: name of the document, for example ``template`` or a file name.
    :param path: keys from the document's root, for example ``('resources', 'web', 'properties', 'port')``.
    """

    line: int
    column: int
    source: str = 'template'
    path: tuple[str | int, ...] = ()

    def within_properties(self) -> str:
        """Return the path of a property of a resource, without the function at its end; empty for other positions."""
        head = [str(key) for key in self.path]
        if len(head) < 4 or head[2].lower() != 'properties' or head[0].lower() != 'resources':
            return ''
        return '.'.join(head[:-1] if head[-1] in ('get_param', 'Ref') else head)

    @override
    def __str__(self) -> str:
        where = f'{self.source}, line {self.line}, column {self.column}' if self.line else self.source
        return f'{where} ({".".join(str(key) for key in self.path)})' if self.path else where


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a document, with its position.

    :param message: the problem. Clients of OpenStack match some of these texts literally.
    :param hint: a suggestion, as a sentence; may be empty.
    :param kind: the kind of problem, mostly the name of an error.
    :param excerpt: the line and a caret under the position, ready to print; empty if the text is unknown.
    """

    message: str
    place: Place | None = None
    hint: str = ''
    kind: str = 'StackValidationFailed'
    excerpt: str = ''

    def document(self) -> dict[str, Any]:
        """Return the problem as flat JSON; missing values are null."""
        place = self.place
        return {
            'message': self.message,
            'file': place.source if place else None,
            'line': place.line or None if place else None,
            'column': place.column or None if place else None,
            'path': list(place.path) if place else None,
            'hint': self.hint or None,
            'kind': self.kind,
            'excerpt': self.excerpt or None,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Problem:
        """Return the problem that `document` describes."""
        place = None
        if document.get('file') is not None:
            path = tuple(document.get('path') or ())
            place = Place(document.get('line') or 0, document.get('column') or 0, document['file'], path)
        kind = document.get('kind') or 'StackValidationFailed'
        return cls(document['message'], place, document.get('hint') or '', kind, document.get('excerpt') or '')

    @override
    def __str__(self) -> str:
        """Return message and hint as the first line; below it the position and the excerpt, indented.

        A problem of a property without a known line is one line, in words that clients of OpenStack compare.
        """
        said = f'{self.message} {self.hint}' if self.hint else self.message
        within = self.place.within_properties() if self.place and not self.place.line else ''
        if within and not said.startswith('resources.'):
            return f'Property error: : {within}: : {said}'
        lines = [said]
        if self.place:
            lines.append(f'  {self.place}')
        lines += [f'  {line}' for line in self.excerpt.splitlines()]
        return '\n'.join(lines)


class StackValidationFailed(UserError):
    """The template or its parameters are wrong. Carries every problem found, in the order of the document.

    :param problems: the problems; a text stands for a single problem without a position.
    :param documents: the problems as JSON if they come from another process; `problems` is only their text then.
    """

    def __init__(self, problems: Sequence[Problem] | str, documents: Sequence[Mapping[str, Any]] | None = None) -> None:
        if documents is not None:
            problems = [Problem.from_document(document) for document in documents]
        self.problems: tuple[Problem, ...] = (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__('\n'.join(str(problem) for problem in self.problems))

    @property
    @override
    def kwargs(self) -> dict[str, Any]:
        """Return the problems as JSON."""
        return {'documents': [problem.document() for problem in self.problems]}


class InvalidTemplateVersion(StackValidationFailed):
    """The template's version is missing or not one of the supported ones; the text lists them."""


class InvalidTemplateSection(StackValidationFailed):
    """The template or a section of it has a key that the language does not know."""


class ResourceTypeUnavailable(StackValidationFailed):
    """The service of a resource type is not available."""


class InvalidTemplateReference(StackValidationFailed):
    """The template refers to a resource, attribute or file that does not exist."""


class CircularDependencyException(StackValidationFailed):
    """Resources require each other in a circle; the text names the circle and its lines."""


class UnknownUserParameter(StackValidationFailed):
    """A value was given for a parameter that the template does not declare."""


class UserParameterMissing(StackValidationFailed):
    """No value was given for a parameter without a default."""


class ImmutableParameterModified(StackValidationFailed):
    """An update gives an immutable parameter another value."""


class ConflictingMergeStrategyForParam(StackValidationFailed):
    """Two environment files set different merge strategies for a parameter."""


class InvalidBreakPointHook(StackValidationFailed):
    """The environment has a hook that the engine does not know; the text names the resource."""


# --- processes ------------------------------------------------------------------------------------------------


class ConfigurationError(OperatorError):
    """A configuration option is missing or wrong. The text names the option."""


class CannotBeRead(OperatorError):
    """Stored data is damaged. Nothing was changed."""


class SealedWithAnotherKey(CannotBeRead):
    """The configured keys do not open the stored data. Nothing was changed."""


class DatabaseUnavailable(OperatorError, RetryLater):
    """The database does not answer, or has another schema than this version needs."""


class MessagingUnavailable(OperatorError, RetryLater):
    """The message broker does not answer."""


class KeystoneUnavailable(OperatorError, RetryLater):
    """Keystone does not answer."""


class NoAnswer(MessagingUnavailable):
    """The request was sent, and no answer came: it may have been carried out, or may still be."""
