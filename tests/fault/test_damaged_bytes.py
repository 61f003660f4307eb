"""Damaged metadata bytes are either read or reported as a typed error."""

from __future__ import annotations

import pickle
import random
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import pytest
from google.protobuf.message import Message
from pyroaring import BitMap

from lancelake.errors import LanceTableError
from lancelake.format import deletion, index_meta, primary_key, refs
from lancelake.format import operations as ops
from lancelake.format.arrow_schema import (
    public_field,
    public_schema,
    storage_field,
    storage_schema,
)
from lancelake.format.fragment import BasePath, DeletionFileType, ExternalFile, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FieldId, Version
from lancelake.format.index_meta import MergedGeneration
from lancelake.format.manifest import decode_manifest, encode_manifest
from lancelake.format.operations import (
    BloomKeys,
    Clone,
    ExactKeys,
    KeyExistenceFilter,
    Merge,
    Operation,
    Overwrite,
    Project,
    Transaction,
    Update,
    UpdateBases,
    UpdateMemWalState,
    decode_transaction,
    encode_transaction,
)
from lancelake.format.rowids import RowIdSequence, VersionSequence
from lancelake.format.schema import Schema
from lancelake.proto import table_pb2, transaction_pb2
from tests.fault import odd_values
from tests.fault.damage import SEED, bounded, flips, truncations
from tests.unit.format.golden.files import RELEASES, STEPS, manifest, read

FLIPS = 10_000
ODD = 4_000
MAX_BUILT_ROWS = 100_000

Reader = Callable[[bytes], object]


def attempt(step: Callable[[], object]) -> None:
    """Do the step; our own errors are an answer, anything else is not."""
    with suppress(LanceTableError):
        step()


def read_manifest(data: bytes) -> None:
    found = decode_manifest(data)
    attempt(lambda: found.manifest.timestamp)
    attempt(lambda: found.manifest.has_stable_row_ids)
    read_schema(found.manifest.schema)
    read_fragments(found.manifest.fragments)
    attempt(lambda: encode_manifest(found.manifest))
    attempt(lambda: pickle.dumps(found.manifest))
    if found.index_section is not None:
        attempt(lambda: read_indices(found.index_section or b""))
    if found.inline_transaction is not None:
        attempt(lambda: read_transaction(found.inline_transaction or b""))


def read_schema(schema: Schema) -> None:
    attempt(lambda: storage_schema(schema))
    attempt(lambda: public_schema(schema))
    attempt(lambda: primary_key.ensure_valid(schema))
    schema.primary_key()
    for field in schema.walk():
        attempt(lambda field=field: storage_field(field))
        attempt(lambda field=field: public_field(field))
        attempt(lambda field=field: schema.resolve(schema.path_of(field.id) or ""))


def read_fragments(fragments: Iterable[Fragment]) -> None:
    with suppress(LanceTableError):
        for fragment in fragments:
            read_fragment(fragment)


def read_fragment(fragment: Fragment) -> None:
    rows = fragment.physical_rows or 0
    for file in fragment.files:
        attempt(lambda file=file: file.version)
    attempt(lambda: fragment.live_rows)
    if isinstance(fragment.row_ids, bytes):
        attempt(lambda: built(RowIdSequence.decode(fragment.row_ids, physical_rows=rows)))
    for versions in (fragment.created_at_versions, fragment.last_updated_at_versions):
        if isinstance(versions, bytes):
            attempt(
                lambda versions=versions: built(
                    VersionSequence.decode(versions, physical_rows=rows)
                )
            )


def built(sequence: RowIdSequence | VersionSequence) -> None:
    if len(sequence) <= MAX_BUILT_ROWS:
        assert len(sequence.values()) == len(sequence)


def read_indices(data: bytes) -> None:
    indices = index_meta.decode_section(data)
    for index in indices:
        attempt(index.fragments)
        attempt(lambda index=index: index_meta.describe(index.details))
    index_meta.encode_section(indices)


def read_transaction(data: bytes) -> None:
    found = decode_transaction(data)
    read_operation(found.operation)
    encode_transaction(found)
    pickle.dumps(found)


def read_operation(operation: Operation) -> None:
    if isinstance(operation, Overwrite | Merge | Project):
        read_schema(operation.schema)
    if isinstance(operation, Update):
        read_fragments((*operation.new_fragments, *operation.updated_fragments))
        if operation.inserted_rows is not None:
            ops.encode_keys(operation.inserted_rows)


def read_array(data: bytes) -> object:
    return deletion.encode(
        deletion.decode(data, DeletionFileType.ARROW_ARRAY), DeletionFileType.BITMAP
    )


def read_bitmap(data: bytes) -> object:
    return len(deletion.decode(data, DeletionFileType.BITMAP))


def read_tag(data: bytes) -> object:
    return refs.encode_tag(refs.decode_tag(data))


def read_branch(data: bytes) -> object:
    return refs.encode_branch(refs.decode_branch(data))


def written(operation: Operation) -> bytes:
    properties = FrozenMap({"__lance_commit_message": "why"})
    return encode_transaction(
        Transaction(read_version=Version(7), uuid="u", operation=operation, properties=properties)
    )


