"""Hostile values for every field: outside locations, and excessive sizes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.format.deletion import ARROW_SCHEMA
from lancelake.format.fragment import DeletionFileType
from lancelake.proto import table_pb2
from lancelake.pylance import Blob, blob_array, blob_field
from tests.hostile.mutations import Leaf, leaves, unset
from tests.support.table_surgery import edit_manifest, edit_transaction

Tamper = Callable[[Path], object]
SIZES = (1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Places that must not be reached: a folder with a file in it, and a port."""

    folder: Path
    port: int

    @property
    def places(self) -> tuple[str, ...]:
        """The places as a table may write them."""
        file, host = self.folder / "secret", f"127.0.0.1:{self.port}"
        up = "/".join([".."] * 12)
        return (
            str(file),
            str(self.folder),
            f"file://{file}",
            f"file:{file}",
            f"{up}{file}",
            f"{up}{file}".replace(".", "%2e"),
            f"s3://bucket/x?endpoint=http://{host}&allow_http=true",
            f"s3+ddb://bucket/x?ddbTableName=t&endpoint=http://{host}&allow_http=true"
            f"&container_credentials_full_uri=http://{host}",
            "s3://other-bucket/x",
            "gs://other-bucket/x",
            f"abfss://c@2130706433:{self.port}\\x/y",
            f"http://{host}/x",
            "memory://elsewhere/x",
            "~/secret",
            "/dev/zero",
            "/proc/self/environ",
        )


