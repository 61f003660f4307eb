"""MemWAL progress of a region: the last generation merged into the table."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lancelake.format import index_meta
from lancelake.proto import table_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedGeneration:
    """The last generation of a region that is merged into the table."""

    region_id: uuid.UUID
    generation: int


def decode(message: table_pb2.MergedGeneration) -> MergedGeneration:
    """Read the mark."""
    return MergedGeneration(
        region_id=index_meta.decode_uuid(message.region_id), generation=message.generation
    )


def encode(mark: MergedGeneration) -> table_pb2.MergedGeneration:
    """Write the mark."""
    return table_pb2.MergedGeneration(
        region_id=index_meta.encode_uuid(mark.region_id), generation=mark.generation
    )
