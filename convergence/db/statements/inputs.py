"""What a node is given by those that it requires: read along with the node, or by itself.

MariaDB and MySQL answer it along with the node, if it is short. Where it is long, or the server is another one, it is
read when the node is known; a single node that was done just now is known already.
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
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
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
from convergence.db.scopes import OneNode
from convergence.db.statements.hot import HotList, among, each_of
from convergence.db.statements.locking import by_key
from convergence.db.statements.row_columns import chunks

Inputs: TypeAlias = tuple[dict[str, Output], int, tuple[str, ...]]
"""What a node is given, by name; how many bytes that are; and the names of those whose output cannot be read."""

MOST_ALONG = 1 << 16
"""Bytes that come along with a node at most, and are not missed where nobody wants them."""

_NO_LIMIT = 2**62


def _inputs_of(output: ColumnElement[Any], name: ColumnElement[Any]) -> Select[Any]:
    """What is more than a thread can hold does not leave the database."""
    total = func.coalesce(func.sum(func.length(output, type_=Integer)).over(), 0)
    return select(name, case((bindparam('most') >= total, output)), total)


_IS_INPUT = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.status == NodeStatus.DONE)


def _read_inputs(length: int) -> Select[Any]:
    return _inputs_of(SYNC_POINT.c.output, SYNC_POINT.c.name).where(
        _IS_INPUT, among(SYNC_POINT.c.number, 'numbers', length)
    )


def _read_inputs_by_key(length: int) -> Select[Any]:
    wanted = each_of(SYNC_POINT.c.number, 'numbers', length)
    each = select(wanted.c.number).distinct().subquery()  # one may stand for several places: see `HotList`
    one = select(SYNC_POINT.c.name, SYNC_POINT.c.output).where(_IS_INPUT, SYNC_POINT.c.number == each.c.number)
    found = one.limit(1).lateral()
    return _inputs_of(found.c.output, found.c.name).select_from(each.join(found, true()))


READ_INPUTS = HotList('numbers', _read_inputs)
READ_INPUTS_BY_KEY = HotList('numbers', _read_inputs_by_key)


class _Along(TypeDecorator[Any]):
    """What `ALONG` answers: names with their outputs; None for what did not come along."""

    impl = LONG_TEXT
    cache_ok = True

    @override
    def process_result_value(self, value: Any, dialect: Any) -> Inputs | None:
        """From the database."""
        if value is None:
            return None
        try:
            count, found = json.loads(value)
        except ValueError:
            return None  # MariaDB ends an array in the middle that is longer than its `group_concat_max_len`
        found = found or []
        return _summed_up(found, dialect) if len(found) == count else None


def _summed_up(found: Any, dialect: Any) -> Inputs:
    kind: Any = SYNC_POINT.c.output.type
    inputs: dict[str, Output] = {}
    unread: list[str] = []
    for name, stored in found:
        output = kind.process_result_value(stored, dialect)
        if output is UNREADABLE:
            unread.append(name)
        else:
            inputs[name] = output
    return inputs, sum(len(stored.encode()) for _, stored in found if stored is not None), tuple(sorted(unread))


def _along() -> ColumnElement[Any]:
    given: Any = SYNC_POINT.alias('given')
    wanted = text("json_table(sync_point.requires, '$[*]' COLUMNS (number INTEGER PATH '$')) AS wanted")
    length = func.coalesce(func.sum(func.length(given.c.output) + func.length(given.c.name)), 0)
    each = func.json_arrayagg(func.json_array(given.c.name, given.c.output))
    # Else the server might read all nodes of the traversal, and look for each of them among those that are wanted.
    one_by_one = by_key(select(case((length <= MOST_ALONG, func.json_array(func.count(), each)))), given)
    found = one_by_one.prefix_with('STRAIGHT_JOIN').select_from(wanted, given)
    done = (given.c.traversal_id == bindparam('traversal'), given.c.status == NodeStatus.DONE)
    asked = found.where(*done, given.c.number == literal_column('wanted.number')).scalar_subquery()
    requires = SYNC_POINT.c.requires
    is_known = or_(requires == literal((), requires.type), requires == bindparam('known', type_=requires.type))
    return type_coerce(case((is_known, None), else_=asked), _Along())


ALONG = _along()
"""For MariaDB and MySQL, of a node that is read: what it is given. See `known` for what has to be asked as well."""


def known(scope: OneNode) -> Mapping[str, Any]:
    """The parameter of `ALONG`: what a node requires that is given nothing but what was done just now."""
    return {'known': () if scope.done_now is None else (scope.done_now.number,)}


def inputs_of_node(connection: Connection, node: Node, scope: OneNode, along: Inputs | None = None) -> Inputs:
    """What a node is given; nothing where it is more than the limit of the scope.

    :param along: what has come along with the node; None: nothing.
    """
    most = scope.max_input_bytes
    if not node.requires:
        return {}, 0, ()
    if along is not None:
        return along if most is None or along[1] <= most else ({}, along[1], ())
    return _inputs_done_now(node, scope) or _inputs(connection, node, most)


def _inputs_done_now(node: Node, scope: OneNode) -> Inputs | None:
    """The same without a look at the database, where that is known: one other node is required, and done just now."""
    done = scope.done_now
    if done is None or node.requires != (done.number,):
        return None
    written = dumps(done.output.document())
    if scope.max_input_bytes is not None and 2 * len(written) + 1000 > scope.max_input_bytes:
        return None  # sealed it is longer, by less than that; the limit is for what is stored
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
