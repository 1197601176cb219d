"""Chooses the row that a plan uses for each name of the goal, and finds the rows without a change."""

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
"""The actions after whose success a row has no usable object."""


def choose(stack: Stack, rows: Sequence[Resource], request: Request) -> dict[str, Resource]:
    """Return the row to use for each name of the goal that has a usable row.

    Prefers, in this order: the row with the goal's template (for a rollback), a row that is or will be usable over one
    that failed or has not begun, a row with the same definition, a row that was not replaced, a row of the current
    template, and the newest row. Never chooses a row whose deletion has begun.
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
    """Return the rows of unchanged resources, by name.

    A resource is unchanged if its row is complete and free, its output contains all attributes that other parts of the
    template use, all of its requirements are unchanged, and its digest is equal. The output counts only if another
    resource or an output of the template uses it.

    :param pauses: True if the operation pauses at ``pre-update`` hooks: it then visits resources with this hook.
    :param visits: names of resources that the operation visits in any case.
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
    """Return the new template with the id of an equivalent older one, so that unchanged rows can keep that id.

    It is the template that most unchanged rows have. So an update writes only the rows that it changes, and those of
    other templates.

    :param rows: all rows of the stack.
    :param finished: the rows of unchanged resources, by name.
    """
    found = Counter(row.template_id for row in finished.values() if row.template_id is not None)
    if not found:
        return template
    ((before, _),) = found.most_common(1)
    same = {row.id for row in finished.values() if row.template_id == before}
    changed_names = {row.name for row in rows if row.id not in same} | (goal.definitions.keys() - finished.keys())
    if len(changed_names) > len(same):
        return template  # to store so many names is no cheaper than to write the rows
    return replace(template, equivalent_template_id=before, changed_names=tuple(sorted(changed_names)))
