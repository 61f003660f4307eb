"""Sources of a scan task's rows: one fragment, or several small ones read as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.codec import spool
from lancelake.data.codec.readers import temporary_folder
from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import known_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.joined_fragments import join
from lancelake.data.row_meta import MetaColumn, RowMeta
from lancelake.format import layout
from lancelake.format.computed_once import computed_once
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.scan.plan import ScanSpec
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles


class RowSource(Protocol):
    """Physical rows, numbered from 0."""

    @property
    def fragment(self) -> Fragment:
        """Files of the rows."""
        ...

    @property
    def deleted(self) -> BitMap:
        """Deleted rows."""
        ...

    def reader(self, columns: Schema) -> FragmentReader:
        """Open the rows with these columns."""
        ...

    def meta(self, column: MetaColumn, offsets: RowOffsets, ranks: RowOffsets) -> pa.Array:
        """Return a metadata column; `ranks` numbers the rows in scan order of the version."""
        ...


@dataclass(frozen=True)
class SingleFragment:
    """The rows of one fragment."""

    spec: ScanSpec
    fragment: Fragment

    @computed_once
    def deleted(self) -> BitMap:
        """Deleted rows."""
        return known_deletions(self.spec.files, self.fragment)

    def reader(self, columns: Schema) -> FragmentReader:
        """Open the fragment."""
        spec = self.spec
        return FragmentReader(
            spec.files, spec.manifest_at, self.fragment, columns, remembers=spec.remembers_small
        )

    def meta(self, column: MetaColumn, offsets: RowOffsets, ranks: RowOffsets) -> pa.Array:
        """Return a metadata column."""
        return self._meta.column(column, offsets, ranks)

    @computed_once
    def _meta(self) -> RowMeta:
        spec = self.spec
        rows = self.reader(Schema(fields=())).physical_rows
        return RowMeta(spec.files, self.fragment, rows, spec.has_stable_row_ids)


@dataclass(frozen=True)
class JoinedRows:
    """The rows of several fragments, one after the other, from a local file."""

    spec: ScanSpec
    parts: tuple[Fragment, ...]
    fragment: Fragment
    files: TableFiles

    @computed_once
    def starts(self) -> list[int]:
        """Number of the first row of each fragment, and the number of rows."""
        return list(accumulate((part.physical_rows or 0 for part in self.parts), initial=0))

    @computed_once
    def deleted(self) -> BitMap:
        """Deleted rows."""
        shifted = (
            known_deletions(self.spec.files, part).shift(start)
            for part, start in zip(self.parts, self.starts, strict=False)
            if part.deletion_file is not None
        )
        return reduce(or_, shifted, BitMap())

    def reader(self, columns: Schema) -> FragmentReader:
        """Open the local file."""
        return FragmentReader(self.files, self.spec.manifest_at, self.fragment, columns)

    def meta(self, column: MetaColumn, offsets: RowOffsets, ranks: RowOffsets) -> pa.Array:
        """Return a metadata column."""
        if column is MetaColumn.ROW_OFFSET:
            return pa.array(ranks)
        return pa.array(self._values(column)[offsets])

    def split(self, rows: BitMap) -> list[BitMap]:
        """Return the rows of each fragment by their offsets in it."""
        return [
            (rows & BitMap(range(start, stop))).shift(-start) if rows else BitMap()
            for start, stop in zip(self.starts, self.starts[1:], strict=False)
        ]

    def _values(self, column: MetaColumn) -> np.ndarray:
        spec = self.spec
        values = []
        for part in self.parts:
            rows = part.physical_rows or 0
            offsets = np.arange(rows, dtype=np.uint64)
            meta = RowMeta(spec.files, part, rows, spec.has_stable_row_ids)
            values.append(np.asarray(meta.column(column, offsets, offsets)))
        return np.concatenate(values)


@contextmanager
def joined_rows(spec: ScanSpec, fragments: Sequence[Fragment]) -> Iterator[JoinedRows | None]:
    """Join fragments in a temporary file; None if that is not possible."""
    with temporary_folder("joined-", spool.folder()) as folder:
        (folder / layout.DATA).mkdir()
        whole = join(spec.files, fragments, folder)
        if whole is None:
            yield None
            return
        files = TableFiles(root=Location.parse(folder))
        yield JoinedRows(spec, tuple(fragments), whole, files)
