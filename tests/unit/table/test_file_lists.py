"""Lists of stored files, and of files that versions refer to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from tests.support.official import Official

ROWS = pa.table({"a": [1, 2, 3]})
CODE = """
ds = lance.dataset(uri)
tracked = ds.tracked_files().read_all()
columns = [tracked[name].to_pylist() for name in ("version", "path", "type")]
result = {
    "all": sorted(ds.all_files().read_all()["path"].to_pylist()),
    "tracked": sorted(map(list, zip(*columns))),
    "schemas": [str(ds.all_files().schema), str(tracked.schema)],
}
"""


def test_files_are_those_that_official_lance_lists(tmp_path: Path, official_14: Official) -> None:
    made = lance.write_dataset(ROWS, tmp_path / "t")
    made.delete("a = 1")
    theirs = official_14.run(str(tmp_path / "t"), CODE)
    tracked = made.tracked_files().read_all()
    columns = [tracked[name].to_pylist() for name in ("version", "path", "type")]
    assert sorted(map(list, zip(*columns, strict=True))) == theirs["tracked"]
    assert sorted(made.all_files().read_all()["path"].to_pylist()) == theirs["all"]
    assert [str(made.all_files().schema), str(tracked.schema)] == theirs["schemas"]


def test_versions_are_counted_while_they_are_read(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path / "t")
    made.insert(ROWS)
    seen: list[tuple[int, int | None]] = []
    reader = made.tracked_files(progress=lambda done, total: seen.append((done, total)))
    assert set(reader.read_all()["version"].to_pylist()) == {1, 2}
    assert seen == [(1, 2), (2, 2)]
    assert set(made.tracked_files(min_version=2).read_all()["version"].to_pylist()) == {2}
