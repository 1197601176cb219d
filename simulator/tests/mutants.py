"""Break the engine on purpose, one line at a time, and see that the simulator notices.

    python -m simulator.tests.mutants [NAME…]

prints each mutant, what caught it (scenario, seed, rule) and how many runs that took. A mutant is never shipped: the
line is exchanged in the running process, and a line that does not exist (any more) is an error.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import sys
import textwrap
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.run import Run
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.stores.sqlstore import in_sqlite
from convergence_simulator.stores.storage import Storage, in_memory
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

from convergence.core.model import DISPATCH_WINDOW

SCENARIOS = Path(__file__).parents[2] / 'tests' / 'scenarios'
SEEDS = 60
"""Seeds per scenario within which a mutant has to be caught, where it does not say another number."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One line of one function, exchanged.

    :param place: module and function, as ``package.module:Class.function``.
    """

    place: str
    line: str
    instead: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A sabotage: one line; more only where another guard stands behind it and would hide the first.

    :param scenarios: those in which it should show, likeliest first; by name, without ``.py``.
    :param faults: what else goes wrong in the runs.
    :param storage: where the rows are: what only production runs is broken in the SQL store.
    :param sweeps: after so many a run counts as stuck; `steps`, as endless.
    :param seeds: within so many it has to be noticed.
    :param first: the seed with which the hunt begins, as it is known to notice; those after and before it follow.
    :param max_inline_nodes: how many nodes a thread of a worker looks at one after the other.
    :param window: of how many nodes of a stack workers are told at once.
    """

    name: str
    edits: tuple[Edit, ...]
    scenarios: tuple[str, ...]
    faults: Faults = field(default_factory=Faults)
    storage: Callable[[Callable[[], float]], Storage] = in_memory
    sweeps: int = 100
    steps: int = 1_500
    seeds: int = SEEDS
    first: int = 0
    max_inline_nodes: int = 1
    window: int = DISPATCH_WINDOW


CHECK, FINISH, STORE = 'convergence.core.begin', 'convergence.core.finish', 'convergence_simulator.memory.store'
VERDICTS, DECIDE = 'convergence.core.verdicts', 'convergence.core.decide'
PLAN, GRAPH, APPLY = 'convergence.core.plan', 'convergence.core.graph', 'convergence_simulator.memory.effects'
CHOOSING = 'convergence.core.choosing'
LOADING = 'convergence.db.statements.loading'
LOOKING = 'convergence.db.stale_reads'
MEMORY_LOAD = 'convergence_simulator.memory.load'
RUNNER, STEPS = 'convergence.worker.attempts.runner:Runner', 'convergence.worker.checks.steps'
TRAVERSALS = 'convergence.engine.traversals.traversals:Traversals'
APPLYING = 'convergence.db.statements.applying'
CHANGING, ARRIVING = f'{APPLYING}.changing', f'{APPLYING}.arriving'

UNFENCED = Edit(
    'convergence.core.finish:held_row',
    'if resource is None or resource.owner != claim.resource.owner or resource.fence != claim.resource.fence:',
    'if resource is None:',
)
"""Whoever ends an action does not look whether the row is still his: the guard of the write behind it is."""
NESTED, NESTING = 'convergence.resources.nested:NestedType', 'convergence.core.nesting'
SCHEDULER = 'convergence.worker.scheduler.scheduler:Scheduler'
SCALING = 'convergence.engine.signals.scaling:GroupScaling'
MEMBERSHIP = 'convergence.resources.builtin.scaling.membership'
TREES = ('tree_create_update_delete', 'tree_rolls_back', 'tree_is_deleted_while_it_is_made')

OBSERVED = 'convergence_simulator.memory.observations:MemoryObservations'
REPAIRS = 'convergence.engine.drift.automatic_repairs:DriftRepairs'

