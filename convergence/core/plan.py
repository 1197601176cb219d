"""Plans a traversal from a goal. Create, update, delete and rollback all use the function `plan`.

The store calls `plan` with the stack row and all of its resource rows locked, and commits all effects in one
transaction, so a stack never has a current traversal without its nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from convergence.core import failure, graph, orphans, states
from convergence.core.changes import StackChange
from convergence.core.choosing import choose, unchanged, with_equivalent
from convergence.core.effects import (
    Decision,
    Effect,
    EndTraversal,
    InsertEvents,
    InsertResources,
    InsertStack,
    InsertTemplate,
    InsertTraversal,
    RequireRoom,
    UpdateResources,
    UpdateStack,
)
from convergence.core.graph import Graph, Key
from convergence.core.handover import contested, deprived
from convergence.core.hooks import pauses_at_all
from convergence.core.model import (
    UNDER_WAY,
    Action,
    Definition,
    Goal,
    Handover,
    NodeStatus,
    Phase,
    Status,
    TraversalStatus,
)
from convergence.core.request import Planned, Planner, Request
from convergence.core.rows import Event, Node, Resource, Stack, Traversal
from convergence.core.views import PlanView
from convergence.values import replace


def plan(view: PlanView, stack: Stack, request: Request, planner: Planner) -> Decision[Planned]:
    """Plan a traversal of `stack`.

    :param view: the locked rows of the stack; `view.stack` is None if the plan creates the stack.
    """
    beside, is_busy = request.beside(view), any(row.owner is not None for row in view.resources)
    left_rows = _left_rows(view, request)
    view, request, left = _without_what_is_left(view, request, planner)
    chosen = choose(stack, view.resources, request)
    lacking = contested(view.resources, chosen, planner.hands_over) if not request.performs else ()
    returning = {row.name: replace(row, handover=Handover.RECLAIMING) for row in chosen.values() if row.id in lacking}
    chosen = {**chosen, **returning}
    made = {
        name: _new_row(stack, view.now, definition, request, planner)
        for name, definition in request.goal.definitions.items()
        if name not in chosen and request.action is not Action.SUSPEND
    }
    rows = {**chosen, **made}
    finished = _finished_already(request, chosen, planner)
    whole = _whole(view, chosen, request, planner, finished)
    if request.template is not None and request.is_new_template:
        request = replace(request, template=with_equivalent(request.template, request.goal, view.resources, finished))
    graph.close(whole)
    nodes = _chain(_number(whole, request, rows, {row.id: row for row in view.resources}, finished), planner.window)
    traversal = _traversal(view, stack, request, left_rows, nodes, len(finished))
    effects = [
        *_stack_effects(view, stack, traversal, request),
        *_resource_effects(view, chosen, made, finished, request),
        *((UpdateResources(lacking, {'handover': Handover.RECLAIMING}),) if lacking else ()),
        *_traversal_effects(view, traversal, nodes),
        InsertEvents((_started(stack, view.now, traversal, request, planner),)),
        *left,
        *beside,
        *_room(view, stack, request, planner),  # the last, because its lock blocks all other stacks of the tree
    ]
    row_ids = {name: row.id for name, row in rows.items()}
    superseded = _running(view)
    is_busy |= superseded is not None
    return Decision(Planned(traversal, _to_be_told(nodes), superseded, row_ids, beside, is_busy), tuple(effects))


def _traversal(
    view: PlanView, stack: Stack, request: Request, left_rows: tuple[str, ...], nodes: Sequence[Node], unchanged: int
) -> Traversal:
    """Return the row of the new traversal.

    :param left_rows: see `Traversal.left_rows`.
    :param unchanged: number of resources without a change.
    """
    return Traversal(
        id=request.traversal_id,
        stack_id=stack.id,
        action=request.action,
        status=TraversalStatus.RUNNING,
        template_id=request.template.id if request.template else None,
        rollback_on_failure=request.rollback_on_failure,
        started_at=view.now,
        deadline=_deadline(view, stack, request),
        node_count=len(nodes),
        complete_number=next(node.number for node in nodes if node.phase is Phase.COMPLETE),
        unchanged=unchanged,
        request_id=request.request_id,
        cancels=request.cancels or failure.nobody_waits_for(view.traversal),
        retains=request.retains,
        cause=request.cause,
        left_rows=left_rows,
        for_parent=request.for_parent,
        observes=request.observes,
        scaling=request.scaling,
        repair_attempt=request.repair_attempt,
        in_service_at=view.now if request.wants_nothing else None,
    )


def _deadline(view: PlanView, stack: Stack, request: Request) -> float:
    own = view.now + 60.0 * request.stack_changes.get('timeout_mins', stack.timeout_mins)
    return own if request.deadline is None else min(own, request.deadline)


def _to_be_told(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the ready nodes inside the dispatch window: those that no other node dispatches."""
    ready = [node for node in nodes if node.status is NodeStatus.READY]
    followers = {node.next_in_backlog for node in ready if node.next_in_backlog is not None}
    return tuple(node for node in ready if node.number not in followers)


