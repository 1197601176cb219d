"""Event sinks: the webhooks that an environment names as receivers of its stack's events."""

from __future__ import annotations

from collections.abc import Callable, Collection

from convergence.engine.compile.submission import Submission
from convergence.errors import Problem, StackValidationFailed
from convergence.template.environment import SINKS, read_environment
from convergence.template.limits import Limits
from convergence.template.problems import Problems


def told_nobody(project_id: str, stack_id: str | None) -> Collection[str]:
    """No webhooks."""
    return ()


class EventSinks:
    """Checks that a webhook exists for each event sink. Users create webhooks beforehand, because they need the keys.

    :param telling: the names and ids of a project's webhooks that receive the events of a stack; None: of a new stack.
    """

    def __init__(self, telling: Callable[[str, str | None], Collection[str]] = told_nobody) -> None:
        self._telling = telling

    def require(self, project_id: str, submission: Submission, stack_id: str | None = None) -> None:
        """Refuse a goal that names an unknown event sink.

        :raises StackValidationFailed: names each of them.
        """
        if not submission.environment.get(SINKS):
            return
        wanted = read_environment(submission.environment, Limits(), Problems()).sinks
        telling = self._telling(project_id, stack_id) if wanted else ()
        problems = [
            Problem(
                f'The event sink "{name}" is neither the name nor the id of a webhook of this project with events of '
                f'this stack. Make one first: convergence webhook create URL --name {name}.'
            )
            for name in wanted
            if name not in telling
        ]
        if problems:
            raise StackValidationFailed(problems)
