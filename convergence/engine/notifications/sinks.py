"""Event sinks: the webhooks that an environment names as receivers of its stack's events."""

from __future__ import annotations

from collections.abc import Callable, Collection

from convergence.engine.compile.submission import Submission
from convergence.errors import Problem, StackValidationFailed
from convergence.template.environment import SINKS, read_environment
from convergence.template.limits import Limits
from convergence.template.problems import Problems


class EventSinks:
    """Checks that a webhook exists for each event sink. Users create webhooks beforehand, because they need the keys.

    :param webhooks: returns the names and ids of a project's webhooks that receive the events of a stack (None: of a
        new stack). None: there are no webhooks.
    """

    def __init__(self, webhooks: Callable[[str, str | None], Collection[str]] | None = None) -> None:
        self._webhooks = webhooks

    def require(self, project_id: str, submission: Submission, stack_id: str | None = None) -> None:
        """Refuse a goal that names an unknown event sink.

        :raises StackValidationFailed: names each of them.
        """
        if not submission.environment.get(SINKS):
            return
        desired = read_environment(submission.environment, Limits(), Problems()).sinks
        found = self._webhooks(project_id, stack_id) if desired and self._webhooks is not None else ()
        problems = [
            Problem(
                f'The event sink "{name}" is neither the name nor the id of a webhook of this project with events of '
                f'this stack. Make one first: convergence webhook create URL --name {name}.'
            )
            for name in desired
            if name not in found
        ]
        if problems:
            raise StackValidationFailed(problems)
