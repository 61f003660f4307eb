"""WAL entries: Arrow IPC streams with the epoch and generation of their rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.format.arrow_message import stream_size
from lancelake.format.frozen import FrozenMap

_EPOCH = b"writer_epoch"
_GENERATION = b"generation"
_SENTINEL = b"fence_sentinel"
_UNITS = b"lancelake:units"
_MAX_EXPANDED = 64 << 20
_MAX_RATIO = 16
_NO_UNITS: FrozenMap[str, int] = FrozenMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class WalEntry:
    """One WAL entry; `generation` is None for an entry of a release that did not record it."""

    writer_epoch: int
    generation: int | None
    batches: tuple[pa.RecordBatch, ...]
    is_sentinel: bool = False
    units: FrozenMap[str, int] = field(default_factory=FrozenMap)
    """Last batch of each streaming query in the region, up to this entry."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(batch.num_rows for batch in self.batches)


def encode(
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    *,
    writer_epoch: int,
    generation: int,
    units: Mapping[str, int] = _NO_UNITS,
) -> bytes:
    """Write an entry with the rows of one generation."""
    # Official releases refuse an entry whose schema has any other metadata; that of record batches
    # they ignore.
    metadata = {_GENERATION: b"%d" % generation, _EPOCH: b"%d" % writer_epoch}
    return _stream(schema.with_metadata(metadata), batches, units)


def encode_sentinel(writer_epoch: int) -> bytes:
    """Write an entry without rows, which takes the next position from earlier writers."""
    metadata = {_SENTINEL: b"true", _EPOCH: b"%d" % writer_epoch}
    return _stream(pa.schema([], metadata), ())


def decode(data: bytes, *, path: str) -> WalEntry:
    """Read an entry."""
    units = _NO_UNITS
    batches: list[pa.RecordBatch] = []
    try:
        _ensure_bounded(data)
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            metadata = reader.schema.metadata or {}
            plain = reader.schema.remove_metadata()
            for batch, own in reader.iter_batches_with_custom_metadata():
                units = _units(own, path) or units
                if batch.num_columns:
                    batches.append(pa.RecordBatch.from_arrays(batch.columns, schema=plain))
        for batch in batches:
            batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptTableError(f"WAL entry {path} cannot be read: {error}", path=path) from error
    epoch = _number(metadata, _EPOCH, path)
    if epoch is None:
        raise CorruptTableError(f"WAL entry {path} has no writer epoch", path=path)
    return WalEntry(
        writer_epoch=epoch,
        generation=_number(metadata, _GENERATION, path),
        batches=tuple(batches),
        is_sentinel=metadata.get(_SENTINEL) == b"true",
        units=units,
    )


def _ensure_bounded(data: bytes) -> None:
    """Raise for an entry that is small only because it is compressed, before it is expanded."""
    size = stream_size(data)
    if size > max(_MAX_EXPANDED, _MAX_RATIO * len(data)):
        raise ValueError(f"it claims {size} bytes of rows in {len(data)}")


def _stream(
    schema: pa.Schema, batches: Sequence[pa.RecordBatch], units: Mapping[str, int] = _NO_UNITS
) -> bytes:
    sink = pa.BufferOutputStream()
    own = {_UNITS: json.dumps(dict(units))} if units else None
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            shaped = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            writer.write_batch(shaped, custom_metadata=own)
            own = None
    return bytes(sink.getvalue())


def _units(metadata: Mapping[bytes, bytes] | None, path: str) -> FrozenMap[str, int] | None:
    text = (metadata or {}).get(_UNITS)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(type(batch) is int for batch in found.values()):
        raise CorruptTableError(f"WAL entry {path} has the streaming batches {text!r}", path=path)
    return FrozenMap(found)


def _number(metadata: dict[bytes, bytes], key: bytes, path: str) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdigit():
        msg = f"WAL entry {path} has the {key.decode()} {text!r}"
        raise CorruptTableError(msg, path=path)
    return int(text)