def _without_what_is_left(view: PlanView, request: Request, planner: Planner) -> tuple[PlanView, Request, list[Effect]]:
    """Split off the rows whose objects are left behind.

    Return the view of the remaining rows, the request with the left objects as its cause, and the effects that delete
    the rows.
    """
    left = [row for row in view.resources if row.name in request.leaves]
    if not left:
        return view, request, []
    remaining = tuple(row for row in view.resources if row.name not in request.leaves)
    gone = orphans.leave(left, view.now, planner.new_id)
    return replace(view, resources=remaining), replace(request, cause=orphans.summary(left)), gone


def _left_rows(view: PlanView, request: Request) -> tuple[str, ...]:
    """Return the ids of all rows whose objects are left behind on request, now or earlier.

    They stay recorded, because a worker that claimed such a row may report an object at any time.
    """
    before = view.traversal.left_rows if view.traversal is not None else ()
    return (*before, *sorted(row.id for row in view.resources if row.name in request.leaves))


def _whole(
    view: PlanView,
    chosen: Mapping[str, Resource],
    request: Request,
    planner: Planner,
    finished: Mapping[str, Resource],
) -> Graph:
    """Return the graph of the traversal: update and cleanup nodes, or only one kind if the goal does not change.

    An action on unchanged objects follows the order of the template. Suspend uses the reverse order, as a deletion:
    dependents are suspended first. A check also visits rows whose deletion failed.
    """
    if not request.performs:
        kept = {row.id for row in chosen.values()}
        in_the_way = _in_the_way(view, kept, request, planner)
        return graph.build(request.goal.definitions, view.resources, kept, in_the_way, finished)
    if request.action is Action.SUSPEND:
        return graph.build({}, [_with_requirements(row, chosen, request.goal) for row in chosen.values()])
    not_removed = [row for row in view.resources if (row.action, row.status) == (Action.DELETE, Status.FAILED)]
    return graph.build(request.goal.definitions, not_removed if request.action is Action.CHECK else ())


def _in_the_way(view: PlanView, kept: Collection[str], request: Request, planner: Planner) -> set[str]:
    """Return the ids of the leftovers that must be deleted before a new object of the same name can be created.

    They have the only object that can exist with the name, or an exclusive part of it while their deletion is in
    progress: a half-deleted object takes part in no handover. In the second case the new object does not wait if its
    definition differs, so that a user has a way out if the deletion fails again and again.
    """
    wanted = request.goal.definitions
    left = [row for row in view.resources if row.id not in kept and row.name in wanted]
    alike = [row for row in left if row.type == wanted[row.name].type]

    def has_what_is_wanted(row: Resource) -> bool:
        is_going = row.action is Action.DELETE and planner.hands_over(row.type)
        return is_going and row.definition == wanted[row.name]

    return {row.id for row in alike if planner.is_exclusive(row.type) or has_what_is_wanted(row)}


def _with_requirements(row: Resource, chosen: Mapping[str, Resource], goal: Goal) -> Resource:
    """Return the row. If its creation has not begun, add its requirements: it fails before they are suspended."""
    if row.action is not Action.INIT:
        return row
    return replace(
        row, requires=tuple(chosen[name].id for name in goal.definitions[row.name].requires if name in chosen)
    )


