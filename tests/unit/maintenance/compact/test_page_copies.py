"""Pages are copied unchanged where that is possible, and only there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data import joined_fragments
from lancelake.errors import UnsupportedError
from tests.support.compare import assert_same_table
from tests.support.official import RELEASES, OfficialPool, is_installed

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
SOME = [0, 699, 700, 2799]
WORDS = ("a", "bb", None, "dddd")


def rows(number: int, count: int = 700) -> pa.Table:
    """Return rows of many types, of which lists and nulls make pages uneven."""
    ids = range(number * count, (number + 1) * count)
    floats = pa.array(np.arange(count * 4, dtype=np.float32))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "word": [WORDS[i % 4] for i in ids],
            "same": [None] * count,
            "code": pa.array([WORDS[i % 4] for i in ids]).dictionary_encode(),
            "list": pa.array([list(range(i % 5)) if i % 7 else None for i in ids]),
            "struct": pa.array([{"x": i, "y": [str(i)]} if i % 3 else None for i in ids]),
            "vector": pa.FixedSizeListArray.from_arrays(floats, 4),
        }
    )


@pytest.fixture(params=["2.1", "2.2"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance.LanceDataset:
    """Return four fragments with stable row ids."""
    uri = tmp_path / "t.lance"
    for number in range(4):
        found = lance.write_dataset(
            rows(number),
            uri,
            mode="append" if number else "create",
            data_storage_version=request.param,
            enable_stable_row_ids=True,
        )
    return found


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of files that are made of pages."""
    made: list[str] = []
    write = joined_fragments.PageCopy.write

    def noted(self: joined_fragments.PageCopy, store: object, path: str) -> int:
        made.append(path)
        return write(self, store, path)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(joined_fragments.PageCopy, "write", noted)
    return made


def contents(dataset: lance.LanceDataset) -> pa.Table:
    return dataset.to_table(columns=[*dataset.schema.names, *LINEAGE])


def test_rows_of_copied_pages_are_the_same(
    dataset: lance.LanceDataset, copies: list[str], officials: OfficialPool
) -> None:
    before = contents(dataset)
    dataset.optimize.compact_files(compaction_mode="force_binary_copy")
    assert len(copies) == 1
    assert_same_table(contents(dataset), before)
    assert_same_table(dataset.take(SOME), before.take(SOME).drop(LINEAGE))
    for release in filter(is_installed, RELEASES):
        found = officials(release).read(dataset.uri)
        assert_same_table(found, before.drop(LINEAGE))


def test_copied_pages_can_be_copied_again(dataset: lance.LanceDataset, copies: list[str]) -> None:
    dataset.optimize.compact_files(compaction_mode="force_binary_copy")
    dataset.insert(rows(4))
    before = contents(dataset)
    dataset.optimize.compact_files(compaction_mode="force_binary_copy")
    assert len(copies) == 2
    assert_same_table(contents(dataset), before)


CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "deleted rows": lambda ds: ds.delete("id = 5"),
    "a column in another file": lambda ds: ds.add_columns({"more": "id + 1"}),
    "a dropped column": lambda ds: ds.drop_columns(["word"]),
    "a column that no file has": lambda ds: ds.add_columns(pa.field("none", pa.int32())),
}


@pytest.mark.parametrize("name", CHANGES)
def test_values_are_encoded_again_where_files_do_not_hold_just_the_rows(
    name: str, dataset: lance.LanceDataset, copies: list[str]
) -> None:
    CHANGES[name](dataset)
    before = contents(dataset)
    with pytest.raises(UnsupportedError, match="cannot be copied unchanged"):
        lance.dataset(dataset.uri).optimize.compact_files(compaction_mode="force_binary_copy")
    dataset.optimize.compact_files(compaction_mode="try_binary_copy")
    assert copies == []
    assert_same_table(contents(dataset), before)


def test_small_pages_are_not_kept_unless_asked_for(
    dataset: lance.LanceDataset, copies: list[str]
) -> None:
    dataset.optimize.compact_files()
    assert copies == []


def test_large_pages_are_kept_by_default(tmp_path: Path, copies: list[str]) -> None:
    values = pa.array(np.random.default_rng(1).random(400 * 1024, dtype=np.float32))
    wide = pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 1024)})
    for mode, expected in (("reencode", 0), (None, 1)):
        uri = tmp_path / f"{mode}.lance"
        for _ in range(2):
            dataset = lance.write_dataset(wide, uri, mode="append" if uri.exists() else "create")
        dataset.optimize.compact_files(compaction_mode=mode)  # type: ignore[arg-type]  # by name
        assert len(copies) == expected
        assert dataset.to_table().equals(pa.concat_tables([wide, wide]))
