"""Files of a MemWAL: names, and entries of the log."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.format.deletion import stream_size
from lancelake.format.frozen import FrozenMap

ROOT = "_mem_wal"
BLOOM_FILE = "bloom_filter.bin"
KEY_INDEX = "_pk_index"

ParseName = Callable[[str], int | None]
"""Returns the number in a file's name; None for other files."""

_GENERATION_DIR = re.compile(r"[0-9a-f]{8}_gen_(\d{1,19})")
_BITS = 64
_MANIFEST_SUFFIX = ".binpb"
_WAL_SUFFIX = ".arrow"
# LanceDB derives region ids from the names of their values in this namespace.
_NAMESPACE = uuid.UUID(bytes=b"LSMWRITE_SHARD01")


def region_dir(region: uuid.UUID) -> str:
    """Folder of a region."""
    return f"{ROOT}/{region}"


def parse_region_dir(name: str) -> uuid.UUID | None:
    """Return the region of a folder below `_mem_wal`; None when it is not one of a region."""
    try:
        region = uuid.UUID(name)
    except ValueError:
        return None
    return region if str(region) == name else None


def manifest_dir(region: uuid.UUID) -> str:
    """Folder of the manifests of a region."""
    return f"{region_dir(region)}/manifest"


def manifest(region: uuid.UUID, version: int) -> str:
    """Path of a manifest."""
    return f"{manifest_dir(region)}/{_reversed(version)}{_MANIFEST_SUFFIX}"


def version_hint(region: uuid.UUID) -> str:
    """Path of the hint at the newest manifest."""
    return f"{manifest_dir(region)}/version_hint.json"


def wal_dir(region: uuid.UUID) -> str:
    """Folder of the WAL entries of a region."""
    return f"{region_dir(region)}/wal"


def wal_entry(region: uuid.UUID, position: int) -> str:
    """Path of a WAL entry."""
    return f"{wal_dir(region)}/{_reversed(position)}{_WAL_SUFFIX}"


def parse_manifest(name: str) -> int | None:
    """Return the version of a manifest's file name; None for other files."""
    return _parsed(name, _MANIFEST_SUFFIX)


def parse_wal_entry(name: str) -> int | None:
    """Return the position of a WAL entry's file name; None for other files."""
    return _parsed(name, _WAL_SUFFIX)


def new_generation_dir(unique: int, generation: int) -> str:
    """Return the name of a generation's folder; `unique` is a random number."""
    return f"{unique & 0xFFFFFFFF:08x}_gen_{generation}"


def parse_generation_dir(name: str) -> int | None:
    """Return the generation of a folder's name; None for other folders."""
    match = _GENERATION_DIR.fullmatch(name)
    return None if match is None else int(match[1])


def generation_dir(region: uuid.UUID, path: str) -> str:
    """Folder of a generation, whose path a manifest has."""
    if not path or path in (".", "..") or "/" in path or "\\" in path or "\0" in path:
        msg = f"the manifest of region {region} has the invalid generation path {path!r}"
        raise CorruptTableError(msg, path=path)
    return f"{region_dir(region)}/{path}"


def bucket_region(bucket: int) -> uuid.UUID:
    """Return the region of a bucket."""
    return _named(f"bucket-{bucket}".encode())


def identity_region(value: bytes) -> uuid.UUID:
    """Return the region of a value, given as little-endian or UTF-8 bytes."""
    return _named(b"identity-" + value)


def unsharded_region() -> uuid.UUID:
    """Return the only region of a table that is not sharded."""
    return _named(b"unsharded")


def _named(name: bytes) -> uuid.UUID:
    # uuid5 takes text, and values may be any bytes.
    digest = hashlib.sha1(_NAMESPACE.bytes + name, usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def _reversed(number: int) -> str:
    return format(number, f"0{_BITS}b")[::-1]


def _parsed(name: str, suffix: str) -> int | None:
    stem = name.removesuffix(suffix)
    if stem == name or len(stem) != _BITS or set(stem) - {"0", "1"}:
        return None
    return int(stem[::-1], 2)


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
        counts = json.loads(text)
    except (ValueError, RecursionError):
        counts = None
    if not isinstance(counts, dict) or not all(type(batch) is int for batch in counts.values()):
        raise CorruptTableError(f"WAL entry {path} has the streaming batches {text!r}", path=path)
    return FrozenMap(counts)


def _number(metadata: dict[bytes, bytes], key: bytes, path: str) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdigit():
        msg = f"WAL entry {path} has the {key.decode()} {text!r}"
        raise CorruptTableError(msg, path=path)
    return int(text)