def with_everything() -> bytes:
    """Return a manifest with base paths, a branch, config and sequences in files."""
    base = BasePath(id=BaseId(0), name="main", is_dataset_root=True, path="s3://bucket/table")
    found = manifest("14.0.2", "stable_rewrite")
    fragment = found.manifest.fragments[0]
    files = tuple(replace(file, base_id=BaseId(0)) for file in fragment.files)
    external = ExternalFile(path="ids", offset=4, size=16)
    made = replace(
        found.manifest,
        fragments=(fragment, replace(fragment, id=9, files=files, created_at_versions=external)),
        base_paths=(base, replace(base, id=BaseId(1), name=None)),
        branch="feature/x",
        config=FrozenMap({"lance.auto_cleanup.interval": "20"}),
        table_metadata=FrozenMap({"k": "v"}),
        tag="v1",
    )
    section = manifest("14.0.2", "create_index").index_section
    return encode_manifest(made, index_section=section, transaction=found.inline_transaction)


def runs() -> bytes:
    bitmap = BitMap(range(10, 70_000)) | BitMap(range(100_000, 100_500))
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


MANIFESTS = {
    f"{release} {step}": read(release, f"{step}.manifest")
    for release, step in [
        ("4.0.2", "create"),
        ("14.0.2", "create_index"),
        ("4.0.2", "update_config"),
        ("14.0.2", "delete"),
        ("4.0.2", "stable_append"),
        ("14.0.2", "stable_rewrite"),
    ]
} | {"with everything": with_everything()}
KEYS = (FieldId(0), FieldId(3))
EXACT = KeyExistenceFilter(field_ids=KEYS, keys=ExactKeys(key_hashes=(1, 1 << 63)))
BLOOM = KeyExistenceFilter(field_ids=KEYS, keys=BloomKeys(bitmap=b"\7" * 64, num_bits=512))
MARK = MergedGeneration(region_id=uuid.UUID(int=5), generation=3)
TRANSACTIONS = {step: read("14.0.2", f"{step}.txn") for step in STEPS} | {
    "clone": written(
        Clone(
            is_shallow=True,
            ref_name="main",
            ref_version=Version(3),
            ref_path="s3://bucket/table",
            branch_name="dev",
        )
    ),
    "update_bases": written(
        UpdateBases(new_bases=(BasePath(id=BaseId(0), is_dataset_root=False, path="s3://b"),))
    ),
    "update_mem_wal_state": written(UpdateMemWalState(merged_generations=(MARK,))),
    "exact keys": written(Update(inserted_rows=EXACT, merged_generations=(MARK,))),
    "bloom keys": written(Update(inserted_rows=BLOOM)),
}
ARRAYS = {release: read(release, "deletions.arrow") for release in RELEASES} | {
    "ours": deletion.encode(BitMap(range(0, 900, 7)), DeletionFileType.ARROW_ARRAY)
}
BITMAPS = {
    "array": bytes(BitMap([1, 5, 70_000]).serialize()),
    "runs": runs(),
    "official": read("4.0.2", "deletions.bin"),
}
TAGS = {release: read(release, "tag.json") for release in RELEASES}
BRANCHES = {release: read(release, "sub_branch.json") for release in RELEASES}

KINDS: dict[str, tuple[Reader, Mapping[str, bytes]]] = {
    "manifest": (read_manifest, MANIFESTS),
    "transaction": (read_transaction, TRANSACTIONS),
    "deletion array": (read_array, ARRAYS),
    "deletion bitmap": (read_bitmap, BITMAPS),
    "tag": (read_tag, TAGS),
    "branch": (read_branch, BRANCHES),
}
CASES = [(kind, name) for kind, (_, samples) in KINDS.items() for name in samples]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_whole_bytes_are_read(kind, name):
    reader, samples = KINDS[kind]

    reader(samples[name])


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncation_is_read_or_reported(kind):
    reader, samples = KINDS[kind]
    with bounded(seconds=300):
        for data in samples.values():
            for damaged in truncations(data):
                attempt(lambda damaged=damaged: reader(damaged))


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bytes_are_read_or_reported(kind):
    reader, samples = KINDS[kind]
    with bounded(seconds=300):
        for damaged in flips(samples, FLIPS):
            attempt(lambda damaged=damaged: reader(damaged))


def test_a_manifest_with_odd_values_is_read_or_reported():
    chance = random.Random(SEED)
    with bounded(seconds=300):
        for _ in range(ODD):
            data = chance.choice(list(MANIFESTS.values()))
            (position,) = struct.unpack_from("<q", data, len(data) - 16)
            message = odd(table_pb2.Manifest, data[position + 4 : -16], chance)
            body = struct.pack("<I", len(message)) + message
            attempt(lambda data=data[:position] + body + data[-16:]: read_manifest(data))


def test_an_index_section_with_odd_values_is_read_or_reported():
    chance = random.Random(SEED)
    section = manifest("14.0.2", "create_index").index_section
    assert section is not None
    with bounded(seconds=300):
        for _ in range(ODD):
            data = odd(table_pb2.IndexSection, section, chance)
            attempt(lambda data=data: read_indices(data))


def test_a_transaction_with_odd_values_is_read_or_reported():
    chance = random.Random(SEED)
    with bounded(seconds=300):
        for _ in range(ODD):
            source = chance.choice(list(TRANSACTIONS.values()))
            data = odd(transaction_pb2.Transaction, source, chance)
            attempt(lambda data=data: read_transaction(data))


def odd(kind: type[Message], data: bytes, chance: random.Random) -> bytes:
    """Return the message with a few odd values in it."""
    message = kind.FromString(data)
    for _ in range(chance.randint(1, 4)):
        odd_values.set_one(message, chance)
    return message.SerializeToString()
