"""WAL entries: Arrow IPC streams with the epoch and generation of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.errors import CorruptTableError

_EPOCH = b"writer_epoch"
_GENERATION = b"generation"
_SENTINEL = b"fence_sentinel"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalEntry:
    """One WAL entry; `generation` is None for an entry of a release that did not record it."""

    writer_epoch: int
    generation: int | None
    batches: tuple[pa.RecordBatch, ...]
    is_sentinel: bool = False

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(batch.num_rows for batch in self.batches)


def encode(
    schema: pa.Schema, batches: Sequence[pa.RecordBatch], *, writer_epoch: int, generation: int
) -> bytes:
    """Write an entry with the rows of one generation."""
    # Official releases refuse an entry whose schema has any other metadata.
    metadata = {_GENERATION: b"%d" % generation, _EPOCH: b"%d" % writer_epoch}
    return _stream(schema.with_metadata(metadata), batches)


def encode_sentinel(writer_epoch: int) -> bytes:
    """Write an entry without rows, which takes the next position from earlier writers."""
    metadata = {_SENTINEL: b"true", _EPOCH: b"%d" % writer_epoch}
    return _stream(pa.schema([], metadata), ())


def decode(data: bytes, *, path: str) -> WalEntry:
    """Read an entry."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            metadata = reader.schema.metadata or {}
            plain = reader.schema.remove_metadata()
            batches = tuple(
                pa.RecordBatch.from_arrays(batch.columns, schema=plain)
                for batch in reader
                if batch.num_columns
            )
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
        batches=batches,
        is_sentinel=metadata.get(_SENTINEL) == b"true",
    )


def _stream(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
    return bytes(sink.getvalue())


def _number(metadata: dict[bytes, bytes], key: bytes, path: str) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdigit():
        msg = f"WAL entry {path} has the {key.decode()} {text!r}"
        raise CorruptTableError(msg, path=path)
    return int(text)
