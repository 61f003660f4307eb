"""`lancelake convert`: Delta tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancelake.pylance as lance
from tests.cli.conftest import Run

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "day", "type": "date", "nullable": True, "metadata": {}},
    ],
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


class Delta:
    """Writes a Delta table, action by action."""

    def __init__(
        self, root: Path, *, protocol: dict[str, Any] | None = None, **config: str
    ) -> None:
        self.root = root
        self.version = 0
        (root / "_delta_log").mkdir(parents=True)
        metadata = {
            "id": "x",
            "format": {"provider": "parquet"},
            "schemaString": json.dumps(SCHEMA),
            "partitionColumns": ["day"],
            "configuration": config,
        }
        self.commit({"protocol": protocol or PROTOCOL}, {"metaData": metadata})

    def commit(self, *actions: dict[str, Any]) -> None:
        path = self.root / "_delta_log" / f"{self.version:020}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
        self.version += 1

    def add(self, name: str, ids: list[int], day: str | None, **more: Any) -> dict[str, Any]:
        pq.write_table(pa.table({"id": ids}), self.root / name)
        size = (self.root / name).stat().st_size
        path = name.replace(" ", "%20")
        body = {"path": path, "size": size, "partitionValues": {"day": day}, **more}
        return {"add": body}

    def checkpoint(self, actions: list[dict[str, Any]]) -> None:
        path = self.root / "_delta_log" / f"{self.version - 1:020}.checkpoint.parquet"
        pairs = pa.map_(pa.string(), pa.string())
        add = pa.struct({"path": pa.string(), "size": pa.int64(), "partitionValues": pairs})
        columns = {
            "add": add,
            "metaData": pa.struct(
                {
                    "schemaString": pa.string(),
                    "partitionColumns": pa.list_(pa.string()),
                    "configuration": pairs,
                }
            ),
            "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        }
        pq.write_table(pa.Table.from_pylist(actions, pa.schema(columns)), path)


def converted(run: Run, delta: Delta) -> list[tuple[int, str | None]]:
    target = delta.root.with_suffix(".lance")
    result = run("convert", delta.root, target)
    assert result.exit_code == 0, result.output
    found = lance.dataset(target).to_table().to_pylist()
    return sorted((row["id"], row["day"] and row["day"].isoformat()) for row in found)


def test_the_newest_version_is_copied(run: Run, tmp_path: Path) -> None:
    delta = Delta(tmp_path / "d")
    delta.commit(delta.add("a b.parquet", [1, 2], "2026-01-01"), delta.add("c.parquet", [3], None))
    delta.commit({"remove": {"path": "c.parquet"}}, delta.add("e.parquet", [4], None))
    assert converted(run, delta) == [(1, "2026-01-01"), (2, "2026-01-01"), (4, None)]


def test_a_checkpoint_replaces_the_commits_before_it(run: Run, tmp_path: Path) -> None:
    delta = Delta(tmp_path / "d")
    kept = delta.add("a.parquet", [1], "2026-01-01")
    delta.commit(kept)
    metadata = {"schemaString": json.dumps(SCHEMA), "partitionColumns": ["day"]}
    delta.checkpoint([{"protocol": PROTOCOL}, {"metaData": metadata}, kept])
    for version in range(2):
        (delta.root / "_delta_log" / f"{version:020}.json").unlink()
    delta.commit(delta.add("b.parquet", [2], None))
    assert converted(run, delta) == [(1, "2026-01-01"), (2, None)]


@pytest.mark.parametrize("case", ["mapping", "vectors", "features", "gap", "outside", "empty"])
def test_refused(case: str, run: Run, tmp_path: Path) -> None:
    config = {"delta.columnMapping.mode": "name"} if case == "mapping" else {}
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["typeWidening"]}
    delta = Delta(tmp_path / "d", protocol=features if case == "features" else None, **config)
    if case != "empty":
        more = {"deletionVector": {"storageType": "u"}} if case == "vectors" else {}
        delta.commit(delta.add("a.parquet", [1], None, **more))
    if case == "gap":
        delta.version += 1
        delta.commit(delta.add("b.parquet", [2], None))
    if case == "outside":
        delta.commit({"add": {"path": "file:///etc/passwd", "partitionValues": {}}})
    result = run("convert", delta.root, tmp_path / "t.lance")
    assert result.exit_code in (2, 5, 6), result.output
    assert not (tmp_path / "t.lance").exists()


def test_a_table_that_exists_is_not_replaced(run: Run, tmp_path: Path) -> None:
    delta = Delta(tmp_path / "d")
    delta.commit(delta.add("a.parquet", [1], None))
    lance.write_dataset(pa.table({"id": [9]}), tmp_path / "t.lance")
    assert run("convert", delta.root, tmp_path / "t.lance").exit_code == 4
    assert lance.dataset(tmp_path / "t.lance").count_rows() == 1


def test_a_folder_of_partitions_is_recognised(tmp_path: Path, run: Run) -> None:
    (tmp_path / "sales" / "day=1").mkdir(parents=True)
    result = run("info", tmp_path / "sales", width=400)
    assert result.exit_code == 3
    assert f"lancelake convert {tmp_path / 'sales'} TABLE" in result.output