MUTANTS = (
    Mutant(
        'what is only to be reported is repaired',
        (
            Edit(
                f'{OBSERVED}.to_repair',
                'may = seen.policy is DriftPolicy.REPAIR and not seen.given_up and (seen.repair_at or 0.0) <= now',
                'may = not seen.given_up and (seen.repair_at or 0.0) <= now',
            ),
        ),
        ('drift_is_only_reported',),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'a policy that comes with an update is not told to nested stacks',
        (
            Edit(
                f'{OBSERVED}._enrol',
                'if top.id == stack.stack_id and top.id in committed.untold:',
                'if False:',
            ),
        ),
        ('drift_policy_changes',),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'what keeps changing is never given up',
        (Edit(f'{REPAIRS}._why_not', 'if seen.repairs >= self._options.repair_attempts:', 'if False:'),),
        ('drift_comes_again_and_again', 'drift_removes_again_and_again'),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'a row that replaces another one does not count its repairs',
        (
            Edit(
                f'{OBSERVED}._enrol',
                'past = follows.before.get(row.name, Past(row.id, row.name))',
                'past = Past(row.id, row.name)',
            ),
        ),
        ('drift_removes_again_and_again',),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'what differed before the last repair is repaired once more',
        (
            Edit(
                f'{REPAIRS}._request',
                'if not seen.items() <= {row.id: row.fence for row in view.resources}.items():',
                'if False:',
            ),
        ),
        ('drift_comes_again_and_again',),
        Faults(lag=0.3),
        sweeps=1_500,
        steps=20_000,
        first=10,
    ),
    Mutant(
        'a repair after one that has failed is not counted',
        (
            Edit(
                'convergence.engine.drift.failed_repairs:FailedRepairs._again',
                'broken.update((row.id, row) for row in view.resources if row.status is not Status.COMPLETE)',
                'pass',
            ),
        ),
        ('drift_after_repairs_that_fail',),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'a repair that fails has what is known of an object forgotten',
        (Edit('convergence.core.observation:succession', 'is_complete or each.name in present', 'True'),),
        ('drift_after_repairs_that_fail',),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'a look has another object made for one that nobody can ask for',
        (
            Edit(
                'convergence.worker.attempts.repair:Repairs.look',
                "if attempt.physical_id is None and (failed or kind.implements('find')):",
                'if attempt.physical_id is None:',
            ),
        ),
        ('drift_of_what_has_no_id',),
        sweeps=1_500,
        steps=20_000,
    ),
    Mutant(
        'nobody tells a resource that its stack has come to rest',
        (
            Edit(
                f'{NESTING}:parent_told',
                'return (TellParent(stack.parent_resource_id),) if stack.parent_resource_id is not None else ()',
                'return ()',
            ),
        ),
        TREES,
    ),
    Mutant(
        'nobody is told of the resource of a nested stack that has come to rest',
        (
            Edit(
                'convergence.dispatch:Dispatcher.conclude',
                'woken += committed.cast',
                'pass',
            ),
        ),
        TREES,
    ),
    Mutant(
        'who has begun a nested stack forgets what is in it',
        (
            Edit(
                f'{SCHEDULER}.on_nested_ready',
                'self._dispatcher.cast_together(traversal_id, nodes[room:], NESTED_MESSAGE_NODES)',
                'pass',
            ),
        ),
        TREES,
    ),
    Mutant(
        'a thread forgets what it has taken of a nested stack',
        (Edit(f'{SCHEDULER}.on_nested_ready', 'self._queue.put(', '('),),
        TREES,
        max_inline_nodes=4,
    ),
    Mutant(
        'a resource is done with whatever its stack has come to the end of',
        (
            Edit('convergence.worker.attempts.nested:_is_plain', 'claim.completes_node and ', ''),
            Edit('convergence.core.upwards:_is_plain', 'is_same &= row.action is view.traversal.action', 'pass'),
        ),
        ('tree_is_woken_and_changed',),
    ),
    Mutant(
        'a resource does not wait for its stack',
        (Edit(f'{NESTED}._begun', 'if begun.traversal_id:', 'if False:'),),
        TREES,
        first=15,
    ),
    Mutant(
        'a failed stack passes as complete',
        (Edit(f'{NESTED}.poll', 'if state.has_failed:', 'if False:'),),
        ('tree_rolls_back',),
    ),
    Mutant(
        'a cancel does not go down, and nobody notices',
        (
            Edit(f'{NESTED}.cancel', 'call.nested.cancel()', 'pass'),
            Edit(
                'convergence.engine.nesting.stops:NestedStops.cancel_unwanted',
                'if stack is None or stack.status is not Status.IN_PROGRESS:',
                'if True:',
            ),
        ),
        ('tree_sibling_fails', 'tree_is_cancelled'),
    ),
    Mutant(
        'a traversal that is being cancelled begins what has not begun',
        (
            Edit(
                f'{CHECK}:begin',
                'if view.is_under_way and not view.may_start and node.status is NodeStatus.READY:',
                'if False:',
            ),
            Edit(
                f'{CHECK}:begin',
                'if not view.may_start or node.status is not NodeStatus.READY:',
                'if not view.is_under_way or node.status is not NodeStatus.READY:',
            ),
        ),
        ('cancelled_patiently',),
    ),
    Mutant(
        'nobody goes on with what has begun in a traversal that is being cancelled',
        (
            Edit(
                f'{CHECK}:begin', 'return _let_end(view, worker, resource)', 'return Decision(StepDecision(Step.DROP))'
            ),
        ),
        ('patient_cancel_is_lost', 'cancelled_patiently'),
    ),
    Mutant(
        'nobody sees that nothing runs any more of what was cancelled',
        (
            Edit(f'{FINISH}:finish', 'return replace(decision, verdict=End.OVER)', 'return decision'),
            Edit(f'{TRAVERSALS}._end_cancel', 'if self._reader.busy(stack.id, 1):', 'if True:'),
        ),
        ('patient_cancel_is_lost', 'cancelled_patiently'),
    ),
    Mutant(
        'a patient cancel waits for ever',
        (
            Edit(f'{TRAVERSALS}.time_out', 'if traversal.status is TraversalStatus.CANCELLING:', 'if False:'),
            Edit(
                'convergence.core.failure:cancel_patiently',
                'BeginCancel(traversal.id, until),',
                'BeginCancel(traversal.id, until + 1e6),',
            ),
        ),
        ('cancelled_patiently',),
        sweeps=40,
    ),
    Mutant(
        'what is nested goes on beginning things while the stack around it is being cancelled',
        (
            Edit(
                f'{TRAVERSALS}._wind_down',
                'for nested in self._reader.nested_at_work(scope.stack_id):',
                'for nested in ():',
            ),
            Edit(
                'convergence_simulator.memory.queries:MemorySweeps.nested_to_cancel',
                'return found[:limit]',
                'return []',
            ),
        ),
        ('tree_is_cancelled_patiently',),
    ),
    Mutant(
        'a request about a nested stack is taken however late it comes',
        (
            Edit(
                f'{NESTING}:may_act',
                'if parent is None or parent.fence != fence or parent.owner is None:',
                'if False:',
            ),
            Edit(
                f'{NESTING}:may_act',
                'return parent.token == stack_id and parent.status is Status.IN_PROGRESS',
                'return True',
            ),
            Edit(
                'convergence.engine.nesting.claimed:claimed',
                'if found is None or found.row.fence != fence or found.row.token is None:',
                'if found is None:',
            ),
        ),
        ('tree_is_deleted_while_it_is_made', 'tree_is_superseded', 'tree_loses_a_branch'),
        Faults(freeze=0.02),
    ),
    Mutant(
        'a stack that is to go on is joined in what it does for an older traversal',
        (
            Edit(f'{CHECK}:_update', '_repeats(view, resource) and (woken or not nests)', '_repeats(view, resource)'),
            Edit(
                'convergence.engine.nesting.claimed:NestingResource.is_served_by',
                'return running.for_parent and running.deadline == self.deadline()',
                'return True',
            ),
        ),
        ('tree_is_cancelled', 'tree_loses_a_branch'),
    ),
    Mutant(
        'a group is scaled while it gets another goal from above',
        (
            Edit(
                f'{SCALING}._guard',
                'if parent is None or parent.fence != group.row.fence or not _is_at_rest(parent):',
                'if False:',
            ),
            Edit(
                f'{SCALING}._guard',
                'if now is None or now.deleted_at is not None or now.traversal_id != group.stack.traversal_id:',
                'if now is None:',
            ),
        ),
        ('group_is_scaled_and_updated_at_once',),
        steps=5_000,
    ),
    Mutant(
        'the size of a group that is changed a few members at a time is that in the middle',
        (
            Edit(
                f'{MEMBERSHIP}:next_size',
                'return aimed if isinstance(aimed, int) else len(present_members(context))',
                'return len(present_members(context))',
            ),
        ),
        ('tree_is_scaled',),
        steps=5_000,
    ),
    Mutant(
        'scaling exchanges members',
        (Edit(f'{MEMBERSHIP}:_resized', 'kept = order[-wanted.size :] if wanted.size else []', 'kept = []'),),
        ('tree_is_scaled',),
        steps=5_000,
    ),
    Mutant(
        'scaling makes members what the template says now',
        (
            Edit(
                f'{MEMBERSHIP}:_resized',
                'members = {name: present[name] for name in kept}',
                'members = dict.fromkeys(order, wanted.member)',
            ),
        ),
        ('tree_is_scaled',),
        steps=5_000,
    ),
    Mutant(
        'ignore a held lock',
        (
            Edit(f'{CHECK}:begin', 'if resource.owner is not None or _sleeps(view, resource) or', 'if'),
            Edit(
                f'{VERDICTS}:claim_row',
                '[UpdateResource(resource.id, None, resource.fence, held)]',
                '[UpdateResource(resource.id, resource.owner, resource.fence, held)]',
            ),
        ),
        ('every_message_comes_twice', 'superseded_update_finishes_late'),
    ),
    Mutant(
        'no wake-up when a superseded action is done',
        (
            Edit(
                f'{FINISH}:_onward',
                'return Decision(End.RELEASED, tuple(effects), view.waiting)',
                'return Decision(End.RELEASED, tuple(effects), ())',
            ),
        ),
        ('superseded_update_finishes_late', 'update_add_concurrent'),
    ),
    Mutant(
        'no wake-up when a superseded action has failed',
        (
            Edit(
                f'{FINISH}:_failed',
                'return Decision(End.RELEASED, tuple(effects), view.waiting)',
                'return Decision(End.RELEASED, tuple(effects), ())',
            ),
        ),
        ('superseded_update_fails_late', 'superseded_update_is_cancelled'),
    ),
    Mutant(
        'no wake-up when an action of an older traversal is done, but not what is wanted now',
        (
            Edit(
                f'{FINISH}:_onward',
                'return Decision(End.RELEASED, tuple(effects), ((node.traversal_id, node.number),))',
                'return Decision(End.RELEASED, tuple(effects), ())',
            ),
        ),
        ('superseded_update_finishes_late', 'parked_resource_is_superseded'),
    ),
    Mutant(
        'no wake-up when a superseded action is parked',
        (
            Edit(
                f'{FINISH}:_parked',
                'return Decision(End.RELEASED, tuple(effects), view.waiting)',
                'return Decision(End.RELEASED, tuple(effects), ())',
            ),
        ),
        ('polled_resource_is_superseded',),
    ),
    Mutant(
        'no wake-up when an action was cancelled',
        (
            Edit(
                f'{RUNNER}._cancel_or_park',
                'action, progress = attempt.claim.action, attempt.progress or {}',
                'raise ClaimLost(attempt.physical_id)',
            ),
        ),
        ('superseded_update_is_cancelled', 'create_is_cancelled'),
    ),
    Mutant(
        'no wake-up when a time limit has passed',
        (
            Edit(f'{TRAVERSALS}.time_out', 'self.settle(stack_id, traversal_id)', 'pass'),
            Edit('convergence.engine.sweeper.tasks:SweepTasks.settle', 'self._sweeps.unsettled', 'lambda limit: []'),
        ),
        ('create_exceeds_its_time', 'update_exceeds_its_time_and_is_rolled_back'),
    ),
    Mutant(
        'no wake-up when a resource was replaced',
        (
            Edit(
                f'{STEPS}:replacement',
                'return Decision(new.id, tuple(effects), ((node.traversal_id, node.number),))',
                'return Decision(new.id, tuple(effects), ())',
            ),
        ),
        ('update_replace',),
    ),
    Mutant(
        'no wake-up when a superseded action needs a replacement',
        (
            Edit(
                f'{FINISH}:_unsuitable',
                'return Decision(End.RELEASED, tuple(effects), view.waiting)',
                'return Decision(End.RELEASED, tuple(effects))',
            ),
        ),
        ('replacement_asked_for_late_is_superseded',),
    ),
    Mutant(
        'a refused update counts as undone',
        (
            Edit(
                f'{FINISH}:_unsuitable',
                'resource_state(resource, resource.action, Status.FAILED, result.reason)',
                'resource_state(resource, resource.action, Status.COMPLETE, result.reason)',
            ),
        ),
        ('refused_update_is_taken_back',),
    ),
    Mutant(
        'a failure is not settled',
        (
            Edit(
                'convergence.worker.checks.node_checks:NodeChecks._conclude',
                'self._ports.settler.settle(claim.stack.id, claim.traversal.id)',
                'pass',
            ),
        ),
        ('failed_create_is_rolled_back',),
    ),
    Mutant(
        'the store never conflicts',
        (Edit(f'{APPLY}:_expect', "raise Conflict(f'{what} has changed since it was read')", 'return'),),
        ('cleanup_becomes_wanted_again', 'three_generations_of_one_name'),
        Faults(double=0.4),
    ),
    Mutant(
        'write without fence',
        (
            Edit(f'{APPLY}:_held', 'row.fence == effect.fence', 'True'),
            UNFENCED,
        ),
        ('made_for_the_old_template', 'object_goes_while_it_is_changed'),
        Faults(freeze=0.03),
        first=6,
    ),
    Mutant(
        'count a predecessor twice',
        (
            Edit(
                f'{APPLY}:_finish_node', "'waiting': successor.waiting - 1", "'waiting': max(0, successor.waiting - 2)"
            ),
        ),
        ('basic_create',),
    ),
    Mutant(
        'count a predecessor before its commit',
        (
            Edit(
                f'{VERDICTS}:claim_row',
                'return Decision(StepDecision(step, claim), tuple(effects))',
                'return Decision(StepDecision(step, claim), (*effects, FinishNode(view.node.traversal_id, view.node.number, '
                'view.node.required_by)))',
            ),
        ),
        ('basic_create',),
    ),
    Mutant(
        'clean up before dependents',
        (
            Edit(
                f'{GRAPH}:build',
                'graph.add(cleanup_key(required), [own])',
                'graph.add(cleanup_key(required))',
            ),
        ),
        ('what_goes_comes_before_what_it_was_built_on', 'update_remove'),
    ),
    Mutant(
        'what a replaced row was built on by something that goes is not foreseen',
        (
            Edit(
                f'{GRAPH}:_cleaned_early',
                'goes = [row for row in existing.values() if row.id not in chosen]',
                'goes = []',
            ),
        ),
        ('what_goes_comes_before_what_it_was_built_on',),
    ),
    Mutant(
        'only what goes itself is foreseen, not what it stands on',
        (Edit(f'{GRAPH}:_cleaned_early', 'goes += [existing[key] for key in below]', 'pass'),),
        ('what_goes_comes_before_what_it_was_built_on',),
    ),
    Mutant(
        'what stops using a row is not foreseen',
        (Edit(f'{GRAPH}:_cleaned_early', 'for required in row.requires', 'for required in ()'),),
        ('what_goes_comes_before_what_it_was_built_on',),
    ),
    Mutant(
        'late nodes are forgotten when everything wanted is in service',
        (
            Edit(
                'convergence.core.complete:_in_service',
                'effects.append(FinishNode(node.traversal_id, node.number, (*node.required_by, *view.late)))',
                'effects.append(FinishNode(node.traversal_id, node.number, node.required_by))',
            ),
        ),
        ('update_replace',),
    ),
    Mutant(
        'a traversal ends as soon as everything wanted is in service',
        (
            Edit(
                f'{LOOKING}:only_follower',
                'return complete if node.required_by == (complete.number,) and complete.waiting == 1 else None',
                'return complete',
            ),
            Edit(
                f'{APPLY}:_finish_node',
                "_expect(last is not None and last.waiting == 1, f'nodes {effect.number} and {effect.last}')",
                'pass',
            ),
        ),
        ('update_remove',),
    ),
    Mutant(
        'a replaced row goes at once',
        (
            Edit('convergence.core.replacement:_cleanup', 'status=NodeStatus.WAITING,', 'status=NodeStatus.READY,'),
            Edit('convergence.core.replacement:_cleanup', 'waiting=1,', 'waiting=0,'),
        ),
        ('update_replace', 'what_goes_comes_before_what_it_was_built_on'),
    ),
    Mutant(
        'clean up the chosen row',
        (Edit(f'{CHECK}:_cleanup', 'if view.chosen_id == resource.id:', 'if False:'),),
        ('update_remove', 'update_remove_rollback', 'what_goes_comes_before_what_it_was_built_on'),
    ),
    Mutant(
        'replace on rollback although the old row is there',
        (Edit(f'{CHOOSING}:choose', 'row.id in of_goal,', 'False,'),),
        ('update_replace_rollback',),
    ),
    Mutant(
        'what an update has not changed does not count as of its template',
        (
            Edit(
                f'{CHOOSING}:choose',
                'row.id in of_goal,',
                'template is not None and template.id == row.template_id,',
            ),
        ),
        ('rolled_back_to_what_changed_nothing',),
    ),
    Mutant(
        'pick a row that is being deleted',
        (
            Edit(
                f'{CHOOSING}:choose',
                'if row.action is Action.DELETE or row.name not in request.goal.definitions:',
                'if row.name not in request.goal.definitions:',
            ),
        ),
        ('cleanup_becomes_wanted_again', 'removed_and_added_again'),
    ),
    Mutant(
        'take the failure of a superseded traversal for that of the stack',
        (
            Edit(
                f'{FINISH}:_failed',
                'if not view.is_current or node is None or traversal is None:',
                'if node is None or traversal is None:',
            ),
            Edit(
                f'{FINISH}:_failed',
                'if not view.is_running or node.status is not NodeStatus.READY:',
                'if node.status is not NodeStatus.READY:',
            ),
            Edit(
                f'{FINISH}:_failed',
                'failure.node_failed(traversal, node,',
                'failure.node_failed(__import__("dataclasses").replace(traversal, id=view.stack.traversal_id), node,',
            ),
        ),
        ('superseded_update_fails_late',),
    ),
    Mutant(
        'roll back to what was last tried',
        (
            Edit(
                f'{PLAN}:_stack_effects',
                "'traversal_id': request.traversal_id,",
                "'traversal_id': request.traversal_id, 'last_good_template_id': stack.template_id,",
            ),
        ),
        ('rollback_passes_over_an_unfinished_update', 'update_replace_rollback'),
    ),
    Mutant(
        'drop the sweeper',
        (Edit('convergence.engine.sweeper.sweeper:Sweeper.sweep', 'if not self.duty.is_ours():', 'if True:'),),
        ('all_messages_are_lost', 'worker_dies_while_creating'),
    ),
    Mutant(
        'the sweeper does not take over from the dead',
        (
            Edit(
                'convergence.engine.sweeper.tasks:SweepTasks.take_over',
                'self._sweeps.expired_claims',
                'lambda limit: []',
            ),
        ),
        ('worker_dies_while_creating',),
    ),
    Mutant(
        'suspend what is used before what uses it',
        (
            Edit(
                f'{PLAN}:_whole',
                'return graph.build({}, [_with_requirements(row, chosen, request.goal) for row in chosen.values()])',
                'return graph.build(request.goal.definitions, ())',
            ),
        ),
        ('stack_is_suspended_and_resumed',),
    ),
    Mutant(
        'let what is suspended sleep',
        (Edit(f'{DECIDE}:before_comparing', 'if is_asleep(row):', 'if False:'),),
        ('update_while_a_stack_is_resumed',),
    ),
    Mutant(
        'take what could not be resumed for what it looks like',
        (Edit(f'{DECIDE}:may_still_sleep', 'row.action is Action.RESUME and row.status is Status.FAILED', 'False'),),
        ('update_makes_up_for_a_failed_resumption',),
    ),
    Mutant(
        'give up a resumption that waits to be tried again',
        (Edit(f'{DECIDE}:is_unfinished', 'row.action in PERFORMED or', ''),),
        ('update_waits_until_it_can_resume',),
    ),
    Mutant(
        'take what is suspended for unchanged',
        (Edit(f'{CHOOSING}:unchanged', 'row.action in _NOT_UP', 'row.action is Action.INIT'),),
        ('update_while_a_stack_is_resumed',),
    ),
    Mutant(
        'keep what is said to be broken',
        (
            Edit(
                f'{DECIDE}:after_comparing',
                'if (row.action, row.status) == (Action.CHECK, Status.FAILED) and not row.repairable:',
                'if False:',
            ),
            Edit(f'{DECIDE}:after_comparing', 'if row.status is not Status.COMPLETE:', 'if False:'),
        ),
        ('check_finds_something_missing', 'resource_is_said_to_be_broken'),
    ),
    Mutant(
        'never resume',
        (
            Edit(
                f'{DECIDE}:before_comparing',
                'not is_offered(row) and is_unfinished(row, goal.repeats, goal.recreated)',
                'False',
            ),
        ),
        ('parked_resource_is_superseded', 'worker_dies_while_something_takes_long'),
    ),
    Mutant(
        'send before the commit',
        (
            Edit(
                f'{TRAVERSALS}._accept',
                'lambda view: start.decide(view, self._planner)',
                'lambda view: [(self._announce(start, each.verdict), each)[1]'
                ' for each in [start.decide(view, self._planner)]][0]',
            ),
            Edit(
                f'{TRAVERSALS}.begin',
                'self._announce(start, planned)',
                'pass',
            ),
        ),
        ('basic_create', 'update_add'),
    ),
    Mutant(
        'finish a node whatever its status',
        (
            Edit(f'{APPLY}:_ready_node', 'node.status is NodeStatus.READY', 'True'),
            Edit(
                f'{CHECK}:begin',
                'if not view.may_start or node.status is not NodeStatus.READY:',
                'if not view.may_start:',
            ),
        ),
        ('every_message_comes_twice',),
        Faults(double=0.3),
    ),
    Mutant(
        'plan without the locks of the rows',
        (Edit(f'{MEMORY_LOAD}:_whole_stack', "look.lock('resource', row.id)", 'pass'),),
        ('update_add_concurrent', 'five_updates_in_a_row'),
    ),
    Mutant(
        'a signal locks rows in another order than a plan',
        (Edit(f'{MEMORY_LOAD}:_signalled', 'for key in rows:', 'for key in reversed(rows):'),),
        ('signal_comes_while_a_way_back_is_planned',),
        first=15,
    ),
    Mutant(
        'read the traversal before the row is locked',
        (
            Edit(
                f'{MEMORY_LOAD}:_one_node',
                'resource, seen = row_and_node(',
                'seen = look.node(scope.traversal_id, scope.number)\n    resource, _ = row_and_node(',
            ),
        ),
        ('update_add_concurrent', 'five_updates_in_a_row'),
    ),
    Mutant(
        'a worker takes no notice of the end of a traversal while it finishes',
        (
            Edit(f'{FINISH}:_onward', 'if not view.is_current or node is None:', 'if node is None:'),
            Edit(
                f'{FINISH}:_onward',
                'if not view.is_running or node.status is not NodeStatus.READY:',
                'if node.status is not NodeStatus.READY:',
            ),
        ),
        ('superseded_update_finishes_late', 'update_add_concurrent'),
    ),
    Mutant(
        'forget the old dependencies while they change',
        (Edit(f'{CHECK}:_either', 'tuple(sorted({*resource.requires, *pending.requires}))', 'pending.requires'),),
        ('dependency_does_not_change_and_the_update_fails',),
    ),
    Mutant(
        'who takes over believes that nothing was made',
        (Edit(f'{VERDICTS}:claim_row', "held['retry'] = replace(retry, clean=False)", 'pass'),),
        ('worker_dies_while_it_tries_again', 'busy_creation_is_given_up_for_another_goal'),
        Faults(crash=0.02),
    ),
    Mutant(
        'a repair that gets no answer believes that nothing was made',
        (
            Edit(
                f'{FINISH}:_again',
                'creating = resource.action is Action.CREATE',
                'creating = claim.action is Action.CREATE',
            ),
            Edit(
                'convergence.core.object_state:is_put_off',
                'if (row.action, row.status) != (Action.CREATE, Status.IN_PROGRESS)',
                'if row.action is not Action.CREATE',
            ),
        ),
        ('repair_gets_no_answer',),
    ),
    Mutant(
        'a deadline does not end a traversal',
        (Edit('convergence_simulator.memory.queries:MemorySweeps.overdue', 'each.deadline < now', 'False'),),
        ('stuck_creation_exceeds_its_time', 'create_exceeds_its_time'),
    ),
    Mutant(
        'a task that does not stop is never given up',
        (Edit('convergence.worker.checks.claim_table:ClaimTable.give_up', 'return self.drop(task)', 'return []'),),
        ('stuck_creation_exceeds_its_time', 'stuck_creation_is_cancelled'),
    ),
    Mutant(
        'what is claimed after it was given up is kept',
        (
            Edit(
                'convergence.worker.checks.claim_table:ClaimTable.take',
                'return task not in self._given_up or self._held.pop(task, None) is None',
                'return True',
            ),
            Edit(
                'convergence.worker.checks.node_checks:NodeChecks._act',
                'if answer is None and (self._ports.draining() or task.is_unwanted):',
                'if self._draining():',
            ),
            Edit(
                f'{RUNNER}._drive',
                'too_late = self._port.draining() or (attempt.task.is_unwanted and attempt.progress is None)',
                'too_late = self._around.draining()',
            ),
        ),
        ('superseded_update_is_cancelled', 'update_add_concurrent'),
        Faults(freeze=0.06),
    ),
    Mutant(
        'an object that is made late is forgotten',
        (
            Edit(
                'convergence.worker.checks.node_checks:NodeChecks._keep_track',
                'committed = self._steps.keep_track(claim, physical_id, perhaps_made)',
                'return',
            ),
        ),
        ('stuck_creation_is_made_much_later',),
    ),
    Mutant(
        'one process gives out a fence twice after the database has gone back',
        (
            Edit(
                'convergence.worker.checks.fences:Fences.next',
                'fence = max(row.fence, self._last.pop(row.id, 0)) + 1',
                'fence = row.fence + 1',
            ),
        ),
        ('standby_lacks_the_last_commits',),
        Faults(back=0.003),
    ),
    Mutant(
        'what a creation has made and the database has lost is forgotten',
        (
            Edit(
                'convergence.core.lost_commits:known_again',
                'decision = keep_track(view, claim, physical_id, new_id)',
                'return Decision(Tracking.KNOWN)',
            ),
        ),
        ('standby_lacks_the_last_commits',),
        Faults(back=0.003),
    ),
    Mutant(
        'what the database has lost is not put in doubt',
        (
            Edit(
                'convergence.core.lost_commits:put_in_doubt',
                'if row is None or failed is None or not (is_certain or _is_before(view, row, claim)):',
                'if True:',
            ),
        ),
        ('standby_lacks_the_last_commits',),
        Faults(back=0.003),
        steps=6_000,
        seeds=150,
        first=22,
    ),
    Mutant(
        'what is looked at again is not built on what it may refer to from now on',
        (Edit(f'{CHECK}:_carry_out', "{'requires': _either(resource, pending)}", '{}'),),
        ('repaired_row_refers_to_what_goes',),
        first=19,
    ),
    Mutant(
        'take from the living',
        (Edit('convergence_simulator.memory.queries:MemorySweeps.expired_claims', 'row.owner not in alive', 'True'),),
        ('worker_stands_still_within_its_lease', 'one_resource_answers_later', 'polled_resource_is_superseded'),
    ),
    Mutant(
        'nobody hears of a cancel, and nobody reads of it',
        (
            Edit(
                'convergence.worker.service:WorkerService.cancel',
                'self._threads.stop(traversal_id, self._options.cancel_grace_s)',
                '0',
            ),
        ),
        ('stuck_creation_is_cancelled', 'create_is_cancelled'),
    ),
    Mutant(
        'what a creation records before it acts is not stored',
        (Edit(f'{RUNNER}._note', 'self._learned(attempt)', 'pass'),),
        ('key_is_recorded_before_it_is_used',),
        Faults(crash=0.02),
        first=12,
    ),
    Mutant(
        'what was chosen before a creation is not stored',
        (Edit(f'{RUNNER}._prepare', 'store(attempt, partial(self._port.record, attempt.claim, known))', 'pass'),),
        ('key_is_recorded_before_it_is_used',),
        Faults(crash=0.02),
    ),
    Mutant(
        'an object whose name is its key is not removed before another one is made',
        (Edit('convergence.core.replacement:replacement', 'if goes_first(worker, old, definition):', 'if False:'),),
        ('name_is_free_before_it_is_used_again',),
    ),
    Mutant(
        'what could not be removed stays in the way of another object of its name',
        (
            Edit(
                f'{PLAN}:_in_the_way',
                'return {row.id for row in alike if planner.is_exclusive(row.type) or has_what_is_wanted(row)}',
                'return {row.id for row in alike if has_what_is_wanted(row)}',
            ),
        ),
        ('name_is_in_use_until_a_removal_succeeds',),
    ),
    Mutant(
        'what could not be removed keeps the address of what is wanted',
        (
            Edit(
                f'{PLAN}:_in_the_way',
                'return {row.id for row in alike if planner.is_exclusive(row.type) or has_what_is_wanted(row)}',
                'return {row.id for row in alike if planner.is_exclusive(row.type)}',
            ),
        ),
        ('address_of_what_could_not_be_removed',),
    ),
    Mutant(
        'a row that is being cleared is taken for one that is being updated',
        (Edit(f'{DECIDE}:before_comparing', 'if row.is_cleared:', 'if False:'),),
        ('name_is_free_before_it_is_used_again',),
    ),
    Mutant(
        'a row that was cleared is taken for one that has its object',
        (
            Edit(
                f'{FINISH}:_succeeded',
                'effects.append(UpdateResource(resource.id, *held, {**rest(), **cleared(resource)}))',
                "effects.append(UpdateResource(resource.id, *held, {**rest(), 'status': Status.COMPLETE, 'clearing': False}))",
            ),
        ),
        ('name_is_free_before_it_is_used_again',),
    ),
    Mutant(
        'an object does not give way to the one that replaces it',
        (Edit('convergence.core.replacement:replacement', 'if must_hand_over(view, worker, old):', 'if False:'),),
        ('address_is_given_up_and_taken_back',),
    ),
    Mutant(
        'an object is wanted again, and takes nothing back',
        (Edit(f'{DECIDE}:before_comparing', 'if row.handover is not None:', 'if False:'),),
        ('address_is_given_up_and_taken_back',),
    ),
    Mutant(
        'what only a second creation tells of does not give way',
        (
            Edit(
                'convergence.worker.attempts.recovery:CreationRecovery.create_again',
                "if attempt.kind.implements('find') or not attempt.kind.token_enforced:",
                'if True:',
            ),
        ),
        ('address_of_what_only_another_creation_tells_of',),
    ),
    Mutant(
        'what was given up in an earlier operation is taken for given up in this one',
        (
            Edit(
                'convergence.core.handover:_is',
                'return resource.handover is mark and resource.traversal_id == view.traversal.id',
                'return resource.handover is mark',
            ),
        ),
        ('address_is_given_up_and_taken_back',),
    ),
    Mutant(
        'the objects that replaced another one keep what it is to take back',
        (
            Edit(
                'convergence.worker.attempts.handover:ObjectHandover.reclaim',
                'self._free(self._rivals(attempt))',
                'pass',
            ),
        ),
        ('address_is_given_up_and_taken_back',),
    ),
    Mutant(
        'who planned forgets whom that deprives of something',
        (
            Edit(
                'convergence.core.plan:_resource_effects',
                'losing = deprived(view.resources, chosen) if not request.performs else ()',
                'losing = ()',
            ),
        ),
        ('address_goes_back_and_forth',),
    ),
    Mutant(
        'what was made in a time that is forgotten keeps what there can be only once',
        (
            Edit(
                'convergence.core.plan:plan',
                'lacking = contested(view.resources, chosen, planner.hands_over) if not request.performs else ()',
                'lacking = ()',
            ),
        ),
        ('address_goes_back_and_forth',),
        Faults(back=0.003),
    ),
    Mutant(
        'what somebody has found to have an address is forgotten with its maker',
        (
            Edit(
                'convergence.worker.upkeep.result_journal:ResultJournal.dropped',
                'self._lost.extend(LostAction(rival, reason, is_reported=True) for rival in _rivals(done))',
                'pass',
            ),
            Edit(
                'convergence.worker.upkeep.result_journal:ResultJournal.add_loss',
                'self._lost.extend(LostAction(rival, _reason(loss, rival)) for rival in _rivals(done))',
                'pass',
            ),
        ),
        ('address_is_wanted_while_another_one_gets_it',),
        Faults(back=0.01),
        first=49,
    ),
    Mutant(
        'what is taken by somebody who is still at work is taken back at once',
        (
            Edit(
                'convergence.core.handover:_claimed',
                'if any(rival.owner is not None for rival in view.rivals):',
                'if False:',
            ),
        ),
        ('address_is_wanted_while_another_one_gets_it',),
    ),
    Mutant(
        'an update is told that the object was already what it is to be',
        (
            Edit(
                'convergence.worker.attempts.factory:Attempts.of',
                'previous=resource.properties if',
                'previous=properties if',
            ),
        ),
        ('every_sort_of_service', 'worker_dies_while_updating'),
    ),
    Mutant(
        'what an interrupted creation has made is not looked for',
        (
            Edit(
                f'{RUNNER}._resume',
                'found = self._recovery.find_whole(attempt)',
                'found = None',
            ),
        ),
        ('worker_dies_while_creating', 'object_made_but_its_id_is_lost'),
        Faults(crash=0.01),
    ),
    Mutant(
        'an update whose object is gone when it is taken up again counts as done',
        (Edit(f'{RUNNER}._resume', 'if action is Action.DELETE: return Succeeded(None)', 'return Succeeded(None)'),),
        ('object_goes_while_it_is_changed',),
    ),
    Mutant(
        'what supersedes and cancels does not stop what is in progress',
        (Edit(f'{TRAVERSALS}._announce', 'self._stop_workers(stack.id, planned.superseded)', 'pass'),),
        ('delete_stops_what_is_busy', 'way_back_stops_what_is_busy'),
    ),
    Mutant(
        'a delete stops only what it has superseded',
        (
            Edit(
                f'{TRAVERSALS}._announce',
                'if traversal.cancels and planned.is_busy:',
                'if traversal.cancels and planned.superseded is not None:',
            ),
        ),
        ('delete_stops_what_a_failure_has_left',),
    ),
    Mutant(
        'a cancel stops only the traversal that it ends',
        (
            Edit(
                f'{TRAVERSALS}._stop_workers',
                'if each.id == ended or each.status not in (*UNDER_WAY, TraversalStatus.COMPLETE):',
                'if each.id == ended:',
            ),
        ),
        ('delete_stops_what_a_failure_has_left',),
    ),
    Mutant(
        'a deadline does not stop what is in progress',
        (Edit(f'{TRAVERSALS}.time_out', 'self._stop_workers(stack_id, traversal_id)', 'pass'),),
        ('deadline_stops_what_is_busy',),
    ),
    Mutant(
        'a cancel that ends a stack does not stop what is in progress',
        (Edit(f'{TRAVERSALS}.stop', 'self._stop_workers(scope.stack_id, stopped)', 'pass'),),
        ('cancel_stops_what_is_busy',),
    ),
    Mutant(
        'a row that is replaced in the operation that has made it gets no cleanup node',
        (Edit('convergence.core.replacement:replacement', 'if not view.has_cleanup:', 'if False:'),),
        ('interrupted_creation_is_replaced_at_once',),
    ),
    Mutant(
        'a late cleanup holds up nobody',
        (Edit(f'{APPLY}:_append_cleanup', 'for follower in (*held_up, before):', 'for follower in ():'),),
        ('interrupted_creation_is_replaced_at_once',),
    ),
    Mutant(
        'SQL: who replaces believes that there is a cleanup node',
        (
            Edit(
                f'{LOADING}.nodes:one_replacement',
                'connection.execute(HAS_CLEANUP, key).first() is not None',
                'True',
            ),
        ),
        ('interrupted_creation_is_replaced_at_once',),
        storage=in_sqlite,
    ),
    Mutant(
        'SQL: what requirements hand on is not read',
        (
            Edit(
                f'{LOADING}.inputs:inputs_of_node',
                '_inputs_done_now(node, scope) or _inputs(connection, node, most)',
                '({}, 0, ())',
            ),
        ),
        ('basic_create',),
        storage=in_sqlite,
    ),
    Mutant(
        'SQL: no row is the chosen one',
        (Edit(f'{LOADING}.nodes:seen_node', 'bool(row[AT_NOW + 1])', 'False'),),
        ('update_replace_rollback',),
        storage=in_sqlite,
        first=2,
    ),
    Mutant(
        'SQL: who ends superseded work sees nobody that waits',
        (
            Edit(
                f'{LOADING}.resources:held_view',
                'tuple((traversal_id, number) for traversal_id, number in found)',
                '()',
            ),
        ),
        ('update_add_concurrent', 'superseded_update_finishes_late'),
        storage=in_sqlite,
    ),
    Mutant(
        'SQL: the sweeper finds no rows of the dead',
        (Edit('convergence.db.repositories.sweeps:Sweeps.expired_claims', 'self._read(ORPHANED, limit)', '[]'),),
        ('worker_dies_in_a_call',),
        storage=in_sqlite,
        sweeps=20,
    ),
    Mutant(
        'SQL: the sweeper finds no operation that is past its deadline',
        (Edit('convergence.db.repositories.sweeps:Sweeps.overdue', 'self._read(OVERDUE, limit)', '[]'),),
        ('stuck_creation_exceeds_its_time',),
        storage=in_sqlite,
    ),
    Mutant(
        'SQL: a replacement does not get the node',
        (
            Edit(
                f'{APPLYING}.nodes:point_node',
                "'new_resource': effect.resource_id",
                "'new_resource': None",
            ),
        ),
        ('update_replace',),
        storage=in_sqlite,
    ),
    Mutant(
        'SQL: write without fence',
        (
            Edit(
                f'{CHANGING}:change_row',
                'statement = change_of(frozenset(effect.changes), event is not None, isinstance(effect, BeginNode))',
                'statement = PreparedStatement(update_by_id(RESOURCE, frozenset(effect.changes)))',
            ),
            Edit(f'{CHANGING}:change_row', '**_guard(effect)', "'key': effect.resource_id"),
            UNFENCED,
        ),
        ('object_goes_while_it_is_changed',),
        Faults(freeze=0.03),
        storage=in_sqlite,
        first=20,
    ),
    Mutant(
        'SQL: remove a row without fence',
        (
            Edit(
                f'{CHANGING}:remove_row',
                'DELETE_RESOURCE.call(_guard(effect))',
                "PreparedStatement(delete(RESOURCE).where(RESOURCE.c.id == bindparam('key'))).call({'key': effect.resource_id})",
            ),
            UNFENCED,
        ),
        ('worker_dies_while_deleting', 'basic_update_delete'),
        Faults(freeze=0.03),
        storage=in_sqlite,
        first=7,
    ),
    Mutant(
        'who has finished does not look whether the operation is still the current one',
        (Edit(f'{APPLY}:_finish_node', 'if effect.checked:', 'if False:'),),
        ('superseded_update_finishes_late', 'update_add_concurrent'),
    ),
    Mutant(
        'SQL: who has finished does not look whether the operation is still the current one',
        (Edit(f'{ARRIVING}:finish', 'FINISH_AS_ASSUMED if effect.checked else FINISH_NODE', 'FINISH_NODE'),),
        ('superseded_update_finishes_late', 'update_add_concurrent'),
        storage=in_sqlite,
    ),
    Mutant(
        'SQL: finish a node whatever its status',
        (
            Edit(
                f'{ARRIVING}:finish',
                'batch.add_one((FINISH_AS_ASSUMED if effect.checked else FINISH_NODE).call(values), what)',
                'batch.add((FINISH_AS_ASSUMED if effect.checked else FINISH_NODE).call(values))',
            ),
            Edit(
                f'{CHECK}:begin',
                'if not view.may_start or node.status is not NodeStatus.READY:',
                'if not view.may_start:',
            ),
        ),
        ('every_message_comes_twice',),
        Faults(double=0.3),
        storage=in_sqlite,
        first=2,
    ),
    Mutant(
        'what a delete leaves is not named',
        (
            Edit(
                'convergence.core.orphans:left_behind_event',
                "reason = f'left behind, as requested: {object_of(row)}'",
                "reason = 'left behind, as requested'",
            ),
        ),
        ('delete_leaves_what_is_named',),
    ),
    Mutant(
        'what was to be left is removed when it is made late',
        (Edit('convergence.core.orphans:keep_track', 'claim.resource.id in view.traversal.left_rows', 'False'),),
        ('delete_leaves_what_is_named',),
    ),
    Mutant(
        'a check does not look at what could not be removed',
        (Edit(f'{PLAN}:_whole', 'not_removed if request.action is Action.CHECK else ()', '()'),),
        ('check_finds_what_could_not_be_removed',),
    ),
    Mutant(
        'nobody knows what would be built on what, before it is begun',
        (Edit(f'{PLAN}:_with_requirements', 'if row.action is not Action.INIT:', 'if True:'),),
        ('suspended_before_a_replacement_is_begun',),
        first=15,
    ),
    Mutant(
        'what a server that lags does not show is gone',
        (Edit(f'{MEMORY_LOAD}:_one_node', 'partial(_lock_row, look)', 'lambda resource_id: None'),),
        ('basic_update_delete', 'update_remove'),
        Faults(lag=0.2),
    ),
    Mutant(
        'SQL: what a server that lags does not show is gone',
        (Edit(f'{LOADING}.nodes:_node_view', 'partial(lock_row, connection)', 'lambda resource_id: None'),),
        ('basic_update_delete', 'update_remove'),
        Faults(lag=0.2),
        storage=in_sqlite,
        first=1,
    ),
    Mutant(
        'who plans writes nothing of what it has locked, where a lock ends at its server',
        (
            Edit(
                f'{STORE}:MemoryStore._commit',
                'look.held if isinstance(scope, WholeStack | SeveralStacks) else ()',
                '()',
            ),
        ),
        ('failed_create_is_rolled_back', 'nothing_wanted_at_all'),
        Faults(lag=0.2),
        first=30,
    ),
    Mutant(
        'two servers give the same number to a late cleanup',
        (Edit(f'{APPLY}:_append_cleanup', 'traversal.node_count == effect.node.number', 'True'),),
        ('drift_is_repaired',),
        Faults(lag=0.3),
        sweeps=1_500,
        steps=20_000,
        first=24,
    ),
    Mutant(
        'a thread forgets what it has kept back to go on with',
        (Edit('convergence.worker.scheduler.turn:Turn.keep', 'self.next_node = node', 'pass'),),
        ('basic_create', 'update_add'),
        max_inline_nodes=4,
    ),
    Mutant(
        'a thread forgets what it has claimed together with the end of the node before',
        (
            Edit(
                'convergence.worker.scheduler.turn:Turn.advance',
                'self.next_node, self.next_claimed',
                'self.next_node, None',
            ),
        ),
        ('basic_create', 'update_add'),
        max_inline_nodes=4,
        window=1,
    ),
    Mutant(
        'who goes on is not told that somebody else holds the row',
        (Edit('convergence.worker.checks.steps:Steps._following', 'decision.verdict.step in ACTING', 'True'),),
        ('update_add', 'update_remove', 'basic_update_delete'),
        Faults(crash=0.02),
        max_inline_nodes=4,
        window=1,
        first=11,
    ),
    Mutant(
        'a stack that a server that lags does not show cannot be rolled back',
        (
            Edit(
                f'{TRAVERSALS}.roll_back',
                "raise Overtaken(f'stack {stack.name} is not seen any more') from None",
                'raise',
            ),
        ),
        ('failed_create_is_rolled_back',),
        Faults(lag=0.3),
    ),
)


