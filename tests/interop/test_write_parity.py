"""Multiple bases, single fragments and cleanup settings compared with official releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance as latest
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.fragment import LanceFragment
from tests.support.official import Official

ROWS = pa.table({"a": pa.array(range(20), pa.int64())})
APPEND = """
rows = pa.table({"a": pa.array(range(20), pa.int64())})
made = lance.write_dataset(rows, uri, mode="append", target_bases=targets, max_rows_per_file=4)
made.validate()
files = [f.data_files()[0].base_id for f in made.get_fragments()]
result = [made.count_rows(), files]
"""
ADD_FILE = """
from lance.fragment import LanceFragment
table = lance.dataset(uri)
made = LanceFragment.create_from_file(path, table, 0)
operation = lance.LanceOperation.Append([made])
after = lance.LanceDataset.commit(uri, operation, read_version=table.version)
result = after.to_table().to_pydict()
"""


def _bases(root: Path) -> list[lance.DatasetBasePath]:
    return [lance.DatasetBasePath(str(root / name), name) for name in ("x", "y", "z")]


def _base_ids(table: lance.LanceDataset) -> list[int | None]:
    return [fragment.data_files()[0].base_id for fragment in table.get_fragments()]


def test_files_on_several_bases_are_read_and_added_to(official: Official, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(
        ROWS, uri, initial_bases=_bases(tmp_path), target_bases=["z", "x"], max_rows_per_file=4
    )
    rows, files = official.run(uri, APPEND, targets=["y", str(tmp_path / "x")])
    assert (rows, files) == (40, [3, 1, 3, 1, 3, 2, 1, 2, 1, 2])
    ours = lance.dataset(uri)
    ours.insert(ROWS, target_bases=["y", "z"], max_rows_per_file=10)
    assert _base_ids(ours) == [*files, 2, 3]
    assert ours.to_table().num_rows == 60
    ours.validate()


@pytest.mark.parametrize("with_root", [True, False])
def test_files_go_to_all_bases_in_the_order_of_the_latest_release(
    tmp_path: Path, with_root: bool
) -> None:
    found = []
    faces: list[Any] = [lance, latest]
    for number, face in enumerate(faces):
        place = tmp_path / str(number)
        bases = [face.DatasetBasePath(str(place / name), name) for name in ("x", "y", "z")]
        made = face.write_dataset(
            ROWS,
            place / "t",
            initial_bases=bases,
            target_all_bases=with_root,
            max_rows_per_file=3,
        )
        found.append(_base_ids(made))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"interval": 5},
        {"older_than_seconds": 0},
        {"interval": 0, "older_than_seconds": 90_061},
        {"interval": 7, "older_than_seconds": 400 * 86_400 + 3_661},
        {"older_than_seconds": 2 * 31_557_600 + 59},
    ],
)
def test_cleanup_settings_are_recorded_as_by_the_latest_release(
    tmp_path: Path, options: Any
) -> None:
    faces: list[Any] = [lance, latest]
    found = [
        face.write_dataset(ROWS, str(tmp_path / str(n)), auto_cleanup_options=options).config()
        for n, face in enumerate(faces)
    ]
    assert found[0] == found[1]


def test_a_fragment_of_ours_is_described_and_committed_by_releases(
    official: Official, tmp_path: Path
) -> None:
    uri = str(tmp_path)
    lance.write_dataset(ROWS.slice(0, 2), uri)
    path = LanceFragment.create(uri, ROWS.slice(2, 1)).files[0].path
    assert official.run(uri, ADD_FILE, path=str(path)) == {"a": [0, 1, 2]}
