from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from tests.support.memwal_tables import SCHEMA, by_key, rows, with_wal


def test_readers_take_columns_a_filter_and_a_limit(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"), (2, "b"))
    with ds.wal.writer() as w:
        w.put(rows((3, "c")))
        found = ds.wal.scanner(["name"], "id > 1")
        assert found.projected_schema.names == ["name"]
        assert found.dataset_schema == SCHEMA
        assert sorted(found.to_table().column("name").to_pylist()) == ["b", "c"]
        assert (found.count_rows(), ds.wal.count_rows("id > 1")) == (2, 2)
        assert sum(b.num_rows for b in ds.wal.to_batches(limit=2)) == 2
        assert ds.wal.scanner(limit=1).count_rows() == 1
        assert len(found.to_pandas()) == 2


@pytest.mark.parametrize(
    "keys",
    [[1, 3, 9], (1, 3, 9), pa.array([1, 3, 9]), {"id": [1, 3, 9]}, pa.table({"id": [1, 3, 9]})],
)
def test_rows_are_found_by_keys(tmp_path: Path, keys: object) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"), (2, "b"))
    with ds.wal.writer() as w:
        w.put([{"id": 3, "name": "c"}])
        assert by_key(ds.wal.get(keys)) == {1: "a", 3: "c"}
        assert sorted(w.get(keys, ["name"]).column("name").to_pylist()) == ["a", "c"]


def test_searches_find_rows_that_are_not_merged(tmp_path: Path) -> None:
    vectors = pa.list_(pa.float32(), 2)
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("text", pa.string()), ("v", vectors)]
    )

    def made(*given: tuple[int, str, list[float]]) -> pa.Table:
        return pa.Table.from_pylist(
            [dict(zip(schema.names, row, strict=True)) for row in given], schema=schema
        )

    ds = lance.write_dataset(made((1, "old cat", [0, 0]), (2, "dog", [5, 5])), tmp_path / "t")
    ds.create_scalar_index("text", "INVERTED")
    ds.wal.initialize(key="id", buckets=2)
    with ds.wal.writer() as w:
        w.put(made((1, "bird", [9, 9]), (3, "new cat", [1, 1])))
        assert w.search("cat", columns=["id"])["id"].to_pylist() == [3]
        assert ds.wal.search("cat", freshness="base", columns=["id"])["id"].to_pylist() == [1]
        near = ds.wal.search(nearest={"q": [0.0, 0.0]}, k=2, filter="id > 0")
        assert near["id"].to_pylist() == [3, 2]
    with pytest.raises(InvalidRequestError, match="needs a text or a query vector"):
        ds.wal.search()
