"""Values of live rows are placed at their row offsets."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelake.data.arrays import conform
from lancelake.data.arrays.batches import rebatched
from lancelake.data.arrays.conform import Conformer, SpreadRows
from lancelake.errors import SchemaMismatchError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion

SCHEMA = pa.schema(
    [
        pa.field("maybe", pa.int64()),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("items", pa.list_(pa.int8()), nullable=False),
        pa.field("vector", pa.list_(pa.float32(), 2), nullable=False),
        pa.field("pair", pa.struct([pa.field("x", pa.int8(), nullable=False)])),
    ]
)


def rows_of(count: int) -> pa.Table:
    """Return rows that can be told apart."""
    columns = [
        list(range(count)),
        list(range(count)),
        [str(i) for i in range(count)],
        [[i % 7] for i in range(count)],
        [[i, i] for i in range(count)],
        [{"x": i % 7} for i in range(count)],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def spread(
    deleted: set[int], physical: int, batch_rows: int, version: FileVersion, live: int | None = None
) -> pa.Table:
    """Spread as many rows as are live, or others."""
    schema = from_arrow(SCHEMA)
    table = rows_of(physical - len(deleted) if live is None else live)
    conform = Conformer(schema, version)
    batches = (conform(b) for b in rebatched(iter(table.to_batches()), batch_rows))
    to = SpreadRows(schema=schema, version=version, deleted=BitMap(deleted), physical_rows=physical)
    return pa.Table.from_batches(list(to(batches)))


@pytest.mark.parametrize("version", [FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2])
@given(
    physical=st.integers(1, 40),
    gone=st.sets(st.integers(0, 39)),
    batch_rows=st.integers(1, 10),
    piece=st.sampled_from([1, 1 << 20]),
)
def test_live_rows_are_where_they_were(
    version: FileVersion, physical: int, gone: set[int], batch_rows: int, piece: int
) -> None:
    deleted = {i for i in gone if i < physical}
    live = [i for i in range(physical) if i not in deleted]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conform, "_PIECE_BYTES", piece)
        patch.setattr(conform, "_LEAST_ROWS", piece)
        if not live:
            return
        found = spread(deleted, physical, batch_rows, version)
    assert found.num_rows == physical
    assert found.take(live).to_pylist() == rows_of(len(live)).to_pylist()


def test_no_deleted_row_is_null_where_nulls_are_forbidden() -> None:
    found = spread({0, 2, 4}, 5, 3, FileVersion.V2_0)
    assert [found.column(name).null_count for name in SCHEMA.names] == [3, 0, 0, 0, 0, 0]


def test_structs_are_null_where_files_hold_that() -> None:
    assert spread({0}, 2, 3, FileVersion.V2_1).column("pair").null_count == 1


@pytest.mark.parametrize("live", [0, 2, 4])
@pytest.mark.parametrize("deleted", [set(), {1}], ids=["all live", "one deleted"])
def test_there_must_be_a_value_for_each_row(live: int, deleted: set[int]) -> None:
    with pytest.raises(SchemaMismatchError):
        spread(deleted, 3 + len(deleted), 2, FileVersion.V2_1, live=live)


def test_without_live_rows_there_is_nothing_to_write() -> None:
    schema = from_arrow(SCHEMA)
    to = SpreadRows(schema=schema, version=FileVersion.V2_1, deleted=BitMap({0}), physical_rows=1)
    assert list(to([])) == []
