"""Methods of pyarrow datasets: supported or refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError

ROWS = pa.table({"id": pa.array([3, 1, 2], pa.int64()), "v": ["c", "a", "b"]})

CALL_ALL = """
import sys
import pyarrow as pa, pyarrow.compute as pc, pyarrow.dataset as pads
import lancelake.pylance as lance

ds = lance.dataset(sys.argv[1])
kind = sys.argv[2]
subject = {"Dataset": ds, "Scanner": ds.scanner(), "Fragment": ds.get_fragments()[0]}[kind]
right = pa.table({"id": [1]})
given = [
    [], ["id"], [1], [[1]], [pc.field("id") > 1], [pa.schema([("id", pa.int64())])],
    [ds], [ds, "id"], [pads.dataset(right), "id"], [ds, "id", [], 1], [ds, "id", "id", 1, "id"],
]
for name in (name for name in dir(getattr(pads, kind)) if not name.startswith("_")):
    print(name, flush=True)
    for arguments in given:
        try:
            value = getattr(subject, name)
            result = value(*arguments) if callable(value) else value
            if hasattr(result, "__next__"):
                list(result)
        except Exception:
            pass
print("alive")
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arrow") / "t.lance"
    lance.write_dataset(ROWS, path)
    return path


@pytest.fixture
def dataset(uri: Path) -> lance.LanceDataset:
    return lance.dataset(uri)


@pytest.mark.parametrize("kind", ["Dataset", "Scanner", "Fragment"])
def test_no_public_name_of_pyarrow_ends_the_process(uri: Path, kind: str) -> None:
    command = [sys.executable, "-c", CALL_ALL, str(uri), kind]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["alive"]), run.stderr


@pytest.mark.parametrize(
    ("ours", "base"),
    [
        (lance.LanceDataset, pads.Dataset),
        (lance.LanceScanner, pads.Scanner),
        (lance.LanceFragment, pads.Fragment),
    ],
)
def test_every_public_name_of_pyarrow_is_redefined(ours: type, base: type) -> None:
    names = [name for name in dir(base) if not name.startswith("_")]
    assert [name for name in names if getattr(ours, name) is getattr(base, name)] == []


def test_sorting_gives_what_pyarrow_gives(dataset: lance.LanceDataset) -> None:
    order = [("v", "descending")]
    assert dataset.sort_by(order).to_table().equals(pads.dataset(ROWS).sort_by(order).to_table())


def test_joins_give_what_pyarrow_gives(dataset: lance.LanceDataset) -> None:
    right = pads.dataset(pa.table({"key": [1, 2], "w": [10, 20]}))
    options = {"right_keys": "key", "join_type": "inner"}
    expected = pads.dataset(ROWS).join(right, "id", **options).to_table()
    found = dataset.join(right, "id", **options).to_table()
    assert found.sort_by("id").equals(expected.sort_by("id"))
    with_itself = dataset.join(dataset, "id", right_suffix="_r")
    assert with_itself.to_table().column_names == ["id", "v", "v_r"]


def test_joins_with_the_nearest_rows_give_what_pyarrow_gives(tmp_path: Path) -> None:
    left = pa.table({"on": [1, 5], "by": ["x", "x"]})
    right = pads.dataset(pa.table({"on": [2, 4], "by": ["x", "x"], "w": [1, 2]}))
    dataset = lance.write_dataset(left, tmp_path / "t")
    expected = pads.dataset(left).join_asof(right, "on", "by", 2).to_table()
    assert dataset.join_asof(right, "on", "by", 2).to_table().equals(expected)


def test_what_cannot_be_done_is_refused_with_advice(dataset: lance.LanceDataset) -> None:
    with pytest.raises(UnsupportedError, match="scanner"):
        dataset.filter(pc.field("id") > 1)
    with pytest.raises(UnsupportedError, match="columns"):
        dataset.replace_schema(pa.schema([("id", pa.int64())]))
    with pytest.raises(TypeError, match="expected a dataset"):
        dataset.join(7, "id")
