"""What a node is given by those that it requires is the same whether it is short or long, and wherever it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from convergence.core.model import NodeStatus, Output
from convergence.db.scopes import OneNode
from convergence.db.statements.loading.inputs import LONGEST_ALONG, MOST_ALONG
from tests.contract.rows import NODES, OUTPUT, Backend, node

ODD = 'Ü "quoted" \\ \n\t\x01 \u2028 漢 \U0001f600 %s'


def given(backend: Backend, *outputs: Output, most: int | None = None) -> Any:
    """What the view of a node says that requires nodes with these outputs."""
    done = [
        replace(NODES[1], number=number, name=f'n{number}', status=NodeStatus.DONE, output=output)
        for number, output in enumerate(outputs, 1)
    ]
    backend.fill(nodes=(*done, node(90, requires=tuple(each.number for each in done))))
    return backend.look(OneNode('V', 90, most))


def long(length: int) -> Output:
    return replace(OUTPUT, attributes={'x': 'x' * length})


@pytest.mark.parametrize('count', [1, 2, MOST_ALONG, MOST_ALONG + 1])
def test_what_is_handed_on_is_given_by_name(backend: Backend, count: int) -> None:
    outputs = [replace(OUTPUT, reference=f'{ODD}{number}', attributes={ODD: [None, ODD]}) for number in range(count)]
    view = given(backend, *outputs)
    assert view.inputs == {f'n{number}': output for number, output in enumerate(outputs, 1)}
    assert view.unread == ()
    assert view.input_bytes > count * 100 or backend.kind == 'memory'


@pytest.mark.parametrize('length', [LONGEST_ALONG // 2, LONGEST_ALONG, 10 * LONGEST_ALONG])
def test_how_long_it_is_makes_no_difference(backend: Backend, length: int) -> None:
    outputs = [long(length), long(1), long(length)]
    assert given(backend, *outputs).inputs == {f'n{number}': output for number, output in enumerate(outputs, 1)}


@pytest.mark.parametrize('length', [10, 2 * LONGEST_ALONG])
def test_what_is_more_than_the_limit_is_not_read(backend: Backend, length: int) -> None:
    view = given(backend, long(length), long(length), most=length)
    assert view.inputs == {} and view.input_bytes > length