def _room(view: PlanView, stack: Stack, request: Request, planner: Planner) -> list[Effect]:
    """Return the effect that reserves room in the tree if the goal has more resources than the last one.

    A new root stack needs none: its tree is empty.
    """
    before = view.stack.resource_count if view.stack else 0
    more = len(request.goal.definitions) - before
    if request.performs or more <= 0 or (view.stack is None and stack.parent_id is None):
        return []
    takes_back = request.takes_back or request.action is Action.ROLLBACK
    return [RequireRoom(stack.tree_id, more, None if takes_back else planner.max_resources, view.tree_count)]


# --- rows -----------------------------------------------------------------------------------------------------


def _new_row(stack: Stack, now: float, definition: Definition, request: Request, planner: Planner) -> Resource:
    offer = request.offered.get(definition.name)
    return Resource(
        id=planner.new_id(),
        stack_id=stack.id,
        name=definition.name,
        type=definition.type,
        action=Action.INIT,
        status=Status.COMPLETE,
        created_at=now,
        template_id=request.template.id if request.template else None,
        physical_id=offer.physical_id if offer else None,
        data=offer.data if offer else {},
    )


def _finished_already(request: Request, chosen: Mapping[str, Resource], planner: Planner) -> dict[str, Resource]:
    if not planner.skips_unchanged(request):
        return {}
    pauses = pauses_at_all(request.action) and request.visits is None
    return unchanged(request.goal, chosen, pauses=pauses, visits=request.visits or ())


# --- nodes ----------------------------------------------------------------------------------------------------


def _number(
    whole: Graph,
    request: Request,
    rows: Mapping[str, Resource],
    existing: Mapping[str, Resource],
    finished: Mapping[str, Resource],
) -> list[Node]:
    """Number the nodes, requirements first and the two end nodes last.

    An unchanged resource gets a node, already done, only if another node reads its output. With an empty goal the node
    `IN_SERVICE` is done from the beginning.
    """
    order = sorted(whole.in_order(), key=lambda key: key.phase in (Phase.IN_SERVICE, Phase.COMPLETE))
    definitions = request.goal.definitions
    pending = [definitions[key.subject] for key in order if key.phase is Phase.UPDATE]
    read = {name for definition in pending for name in definition.requires if name in finished}
    done = [name for name in definitions if name in read]
    numbers = {graph.update_key(name): number for number, name in enumerate(done)}
    numbers.update({key: number for number, key in enumerate(order, len(done))})

    def node(key: Key) -> Node:
        is_up = request.wants_nothing
        waiting = len([each for each in whole.requires(key) if not (is_up and each.phase is Phase.IN_SERVICE)])
        is_done = is_up and key.phase is Phase.IN_SERVICE
        update = key.phase is Phase.UPDATE
        row = rows[key.subject] if update else existing.get(key.subject)
        definition = definitions[key.subject] if update else None
        required = definition.requires if definition else ()
        return Node(
            traversal_id=request.traversal_id,
            number=numbers[key],
            phase=key.phase,
            status=NodeStatus.DONE if is_done else NodeStatus.WAITING if waiting else NodeStatus.READY,
            name=row.name if row else None,
            resource_id=row.id if row else None,
            definition=definition,
            asked=tuple(request.goal.asked.get(key.subject, ())) if update else (),
            waiting=waiting,
            requires=tuple(numbers[graph.update_key(name)] for name in required),
            required_by=tuple(sorted(numbers[other] for other in whole.required_by(key))),
        )

    readers: dict[str, list[int]] = {}
    for key in order:
        for name in definitions[key.subject].requires if key.phase is Phase.UPDATE else ():
            readers.setdefault(name, []).append(numbers[key])
    results = [_result(request, number, finished[name], readers[name]) for number, name in enumerate(done)]
    return results + [node(key) for key in order]


