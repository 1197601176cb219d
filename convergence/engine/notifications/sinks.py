"""Event sinks: the webhooks at which an environment wants it told what happens to its stack."""

from __future__ import annotations

from collections.abc import Callable, Collection

from convergence.engine.compile.submission import Submission
from convergence.errors import Problem, StackValidationFailed
from convergence.template.environment import SINKS, read_environment
from convergence.template.limits import Limits
from convergence.template.problems import Problems


def told_nobody(project_id: str, stack_id: str | None) -> Collection[str]:
    """The default of `EventSinks`: there are no webhooks."""
    return ()


class EventSinks:
    """Sees that there is a webhook for each sink. It is made before, by whoever gets its key; here nobody does.

    :param telling: the names and ids of the webhooks of a project that tell of a stack; None: of one to come.
    """

    def __init__(self, telling: Callable[[str, str | None], Collection[str]] = told_nobody) -> None:
        self._telling = telling

    def require(self, project_id: str, submission: Submission, stack_id: str | None = None) -> None:
        """Refuse a goal that names a sink which nobody tells.

        :raises StackValidationFailed: names each of them.
        """
        if not submission.environment.get(SINKS):
            return
        wanted = read_environment(submission.environment, Limits(), Problems()).sinks
        telling = self._telling(project_id, stack_id) if wanted else ()
        problems = [
            Problem(
                f'The event sink "{name}" is neither the name nor the id of a webhook of this project that tells of '
                f'this stack. Make one first: convergence webhook create URL --name {name}.'
            )
            for name in wanted
            if name not in telling
        ]
        if problems:
            raise StackValidationFailed(problems)
