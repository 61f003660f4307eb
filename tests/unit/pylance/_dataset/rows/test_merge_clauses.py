from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "v": [f"v{i}" for i in range(6)]})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=3)


def _values(dataset: lance.LanceDataset) -> dict[int, str]:
    rows = dataset.to_table().to_pylist()
    return {row["id"]: row["v"] for row in rows}


def test_every_clause_can_be_built(dataset: lance.LanceDataset) -> None:
    merge = (
        dataset.merge_insert(["id"])
        .when_matched_delete("source.id = 0")
        .when_matched_fail("source.id = 1")
        .when_matched_update({"v": "concat(target.v, '+')"}, "source.id = 2")
        .when_matched_update_all()
        .when_not_matched_insert({"id": "source.id", "v": "'new'"}, "source.id = 10")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"v": "'lonely'"}, "id = 3")
        .when_not_matched_by_source_delete("id = 5")
    )
    source = pa.table({"id": [0, 2, 4, 10, 11], "v": ["a", "b", "c", "d", "e"]})
    stats = merge.execute(source)
    assert (stats["num_inserted_rows"], stats["num_updated_rows"]) == (2, 3)
    assert stats["num_deleted_rows"] == 2
    assert _values(dataset) == {1: "v1", 2: "v2+", 3: "lonely", 4: "c", 10: "new", 11: "e"}


KEY = pa.field("key", pa.int64(), nullable=False).with_metadata(
    {"lance-schema:unenforced-primary-key": "true"}
)


@pytest.mark.parametrize("names", [("n", "m"), ("source", "target")])
def test_every_clause_works_on_a_table_with_a_primary_key(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    n, m = names
    schema = pa.schema([KEY, pa.field(n, pa.int64()), pa.field(m, pa.int64())])
    start = pa.table([[0, 1, 2, 3, 4, 5], [1] * 6, [1] * 6], schema=schema)
    dataset = lance.write_dataset(start, tmp_path / "t")
    merge = (
        dataset.merge_insert()
        .when_matched_delete(f"source.{n} = 0")
        .when_matched_update({n: f"target.{n} + source.{n}"}, f"source.{m} = 5")
        .when_matched_update_all(f"target.{n} < source.{n}")
        .when_not_matched_insert({"key": "source.key", n: f"source.{n} * 2"}, "source.key = 10")
        .when_not_matched_insert_all(f"source.{n} > 0")
        .when_not_matched_by_source_update({n: f"{n} + {m} + 7"}, f"key = 4 AND {n} = 1")
        .when_not_matched_by_source_delete(f"{m} = 1")
    )
    source = pa.table(
        [[0, 1, 2, 3, 10, 11, 12], [0, 3, 4, 1, 6, 7, 0], [0, 5, 8, 9, 9, 9, 9]], schema=schema
    )
    stats = merge.execute(source)
    assert stats == {"num_inserted_rows": 2, "num_updated_rows": 3, "num_deleted_rows": 2}
    assert sorted(tuple(row.values()) for row in dataset.to_table().to_pylist()) == [
        (1, 4, 1),
        (2, 4, 8),
        (3, 1, 1),
        (4, 9, 1),
        (10, 12, None),
        (11, 7, 9),
    ]