def manifest_cases(sample: table_pb2.Manifest, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield every field of a manifest with places and sizes that it should not have."""
    for path, value in values(sample, outside):
        yield f"manifest {path} = {value!r:.70}", _in_manifest(path, value)


def transaction_cases(sample: Any, outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield every field of the newest transaction with places and sizes it should not have."""
    for path, value in values(sample, outside):
        yield f"transaction {path} = {value!r:.70}", _in_transaction(path, value)


def file_cases(outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield deletion files, refs, hints, config and links that no writer makes."""
    everything = BitMap()
    everything.add_range(0, 1 << 32)
    everything.run_optimize()
    yield "bitmap of all rows", lambda root: _deletions(root, bytes(everything.serialize()))
    zeros = pa.table([pa.array([0] * 5_000_000, pa.uint32())], schema=ARROW_SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, zeros.schema, options=options) as writer:
        writer.write_table(zeros)
    bomb = sink.getvalue().to_pybytes()
    yield "array of many rows", lambda root: _deletions(root, bomb, is_bitmap=False)
    for place in outside.places:
        for name in ("branch", "parentBranch", "version", "manifestSize"):
            body = json.dumps({"branch": None, "version": 1, "manifestSize": 1, name: place})
            yield f"tag {name} = {place}", _written("_refs/tags/first.json", body)
            yield f"branch {name} = {place}", _written("_refs/branches/side.json", body)
        yield f"config = {place}", _config("lance.auto_cleanup.interval", place)
    for size in ("9" * 5_000, str(1 << 64), "-1", "1e400"):
        for key in ("interval", "older_than", "retain_versions", "delete_rate_limit"):
            yield f"config {key} = {size:.30}", _config(f"lance.auto_cleanup.{key}", size)
    body = json.dumps({"branch": None, "version": 1 << 64, "manifestSize": 1 << 64})
    yield "tag of a huge version", _written("_refs/tags/first.json", body)
    yield "hint", _written("_versions/latest_version_hint.json", '{"version": 1e999}')
    yield "deep hint", _written("_versions/latest_version_hint.json", "[" * 100_000)
    yield "deep record", _written("_cleanup/x.json", "[" * 100_000)
    for name in ("data", "_deletions", "_transactions", "_refs", "tree", "_versions"):
        yield f"{name} is a link", _linked(name, outside.folder)
        yield f"link in {name}", _linked(f"{name}/sub", outside.folder)
        yield f"loop in {name}", _linked(f"{name}/loop", Path("loop"))
    yield "hint is a link", _linked("_versions/latest_version_hint.json", outside.folder / "secret")
    for name in ("_versions/latest_version_hint.json", "data/pipe.lance", "_cleanup/pipe.json"):
        yield f"pipe {name}", _piped(name)


def blob_cases(outside: Outside) -> Iterator[tuple[str, Tamper]]:
    """Yield external blobs at places outside, and of sizes and positions beyond reason."""
    for place in outside.places:
        yield f"blob {place}", _blob(Blob(uri=place))
    for size in SIZES:
        yield f"blob of size {size}", _blob_inside(0, size)
        yield f"blob at {size}", _blob_inside(size, 8)


def external_blob(uri: str) -> Tamper:
    """Replace the rows by some whose blobs are at a place."""
    return _blob(Blob(uri=uri))


def _blob(blob: Blob) -> Tamper:
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("blob")])
    rows = pa.table([pa.array(range(4), pa.int64()), blob_array([blob] * 4)], schema=schema)
    return lambda root: lance.write_dataset(
        rows, str(root), mode="overwrite", allow_external_blob_outside_bases=True
    )


def _blob_inside(position: int, size: int) -> Tamper:
    def write(root: Path) -> None:
        _blob(Blob(uri=str(root / "external.bin"), position=position, size=size))(root)

    return write


def values(sample: Any, outside: Outside) -> Iterator[tuple[str, object]]:
    seen = set()
    for leaf in (*leaves(sample), *unset(sample)):
        # One element of each list stands for the others.
        kind = "".join(c for c in leaf.path if not c.isdigit())
        if kind in seen:
            continue
        seen.add(kind)
        for value in _hostile(leaf, outside):
            yield leaf.path, value


def _hostile(leaf: Leaf, outside: Outside) -> Iterator[object]:
    if leaf.bounds is not None:
        yield from (size for size in SIZES if size <= leaf.bounds[1])
    elif leaf.field.type == FieldDescriptor.TYPE_STRING:
        yield from outside.places


def _in_manifest(path: str, value: object) -> Tamper:
    return lambda root: edit_manifest(root, lambda message: set_leaf(message, path, value))


def _in_transaction(path: str, value: object) -> Tamper:
    return lambda root: edit_transaction(root, lambda message: set_leaf(message, path, value))


def set_leaf(message: Any, path: str, value: object) -> None:
    found = next(leaf for leaf in (*leaves(message), *unset(message)) if leaf.path == path)
    found.set(value)


def _deletions(root: Path, data: bytes, *, is_bitmap: bool = True) -> None:
    """Replace every deletion file, and let the manifest claim rows enough for it."""
    kind = DeletionFileType.BITMAP if is_bitmap else DeletionFileType.ARROW_ARRAY
    for old in (root / "_deletions").iterdir():
        (root / "_deletions" / f"{old.stem}.{kind.value}").write_bytes(data)

    def claim(message: table_pb2.Manifest) -> None:
        for fragment in message.fragments:
            fragment.physical_rows = 1 << 32
            if fragment.HasField("deletion_file"):
                fragment.deletion_file.file_type = 1 if is_bitmap else 0

    edit_manifest(root, claim)


def _config(key: str, value: str) -> Tamper:
    def change(message: table_pb2.Manifest) -> None:
        message.config["lance.auto_cleanup.interval"] = "1"
        message.config[key] = value

    return lambda root: edit_manifest(root, change)


def _written(name: str, text: str) -> Tamper:
    def write(root: Path) -> None:
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(text)

    return write


def _linked(name: str, target: Path) -> Tamper:
    def link(root: Path) -> None:
        place = root / name
        place.parent.mkdir(exist_ok=True)
        if place.exists():
            place.rename(place.with_name(f"{place.name}.away"))
        place.symlink_to(target)

    return link


def _piped(name: str) -> Tamper:
    def pipe(root: Path) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        os.mkfifo(root / name)

    return pipe
