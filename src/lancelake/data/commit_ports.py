"""What a commit reads of data: deletions, keys, sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.fragment_reader import load_deletions
from lancelake.format import deletion, layout
from lancelake.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.index_meta import IndexFile
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.txn.options import Facts, FileKey, MissingFacts, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionPort:
    """Deletion files of the table at a root."""

    root: Location
    bases: TableFiles

    def load_deletions(self, fragment: Fragment) -> BitMap:
        """Read the deleted rows of a fragment; none when it has no deletion file."""
        return load_deletions(self.bases, fragment)

    def store_deletions(
        self, fragment_id: FragmentId, rows: BitMap, read_version: Version
    ) -> DeletionFile:
        """Write all deleted rows of a fragment; merged deletions are always a bitmap."""
        return write_deletions(self.root, fragment_id, rows, read_version, DeletionFileType.BITMAP)


def write_deletions(
    root: Location,
    fragment_id: FragmentId,
    rows: BitMap,
    read_version: int,
    encoding: DeletionFileType,
    *,
    syncs_name: bool = True,
) -> DeletionFile:
    """Write a deletion file below a root and return its entry.

    After many files, `sync_deletion_names` syncs their names once.
    """
    unique = root.session.ids.random_u64()
    path = layout.deletion_file(
        fragment_id=fragment_id, read_version=read_version, unique=unique, suffix=encoding.value
    )
    root.store.put(path, deletion.encode(rows, encoding), durable=syncs_name)
    if root.scheme == "file" and not syncs_name and disk_sync.waits():
        disk_sync.sync_file(Path(root.uri) / path)
    return DeletionFile(
        file_type=encoding, read_version=read_version, id=unique, num_deleted_rows=len(rows)
    )


def sync_deletion_names(root: Location) -> None:
    """Sync the names of all deletion files below a root."""
    if root.scheme == "file":
        disk_sync.sync_folder(Path(root.uri) / layout.DELETIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFactsPort:
    """Reads counts and sizes from the files of a table."""

    root: Location

    def learn(self, state: TableState, wanted: MissingFacts) -> Facts:
        """Return the missing facts of a version."""
        files = TableFiles(root=self.root, bases=state.manifest.base_paths)
        fragments = state.fragments_by_id()
        rows = {i: _physical_rows(files, fragments[i]) for i in wanted.physical_rows}
        deleted = {i: len(load_deletions(files, fragments[i])) for i in wanted.deleted_rows}
        sizes = {
            _key(file): _size(files.data_file(file))
            for fragment in fragments.values()
            for file in fragment.files
            if _key(file) in wanted.file_sizes
        }
        listed = {
            index.uuid: _index_files(files.index_dir(index))
            for index in state.indices
            if index.uuid in wanted.index_files
        }
        return Facts(
            physical_rows=FrozenMap(rows),
            deleted_rows=FrozenMap(deleted),
            file_sizes=FrozenMap(sizes),
            index_files=FrozenMap(listed),
        )


def _physical_rows(files: TableFiles, fragment: Fragment) -> int:
    # The codec is slow to import, and only manifests of old releases need it.
    from lancelake.data.fragment_reader import stored_rows  # noqa: PLC0415

    return stored_rows(files, fragment.files[0]) if fragment.files else 0


def _key(file: DataFile) -> FileKey:
    return (file.base_id, file.path)


def _size(place: FileAt) -> int:
    return place.store.head(place.path).size_bytes


def _index_files(folder: FileAt) -> tuple[IndexFile, ...]:
    infos = folder.store.list(folder.path)
    prefix = f"{folder.path}/"
    return tuple(
        IndexFile(path=info.path.removeprefix(prefix), size_bytes=info.size_bytes)
        for info in sorted(infos, key=lambda info: info.path)
    )


_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRowKeys:
    """Reads the columns of a key from the files of a table."""

    root: Location

    def key_columns(
        self, fragments: Sequence[Fragment], field_ids: Sequence[FieldId], state: TableState
    ) -> Iterator[Sequence[pa.Array]]:
        """Yield the columns of these fields, batch by batch; `state` is after that commit."""
        # The codec is slow to import, and few commits have to read added rows.
        from lancelake.data.fragment_reader import FragmentReader  # noqa: PLC0415

        manifest = state.manifest
        by_id = manifest.schema.by_id()
        schema = replace(manifest.schema, fields=tuple(by_id[i] for i in field_ids))
        files = TableFiles(root=self.root, bases=manifest.base_paths)
        name = manifest_name(manifest.version, ManifestNaming.V2)
        place = FileAt(root=self.root, path=layout.manifest(name))
        for fragment in fragments:
            reader = FragmentReader(files, place, fragment, schema)
            rows = reader.physical_rows
            for batch in reader.batches(start=0, stop=rows, batch_rows=_BATCH_ROWS):
                yield batch.columns
