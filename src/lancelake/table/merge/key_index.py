"""Rows that may have the keys of a source, as the indices of the key columns know them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError
from lancelake.expr.arrays import type_at
from lancelake.expr.condition import Column, Condition, Membership, all_of
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.schema import Field
from lancelake.index.key_range import ordered_points
from lancelake.index.row_ids import U64Array
from lancelake.scan.count import count_rows
from lancelake.scan.index_search.key_rows import rows_with_keys
from lancelake.scan.index_search.search import IndexSearch, search
from lancelake.scan.index_search.sources import IndexSources
from lancelake.scan.outputs import expression_schema
from lancelake.scan.plan import ScanTask
from lancelake.table.merge.keys import Comparer, key_fields
from lancelake.table.merge.source import RowNumbers
from lancelake.table.merge.source_keys import SourceKeys

# With fewer rows for each key, reading the keys of all rows is as fast as looking each up.
_ROWS_PER_KEY = 100
_UNKNOWN_ROWS = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLookup:
    """Keys of a source that are looked up in the indices of key columns."""

    fields: tuple[Field, ...]
    keys: SourceKeys
    found: IndexSearch | None
    """What the indices of a version know; None if they were not asked."""

    @staticmethod
    def of(base: Snapshot, fields: tuple[Field, ...], keys: SourceKeys) -> KeyLookup:
        """Look up keys, unless there are too many."""
        if keys.table.num_rows > most_keys(base):
            return KeyLookup(fields=fields, keys=keys, found=None)
        every = FragmentList.of(base.manifest.fragments).ids
        return KeyLookup(fields=fields, keys=keys, found=_asked(base, fields, keys, every))

    def narrowed(self, scans: Sequence[ScanTask]) -> list[ScanTask]:
        """Return scans of the rows that may have one of the keys, of the same version."""
        return list(scans) if self.found is None else narrowed(scans, self.found)

    def most_rows(self, base: Snapshot) -> int:
        """Return how many rows may have one of the keys, from the metadata of the version."""
        if self.found is None:
            return count_rows(base)
        named = sum(len(known.rows) for known in self.found.found.values())
        others = [
            fragment
            for fragment in base.manifest.fragments
            if fragment.id not in self.found.found and fragment.id not in self.found.empty
        ]
        return named + sum(fragment.physical_rows or _UNKNOWN_ROWS for fragment in others)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedMatches:
    """Rows with a key of the source, of fragments whose keys need not be read."""

    fragments: BitMap
    source: RowNumbers
    target: U64Array


def indexed_matches(
    base: Snapshot, fields: Sequence[Field], keys: SourceKeys
) -> IndexedMatches | None:
    """Return the rows that an index of the key finds together with their keys.

    None where there is no such index, the keys are many, or they have several columns or repeats.
    """
    if len(fields) > 1 or not keys.are_unique or keys.table.num_rows > most_keys(base):
        return None
    column = _column(base, fields[0])
    # An index of floating-point numbers takes both zeros for the same value.
    if column is None or column.dtype != keys.table.column(0).type:
        return None
    complete = keys.complete().combine_chunks()
    if not complete.num_rows:
        return None
    values, numbers = (chunks.chunk(0) for chunks in complete.columns)
    points, order = ordered_points(values)
    with _named(base):
        found = rows_with_keys(base, column, points)
    numbers = np.asarray(numbers)[np.asarray(order)]
    return IndexedMatches(
        fragments=found.fragments, source=numbers[found.points], target=found.addresses
    )


def most_keys(base: Snapshot) -> int:
    """Return how many keys are looked up at most; for more, the keys of all rows are read."""
    return count_rows(base) // _ROWS_PER_KEY if base.indices else 0


def with_keys(
    base: Snapshot, fields: Sequence[Field], keys: SourceKeys, scans: Sequence[ScanTask]
) -> list[ScanTask]:
    """Return scans of the rows that may have one of the keys.

    The scans are returned unchanged where no index helps, or where the keys are many.
    """
    if keys.table.num_rows > most_keys(base):
        return list(scans)
    found = _asked(base, fields, keys, [scan.fragment.id for scan in scans])
    return list(scans) if found is None else narrowed(scans, found)


def key_indices(base: Snapshot, on: Sequence[str]) -> list[str]:
    """Return the names of the indices that can be asked for keys, if these are few."""
    schema, sources = expression_schema(base.manifest.schema), IndexSources(base)
    found: dict[str, None] = {}
    for field in key_fields(on, base.manifest.schema):
        dtype = type_at(schema, (field.name,))
        if dtype is not None:
            column = Column(path=(field.name,), dtype=dtype)
            found |= dict.fromkeys(source.index for source in sources.of(column))
    return list(found)


def narrowed(scans: Sequence[ScanTask], found: IndexSearch) -> list[ScanTask]:
    """Return scans of the rows that indices found; fragments without rows are left out."""
    kept = [scan for scan in scans if scan.fragment.id not in found.empty]
    rows = [found.found.get(scan.fragment.id) for scan in kept]
    left = [
        scan if known is None else scan.within(known.rows)
        for scan, known in zip(kept, rows, strict=True)
    ]
    return [scan for scan in left if scan.rows is None or scan.rows]


def _asked(
    base: Snapshot, fields: Sequence[Field], keys: SourceKeys, fragments: Sequence[FragmentId]
) -> IndexSearch | None:
    conditions: list[Condition] = []
    for field, values in zip(fields, keys.table.columns, strict=True):
        column = _column(base, field)
        if column is not None:
            conditions.append(Membership(column=column, values=_values(values, column.dtype)))
    if not conditions:
        return None
    with _named(base):
        return search(base, all_of(conditions), fragments)


def _column(base: Snapshot, field: Field) -> Column | None:
    """Return a column whose values indices store as keys are compared; None for others."""
    plain = Comparer.of(field).plain
    column = Column(path=(field.name,), dtype=plain)
    schema = expression_schema(base.manifest.schema)
    return column if type_at(schema, column.path) == plain else None


@contextmanager
def _named(base: Snapshot) -> Iterator[None]:
    """Let errors name the table."""
    try:
        yield
    except LanceTableError as error:
        raise error.at(base.location.uri, base.version) from error.__cause__


def _values(keys: pa.ChunkedArray, plain: pa.DataType) -> pa.Array:
    """Return the values of keys, each once; numbers are compared by their bits."""
    found = pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], keys.type)
    return found.drop_null().unique().view(plain)
