"""A table to commit to, without a data layer: its first version, requests, and what is in it."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa
from pyroaring import BitMap

from lancelake.clock import Clock, Ids, SystemIds
from lancelake.commit.candidate import (
    CommitRequest,
    CommitServices,
    Landed,
    RequestChoices,
    landed_at,
)
from lancelake.commit.handler import ConditionalPut
from lancelake.commit.snapshot import Snapshot, VersionLine
from lancelake.format import arrow_schema, deletion, index_meta, layout
from lancelake.format.fragment import (
    DataFile,
    DeletionFile,
    DeletionFileType,
    FileVersion,
    Fragment,
)
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import (
    ManifestNaming,
    data_file_name,
    manifest_name,
    transaction_file_name,
)
from lancelake.format.manifest import Manifest, WriterVersion, encode_manifest
from lancelake.format.operations import (
    MapUpdate,
    Operation,
    Overwrite,
    Transaction,
    UpdateConfig,
    encode_transaction,
)
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore
from lancelake.txn.options import NOTHING_KNOWN, BuildOptions, Facts, MissingFacts, TableState
from tests.support.set_clock import ManualClock

ROWS = 10
WRITER = WriterVersion(library="lancelake", version="0.0.0")
SCHEMA = arrow_schema.from_arrow(pa.schema([pa.field("id", pa.int64()), ("v", pa.int32())]))
OPTIONS = BuildOptions(timestamp_ns=0, writer=WRITER)
_LOCATION = Location(uri="memory://scheduled")


@functools.cache
def data_file_bytes() -> bytes:
    """Return a data file of ten rows with both columns."""
    from lance.file import LanceFileWriter

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.lance"
        values = {"id": pa.array(range(ROWS), pa.int64()), "v": pa.array(range(ROWS), pa.int32())}
        table = pa.table(values)
        with LanceFileWriter(str(path), table.schema, version="2.1") as writer:
            for batch in table.to_batches():
                writer.write_batch(batch)
        return path.read_bytes()


def fragment(number: int, *, id: int = 0, size_bytes: int | None = None) -> Fragment:
    """Return a fragment whose only file is the `number`-th of all."""
    major, minor = FileVersion.V2_1.numbers
    file = DataFile(
        path=data_file_name(UUID(int=number)),
        fields=(FieldId(0), FieldId(1)),
        column_indices=(0, 1),
        file_major_version=major,
        file_minor_version=minor,
        file_size_bytes=len(data_file_bytes()) if size_bytes is None else size_bytes,
    )
    return Fragment(id=FragmentId(id), files=(file,), physical_rows=ROWS)


def line_on(store: ObjectStore) -> VersionLine:
    """Return a line whose versions lie in a store."""
    return VersionLine(location=_LOCATION, store=store, handler=ConditionalPut(store=store))


def seed(
    store: ObjectStore,
    *,
    fragments: int = 2,
    naming: ManifestNaming = ManifestNaming.V2,
    indices: tuple[IndexMetadata, ...] = (),
) -> Snapshot:
    """Write version 1 of a table, with its data files."""
    kept = tuple(fragment(number, id=number) for number in range(fragments))
    for each in kept:
        store.put(layout.data_file(each.files[0].path), data_file_bytes())
    first = Transaction(
        read_version=Version(0),
        uuid=str(UUID(int=1, version=4)),
        operation=Overwrite(
            fragments=tuple(replace(f, id=FragmentId(0)) for f in kept), schema=SCHEMA
        ),
    )
    inline = encode_transaction(first)
    file_name = transaction_file_name(0, first.uuid)
    manifest = Manifest(
        schema=SCHEMA,
        fragments=kept,
        version=Version(1),
        data_version=FileVersion.V2_1,
        timestamp_ns=1,
        writer_version=WRITER,
        max_fragment_id=fragments - 1 if fragments else None,
        transaction_file=file_name,
    )
    store.put(layout.transaction(file_name), inline)
    name = manifest_name(1, naming)
    section = index_meta.encode_section(indices) if indices else None
    data = encode_manifest(manifest, index_section=section, transaction=inline)
    store.put(layout.manifest(name), data)
    line = line_on(store)
    found = line.handler.find(1)
    assert found is not None
    return line.load(found)


def request(
    operation: Operation,
    *,
    unique: int,
    read_version: int = 1,
    max_retries: int = 20,
    timeout_s: float | None = None,
) -> CommitRequest:
    """Ask for an operation under the `unique`-th uuid."""
    mine = Transaction(
        read_version=Version(read_version),
        uuid=str(UUID(int=1000 + unique, version=4)),
        operation=operation,
    )
    choices = RequestChoices(max_retries=max_retries, timeout_s=timeout_s)
    return CommitRequest(transaction=mine, choices=choices)


def set_config(key: str, value: str) -> UpdateConfig:
    """Set one key of the table's configuration."""
    return UpdateConfig(config=MapUpdate(entries=FrozenMap({key: value})))


@dataclass
class StoredDeletions:
    """Deletion files in a store, for rebases."""

    store: ObjectStore
    ids: Ids = field(default_factory=lambda: SystemIds(7))

    def load_deletions(self, fragment: Fragment) -> BitMap:
        entry = fragment.deletion_file
        if entry is None:
            return BitMap()
        data = self.store.get(_deletion_path(fragment.id, entry))
        return deletion.decode(data, entry.file_type)

    def store_deletions(
        self, fragment_id: FragmentId, rows: BitMap, read_version: Version
    ) -> DeletionFile:
        entry = DeletionFile(
            file_type=DeletionFileType.BITMAP,
            read_version=read_version,
            id=self.ids.random_u64(),
            num_deleted_rows=len(rows),
        )
        self.store.put(_deletion_path(fragment_id, entry), rows.serialize())
        return entry


def _deletion_path(fragment_id: FragmentId, entry: DeletionFile) -> str:
    return layout.deletion_file(
        fragment_id=fragment_id,
        read_version=entry.read_version,
        unique=entry.id,
        suffix=entry.file_type.value,
    )


class NoFacts:
    """Knows nothing: the tables of these tests lack nothing."""

    def learn(self, state: TableState, wanted: MissingFacts) -> Facts:
        return NOTHING_KNOWN


def means(store: ObjectStore, *, clock: Clock | None = None, seed: int = 0) -> CommitServices:
    """Return what a commit works with; time stands still and chance can be repeated."""
    ids = SystemIds(seed)
    return CommitServices(
        port=StoredDeletions(store, ids),
        facts=NoFacts(),
        clock=clock or ManualClock(),
        ids=ids,
        writer=WRITER,
    )


def log(line: VersionLine) -> list[Landed]:
    """Return every commit, oldest first."""
    return [landed_at(line, name) for name in line.handler.every()]
