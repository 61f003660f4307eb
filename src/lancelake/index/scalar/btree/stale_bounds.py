"""Detection of BTREE pages that do not fit the bounds of the lookup table.

Releases before 2.0 that compacted a table removed deleted rows from the pages, so that all rows
after them moved to other pages, and kept the lookup table. Searches of such a segment miss rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.index.order import Positions, keys_of
from lancelake.index.scalar.btree import files
from lancelake.index.scalar.btree.lookup import Lookup, PageFile


def has_stale_bounds(folder: SegmentFolder, lookup: Lookup) -> bool:
    """Whether pages have other nulls, or greater values, than the lookup table says.

    Reads at most three values of each page.
    """
    parts = (part for part in lookup.parts if part.pages)
    return any(_is_stale(folder.open(part.name), lookup, part) for part in parts)


def _is_stale(reader: IndexFileReader, lookup: Lookup, part: PageFile) -> bool:
    size = lookup.page_rows
    if -(-reader.num_rows // size) != part.pages:
        return True
    reader.require(files.VALUES)
    numbers = np.arange(part.first, part.first + part.pages)
    starts = np.arange(part.pages) * size
    ends = np.minimum(starts + size, reader.num_rows)
    firsts = starts + lookup.null_counts[numbers]
    has_values = firsts < ends
    if (firsts > ends).any() or not np.isin(numbers[has_values], lookup.numbers).all():
        return True
    nulls = _values(reader, firsts[firsts > starts] - 1)
    if nulls.null_count < len(nulls) or _values(reader, firsts[has_values]).null_count:
        return True
    greatest = _values(reader, ends[has_values] - 1)
    if greatest.null_count:
        return True
    bounds = lookup.greatest.take(pa.array(_places(lookup)[numbers[has_values]]))
    return pc.all(pc.less_equal(keys_of(greatest), bounds)).as_py() is False


def _places(lookup: Lookup) -> Positions:
    """Return the position of each page among those with values."""
    places = np.zeros(lookup.num_pages, dtype=np.int64)
    places[lookup.numbers] = np.arange(len(lookup.numbers))
    return places


def _values(reader: IndexFileReader, rows: Positions) -> pa.Array:
    column = reader.take(rows.tolist(), columns=[files.VALUES]).column(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
