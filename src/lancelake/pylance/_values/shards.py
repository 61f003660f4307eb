"""Shards of a MemWAL as pylance names them: their ids, generations and sharding specs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lancelake.core.values.wal import RegionSpec, decode_spec
from lancelake.errors import InvalidRequestError
from lancelake.proto import table_pb2


@dataclass
class ShardingField:
    """A value derived from columns, which chooses the shard of a row."""

    field_id: str
    source_ids: list[int]
    transform: str | None = None
    expression: str | None = None
    result_type: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass
class ShardingSpec:
    """How rows are divided into shards."""

    spec_id: int
    fields: list[ShardingField]


@dataclass
class CompactedSsTable:
    """A generation of a shard that is merged into the table."""

    shard_id: str
    generation: int


def shard_uuid(shard_id: str) -> uuid.UUID:
    """Parse the id of a shard."""
    try:
        return uuid.UUID(shard_id)
    except ValueError as error:
        raise InvalidRequestError(f"invalid shard_id {shard_id!r}: not a UUID") from error


def spec_of(spec: ShardingSpec | Mapping[str, Any]) -> RegionSpec:
    """Read a sharding spec; raise for one that no release evaluates."""
    values = dict(spec) if isinstance(spec, Mapping) else asdict(spec)
    message = table_pb2.RegionSpec(
        spec_id=int(values["spec_id"]),
        fields=[
            table_pb2.RegionField(**{k: v for k, v in dict(each).items() if v is not None})
            for each in values["fields"]
        ],
    )
    return decode_spec(message)


def name_of(spec: ShardingSpec | Mapping[str, Any]) -> str:
    """Return the name of the values of a sharding spec of one field."""
    values = dict(spec) if isinstance(spec, Mapping) else asdict(spec)
    (field,) = values["fields"]
    return str(field["field_id"])


def shown_spec(message: table_pb2.RegionSpec) -> dict[str, Any]:
    """Return a stored spec as a dictionary."""
    return {
        "spec_id": message.spec_id,
        "fields": [
            {
                "field_id": each.field_id,
                "source_ids": list(each.source_ids),
                "transform": each.transform if each.HasField("transform") else None,
                "expression": each.expression if each.HasField("expression") else None,
                "result_type": each.result_type,
                "parameters": dict(each.parameters),
            }
            for each in message.fields
        ],
    }
