"""Hostile index entries, index files and MemWAL documents."""

from __future__ import annotations

import json
import os
import random
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.proto import table_pb2
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.hostile.cases import SIZES, Outside, Tamper, set_leaf, values
from tests.hostile.mutations import flip
from tests.support.table_surgery import edit_indices, edit_manifest

_FLIPS = 4
_DEEP = "[" * 100_000


def entry_cases(table: Path, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield every field of the index section with places and sizes that it should not have."""
    sample = _section(table)
    for path, value in values(sample, outside):
        yield f"entry {path} = {value!r:.70}", _entry(path, value)
    everything = BitMap()
    everything.add_range(0, 1 << 32)
    everything.run_optimize()
    for number, entry in enumerate(sample.indices):
        covered = bytes(everything.serialize())
        yield f"{entry.name} of all fragments", _bytes(number, "fragment_bitmap", covered)
        for seed in range(_FLIPS):
            chance = random.Random(seed)
            details = flip(entry.index_details.value or b"\x08\x01", chance)
            yield f"details of {entry.name}, {seed}", _details(number, details)


def index_file_cases(table: Path, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield every file of every index, damaged, or with places and sizes it should not have."""
    # In the order and by the names of the indices: their folders have random names.
    for entry in _section(table).indices:
        folder = str(uuid.UUID(bytes=entry.uuid.uuid))
        for name, tamper in _segment_cases(table, f"_indices/{folder}", outside):
            yield name.replace(folder, entry.name), tamper


def _segment_cases(table: Path, folder: str, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    for file in sorted(file for file in (table / folder).rglob("*") if file.is_file()):
        name = str(file.relative_to(table))
        yield from _damaged(name, outside)
        reader = _open(file)
        # The codec returns them in any order, and a sample is chosen by position.
        for key in sorted(reader.metadata):
            for value in (*map(str, SIZES), "-1", "x", "1e400", _DEEP, *outside.places[:3]):
                yield f"{_short(name)} {key} = {value:.40}", rewritten(name, metadata={key: value})
            for text in _other_numbers(reader.metadata[key]):
                yield f"{_short(name)} {key} = {text:.150}", rewritten(name, metadata={key: text})
        for column in reader.schema:
            for size in (1 << 31, (1 << 63) - 1, (1 << 64) - 1):
                if _fits(column.type, size):
                    change = {column.name: size}
                    yield f"{_short(name)} {column.name} = {size}", rewritten(name, values=change)
        for seed in range(_FLIPS):
            yield f"{_short(name)} buffers, {seed}", rewritten(name, flipped=seed)


def _other_numbers(text: str) -> Iterator[str]:
    """Yield a JSON text with each of its numbers replaced, also in JSON texts inside of it."""
    try:
        document = json.loads(text)
    except ValueError:
        return
    if isinstance(document, dict | list):
        yield from (json.dumps(other) for other in _other_documents(document))


def _other_documents(value: object) -> Iterator[object]:
    match value:
        case dict() | list():
            for key in value if isinstance(value, dict) else range(len(value)):
                for other in _other_documents(value[key]):  # type: ignore[index]  # JSON
                    changed = value.copy()
                    changed[key] = other  # type: ignore[index]  # JSON
                    yield changed
        case str():
            yield from _other_numbers(value)
        case bool() | None:
            return
        case _:
            yield from (-1, 1 << 31, (1 << 63) - 1, 1 << 64, 1e300, "x")


def memwal_cases(table: Path, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield region manifests, entries, filters and generations that no writer makes."""
    for path, value in values(_memwal_details(table), outside):
        yield f"details {path} = {value!r:.60}", _memwal_detail(path, value)
    newest = _newest_region_manifest(table)
    sample = table_pb2.RegionManifest()
    sample.ParseFromString(newest.read_bytes())
    name = str(newest.relative_to(table))
    for path, value in values(sample, outside):
        yield f"region {path} = {value!r:.60}", _region(name, path, value)
    # The names of generations begin with random characters.
    files = (table / "_mem_wal").rglob("*")
    for file in sorted(files, key=lambda file: re.sub(r"[0-9a-f]{8}_gen_", "gen_", str(file))):
        if file.is_file():
            yield from _damaged(str(file.relative_to(table)), outside)
    for size in SIZES:
        for key in (b"writer_epoch", b"generation"):
            yield f"entry {key!r} = {size}", _wal(key, b"%d" % size)
    yield "entry of many rows", _wal_bomb
    for hint in ('{"version": 1e999}', _DEEP, str(1 << 64)):
        yield f"hint {hint:.20}", _hint(hint)
    for generation in sorted((table / "_mem_wal").glob("*/*_gen_*"), key=lambda g: g.name[8:]):
        folder = str(generation.relative_to(table))
        for place in outside.places:
            yield f"base of {generation.name} = {place}", _generation_base(folder, place)


def _damaged(name: str, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    def changed(change: Callable[[bytes], bytes]) -> Tamper:
        return lambda root: (root / name).write_bytes(change((root / name).read_bytes()))

    yield f"{_short(name)} is empty", changed(lambda _: b"")
    yield f"{_short(name)} is cut", changed(lambda data: data[: len(data) // 2])
    for seed in range(_FLIPS):
        chance = random.Random(f"{name}{seed}"[-8:])
        yield (
            f"{_short(name)} has other bits, {seed}",
            changed(lambda data, c=chance: flip(data, c)),
        )
    yield (
        f"{_short(name)} is a link",
        lambda root: _replaced(
            root / name, lambda file: file.symlink_to(outside.folder / "secret")
        ),
    )
    yield f"{_short(name)} is a pipe", lambda root: _replaced(root / name, os.mkfifo)


def _replaced(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink()
    make(file)


def _short(name: str) -> str:
    return "/".join(name.split("/")[-2:])


def _section(table: Path) -> table_pb2.IndexSection:
    found = table_pb2.IndexSection()
    edit_indices(table, found.CopyFrom)
    return found


def _entry(path: str, value: object) -> Tamper:
    return lambda root: edit_indices(root, lambda section: set_leaf(section, path, value))


def _bytes(number: int, field: str, data: bytes) -> Tamper:
    return lambda root: edit_indices(
        root, lambda section: setattr(section.indices[number], field, data)
    )


def _details(number: int, data: bytes) -> Tamper:
    return lambda root: edit_indices(
        root, lambda section: setattr(section.indices[number].index_details, "value", data)
    )


def _open(file: Path) -> IndexFileReader:
    return IndexFileReader(FileAt(root=Location.parse(file.parent), path=file.name))


def _fits(dtype: pa.DataType, number: int) -> bool:
    if not pa.types.is_integer(dtype):
        return False
    bits = dtype.bit_width - pa.types.is_signed_integer(dtype)
    return number < 1 << bits


def rewritten(
    name: str,
    *,
    metadata: dict[str, str] | None = None,
    values: dict[str, object] | None = None,
    flipped: int | None = None,
) -> Tamper:
    """Write an index file again with other metadata, values of columns or global buffers."""

    def write(root: Path) -> None:
        file = root / name
        reader = _open(file)
        rows, known = reader.read(), reader.metadata
        buffers = _buffers(reader)
        if flipped is not None:
            buffers = [flip(data, random.Random(flipped)) if data else data for data in buffers]
        for column, value in (values or {}).items():
            place = rows.schema.get_field_index(column)
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.array([value] * rows.num_rows, field.type))
        file.unlink()
        folder = SegmentFolder(
            place=FileAt(root=Location.parse(file.parent.parent), path=file.parent.name)
        )
        writer = folder.create(file.name, rows.schema)
        for batch in rows.to_batches():
            writer.write(batch)
        for data in buffers:
            writer.add_buffer(data)
        writer.finish({**known, **(metadata or {})})

    return write


def _buffers(reader: IndexFileReader) -> list[bytes]:
    found: list[bytes] = []
    # The first is the schema, which the writer adds itself.
    for number in range(1, 64):
        try:
            found.append(reader.buffer_at(number))
        except Exception:  # noqa: BLE001  # whatever says that there are no more
            break
    return found


def _memwal_details(table: Path) -> table_pb2.MemWalIndexDetails:
    found = table_pb2.MemWalIndexDetails()
    found.ParseFromString(_section(table).indices[0].index_details.value)
    return found


def _memwal_detail(path: str, value: object) -> Tamper:
    def change(section: table_pb2.IndexSection) -> None:
        details = table_pb2.MemWalIndexDetails()
        details.ParseFromString(section.indices[0].index_details.value)
        set_leaf(details, path, value)
        section.indices[0].index_details.value = details.SerializeToString()

    return lambda root: edit_indices(root, change)


def _newest_region_manifest(table: Path) -> Path:
    def version(file: Path) -> int:
        message = table_pb2.RegionManifest()
        message.ParseFromString(file.read_bytes())
        return int(message.version)

    return max((table / "_mem_wal").glob("*/manifest/*.binpb"), key=version)


def _region(name: str, path: str, value: object) -> Tamper:
    def change(root: Path) -> None:
        message = table_pb2.RegionManifest()
        message.ParseFromString((root / name).read_bytes())
        set_leaf(message, path, value)
        (root / name).write_bytes(message.SerializeToString())

    return change


def _entries(root: Path) -> Iterator[tuple[Path, pa.Schema, list[pa.RecordBatch]]]:
    for file in sorted((root / "_mem_wal").glob("*/wal/*.arrow")):
        with pa.ipc.open_stream(file.read_bytes()) as stream:
            yield file, stream.schema, list(stream)


def _wal(key: bytes, value: bytes) -> Tamper:
    def change(root: Path) -> None:
        for file, schema, batches in _entries(root):
            _write_stream(file, schema.with_metadata({**schema.metadata, key: value}), batches)

    return change


def _wal_bomb(root: Path) -> None:
    """Let every entry with rows have millions that take a few kilobytes on disk."""
    for file, schema, batches in _entries(root):
        if batches:
            count = 20_000_000
            columns = [pa.nulls(count, field.type) for field in schema]
            many = pa.RecordBatch.from_arrays(columns, names=schema.names)
            _write_stream(file, pa.schema(many.schema, schema.metadata), [many])


def _write_stream(file: Path, schema: pa.Schema, batches: list[pa.RecordBatch]) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(str(file), schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))


def _hint(text: str) -> Tamper:
    def change(root: Path) -> None:
        for folder in (root / "_mem_wal").glob("*/manifest"):
            (folder / "version_hint.json").write_text(text)

    return change


def _generation_base(folder: str, place: str) -> Tamper:
    def change(message: table_pb2.Manifest) -> None:
        base = message.base_paths.add(id=1, path=place)
        base.is_dataset_root = True
        for fragment in message.fragments:
            for file in fragment.files:
                file.base_id = 1

    return lambda root: edit_manifest(root / folder, change)
