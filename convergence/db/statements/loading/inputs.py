"""Reads the inputs of a node: outputs of the nodes that it requires.

MariaDB and MySQL return a few small inputs with the node. Larger inputs, and those on other servers, are read after the
node. The input of a node that requires one node, finished in this transaction, needs no read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.engine import Connection
from sqlalchemy.types import TypeDecorator
from typing_extensions import override

from convergence.core.model import NodeStatus, Output
from convergence.core.rows import Node
from convergence.db.schema.columns import LONG_TEXT, UNREADABLE, dumps
from convergence.db.schema.models import SYNC_POINT
from convergence.db.schema.row_columns import chunks
from convergence.db.scopes import OneNode
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import PreparedListStatement, among, each_of

Inputs: TypeAlias = tuple[dict[str, Output], int, tuple[str, ...]]
"""Inputs of a node by name; their size in bytes; and the names of unreadable outputs."""

MOST_ALONG = 4
"""Highest number of required nodes whose outputs are read with the node."""

LONGEST_ALONG = 1 << 14
"""Bytes of each output that comes along."""

_NO_LIMIT = 2**62


def _inputs_of(output: ColumnElement[Any], name: ColumnElement[Any]) -> Select[Any]:
    """Select the inputs; inputs beyond the limit do not leave the database."""
    total = func.coalesce(func.sum(func.length(output, type_=Integer)).over(), 0)
    return select(name, case((bindparam('most') >= total, output)), total)


_IS_INPUT = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.status == NodeStatus.DONE)


def _read_inputs(length: int) -> Select[Any]:
    return _inputs_of(SYNC_POINT.c.output, SYNC_POINT.c.name).where(
        _IS_INPUT, among(SYNC_POINT.c.number, 'numbers', length)
    )


def _read_inputs_by_key(length: int) -> Select[Any]:
    wanted = each_of(SYNC_POINT.c.number, 'numbers', length)
    each = (
        select(wanted.c.number).distinct().subquery()
    )  # one may stand for several places: see `PreparedListStatement`
    one = select(SYNC_POINT.c.name, SYNC_POINT.c.output).where(_IS_INPUT, SYNC_POINT.c.number == each.c.number)
    found = one.limit(1).lateral()
    return _inputs_of(found.c.output, found.c.name).select_from(each.join(found, true()))


READ_INPUTS = PreparedListStatement('numbers', _read_inputs)
READ_INPUTS_BY_KEY = PreparedListStatement('numbers', _read_inputs_by_key)


class _Along(TypeDecorator[Any]):
    """The type of `ALONG`: outputs by name; None if none were read with the node."""

    impl = LONG_TEXT
    cache_ok = True

    @override
    def process_result_value(self, value: Any, dialect: Any) -> Inputs | None:
        """From the database."""
        if value is None:
            return None
        kind: Any = SYNC_POINT.c.output.type
        inputs: dict[str, Output] = {}
        unread: list[str] = []
        total = 0
        for name, stored in filter(None, json.loads(value)):
            output = kind.process_result_value(stored, dialect)
            if output is UNREADABLE:
                unread.append(name)
            else:
                inputs[name] = output
            total += 0 if stored is None else len(stored.encode())
        return inputs, total, tuple(sorted(unread))


def _along() -> ColumnElement[Any]:
    # One by one: what gathers rows, or makes rows of an array, needs a table, which takes longer than all the rest.
    given = [_given(place) for place in range(MOST_ALONG)]
    requires = SYNC_POINT.c.requires
    is_known = or_(requires == literal((), requires.type), requires == bindparam('known', type_=requires.type))
    is_too_much = func.json_length(requires) > MOST_ALONG
    return type_coerce(case((or_(is_known, is_too_much), None), else_=func.json_array(*given)), _Along())


def _given(place: int) -> ColumnElement[Any]:
    given: Any = SYNC_POINT.alias(f'given_{place}')
    number = cast(func.json_extract(SYNC_POINT.c.requires, f'$[{place}]'), Integer)
    found = by_key(select(func.json_array(given.c.name, given.c.output)), given).where(
        given.c.traversal_id == bindparam('traversal'),
        given.c.number == number,
        given.c.status == NodeStatus.DONE,
        func.coalesce(func.length(given.c.output), 0) <= LONGEST_ALONG,
    )
    return found.scalar_subquery()


ALONG = _along()
"""For MariaDB and MySQL: the inputs read with a node, except long ones. See `known` for its parameter."""


def known(scope: OneNode) -> Mapping[str, Any]:
    """Return the parameter of `ALONG`: the nodes whose outputs need not be read."""
    return {'known': () if scope.done_now is None else (scope.done_now.number,)}


def inputs_of_node(connection: Connection, node: Node, scope: OneNode, along: Inputs | None = None) -> Inputs:
    """Return the inputs of a node; none if they exceed the limit of the scope.

    :param along: inputs that were read with the node, perhaps not all of them; None: none.
    """
    most = scope.max_input_bytes
    if not node.requires:
        return {}, 0, ()
    if along is not None and len(along[0]) + len(along[2]) == len(node.requires):
        return along if most is None or along[1] <= most else ({}, along[1], ())
    return _inputs_done_now(node, scope) or _inputs(connection, node, most)


def _inputs_done_now(node: Node, scope: OneNode) -> Inputs | None:
    """Return the inputs without a read, if the node requires one node only and this transaction finishes it; else
    None."""
    done = scope.done_now
    if done is None or node.requires != (done.number,):
        return None
    written = dumps(done.output.document())
    if scope.max_input_bytes is not None and 2 * len(written) + 1000 > scope.max_input_bytes:
        return None  # sealed it is slightly longer; the limit applies to the stored form
    return {done.name: Output.from_document(json.loads(written))}, len(written), ()


def _inputs(connection: Connection, node: Node, most: int | None) -> Inputs:
    inputs: dict[str, Output] = {}
    unread: list[str] = []
    total = 0
    by_key_alone = connection.dialect.name == 'postgresql' and len(node.requires) > 1
    for numbers in chunks(node.requires):
        left = _NO_LIMIT if most is None else most - total
        asked = {'traversal': node.traversal_id, 'numbers': list(numbers), 'most': left}
        found = (READ_INPUTS_BY_KEY if by_key_alone else READ_INPUTS).all(connection, asked)
        for name, output, _ in found:
            if output is UNREADABLE:
                unread.append(name)
            else:
                inputs[name] = output
        total += int(found[0][2]) if found else 0
        if most is not None and total > most:
            return {}, total, ()
    return inputs, total, tuple(sorted(unread))
