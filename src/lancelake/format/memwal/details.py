"""MemWAL details: configuration and merge progress in the table's index section."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from lancelake.errors import CorruptTableError
from lancelake.format import merged_generation
from lancelake.format.frozen import FrozenMap, parse, restore_unknown, unknown_bytes
from lancelake.format.index_meta import IndexDetails, IndexMetadata
from lancelake.format.memwal import region_spec
from lancelake.format.memwal.region_spec import RegionSpec
from lancelake.format.merged_generation import MergedGeneration
from lancelake.proto import table_pb2

TYPE_URL = "/lance.table.MemWalIndexDetails"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCatchup:
    """The generations whose rows an index of the table covers."""

    index_name: str
    generations: tuple[MergedGeneration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemWalDetails:
    """Configuration, merged generations and index coverage."""

    num_regions: int = 0
    specs: tuple[table_pb2.RegionSpec, ...] = ()
    """Region specs as they are stored; `spec` reads one."""
    maintained_indexes: tuple[str, ...] = ()
    merged: tuple[MergedGeneration, ...] = ()
    index_catchup: tuple[IndexCatchup, ...] = ()
    writer_defaults: FrozenMap[str, str] = field(default_factory=FrozenMap)
    maintain_all_indexes: bool | None = None
    snapshot_ts_millis: int = 0
    inline_snapshots: bytes | None = None
    unknown: bytes = b""

    def spec(self) -> RegionSpec | None:
        """Return the region spec; None when regions are chosen by their writers."""
        if len(self.specs) > 1:
            raise CorruptTableError(f"the MemWAL has {len(self.specs)} region specs")
        return region_spec.decode(self.specs[0]) if self.specs else None

    def progress(self) -> dict[uuid.UUID, int]:
        """Return the last merged generation of each region."""
        return {mark.region_id: mark.generation for mark in self.merged}


def of_entry(entry: IndexMetadata) -> MemWalDetails:
    """Read the details of a MemWAL entry."""
    if entry.details is None:
        raise CorruptTableError("the MemWAL entry has no details")
    return decode(entry.details.value)


def decode(data: bytes) -> MemWalDetails:
    """Read the details."""
    message = table_pb2.MemWalIndexDetails()
    parse(message, data, what="MemWAL details")
    return MemWalDetails(
        num_regions=message.num_regions,
        specs=tuple(message.region_specs),
        maintained_indexes=tuple(message.maintained_indexes),
        merged=tuple(merged_generation.decode(m) for m in message.merged_generations),
        index_catchup=tuple(
            IndexCatchup(
                index_name=each.index_name,
                generations=tuple(merged_generation.decode(m) for m in each.caught_up_generations),
            )
            for each in message.index_catchup
        ),
        writer_defaults=FrozenMap(dict(message.writer_config_defaults)),
        maintain_all_indexes=message.maintain_all_indexes
        if message.HasField("maintain_all_indexes")
        else None,
        snapshot_ts_millis=message.snapshot_ts_millis,
        inline_snapshots=message.inline_snapshots if message.HasField("inline_snapshots") else None,
        unknown=unknown_bytes(message),
    )


def encode(details: MemWalDetails) -> IndexDetails:
    """Write the details."""
    message = table_pb2.MemWalIndexDetails(
        num_regions=details.num_regions,
        region_specs=details.specs,
        maintained_indexes=details.maintained_indexes,
        merged_generations=[merged_generation.encode(m) for m in details.merged],
        index_catchup=[
            table_pb2.IndexCatchupProgress(
                index_name=each.index_name,
                caught_up_generations=[merged_generation.encode(m) for m in each.generations],
            )
            for each in details.index_catchup
        ],
        writer_config_defaults=dict(details.writer_defaults),
        snapshot_ts_millis=details.snapshot_ts_millis,
        inline_snapshots=details.inline_snapshots,
    )
    if details.maintain_all_indexes is not None:
        message.maintain_all_indexes = details.maintain_all_indexes
    restore_unknown(message, details.unknown)
    return IndexDetails(type_url=TYPE_URL, value=message.SerializeToString(deterministic=True))
