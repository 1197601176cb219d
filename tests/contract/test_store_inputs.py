"""What a node is given by those that it requires is the same whether it is short or long, and wherever it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event

from convergence.core.model import NodeStatus, Output
from convergence.db.ports import Ports
from convergence.db.scopes import OneNode
from convergence.db.statements.inputs import MOST_ALONG
from convergence.db.statements.store import Store
from tests.contract.rows import NODES, OUTPUT, Backend, node
from tests.harness import emptied

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


@pytest.mark.parametrize('count', [1, 2, 7])
def test_what_is_handed_on_is_given_by_name(backend: Backend, count: int) -> None:
    outputs = [replace(OUTPUT, reference=f'{ODD}{number}', attributes={ODD: [None, ODD]}) for number in range(count)]
    view = given(backend, *outputs)
    assert view.inputs == {f'n{number}': output for number, output in enumerate(outputs, 1)}
    assert view.unread == ()
    assert view.input_bytes > count * 100 or backend.kind == 'memory'


@pytest.mark.parametrize('length', [MOST_ALONG // 4, MOST_ALONG, 10 * MOST_ALONG])
def test_how_long_it_is_makes_no_difference(backend: Backend, length: int) -> None:
    outputs = [long(length), long(1), long(length)]
    assert given(backend, *outputs).inputs == {f'n{number}': output for number, output in enumerate(outputs, 1)}


@pytest.mark.parametrize('length', [10, 2 * MOST_ALONG])
def test_what_is_more_than_the_limit_is_not_read(backend: Backend, length: int) -> None:
    view = given(backend, long(length), long(length), most=length)
    assert view.inputs == {} and view.input_bytes > length


@pytest.fixture
def cramped(engines: Any) -> Any:
    """MariaDB, whose arrays end in the middle when they are longer than the second value says."""
    engine = emptied(engines('mariadb'))
    longest = [1024]

    def begin(connection: Any) -> None:
        connection.exec_driver_sql(f'SET SESSION group_concat_max_len = {longest[0]}')

    event.listen(engine, 'begin', begin)
    yield Backend.of('sql', Ports.of(Store(engine, interval_s=0.0))), longest, engine
    event.remove(engine, 'begin', begin)
    engine.dispose()


def test_what_the_server_cuts_off_is_read_by_itself(cramped: Any) -> None:
    """Wherever that is, also between two outputs."""
    backend, longest, engine = cramped
    outputs = [long(3), long(300)]
    whole = given(backend, *outputs)
    read: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        read.extend(each for each in statement.split('; ') if ' OVER ()' in each)

    event.listen(engine, 'before_cursor_execute', note)
    try:
        for length in range(4, 1024):
            longest[0] = length
            assert backend.look(OneNode('V', 90)).inputs == whole.inputs
    finally:
        event.remove(engine, 'before_cursor_execute', note)
    assert 100 < len(read) < 1020
