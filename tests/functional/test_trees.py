"""Stacks in stacks on several processes: each stack is planned by whichever engine is asked, and outlives it."""

from __future__ import annotations

import json
import re
import signal

from tests.functional.cloud import template
from tests.functional.cluster import Stack, eventually

DATABASE = 'postgresql'
OPTIONS = {'park_after_s': 0}
PROCESSES = {'engines': 2, 'workers': 2}
CHILDREN = 12


def children_planned_by(engine, name):
    """The numbers of the nested stacks that an engine has begun to create, by what it logged."""
    told = re.findall(rf'stack={name}-c(\d+)-\w+ .*CREATE of stack \S+ planned: \d+ nodes', engine.text())
    return {int(number) for number in told}


def test_children_of_one_parent_are_planned_by_different_engines_and_one_of_these_dies(cluster, name):
    """F121, F149."""
    gated = template(r={'value': 'x', 'until': name})
    resources = {
        f'c{number}': {'type': 'gated.yaml' if number < CHILDREN else 'free.yaml'} for number in range(2 * CHILDREN)
    }
    for number in range(CHILDREN, 2 * CHILDREN):
        resources[f'c{number}']['depends_on'] = [f'c{number - CHILDREN}']
    parent = json.dumps({'heat_template_version': '2018-08-31', 'resources': resources})
    files = {'gated.yaml': gated, 'free.yaml': template(r={'value': 'y'})}
    context = cluster.context()
    stack = Stack(cluster, cluster.client.create_stack(context, name, parent, files=files))
    first = set(range(CHILDREN))
    planned = eventually(
        lambda: (
            (by := [children_planned_by(each, name) for each in cluster.engines]) and set().union(*by) == first and by
        ),
        'every child of the first half is begun',
    )
    assert all(planned), 'both engines have planned some'
    doomed, left = cluster.engines
    doomed.send(signal.SIGKILL)
    doomed.wait()
    cluster.cloud.open(name)
    assert stack.ended() == 'CREATE_COMPLETE', stack.show()['stack_status_reason']
    assert children_planned_by(left, name) >= set(range(CHILDREN, 2 * CHILDREN))
    rows = cluster.client.list_stack_resources(context, stack.identity, nested_depth=1)
    inside = [row for row in rows if row.get('parent_resource')]
    assert {row['parent_resource'] for row in inside} == set(resources)
    assert all(len(cluster.cloud.objects(row['stack_name'])) == 1 for row in inside)
    stack.delete()
    assert stack.ended() == 'DELETE_COMPLETE'
    assert all(cluster.cloud.objects(row['stack_name']) == [] for row in inside)
