"""MemWAL of single shards, as in pylance; `LanceDataset.wal` chooses the shards of rows itself."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lancelake.core.values.wal import Bucketed, ByValue, Unsharded, wal_keys
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.shards import (
    ExecutionPlan,
    LsmPointLookupPlanner,
    LsmScanner,
    LsmVectorSearchPlanner,
    ShardSnapshot,
    ShardWriter,
)
from lancelake.pylance._values.shards import (
    CompactedSsTable,
    ShardingField,
    ShardingSpec,
    name_of,
    spec_of,
)
from lancelake.pylance.schema import LanceSchema

__all__ = [
    "CompactedSsTable",
    "ExecutionPlan",
    "LsmPointLookupPlanner",
    "LsmScanner",
    "LsmVectorSearchPlanner",
    "ShardSnapshot",
    "ShardWriter",
    "ShardingField",
    "ShardingSpec",
    "evaluate_sharding_spec",
]


def evaluate_sharding_spec(
    batch: pa.RecordBatch, spec: ShardingSpec | Mapping[str, object], schema: LanceSchema
) -> pa.RecordBatch:
    """Return the shard value of each row."""
    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(f"Expected pyarrow.RecordBatch, got {type(batch)!r}")
    names = {int(field.id): field.name for field in schema._schema.fields}
    decoded = spec_of(spec)
    name = name_of(spec)
    match decoded:
        case Unsharded():
            zeros = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
            return pa.RecordBatch.from_arrays([zeros], schema=_int32(name))
        case Bucketed() as found:
            values = batch.column(_source(names, found.column))
            numbers = wal_keys.buckets(values, found.buckets)
            return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32())], schema=_int32(name))
        case ByValue() as found:
            values = batch.column(_source(names, found.column))
            return pa.RecordBatch.from_arrays([values], names=[name])


def _source(names: Mapping[int, str], column: int) -> str:
    if column not in names:
        raise InvalidRequestError(f"the sharding spec refers to field {column}, which is unknown")
    return names[column]


def _int32(name: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.int32(), nullable=False)])
