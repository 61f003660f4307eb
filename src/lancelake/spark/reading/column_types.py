"""Types of the columns that conditions of a query may refer to."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.row_meta import META_TYPE
from lancelake.format.arrow_schema import public_field
from lancelake.format.blobs import described
from lancelake.format.schema import Schema
from lancelake.spark.jvm.spark_conditions import TypeOf
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.read_plan import Path, node_at


def column_types(schema: Schema) -> TypeOf:
    """Return a type lookup for a table's columns by path, including metadata columns."""

    def type_of(path: Path) -> pa.DataType | None:
        if len(path) == 1 and path[0] in metadata_columns.SCANNED:
            return META_TYPE
        for end in range(1, len(path)):
            node = node_at(schema, path[:end])
            if node is None or node.logical_type != "struct":
                return None
        node = node_at(schema, path)
        return None if node is None else public_field(described(node)).type

    return type_of
