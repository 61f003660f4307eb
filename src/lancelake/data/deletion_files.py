"""Deletion files, and the ids and versions of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, FrozenBitMap

from lancelake.caches import CacheKind
from lancelake.data.column_reader import RowOffsets
from lancelake.errors import CorruptTableError, LanceTableError, ObjectNotFoundError
from lancelake.format import deletion
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.frozen import computed_once
from lancelake.format.row_address import row_addresses
from lancelake.format.rowids import UNKNOWN_VERSION, RowIdSequence, U64Array, VersionSequence
from lancelake.storage.table_files import FileAt, TableFiles

# A deletion file never changes: its name includes a random number.
_SMALL_ROWS = 1 << 16
# A larger row count of a manifest is checked against the data file.
_LIKELY_ROWS = 1 << 22
DELETIONS: CacheKind[FileAt, FrozenBitMap] = CacheKind(
    name="deleted_rows",
    most_bytes=128 << 20,
    weight=lambda rows: 128 + 2 * len(rows),  # sets of these sizes have at most two bytes a row
    most_values=1024,
)


def known_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Like `load_deletions`, with a cache for small files."""
    entry = fragment.deletion_file
    if entry is None or entry.num_deleted_rows is None or entry.num_deleted_rows > _SMALL_ROWS:
        return load_deletions(files, fragment)
    place = files.deletion_file(fragment.id, entry)
    cache = place.root.session.caches[DELETIONS]
    return BitMap(cache.get(place, lambda: FrozenBitMap(load_deletions(files, fragment))))


def load_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Return the offsets of deleted rows; empty when there is no deletion file."""
    entry = fragment.deletion_file
    if entry is None:
        return BitMap()
    place = files.deletion_file(fragment.id, entry)
    try:
        data = place.store.get(place.path)
        rows = deletion.decode(data, entry.file_type, rows=fragment.physical_rows)
        if len(rows) > _SMALL_ROWS or not 0 <= (fragment.physical_rows or -1) <= _LIKELY_ROWS:
            _ensure_within_file(files, fragment, rows)
    except ObjectNotFoundError as error:
        problem = f"deletion file {place.path} of fragment {fragment.id} is missing"
        raise CorruptTableError(problem, table=files.root.uri, path=place.path) from error
    except LanceTableError as error:
        raise error.at(files.root.uri) from error.__cause__
    return rows


def _ensure_within_file(files: TableFiles, fragment: Fragment, rows: BitMap) -> None:
    """Raise for deletions of rows that no data file has, before memory is allocated for them."""
    if not fragment.files or not rows:
        return
    from lancelake.data.fragment_reader import stored_rows  # noqa: PLC0415  # loads the codec

    stored = stored_rows(files, fragment.files[0])
    if (fragment.physical_rows or 0) > stored:
        problem = f"fragment {fragment.id} has {stored} rows, not {fragment.physical_rows}"
        raise CorruptTableError(problem, fragment=fragment.id)
    if rows.max() >= stored:
        problem = f"deleted row {rows.max()} is not in fragment {fragment.id} of {stored} rows"
        raise CorruptTableError(problem, fragment=fragment.id)


class MetaColumn(Enum):
    """A column computed from the position of a row."""

    ROW_ID = "_rowid"
    ROW_ADDRESS = "_rowaddr"
    ROW_OFFSET = "_rowoffset"
    CREATED_AT = "_row_created_at_version"
    LAST_UPDATED_AT = "_row_last_updated_at_version"


META_NAMES = tuple(column.value for column in MetaColumn)
META_TYPE = pa.uint64()


@dataclass(frozen=True)
class RowMeta:
    """Computes metadata columns for rows of one fragment."""

    files: TableFiles
    fragment: Fragment
    physical_rows: int
    has_stable_row_ids: bool

    def column(self, meta: MetaColumn, offsets: RowOffsets, live_rank: RowOffsets) -> pa.Array:
        """Return a metadata column; `live_rank` numbers the rows in scan order of the version."""
        match meta:
            case MetaColumn.ROW_ID:
                return pa.array(self.row_ids(offsets))
            case MetaColumn.ROW_ADDRESS:
                return pa.array(row_addresses(self.fragment.id, offsets))
            case MetaColumn.ROW_OFFSET:
                return pa.array(live_rank)
            case MetaColumn.CREATED_AT:
                return pa.array(self._created[offsets])
            case MetaColumn.LAST_UPDATED_AT:
                return pa.array(self._last_updated[offsets])
            case _:
                assert_never(meta)

    def row_ids(self, offsets: RowOffsets) -> U64Array:
        """Stable ids where the table has them, addresses otherwise."""
        if not self.has_stable_row_ids:
            return row_addresses(self.fragment.id, offsets)
        ids: U64Array = self._row_ids[offsets]
        return ids

    def row_id_sequence(self) -> RowIdSequence:
        """Stable ids of all physical rows."""
        data = self._load(self.fragment.row_ids)
        if data is None:
            problem = f"fragment {self.fragment.id} has no row ids although row ids are stable"
            raise CorruptTableError(problem, table=self.files.root.uri)
        return RowIdSequence.decode(data, physical_rows=self.physical_rows)

    def newest_update(self) -> int:
        """Return the last version in which a row was changed."""
        return int(self._last_updated.max()) if self.physical_rows else 0

    def is_updated(self) -> npt.NDArray[np.bool_]:
        """Return for each row whether it was changed since it was inserted."""
        return self._last_updated > self._created

    @computed_once
    def _row_ids(self) -> U64Array:
        return self.row_id_sequence().values()

    @computed_once
    def _created(self) -> U64Array:
        return self._versions(self.fragment.created_at_versions)

    @computed_once
    def _last_updated(self) -> U64Array:
        return self._versions(self.fragment.last_updated_at_versions)

    def _versions(self, source: Sequenced) -> U64Array:
        data = self._load(source)
        rows = self.physical_rows
        if data is None:
            return VersionSequence.constant(UNKNOWN_VERSION, rows=rows).values()
        return VersionSequence.decode(data, physical_rows=rows).values()

    def _load(self, source: Sequenced) -> bytes | None:
        if isinstance(source, ExternalFile):
            place = self.files.external(source)
            store = place.store
            return store.get_range(place.path, start=source.offset, length=source.size)
        return source
