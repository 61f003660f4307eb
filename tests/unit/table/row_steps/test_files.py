from __future__ import annotations

import pyarrow as pa

from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.rowids import RowIdSequence
from lancelake.table.row_steps import with_row_ids


def _ids(fragment: Fragment, *, rows: int) -> list[int]:
    assert fragment.row_ids is not None
    return list(RowIdSequence.decode(fragment.row_ids, physical_rows=rows).values().tolist())


def test_row_ids_are_given_to_the_first_rows_only() -> None:
    parts = [Fragment(id=FragmentId(0), files=(), physical_rows=n) for n in (2, 3, 1)]
    given = with_row_ids(parts, [pa.array([9, 4], pa.uint64()), pa.array([7], pa.uint64())])
    assert _ids(given[0], rows=2) == [9, 4]
    assert _ids(given[1], rows=1) == [7]
    assert given[2].row_ids is None
