"""Damage tables: manifests are decoded, changed and written back."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from lancelake.format.layout import parse_manifest_name
from lancelake.proto import table_pb2, transaction_pb2

FOOTER = struct.Struct("<qHH4s")
LENGTH = struct.Struct("<I")


def manifest_path(root: Path, version: int | None = None) -> Path:
    """Return the manifest of a version; of the latest when none is named."""
    found = {}
    for path in (root / "_versions").iterdir():
        name = parse_manifest_name(path.name)
        if name is not None:
            found[int(name.version)] = path
    return found[max(found) if version is None else version]


def edit_manifest(
    root: Path, change: Callable[[table_pb2.Manifest], None], version: int | None = None
) -> Path:
    """Change a manifest in place; the sections before it stay as they are."""
    path = manifest_path(root, version)
    data = path.read_bytes()
    position, major, minor, magic = FOOTER.unpack(data[-FOOTER.size :])
    message = table_pb2.Manifest()
    message.ParseFromString(data[position + LENGTH.size : -FOOTER.size])
    change(message)
    body = message.SerializeToString()
    footer = FOOTER.pack(position, major, minor, magic)
    path.write_bytes(data[:position] + LENGTH.pack(len(body)) + body + footer)
    return path


def set_commit_time(root: Path, version: int, time_ns: int) -> None:
    """Let a version say that it was committed at another time."""

    def change(message: table_pb2.Manifest) -> None:
        message.timestamp.seconds, message.timestamp.nanos = divmod(time_ns, 1_000_000_000)

    edit_manifest(root, change, version)


def edit_indices(root: Path, change: Callable[[table_pb2.IndexSection], None]) -> None:
    """Change the index section of the latest manifest, which is then put first."""
    path = manifest_path(root)
    data = path.read_bytes()
    position, major, minor, magic = FOOTER.unpack(data[-FOOTER.size :])
    message = table_pb2.Manifest()
    message.ParseFromString(data[position + LENGTH.size : -FOOTER.size])
    section = table_pb2.IndexSection()
    section.ParseFromString(_section(data, message.index_section))
    change(section)
    encoded = section.SerializeToString()
    head = LENGTH.pack(len(encoded)) + encoded
    message.index_section = 0
    _drop_inline_transaction(message)
    body = message.SerializeToString()
    footer = FOOTER.pack(len(head), major, minor, magic)
    path.write_bytes(head + LENGTH.pack(len(body)) + body + footer)


def edit_transaction(
    root: Path, change: Callable[[transaction_pb2.Transaction], None], version: int | None = None
) -> None:
    """Change the transaction of a version, which is then kept beside the manifest only."""
    edit_manifest(root, _drop_inline_transaction, version)
    path = transaction_path(root, version)
    message = transaction_pb2.Transaction()
    message.ParseFromString(path.read_bytes())
    change(message)
    path.write_bytes(message.SerializeToString())


def transaction_path(root: Path, version: int | None = None) -> Path:
    """Return the transaction file of a version."""
    data = manifest_path(root, version).read_bytes()
    position = FOOTER.unpack(data[-FOOTER.size :])[0]
    message = table_pb2.Manifest()
    message.ParseFromString(data[position + LENGTH.size : -FOOTER.size])
    return root / "_transactions" / message.transaction_file


def drop_inline_transaction(root: Path, version: int | None = None) -> None:
    """Leave a version with its transaction file only."""
    edit_manifest(root, _drop_inline_transaction, version)


def _drop_inline_transaction(message: table_pb2.Manifest) -> None:
    message.ClearField("transaction_section")
    message.ClearField("transaction_section_v14")


def _section(data: bytes, position: int) -> bytes:
    (length,) = LENGTH.unpack_from(data, position)
    start = position + LENGTH.size
    return data[start : start + length]