def _function(place: str) -> Any:
    module, _, path = place.partition(':')
    found: Any = importlib.import_module(module)
    for name in path.split('.'):
        found = getattr(found, name)
    return inspect.unwrap(found)


def _exchanged(source: str, edits: Sequence[Edit]) -> str:
    for edit in edits:
        source, times = _anyhow_laid_out(edit.line).subn(edit.instead.replace('\\', r'\\'), source)
        if times < 1:
            raise LookupError(f'{edit.place} has no line {edit.line!r} any more: write the mutant anew')
    return source


def _anyhow_laid_out(line: str) -> re.Pattern[str]:
    """A pattern for a piece of code, however a formatter breaks it into lines."""
    tokens = re.findall(r"'(?:[^'\\]|\\.)*'|\w+|[^\w\s]", line)
    between = [r',?\s*' if token in ')]}' else r'\s*' for token in tokens[1:]]
    return re.compile(
        re.escape(tokens[0]) + ''.join(gap + re.escape(token) for gap, token in zip(between, tokens[1:], strict=True))
    )


@cache
def _broken(place: str, edits: tuple[Edit, ...]) -> types.CodeType:
    """The code of a function with some lines exchanged, made once for all runs."""
    function = _function(place)
    source = _exchanged(textwrap.dedent(inspect.getsource(function)), edits)
    names: dict[str, Any] = {}
    code = compile(source, f'<mutant of {place}>', 'exec', flags=annotations.compiler_flag, dont_inherit=True)
    exec(code, function.__globals__, names)  # noqa: S102 - this is how the line gets exchanged
    broken: types.CodeType = inspect.unwrap(names[function.__name__]).__code__
    return broken


