"""The guards of single statements, each taken away: the lock before it hides that from the simulator, not from these.

What a transaction writes names what it replaces. Usually a lock has made sure of it already; where locks end, as on
another server of a cluster, only the guard is left.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from convergence import errors
from simulator.tests.mutants import APPLY, APPLYING, Edit, Mutant, sabotaged
from tests.contract import test_store_effects as contract
from tests.contract.rows import Backend

GUARDS: dict[str, tuple[str, Edit, Callable[[Backend], None]]] = {
    'a node is pointed elsewhere whatever its status is': (
        'memory',
        Edit(
            f'{APPLY}:_point_node',
            'node = _ready_node(draft, effect.traversal_id, effect.number)',
            'node = draft.node(effect.traversal_id, effect.number)',
        ),
        contract.test_a_node_points_to_another_row,
    ),
    'SQL: a node is pointed elsewhere whatever its status is': (
        'sqlite',
        Edit(
            f'{APPLYING}.nodes:point_node',
            "require_found(pointed.rowcount, f'node {effect.number} of {effect.traversal_id}')",
            '',
        ),
        contract.test_a_node_points_to_another_row,
    ),
    'a stack is changed under whatever traversal it has': (
        'memory',
        Edit(f'{APPLY}:_update_stack', 'stack.traversal_id == effect.traversal_id', 'True'),
        contract.test_a_stack_is_changed_only_under_the_traversal_that_was_read,
    ),
    'a stack is changed as if it had no traversal': (
        'memory',
        Edit(f'{APPLY}:_update_stack', 'stack.traversal_id == effect.traversal_id', 'stack.traversal_id is not None'),
        contract.test_a_stack_without_a_traversal_is_changed_only_while_it_has_none,
    ),
    'SQL: that a stack was not changed is no conflict': (
        'sqlite',
        Edit(
            f'{APPLYING}.stacks:update_stack',
            "batch.add_one(statement.call(values), f'stack {effect.stack_id}')",
            'batch.add(statement.call(values))',
        ),
        contract.test_a_stack_is_changed_only_under_the_traversal_that_was_read,
    ),
    'a traversal ends twice': (
        'memory',
        Edit(
            f'{APPLY}:_end_traversal', 'traversal is None or traversal.status is not effect.expected', 'not traversal'
        ),
        contract.test_of_two_ends_of_a_traversal_the_first_counts,
    ),
    'SQL: a traversal ends from whatever status it is in': (
        'sqlite',
        Edit(
            f'{APPLYING}.traversals:end_traversal',
            "'expected': effect.expected,",
            "'expected': batch.connection.exec_driver_sql('SELECT status FROM traversal').scalar_one(),",
        ),
        contract.test_of_two_ends_of_a_traversal_the_first_counts,
    ),
}


@pytest.mark.parametrize(
    ('backend', 'name'),
    [(kind, name) for name, (kind, _, _) in GUARDS.items()],
    ids=[name.replace(' ', '-') for name in GUARDS],
    indirect=['backend'],
)
def test_a_guard_that_is_gone_is_missed(backend: Backend, name: str) -> None:
    _, edit, test = GUARDS[name]
    with sabotaged(Mutant(name, (edit,), ())), pytest.raises((AssertionError, errors.Conflict, pytest.fail.Exception)):
        test(backend)
