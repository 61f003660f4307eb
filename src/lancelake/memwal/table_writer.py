"""Writer of all regions of a table: rows are routed to them by key, each batch once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake import errors
from lancelake.commit.snapshot import Snapshot
from lancelake.format.frozen import FrozenMap
from lancelake.format.memwal import details, wal_files, wal_keys
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.region import RegionFiles, details_of
from lancelake.memwal.shape import RowShape
from lancelake.memwal.writer import Convert, RegionWriter, WriterOptions
from lancelake.storage.store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a spec, and the value that its rows share as raw bytes."""

    id: uuid.UUID
    value: bytes

    def new_manifest(self) -> RegionManifest:
        """Return the state of the region before its first writer."""
        values = ((details.FIELD, self.value),)
        return RegionManifest(region_id=self.id, spec_id=details.SPEC_ID, field_values=values)


def region_of(spec: details.RegionSpec | None, region: uuid.UUID) -> RegionManifest:
    """Return the state before its first writer of a region that a caller named.

    The value of a region is recorded where its id reveals it.
    """
    match spec:
        case None:
            return RegionManifest(region_id=region)
        case details.Unsharded():
            values = {wal_files.unsharded_region(): 0}
        case details.Bucketed():
            values = {wal_files.bucket_region(n): n for n in range(spec.buckets)}
        case details.ByValue():
            values = {}
        case _:
            assert_never(spec)
    if region not in values:
        return RegionManifest(region_id=region, spec_id=details.SPEC_ID)
    return Region(id=region, value=values[region].to_bytes(4, "little")).new_manifest()


def routed(
    spec: details.RegionSpec | None, shape: RowShape, rows: pa.RecordBatch
) -> Iterator[tuple[Region, pa.RecordBatch]]:
    """Divide rows by region; rows of a region keep their order."""
    match spec:
        case None:
            raise errors.InvalidRequestError(
                "the MemWAL has no region spec: name the region of a writer"
            )
        case details.Unsharded():
            value = (0).to_bytes(4, "little")
            yield Region(id=wal_files.unsharded_region(), value=value), rows
        case details.Bucketed():
            numbers = wal_keys.buckets(_source(spec, shape, rows), spec.buckets)
            for bucket in np.unique(numbers).tolist():
                region = Region(
                    id=wal_files.bucket_region(bucket), value=bucket.to_bytes(4, "little")
                )
                yield region, rows.filter(pa.array(numbers == bucket))
        case details.ByValue():
            source = _source(spec, shape, rows)
            for scalar in pc.unique(source):
                value = _raw(scalar)
                region = Region(id=wal_files.identity_region(value), value=value)
                yield region, rows.filter(pc.equal(source, scalar))
        case _:
            assert_never(spec)


def _source(
    spec: details.Bucketed | details.ByValue, shape: RowShape, rows: pa.RecordBatch
) -> pa.Array:
    field = next((f for f in shape.table.fields if f.id == spec.column), None)
    if field is None:
        raise errors.CorruptTableError(
            f"the region spec refers to field {spec.column}, which does not exist"
        )
    if field.name not in shape.keys:
        # A row could then leave its region, and its earlier value would come back.
        msg = f"column {field.name} chooses the region of a row, but is not part of the key"
        raise errors.InvalidRequestError(msg, column=field.name)
    return rows.column(field.name)