@contextmanager
def sabotaged(mutant: Mutant) -> Iterator[None]:
    """Inside, the engine is broken. Whoever imported a function has the broken one: its code is exchanged.

    :raises LookupError: the engine has no such line.
    """
    by_place: dict[str, list[Edit]] = {}
    for edit in mutant.edits:
        by_place.setdefault(edit.place, []).append(edit)
    kept: list[tuple[Any, Any]] = []
    try:
        for place, edits in by_place.items():
            function = _function(place)
            broken = _broken(place, tuple(edits))
            kept.append((function, function.__code__))
            function.__code__ = broken
        yield
    finally:
        for function, code in kept:
            function.__code__ = code


@dataclass(frozen=True, slots=True)
class Caught:
    """What noticed a mutant, after how many runs."""

    scenario: str
    seed: int
    rule: str
    runs: int


def hunt(mutant: Mutant) -> Caught | None:
    """Run the mutant's scenarios until something is noticed; None if it survives.

    What is noticed has to be the sabotage: a run that fails with the engine as it is, too, proves nothing.
    """
    runs = 0
    scenarios = [Scenario.load(SCENARIOS / f'{name}.py') for name in mutant.scenarios]
    for seed in (*range(mutant.first, mutant.seeds), *range(mutant.first)):
        for scenario in scenarios:
            runs += 1
            with sabotaged(mutant):
                rule = noticed(scenario, seed, mutant)
            if rule is not None and noticed(scenario, seed, mutant) is None:
                return Caught(scenario.name, seed, rule, runs)
    return None


