"""Every exception that Convergence raises on purpose.

The class names are part of the RPC contract: a remote caller and the REST layer tell errors apart by name.
The base class says what happens next:

* `UserError`: the request is wrong; nothing was stored; change it and ask again.
* `RetryLater`: the request is fine, the moment is not; the same request may succeed later.
* `OperatorError`: the installation is wrong; a person has to change configuration or a service.
* `Conflict`: a row is no longer what was read; read again and decide again. Who asked from outside repeats the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from typing_extensions import override


class ConvergenceError(Exception):
    """Base of all errors that are raised on purpose. The text is meant to be read by the person who asked.

    Each class can be made from its text alone, what more it carries from `kwargs`: so another process gets the same.
    """

    @property
    def kwargs(self) -> dict[str, Any]:
        """What the constructor needs besides the text, as JSON. oslo.messaging asks for it by this name."""
        return {}


class UserError(ConvergenceError):
    """The request is wrong. Nothing was stored or changed."""


class RetryLater(ConvergenceError):
    """The request could not be served now; repeating it later may succeed."""


class OperatorError(ConvergenceError):
    """Configuration, database or broker need the attention of an operator."""


class Conflict(ConvergenceError):
    """A row is no longer what was read. Whoever catches it reads again and decides again."""


class OlderState(Conflict):
    """A row is shown as it was before a write that is known to have been committed. A server lags behind, for a while;
    or the database has lost that commit, for good."""


class LostClaim(ConvergenceError):
    """Somebody else has claimed the row of a resource, so what the earlier claim still wants to write is refused."""

    @classmethod
    def of(cls, resource_id: str) -> Self:
        """Of the row with that id."""
        return cls(f'Somebody else has claimed the row {resource_id} by now; nothing was written.')


# --- requests -------------------------------------------------------------------------------------------------


class Invalid(UserError):
    """An argument has a wrong type or value."""


class EntityNotFound(UserError):
    """What the request names does not exist, or belongs to somebody else.

    :param entity: the kind of thing, for example ``Stack``.
    :param name: the name or id by which it was asked for.
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
    """Another request had the same idempotency key, and asked for something else."""


class PreconditionFailed(UserError):
    """Something has happened to the stack since the caller looked at it, and the caller has made that a condition."""


class NotSupported(UserError):
    """The request makes no sense in the stack's present state, or this installation does not offer it."""


class GoalUnreadable(NotSupported):
    """The template of a stack is stored and cannot be read: without it this cannot be done."""


class ResourceActionNotSupported(NotSupported):
    """The type of the resource cannot do that."""


class NotOffered(NotSupported):
    """This installation cannot do what was asked at all, whatever the state of the stack."""


class Forbidden(UserError):
    """The caller may not do this."""


class CredentialsRefused(Forbidden):
    """A stack cannot act for its user: Keystone does not let it, or it has nothing to act with.

    The text says what to do.
    """


class RequestLimitExceeded(UserError):
    """A limit on sizes or counts would be exceeded. The text names the limit and the option that sets it."""


def require_room(count: int, most: int | None) -> None:
    """See that a tree of stacks has no more resources than it may.

    :param most: None: as many as it likes.
    :raises RequestLimitExceeded: it has.
    """
    if most is not None and count > most:
        raise RequestLimitExceeded(
            f'Maximum resources per stack exceeded: the tree of stacks would have {count}, and the limit is {most} '
            '([limits] max_resources_per_stack).'
        )


# --- templates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document something stands. Lines and columns count from 1.

    Both are 0 in a document that did not come as text: then only the path is known.

    :param source: what the document is called, for example ``template`` or a file name.
    :param path: keys from the document's root, for example ``('resources', 'web', 'properties', 'port')``.
    """

    line: int
    column: int
    source: str = 'template'
    path: tuple[str | int, ...] = ()

    def within_properties(self) -> str:
        """The path of a property of a resource, without the function at its end; empty for another place."""
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
    """One thing that is wrong with a document, and where.

    :param message: what is wrong. Clients of the field match some of these texts literally.
    :param hint: what might have been meant, a sentence; empty where nothing comes to mind.
    :param kind: what sort of problem it is: the name of an error, mostly.
    :param excerpt: the line in question and a caret under the place, ready to print; empty where the text is not known.
    """

    message: str
    place: Place | None = None
    hint: str = ''
    kind: str = 'StackValidationFailed'
    excerpt: str = ''

    def document(self) -> dict[str, Any]:
        """The problem as flat JSON; what is not there is null."""
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
        """The problem that `document` describes, also after a way through JSON."""
        place = None
        if document.get('file') is not None:
            path = tuple(document.get('path') or ())
            place = Place(document.get('line') or 0, document.get('column') or 0, document['file'], path)
        kind = document.get('kind') or 'StackValidationFailed'
        return cls(document['message'], place, document.get('hint') or '', kind, document.get('excerpt') or '')

    @override
    def __str__(self) -> str:
        """The message and its hint as the first line; below it the place and the excerpt, indented.

        Of a property whose line is not known all is said in one line, in words that clients of the field compare.
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

    :param problems: what is wrong; a text stands for a single problem without a place.
    :param documents: the problems as JSON, when they come from another process; `problems` is only their text then.
    """

    def __init__(self, problems: Sequence[Problem] | str, documents: Sequence[Mapping[str, Any]] | None = None) -> None:
        if documents is not None:
            problems = [Problem.from_document(document) for document in documents]
        self.problems: tuple[Problem, ...] = (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__('\n'.join(str(problem) for problem in self.problems))

    @property
    @override
    def kwargs(self) -> dict[str, Any]:
        """The problems as JSON."""
        return {'documents': [problem.document() for problem in self.problems]}


class InvalidTemplateVersion(StackValidationFailed):
    """The template's version is missing or not one of the supported ones; the text lists them."""


class InvalidTemplateSection(StackValidationFailed):
    """The template or a section of it has a key that the language does not know."""


class ResourceTypeUnavailable(StackValidationFailed):
    """The service that a resource type belongs to is not there."""


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
    """Two environment files say differently how a parameter is merged."""


class InvalidBreakPointHook(StackValidationFailed):
    """The environment has a hook that the engine does not know; the text names the resource."""


# --- processes ------------------------------------------------------------------------------------------------


class ConfigurationError(OperatorError):
    """A configuration option is missing or wrong. The text names the option."""


class CannotBeRead(OperatorError):
    """What is stored is damaged. Nothing was changed."""


class SealedWithAnotherKey(CannotBeRead):
    """What is stored cannot be opened with the configured keys. Nothing was changed."""


class DatabaseUnavailable(OperatorError, RetryLater):
    """The database does not answer, or its schema is not the one this version needs."""


class MessagingUnavailable(OperatorError, RetryLater):
    """The message broker does not answer."""


class KeystoneUnavailable(OperatorError, RetryLater):
    """Keystone does not answer."""


class NoAnswer(MessagingUnavailable):
    """The request was sent, and no answer came: it may have been carried out, or may still be."""
