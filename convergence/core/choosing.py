"""Which row a plan uses for each wanted name, and for which of them there is nothing to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from convergence.core import graph
from convergence.core.digest import digest
from convergence.core.model import Action, Goal, Hook, Output, Status
from convergence.core.request import Request
from convergence.core.rows import Resource, Stack, Template
from convergence.values import replace

_NOT_UP = frozenset({Action.INIT, Action.SUSPEND})
"""The actions whose success leaves nothing that could be used."""


def choose(stack: Stack, rows: Sequence[Resource], request: Request) -> dict[str, Resource]:
    """The row to use for each wanted name that has a usable one.

    First the row that already has the goal's template (a rollback comes back to it), then one that is or will be of
    use over one that failed or never began, then one that was made from just the wanted definition, then one that was
    not replaced, then the present template's, then the newest. A row whose deletion has begun is never chosen.
    """

    template = request.template
    of_goal = {row.id for row in rows} - {row.id for row in template.others(rows)} if template is not None else ()

    def rank(row: Resource) -> tuple[bool, bool, bool, bool, bool, float, str]:
        return (
            row.id in of_goal,
            row.action is not Action.INIT and row.status is not Status.FAILED,
            row.definition == request.goal.definitions[row.name],
            row.replaced_by is None,
            row.template_id is not None and row.template_id == stack.template_id,
            row.created_at,
            row.id,
        )

    best: dict[str, Resource] = {}
    for row in rows:
        if row.action is Action.DELETE or row.name not in request.goal.definitions:
            continue
        if row.name not in best or rank(row) > rank(best[row.name]):
            best[row.name] = row
    return best


def unchanged(
    goal: Goal, chosen: Mapping[str, Resource], *, pauses: bool = False, visits: Collection[str] = ()
) -> dict[str, Resource]:
    """The rows of the resources for which there is nothing to do, by name.

    A resource is unchanged when its row is complete and free, lacks nothing that is asked for or that others are to be
    given, all that it requires is unchanged, and it would be made from just what it was made from. What it hands on is
    not looked at where nobody takes it.

    :param pauses: whether the operation pauses at a ``pre-update`` hook: then the resource is visited all the same.
    :param visits: names of those that are visited all the same.
    """
    required = {name for definition in goal.definitions.values() for name in definition.requires}
    finished: dict[str, Resource] = {}
    outputs: dict[str, Output] = {}
    for name in graph.requirements_first(goal.definitions):
        definition, row = goal.definitions[name], chosen.get(name)
        if row is None or row.owner or row.handover or row.status is not Status.COMPLETE or row.action in _NOT_UP:
            continue
        if name in visits:
            continue
        if pauses and Hook.PRE_UPDATE in definition.hooks:
            continue
        if any(each not in finished for each in definition.requires):
            continue
        if row.digest != digest(definition, outputs):
            continue
        asked = goal.asked.get(name, ())
        if asked or name in required:
            if row.output is None or any(key not in row.output.attributes for key in asked):
                continue
            outputs[name] = row.output
        finished[name] = row
    return finished


def with_equivalent(
    template: Template, goal: Goal, rows: Collection[Resource], finished: Mapping[str, Resource]
) -> Template:
    """A new template with the older one whose rows need not be written to count as those of this one.

    It is the one that most rows have for which there is nothing to do. So an update writes what it changes, and rows
    that have changed since then.

    :param rows: all of the stack, and `finished` those for which there is nothing to do, by name.
    """
    found = Counter(row.template_id for row in finished.values() if row.template_id is not None)
    if not found:
        return template
    ((before, _),) = found.most_common(1)
    same = {row.id for row in finished.values() if row.template_id == before}
    changed_names = {row.name for row in rows if row.id not in same} | (goal.definitions.keys() - finished.keys())
    if len(changed_names) > len(same):
        return template  # to note so many names is no less than to write so few rows
    return replace(template, equivalent_template_id=before, changed_names=tuple(sorted(changed_names)))
