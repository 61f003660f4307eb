"""Merge keys of every type match as in official Lance."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.support.official import Official, OfficialError

UPSERT = """
merge = lance.dataset(uri).merge_insert(on)
merge = merge.when_matched_update_all().when_not_matched_insert_all()
stats = merge.execute(rows)
result = {name: stats[name] for name in ("num_inserted_rows", "num_updated_rows")}
"""
NAN = float("nan")
COLUMNS = {
    "bool": pa.array([True, False, None]),
    "int8": pa.array([-1, 127, None], pa.int8()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float16": pa.array([1.0, 2.0, None], pa.float16()),
    "float32": pa.array([1.5, NAN, None], pa.float32()),
    "float64": pa.array([0.0, NAN, None], pa.float64()),
    "decimal128": pa.array(["1.50", "-2.25", None]).cast(pa.decimal128(10, 2)),
    "date32": pa.array([1, -1, None], pa.date32()),
    "timestamp": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
    "time64": pa.array([1, 2, None], pa.time64("ns")),
    "duration": pa.array([1, 2, None], pa.duration("s")),
    "string": pa.array(["", "b", None]),
    "large_string": pa.array(["a", "b", None], pa.large_string()),
    "binary": pa.array([b"", b"b", None]),
    "fixed_size_binary": pa.array([b"ab", b"cd", None], pa.binary(2)),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
}


def _merged(rows: pa.Table, uri: Path, on: list[str]) -> tuple[dict[str, int], list[str]]:
    names = {"lance": lance, "uri": str(uri), "rows": rows, "on": on}
    exec(UPSERT, names)
    stats: dict[str, int] = names["result"]  # type: ignore[assignment]
    return stats, _rows(uri)


def _rows(uri: Path) -> list[str]:
    return sorted(str(row) for row in lance.dataset(uri).to_table().to_pylist())


@pytest.mark.parametrize("on", [["k"], ["k", "second"]], ids=["one column", "two columns"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_keys_are_matched_alike(
    kind: str, on: list[str], official_14: Official, tmp_path: Path
) -> None:
    keys = COLUMNS[kind]
    table = pa.table({"k": keys, "second": ["x", "y", "z"], "v": [1, 2, 3]})
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    official_14.write(theirs, table.slice(1), data_storage_version="2.1")
    shutil.copytree(theirs, ours)
    source = table.set_column(2, "v", [[10, 20, 30]])
    try:
        expected = official_14.run(theirs, UPSERT, rows=source, on=on)
    except OfficialError as error:
        pytest.skip(f"official Lance does not merge by such a key: {error.kind}")
    assert _merged(source, ours, on) == (expected, _rows(theirs))
