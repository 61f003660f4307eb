"""Unknown fields of newer writers survive at every level of manifests and transactions."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from google.protobuf.message import Message

from lancelake.format import index_meta
from lancelake.format.manifest import decode_manifest, encode_manifest
from lancelake.format.operations import decode_transaction, encode_transaction
from lancelake.proto import table_pb2, transaction_pb2
from tests.unit.format.golden.files import RELEASES, STEPS, read

STRANGER = b"\xfa\xff\x01\x02hi"  # field 4095
POSITIONS = ("index_section", "transaction_section", "transaction_section_v14")
LEVELS = (
    "lance.table.Manifest",
    "lance.table.Transaction",
    "lance.table.DataFragment",
    "lance.table.DataFile",
    "lance.table.DeletionFile",
    "lance.table.IndexMetadata",
    "lance.table.BasePath",
    "lance.file.Field",
    "lance.table.Transaction.Append",
    "lance.table.Transaction.CreateIndex",
    "lance.table.Transaction.DataReplacement",
    "lance.table.Transaction.Delete",
    "lance.table.Transaction.Merge",
    "lance.table.Transaction.Overwrite",
    "lance.table.Transaction.Project",
    "lance.table.Transaction.ReserveFragments",
    "lance.table.Transaction.Restore",
    "lance.table.Transaction.Rewrite",
    "lance.table.Transaction.Rewrite.RewriteGroup",
    "lance.table.Transaction.Rewrite.RewrittenIndex",
    "lance.table.Transaction.Update",
    "lance.table.Transaction.UpdateConfig",
)


def messages(root: Message) -> Iterator[Message]:
    """Yield the message and all below it, maps aside."""
    yield root
    for field, value in root.ListFields():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if field.message_type is None or is_map:
            continue
        for child in value if field.is_repeated else [value]:
            yield from messages(child)


def with_strangers(root: Message, level: str) -> int:
    """Give every message of a type a field that it does not have; return how many there were."""
    found = [m for m in messages(root) if m.DESCRIPTOR.full_name == level]
    for message in found:
        message.MergeFromString(STRANGER)
    return len(found)


def manifest_message(data: bytes) -> table_pb2.Manifest:
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    for name in POSITIONS:
        message.ClearField(name)
    return message


def framed(message: table_pb2.Manifest) -> bytes:
    body = message.SerializeToString()
    return struct.pack("<I", len(body)) + body + struct.pack("<qHH4s", 0, 0, 2, b"LANC")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_field_of_a_newer_writer_is_written_again(release, level):
    count = 0
    for step in STEPS:
        manifest = manifest_message(read(release, f"{step}.manifest"))
        manifest.base_paths.add(id=0, path="p")
        count += with_strangers(manifest, level)
        again = encode_manifest(decode_manifest(framed(manifest)).manifest)
        assert manifest_message(again) == manifest

        committed = transaction_pb2.Transaction.FromString(read(release, f"{step}.txn"))
        count += with_strangers(committed, level)
        again = encode_transaction(decode_transaction(committed.SerializeToString()))
        assert transaction_pb2.Transaction.FromString(again) == committed

    assert count > 0


@pytest.mark.parametrize("release", RELEASES)
def test_a_field_of_a_newer_writer_is_kept_in_the_index_section(release):
    data = decode_manifest(read(release, "create_index.manifest")).index_section
    assert data is not None
    section = table_pb2.IndexSection.FromString(data)
    with_strangers(section, "lance.table.IndexMetadata")
    again = index_meta.encode_section(index_meta.decode_section(section.SerializeToString()))

    assert table_pb2.IndexSection.FromString(again) == section
