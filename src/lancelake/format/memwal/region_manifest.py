"""Manifest of a MemWAL region: writer epoch, WAL cursor and flushed generations."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import Codec, Conversion, parse
from lancelake.format.index_meta import UUID
from lancelake.proto import table_pb2

FIRST_GENERATION = 1

# Later versions count on from these.
_COUNTERS = (
    "version",
    "writer_epoch",
    "replay_after_wal_entry_position",
    "wal_entry_position_last_seen",
    "current_generation",
)
_MAX_COUNTER = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A flushed generation; sizes are None where the writer did not record them."""

    generation: int
    path: str
    in_memory_bytes: int | None = None
    physical_rows: int | None = None
    primary_key_bytes: int | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionManifest:
    """One version of a region's state."""

    region_id: uuid.UUID
    version: int = 0
    spec_id: int = 0
    """Region spec that the region belongs to; 0 for a region without one."""
    writer_epoch: int = 0
    """Fencing token: only the writer with the highest epoch may write."""
    replay_after: int = 0
    """Last WAL position whose rows are in a flushed generation; positions start at 1."""
    last_seen: int = 0
    """A WAL position that exists; a hint only."""
    current_generation: int = FIRST_GENERATION
    """Number of the next generation to flush."""
    generations: tuple[Generation, ...] = ()
    field_values: tuple[tuple[str, bytes], ...] = ()
    """Values of the spec's fields, by field id, as raw bytes."""
    status: int = table_pb2.REGION_ACTIVE
    unknown: bytes = b""

    @property
    def is_active(self) -> bool:
        """Whether writers may claim the region."""
        return self.status == table_pb2.REGION_ACTIVE

    def claimed(self) -> RegionManifest:
        """Return the next version, with the next epoch."""
        return replace(self, version=self.version + 1, writer_epoch=self.writer_epoch + 1)

    def with_generation(self, flushed: Generation, *, covers: int) -> RegionManifest:
        """Return the next version, with a generation that has the rows up to a WAL position."""
        if flushed.generation != self.current_generation:
            msg = (
                f"generation {flushed.generation} of region {self.region_id} cannot be flushed "
                f"before generation {self.current_generation}"
            )
            raise CorruptTableError(msg, region=str(self.region_id))
        return replace(
            self,
            version=self.version + 1,
            generations=(*self.generations, flushed),
            current_generation=flushed.generation + 1,
            replay_after=max(self.replay_after, covers),
            last_seen=max(self.last_seen, covers),
        )

    def without(self, generations: Collection[int]) -> RegionManifest:
        """Return the next version, which does not list some merged generations."""
        remaining = tuple(g for g in self.generations if g.generation not in generations)
        return replace(self, version=self.version + 1, generations=remaining)

    def emptied(self, *, covers: int, current_generation: int) -> RegionManifest:
        """Return the next version, without the rows up to a WAL position."""
        return replace(
            self,
            version=self.version + 1,
            generations=(),
            current_generation=max(self.current_generation, current_generation),
            replay_after=max(self.replay_after, covers),
            last_seen=max(self.last_seen, covers),
        )

    def sealed(self) -> RegionManifest:
        """Return the next version, which is sealed: it accepts no more writers."""
        return replace(self, version=self.version + 1, status=table_pb2.REGION_SEALED)

    def unsealed(self) -> RegionManifest:
        """Return the next version, which takes writers again."""
        return replace(self, version=self.version + 1, status=table_pb2.REGION_ACTIVE)


_FIELD_VALUE = Conversion(
    lambda entry: (entry.field_id, entry.value),
    lambda pair: table_pb2.RegionFieldEntry(field_id=pair[0], value=pair[1]),
)
_MANIFEST = Codec(
    RegionManifest,
    table_pb2.RegionManifest,
    names={
        "spec_id": "region_spec_id",
        "replay_after": "replay_after_wal_entry_position",
        "last_seen": "wal_entry_position_last_seen",
        "generations": "flushed_generations",
        "field_values": "region_field_entries",
    },
    region_id=UUID,
    generations=Codec(Generation, table_pb2.FlushedGeneration),
    field_values=_FIELD_VALUE,
)


def decode(data: bytes) -> RegionManifest:
    """Read a manifest."""
    message = table_pb2.RegionManifest()
    parse(message, data, what="region manifest")
    for name in _COUNTERS:
        if getattr(message, name) > _MAX_COUNTER:
            msg = f"region manifest has an invalid {name}: {getattr(message, name)}"
            raise CorruptTableError(msg)
    return _MANIFEST.decode(message)


def encode(manifest: RegionManifest) -> bytes:
    """Write a manifest."""
    encoded: bytes = _MANIFEST.encode(manifest).SerializeToString(deterministic=True)
    return encoded


def encode_hint(version: int) -> bytes:
    """Write the hint at the newest manifest."""
    return f'{{"version":{version}}}'.encode()


def decode_hint(data: bytes) -> int | None:
    """Read the hint at the newest manifest; None when it is damaged."""
    try:
        version = json.loads(data)["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return version if isinstance(version, int) and version > 0 else None
