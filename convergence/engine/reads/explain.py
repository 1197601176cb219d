"""Explains the state of a stack, and the reason why it makes no progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from convergence.core.failure import cancelling
from convergence.core.model import UNDER_WAY, Action, NodeStatus, Status, TraversalStatus
from convergence.core.rows import Resource, Stack, Traversal
from convergence.db.null_ports import NOTHING_OBSERVED
from convergence.db.ports import KnownObjectsPort
from convergence.db.records import FrontierNode
from convergence.db.repositories.reads.stacks import StackReader
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.reads import formats
from convergence.engine.reads.below import stacks_below
from convergence.engine.reads.reading import Reading

NESTED = 50
"""Nested stacks that are explained with the one that they are in."""

FRONTIER = 100
"""Maximum number of nodes shown. With more nodes than this, the counts say more than a longer list."""


DRIFTED = 20
"""Maximum number of resources named that drifted."""


class ExplainReads(Reading[StackReader]):
    """Explains the current traversal of a stack.

    :param objects: reads the observations of objects.
    """

    def __init__(
        self, reader: StackReader, compiler: TemplateCompiler, objects: KnownObjectsPort = NOTHING_OBSERVED
    ) -> None:
        super().__init__(reader, compiler)
        self._objects = objects

    def stack_explain(
        self, context: Caller, stack_identity: Mapping[str, Any], nested_depth: int | None = None
    ) -> Document:
        """The state of a stack, its current traversal, and its ready nodes.

        :param nested_depth: number of levels of nested stacks to include; None: none.
        :returns: `summary`, a sentence; `traversal`, null if there is none; `counts` of nodes; `frontier`, the ready
            nodes, claimed ones first; `frontier_left_off`, the number of ready nodes not shown; `root_cause`, the
            resource that failed first, or null; `following`, the resources that failed after it, or did not start
            because of it; with `nested_depth` also `nested`: the same for each nested stack that is in progress or
            failed, with its `path`, and `nested_left_off`, the number of nested stacks not shown. `drift`: numbers of
            `observed`, `seen` and `drifted` objects, and some of the drifted ones. The `path` of the root cause leads
            to the first failure on any level.
        """
        stack = self._stack(context, stack_identity)
        document = self._explained(stack)
        if nested_depth is None:
            return document
        below = stacks_below(self._reader, stack, nested_depth)
        telling = {path: each for path, each in below.items() if each.status is not Status.COMPLETE}
        shown = dict(islice(telling.items(), NESTED))
        nested = [{'path': path, **self._explained(each)} for path, each in shown.items()]
        return {**document, 'nested': nested, 'nested_left_off': len(telling) - len(shown)}

    def _explained(self, stack: Stack) -> Document:
        return {**Explanation(self._reader).of(stack, FRONTIER), 'drift': self._drift(stack)}

    def _drift(self, stack: Stack) -> Document:
        """The drift of a stack."""
        summary = self._objects.summary(stack.id)
        drifted = self._objects.known([stack.id], drifted=True, limit=DRIFTED) if summary.drifted else ()
        return {
            **formats.drift_summary(summary),
            'resources': [
                {
                    'resource_name': each.row.name,
                    'state': each.observation.found.value,
                    'reason': each.observation.reason,
                    'since': formats.moment(each.observation.since),
                }
                for each in drifted
            ],
        }


class Explanation:
    """Explains one stack."""

    def __init__(self, reader: StackReader) -> None:
        self._reader = reader

    def of(self, stack: Stack, limit: int) -> Document:
        """See `ExplainReads.stack_explain`.

        :param limit: most nodes of the frontier that are named.
        """
        traversal = self._reader.traversal(stack.traversal_id) if stack.traversal_id else None
        document: Document = {
            'stack_identity': formats.identity(stack),
            'stack_action': stack.action.value,
            'stack_status': stack.status.value,
            'stack_status_reason': stack.status_reason,
            'traversal': None,
            'counts': {},
            'frontier': [],
            'frontier_left_off': 0,
            'root_cause': None,
            'following': [],
        }
        if traversal is None:
            return {**document, 'summary': f'Stack {stack.name} has no operation.'}
        counts = self._counts(traversal)
        nodes = self._reader.frontier(traversal.id, limit) if traversal.status in UNDER_WAY else []
        if traversal.status is TraversalStatus.CANCELLING:
            nodes = [node for node in nodes if node.status is Status.IN_PROGRESS]
        ready = counts['ready'] + counts['claimed'] + counts['parked']
        now = self._reader.now()
        return {
            **document,
            'traversal': traversal_document(traversal, now),
            'counts': counts,
            'frontier': [frontier_document(node) for node in nodes],
            'frontier_left_off': max(0, ready - len(nodes)) if traversal.status is TraversalStatus.RUNNING else 0,
            'summary': self._cancelling(stack, traversal) or _summary(stack, traversal, counts, nodes, now),
            **self._failure(stack, traversal),
        }

    def _cancelling(self, stack: Stack, traversal: Traversal) -> str:
        """The reason for which a traversal that is being cancelled waits; empty for any other."""
        if traversal.status is not TraversalStatus.CANCELLING:
            return ''
        names = sorted({row.name for row in self._reader.busy(stack.id, FRONTIER)})
        if not names:
            return f'{traversal.action} of stack {stack.name} is being cancelled; nothing of it runs any more.'
        return f'{cancelling(traversal.action, names, str(formats.moment(traversal.deadline)))}. Nothing new begins.'

    def _failure(self, stack: Stack, traversal: Traversal) -> Document:
        """The first failure of the current traversal, or of the one that it rolls back, and the failures after it."""
        failed = traversal
        if traversal.action is Action.ROLLBACK and traversal.failed_name is None:
            past = self._reader.traversals(stack.id, newest=2)
            failed = next((each for each in past if each.id != traversal.id), traversal)
        first = failed.failed_name
        if first is None:
            return {'root_cause': None, 'following': []}
        rows = [row for row in self._reader.resources_named(stack.id, [first]) if row.status is Status.FAILED]
        cause = {
            'resource_name': first,
            'path': '/'.join((first, *self._deeper(rows[-1] if rows else None))),
            'action': (rows[-1].action if rows else failed.action).value,
            'reason': rows[-1].status_reason if rows else failed.reason,
        }
        if stack.status is not Status.FAILED:
            return {'root_cause': cause, 'following': []}
        others = [row for row in self._reader.unfinished(stack.id, FRONTIER) if row.name != first]
        return {'root_cause': cause, 'following': [_following(row, first) for row in others]}

    def _deeper(self, row: Resource | None) -> Iterator[str]:
        """The names that lead from a resource that is a stack to the first failure inside."""
        while row is not None and row.token is not None:
            stack = self._reader.stack(row.token)
            traversal = self._reader.traversal(stack.traversal_id or '') if stack is not None else None
            if stack is None or traversal is None or traversal.failed_name is None:
                return
            yield traversal.failed_name
            rows = self._reader.resources_named(stack.id, [traversal.failed_name])
            row = next((each for each in rows if each.status is Status.FAILED), None)

    def _counts(self, traversal: Traversal) -> dict[str, int]:
        """The number of nodes in each state. Nodes of an ended traversal may have been removed already."""
        stored = self._reader.node_counts(traversal.id)
        attended = self._reader.frontier_counts(traversal.id)
        total = max(traversal.node_count, sum(stored.values()))
        done = stored.get(NodeStatus.DONE, 0)
        if traversal.status is TraversalStatus.COMPLETE:
            done = total
        return {
            'total': total,
            'done': done,
            'claimed': attended.claimed,
            'parked': attended.parked,
            'ready': max(0, stored.get(NodeStatus.READY, 0) - attended.claimed - attended.parked),
            'waiting': stored.get(NodeStatus.WAITING, 0),
            'failed': stored.get(NodeStatus.FAILED, 0),
            'unchanged': traversal.unchanged,
        }


def traversal_document(traversal: Traversal, now: float) -> Document:
    """An operation on a stack.

    :param now: by the clock of the database.
    """
    over = traversal.finished_at is not None
    return {
        'id': traversal.id,
        'action': traversal.action.value,
        'status': traversal.status.value,
        'started_at': formats.moment(traversal.started_at),
        'finished_at': formats.moment(traversal.finished_at),
        'in_service_at': formats.moment(traversal.in_service_at),
        'deadline': formats.moment(traversal.deadline),
        'deadline_in_s': None if over else round(traversal.deadline - now, 3),
        'rollback_on_failure': traversal.rollback_on_failure,
        'failed_phase': traversal.failed_phase.value if traversal.failed_phase else None,
        'reason': traversal.reason,
        'request_id': traversal.request_id,
    }


def frontier_document(node: FrontierNode) -> Document:
    """A ready node, and the reason why it waits."""
    # A retry without any attempt only says that nothing was called yet.
    retry = node.retry if node.retry is not None and node.retry.attempts else None
    waits = 'paused' if node.hook else 'backing off' if retry else 'parked' if node.is_parked else 'ready'
    if waits == 'ready' and _is_searched_for(node):
        waits = 'searching'
    return {
        'number': node.number,
        'phase': node.phase.value,
        'resource_name': node.name,
        'resource_id': node.resource_id,
        'resource_type': node.resource_type,
        'resource_status': formats.state(node.action, node.status),
        'reason': node.reason or '',
        'state': 'claimed' if node.owner else waits,
        'owner': node.owner,
        'owner_host': node.owner_host,
        'owner_is_up': node.owner_is_up if node.owner else None,
        'wake_in_s': _rounded(node.wake_in_s),
        'age_s': _rounded(node.age_s),
        'action_age_s': _rounded(node.action_s),
        'time_left_s': _rounded(node.time_left_s),
        'workers_lost': node.crash_count or 0,
        'attempts': retry.attempts if retry else 0,
        'last_error': retry.error if retry else None,
        'hook': node.hook.value if node.hook else None,
        'lost_token': node.lost_token,
        'search_until': formats.moment(node.search_until),
        'next_retry_in_s': _rounded(node.wake_in_s) if retry else None,
    }


def _is_searched_for(node: FrontierNode) -> bool:
    """Return True if the traversal waits for an object that a lost creation may still produce."""
    return node.search_until is not None and node.action is Action.DELETE


def _following(row: Resource, first: str) -> Document:
    begun = row.action is not Action.INIT
    return {
        'resource_name': row.name,
        'resource_status': formats.state(row.action, row.status),
        'reason': row.status_reason if begun else f'not begun, because {first} had failed',
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(max(seconds, 0.0), 3)


def _summary(
    stack: Stack, traversal: Traversal, counts: Mapping[str, int], nodes: list[FrontierNode], now: float
) -> str:
    """The state of a stack in a sentence."""
    what = f'{traversal.action} of stack {stack.name}'
    if traversal.status is not TraversalStatus.RUNNING:
        reason = f': {traversal.reason}' if traversal.reason else ''
        return f'{what} is over ({traversal.status}){reason}.'
    progress = f'{what}: {counts["done"]} of {counts["total"]} steps are done'
    lost = [node.name or node.phase.value for node in nodes if node.owner and not node.owner_is_up]
    if now > traversal.deadline:
        return f'{progress}; it is past its deadline and is about to be ended.'
    if lost:
        return f'{progress}; the worker that held {", ".join(lost[:5])} is gone, another one will take over.'
    paused = [f'{node.name} ({node.hook})' for node in nodes if node.hook]
    if paused and len(paused) == counts['ready'] + counts['claimed'] + counts['parked']:
        return f'{progress}; it is paused until a hook is cleared: {", ".join(paused[:5])}.'
    searched = [node for node in nodes if _is_searched_for(node)]
    if searched and len(searched) == counts['ready'] + counts['claimed'] + counts['parked']:
        until = formats.moment(max(node.search_until or 0.0 for node in searched))
        names = ', '.join(node.name or '' for node in searched[:5])
        return f'{progress}; it waits until {until} for objects that lost creations of {names} may still produce.'
    if not nodes:
        return f'{progress}; nothing is ready at this moment.'
    shown = ', '.join(node.name or node.phase.value for node in nodes[:5])
    more = counts['ready'] + counts['claimed'] + counts['parked'] - len(nodes[:5])
    rest = f' and {more} more' if more > 0 else ''
    if counts['claimed'] + counts['parked'] == 0:
        return f'{progress}; no worker has taken up {shown}{rest} yet.'
    return f'{progress}; it waits for {shown}{rest}.'