def _result(request: Request, number: int, row: Resource, readers: Sequence[int]) -> Node:
    """Return the node of an unchanged resource: done, with its stored output. A signal finds the dependents by it."""
    return Node(
        traversal_id=request.traversal_id,
        number=number,
        phase=Phase.UPDATE,
        status=NodeStatus.DONE,
        name=row.name,
        resource_id=row.id,
        definition=request.goal.definitions[row.name],
        required_by=tuple(sorted(readers)),
        output=row.output,
    )


def _chain(nodes: list[Node], window: int) -> list[Node]:
    """Link each ready node to the one `window` places after it, which it dispatches later. The rest is the backlog.

    Links only nodes for workers: the engine that plans finishes the other ready nodes itself.
    """
    cast = (Phase.UPDATE, Phase.CLEANUP)
    ready = [node.number for node in nodes if node.status is NodeStatus.READY and node.phase in cast]
    follower = dict(zip(ready, ready[window:], strict=False))
    return [_waking(node, follower[node.number]) if node.number in follower else node for node in nodes]


def _waking(node: Node, follower: int) -> Node:
    return replace(node, next_in_backlog=follower)


# --- effects --------------------------------------------------------------------------------------------------


def _running(view: PlanView) -> str | None:
    traversal = view.traversal
    return traversal.id if traversal and traversal.status in UNDER_WAY else None


def _stack_effects(view: PlanView, stack: Stack, traversal: Traversal, request: Request) -> list[Effect]:
    template, reason = request.template, traversal.reason_of('started')
    state: StackChange = (
        states.stack_state(stack, request.action, Status.IN_PROGRESS, reason)
        if view.stack
        else {'action': request.action, 'status': Status.IN_PROGRESS, 'status_reason': reason}
    )
    changes: StackChange = {
        **state,
        'traversal_id': request.traversal_id,
        'template_id': template.id if template else stack.template_id,
        'updated_at': view.now if view.stack else None,
        **({} if request.performs else {'resource_count': len(request.goal.definitions)}),
        **request.stack_changes,
    }
    effects: list[Effect] = []
    if view.stack is None:
        effects.append(InsertStack(replace(stack, created_at=view.now, **changes)))
    else:
        effects.append(UpdateStack(stack.id, view.stack.traversal_id, changes))
    if template is not None and request.is_new_template:
        effects.append(InsertTemplate(template))
    return effects


def _resource_effects(
    view: PlanView,
    chosen: Mapping[str, Resource],
    made: Mapping[str, Resource],
    finished: Mapping[str, Resource],
    request: Request,
) -> list[Effect]:
    effects: list[Effect] = []
    if finished and request.template:
        # These rows match the goal. A later rollback to the goal must find them by the goal's template.
        rows = request.template.others(finished.values())
        if rows:
            ids = tuple(sorted(row.id for row in rows))
            effects.append(UpdateResources(ids, {'template_id': request.template.id}))
    back = tuple(sorted(row.id for row in chosen.values() if row.replaced_by and not request.performs))
    if back:
        effects.append(UpdateResources(back, {'replaced_by': None}))
    losing = deprived(view.resources, chosen) if not request.performs else ()
    if losing:
        effects.append(UpdateResources(losing, {'handover': Handover.DEPRIVED}))
    if made:
        effects.append(InsertResources(tuple(sorted(made.values(), key=lambda row: row.id))))
    return effects


def _traversal_effects(view: PlanView, traversal: Traversal, nodes: list[Node]) -> list[Effect]:
    effects: list[Effect] = []
    superseded = view.traversal
    if superseded is not None and superseded.status in UNDER_WAY:
        reason = f'superseded by {traversal.action} {traversal.id}'
        end = EndTraversal(superseded.id, TraversalStatus.SUPERSEDED, view.now, reason, expected=superseded.status)
        effects.append(end)
    effects.append(InsertTraversal(traversal, tuple(nodes)))
    return effects


def _started(stack: Stack, now: float, traversal: Traversal, request: Request, planner: Planner) -> Event:
    reason = traversal.reason_of('started')
    return Event.of_stack(planner.new_id(), stack.id, request.action, Status.IN_PROGRESS, reason, now)