def _raw(scalar: pa.Scalar) -> bytes:
    kind, value = scalar.type, scalar.as_py()
    if wal_keys.is_text(kind):
        return bytes(value.encode())
    if pa.types.is_boolean(kind):
        return bytes([value])
    if pa.types.is_integer(kind):
        signed = bool(pa.types.is_signed_integer(kind))
        return int(value).to_bytes(kind.bit_width // 8, "little", signed=signed)
    raise errors.InvalidRequestError(f"a column of type {kind} cannot choose a region")


_DEFAULT = WriterOptions()


class TableWriter:
    """Upserts and deletes of any keys; threads may share it.

    A region is claimed by the first of its rows. A call is durable when it returns; one that
    fails may have written the rows of some regions.
    """

    def __init__(self, base: Snapshot, options: WriterOptions = _DEFAULT) -> None:
        self._base = base
        self._options = options
        self._lock = threading.Lock()
        self._writers: dict[uuid.UUID, RegionWriter] = {}
        self._shape = RowShape.of(base)
        self._spec = details_of(base).spec()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(flush=kind is None)

    @property
    def writers(self) -> dict[uuid.UUID, RegionWriter]:
        """Writers of the regions that were claimed, for reads of this process's rows."""
        with self._lock:
            return dict(self._writers)

    def put(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Insert rows, or replace those of the same key; durable when this returns."""
        self._write(self._shape.upserts, rows)

    def delete(self, keys: pa.Table | pa.RecordBatch) -> None:
        """Delete the rows of keys, given by the key columns; durable when this returns."""
        self._write(self._shape.tombstones, keys)

    def flush(self) -> None:
        """Write all rows in memory as generations."""
        for writer in self.writers.values():
            writer.flush()

    def close(self, *, flush: bool = True) -> None:
        """Flush and stop all writers; the first failure is raised after all have stopped."""
        failure: Exception | None = None
        for writer in self.writers.values():
            try:
                writer.close(flush=flush)
            except Exception as error:  # noqa: BLE001  # raised below
                failure = failure or error
        if failure is not None:
            raise failure

    def _write(self, convert: Convert, given: pa.Table | pa.RecordBatch) -> None:
        with errors.naming(self._base.location.uri, self._base.version):
            for batch in convert(given):
                for region, rows in routed(self._spec, self._shape, batch):
                    self._writer(region).write((rows,))

    def _writer(self, region: Region) -> RegionWriter:
        with self._lock:
            writer = self._writers.get(region.id)
            if writer is None:
                writer = RegionWriter(self._base, region.new_manifest(), options=self._options)
                self._writers[region.id] = writer
            return writer


_INLINE = WriterOptions(flushes_in_background=False)
_ATTEMPTS = 5
_MOST_QUERIES = 256
_FLUSHED_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A batch of a streaming query; the batches of a query have ascending numbers."""

    query: str
    batch: int


def write_once(
    base: Snapshot,
    region: RegionManifest,
    batches: Sequence[pa.RecordBatch],
    unit: Unit,
    *,
    options: WriterOptions = _INLINE,
    flushed_rows: int = _FLUSHED_ROWS,
    store: ObjectStore | None = None,
) -> bool:
    """Write the rows of a batch for one region; return False if the region already has the batch.

    `region` is the state of the region if it does not exist yet, and `batches` are rows as
    `RowShape` converts them: they become one WAL entry. The tail is flushed when it has
    `flushed_rows`. Of several tasks for the same batch one writes it, and all return; the caller
    must not begin the next batch of the query before.
    """
    if not batches:
        return False
    for _ in range(_ATTEMPTS):
        try:
            writer = RegionWriter(base, region, options=options, store=store)
            batches_before = last_batches(writer.files)
            if batches_before.get(unit.query, -1) >= unit.batch:
                writer.close(flush=False)
                return False
            writer.write(batches, _with(batches_before, unit))
            writer.close(flush=writer.tail_rows >= flushed_rows)
        except errors.WriterFencedError:
            # Another task has the region now, and perhaps it writes the same batch.
            continue
        return True
    msg = f"batch {unit.batch} of query {unit.query} was fenced {_ATTEMPTS} times"
    raise errors.ContentionError(msg, region=str(region.region_id))


def last_batches(files: RegionFiles) -> Mapping[str, int]:
    """Return the last batch of each query in a region: the newest entry that has any has them all.

    Garbage collection keeps that entry.
    """
    for position in reversed(files.positions()):
        try:
            data = files.entry_bytes(position)
        except errors.ObjectNotFoundError:
            # Collected since the listing: a later entry has been read, or follows.
            continue
        units = wal_files.decode(data, path=wal_files.wal_entry(files.region, position)).units
        if units:
            return units
    return FrozenMap()


def _with(batches: Mapping[str, int], unit: Unit) -> dict[str, int]:
    """Return the last batches with one more; of many queries those that wrote last."""
    others = [(query, last) for query, last in batches.items() if query != unit.query]
    return dict([*others, (unit.query, unit.batch)][-_MOST_QUERIES:])
