"""Match the rows of a table with those of a join's source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import SchemaMismatchError, UnsupportedError
from lancelake.expr.arrays import plain_storage
from lancelake.format.ids import FragmentId
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.table.columns.join_source import JoinRows, Rows

# Each lookup builds a hash table of all source keys, so many rows are looked up at once.
_LOOKUP_BYTES = 128 << 20
_LOOKUP_ROWS = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """For each fragment, the source row of each live row; stored in files of a folder."""

    folder: Path

    def keep(self, fragment_id: FragmentId, rows: Rows) -> None:
        """Store the rows of a fragment."""
        np.save(self._path(fragment_id), rows)

    def rows(self, fragment_id: FragmentId) -> Rows:
        """Return the rows of a fragment."""
        found: Rows = np.load(self._path(fragment_id))
        return found

    def _path(self, fragment_id: FragmentId) -> Path:
        return self.folder / f"{fragment_id}.npy"


def match_rows(scans: Sequence[ScanTask], source: JoinRows, folder: Path) -> Matches:
    """Look up the key column of scans among the source's keys; of equal keys the last one wins."""
    matches = Matches(folder=folder)
    for group in _groups(scans):
        keys = pa.concat_arrays([key for _, key in group])
        rows = _looked_up(keys, source)
        first = 0
        for fragment_id, key in group:
            matches.keep(fragment_id, rows[first : first + len(key)])
            first += len(key)
    return matches


def _groups(scans: Sequence[ScanTask]) -> Iterator[list[tuple[FragmentId, pa.Array]]]:
    """Yield the keys of a few fragments at a time."""
    group: list[tuple[FragmentId, pa.Array]] = []
    size, rows = 0, 0
    for scan in scans:
        parts = [plain_key(batch.column(0)) for batch in execute(scan)]
        dtype = plain_type(scan.spec.output_schema.field(0).type)
        key = pa.concat_arrays(parts) if parts else pa.array([], dtype)
        group.append((scan.fragment.id, key))
        size, rows = size + key.nbytes, rows + len(key)
        if size >= _LOOKUP_BYTES or rows >= _LOOKUP_ROWS:
            yield group
            group, size, rows = [], 0, 0
    if group:
        yield group


def _looked_up(keys: pa.Array, source: JoinRows) -> Rows:
    found: Rows = np.full(len(keys), -1, dtype=np.int64)
    first = 0
    for chunk in source.key_chunks():
        known = plain_key(chunk)
        _ensure_same_type(keys.type, known.type)
        count = len(known)
        if count:
            # The lookup finds the first of equal values, but the last one is needed.
            backwards = known.take(pa.array(np.arange(count - 1, -1, -1)))
            at = _index_in(keys, backwards)
            hit = np.asarray(at.is_valid())
            found[hit] = first + count - 1 - np.asarray(at.drop_null(), dtype=np.int64)
        first += count
    return found


def plain_key(array: pa.Array) -> pa.Array:
    """Return keys in a type that supports lookup."""
    storage = plain_storage(array)
    return storage.dictionary_decode() if pa.types.is_dictionary(storage.type) else storage


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of keys that supports lookup."""
    return plain_key(pa.array([], dtype)).type


def _index_in(keys: pa.Array, known: pa.Array) -> pa.Array:
    try:
        return pc.index_in(keys, value_set=known)
    except (pa.ArrowException, NotImplementedError) as error:
        msg = f"columns of type {known.type} are not supported as join keys"
        raise UnsupportedError(msg, action="Join on another column.") from error


def _ensure_same_type(left: pa.DataType, right: pa.DataType) -> None:
    if not left.equals(right):
        raise SchemaMismatchError(
            f"the key columns have different types: {left} in the table, {right} in the data",
            expected=str(left),
            found=str(right),
            action="Cast the data's column.",
        )
