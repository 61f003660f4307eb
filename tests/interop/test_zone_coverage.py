"""Zone maps of tables with stable row ids, which release 4.0.2 lets cover rows without a zone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lancelake.pylance as ours
from lancelake.expr.condition import Column, Comparison, Operator
from lancelake.index.kind import IndexKind
from lancelake.index.scalar.bloom_filter import BLOOM_FILTER
from lancelake.index.scalar.zone_map import ZONE_MAP
from lancelake.index.stored_segment import IndexedVersion
from tests.support.index_laws import Rows, ensure_bounds
from tests.support.index_tables import entries_of, facts_of_entry, rows_of
from tests.support.official import RELEASES, Official, OfficialPool

NUMBER = Comparison(
    column=Column(path=("c",), dtype=pa.int64()),
    operator=Operator.EQUAL,
    value=pa.scalar(33, pa.int64()),
)


def prepare(official: Official, uri: str, kind: IndexKind) -> None:
    """Write and index a table of three fragments."""
    numbers = pa.array(range(60), pa.int64())
    table = pa.table({"n": numbers, "other": numbers})
    official.write(uri, table, max_rows_per_file=20, enable_stable_row_ids=True)
    official.create_scalar_index(uri, "n", kind.name, name="z")


@pytest.mark.parametrize("builder", RELEASES)
@pytest.mark.parametrize(
    ("kind", "change"),
    [(ZONE_MAP, "compact"), (BLOOM_FILTER, "compact"), (BLOOM_FILTER, "update")],
    ids=["ZONEMAP compact", "BLOOMFILTER compact", "BLOOMFILTER update"],
)
def test_rows_without_a_zone_are_not_covered(
    officials: OfficialPool, tmp_table: str, builder: str, kind: IndexKind, change: str
):
    prepare(officials(builder), tmp_table, kind)
    later = officials("4.0.2")
    if change == "update":
        later.update(tmp_table, {"other": "0"}, where="n >= 30")
    else:
        later.compact(tmp_table)
    rows = rows_of(tmp_table, "n")
    (entry,) = entries_of(tmp_table)
    version = IndexedVersion(
        indices=(entry,),
        fragments=BitMap(f.fragment_id for f in ours.dataset(tmp_table).get_fragments()),
        has_stable_row_ids=True,
    )
    segment = kind.open(facts_of_entry(tmp_table, entry, pa.int64()))
    claimed = version.coverage(entry, kind)
    assert claimed is not None
    assert not claimed.fragments <= segment.fragments()  # type: ignore[attr-defined]
    coverage = claimed.trusted(segment)
    is_covered = np.isin(rows.ids >> np.uint64(32), list(coverage.fragments))
    mine = Rows(values=rows.values.filter(pa.array(is_covered)), ids=rows.ids[is_covered])
    found = segment.answer(NUMBER)
    assert found is not None
    ensure_bounds(coverage.current(found), NUMBER, mine)
    # The fragment of the row that is asked for is scanned.
    assert 33 not in mine.values.to_pylist()