def noticed(scenario: Scenario, seed: int, mutant: Mutant) -> str | None:
    """The rule that a run under the conditions of a mutant has broken; None if all was well."""
    plan = RunPlan(faults=mutant.faults, storage=mutant.storage, sweeps=mutant.sweeps, steps=mutant.steps)
    plan = replace(plan, max_inline_nodes=mutant.max_inline_nodes, window=mutant.window)
    run = Run(scenario, plan, Choices(seed))
    try:
        run.execute()
    except Exception as error:  # noqa: BLE001 - whatever a broken engine raises has been noticed
        return str(getattr(error, 'rule', '') or type(error).__name__)
    finally:
        run.world.close()
    return None


def main(names: Sequence[str], say: Callable[[str], object] = print) -> int:
    """Hunt all mutants, or those named; how many survived."""
    logging.disable(logging.CRITICAL)
    survivors = 0
    began = time.monotonic()
    say(f'{"mutant":86} {"caught by":48} {"seed":>4} {"rule":12} runs')
    for mutant in MUTANTS:
        if names and mutant.name not in names:
            continue
        caught = hunt(mutant)
        if caught is None:
            survivors += 1
            say(f'{mutant.name:86} SURVIVED {mutant.seeds} seeds')
        else:
            say(f'{mutant.name:86} {caught.scenario:48} {caught.seed:4} {caught.rule:12} {caught.runs}')
    say(f'{len(names) or len(MUTANTS)} mutants, {survivors} survived, {time.monotonic() - began:.1f} s')
    return survivors


if __name__ == '__main__':
    sys.exit(1 if main(sys.argv[1:]) else 0)
