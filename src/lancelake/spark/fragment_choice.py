"""Which fragments can hold rows for which a condition on their place holds?"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lancelake.data.row_meta import MetaColumn
from lancelake.format.ids import FragmentId
from lancelake.format.schema import Schema
from lancelake.spark.jvm.expressions import TypeOf
from lancelake.spark.metadata_columns import FRAGMENT_ID
from lancelake.spark.predicates import Column, Condition, Constant, Node

_ADDRESS = MetaColumn.ROW_ADDRESS.value
_OFFSET_BITS = 32
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def place_types(schema: Schema) -> TypeOf:
    """Return a lookup that knows only the columns that say where a row lies."""
    known = {FRAGMENT_ID, _ADDRESS} - set(schema.names)

    def type_of(path: tuple[str, ...]) -> pa.DataType | None:
        return pa.int64() if len(path) == 1 and path[0] in known else None

    return type_of


def possible(node: Node | None, ids: Iterable[FragmentId]) -> tuple[FragmentId, ...] | None:
    """Return the fragments in which a condition may hold; None when it says nothing of them."""
    if not isinstance(node, Condition) or not node.operands:
        return None
    if node.name == "IN":
        column, *constants = node.operands
        values = [c.value for c in constants if isinstance(c, Constant)]
        numbers = {_fragment(column, v) for v in values if isinstance(v, int)}
        if not _is_place(column) or len(values) < len(constants):
            return None
        return tuple(i for i in ids if i in numbers)
    if node.name not in _MIRRORED:
        return None
    left, right = node.operands
    name = node.name
    if isinstance(left, Constant):
        left, right, name = right, left, _MIRRORED[name]
    if not _is_place(left) or not isinstance(right, Constant) or type(right.value) is not int:
        return None
    number = _fragment(left, right.value)
    match name[0]:
        case "=":
            return tuple(i for i in ids if i == number)
        case "<":
            return tuple(i for i in ids if i <= number)
        case _:
            return tuple(i for i in ids if i >= number)


def _is_place(node: object) -> bool:
    return isinstance(node, Column) and node.path in ((FRAGMENT_ID,), (_ADDRESS,))


def _fragment(column: object, value: int) -> int:
    is_address = isinstance(column, Column) and column.path == (_ADDRESS,)
    return value >> _OFFSET_BITS if is_address else value
