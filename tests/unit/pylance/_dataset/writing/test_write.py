from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidRequestError,
    ObjectNotFoundError,
    SchemaMismatchError,
    UncertainCommitError,
    UnsupportedError,
)
from lancelake.pylance._dataset.transactions import Transaction
from lancelake.pylance.fragment import DataFile, LanceFragment, write_fragments
from lancelake.table.write import WriteMode, WriteOptions, plan

ROWS = pa.table({"a": pa.array(range(10), pa.int64()), "b": [str(i) for i in range(10)]})
ONLY_ROWS = ROWS.select([])


def _base_ids(fragments: list[Any]) -> list[int | None]:
    return [fragment.files[0].base_id for fragment in fragments]


def _bases(root: Path, *names: str) -> list[lance.DatasetBasePath]:
    return [lance.DatasetBasePath(str(root / name), name) for name in names]


@pytest.fixture
def based(tmp_path: Path) -> lance.LanceDataset:
    """Return a table with two bases."""
    bases = _bases(tmp_path, "x", "y")
    return lance.write_dataset(ROWS, tmp_path / "t", initial_bases=bases)


def test_files_of_an_insert_go_to_the_bases_in_turn(based: lance.LanceDataset) -> None:
    based.insert(ROWS, target_bases=["y", "x"], max_rows_per_file=4)
    made = [fragment.metadata for fragment in based.get_fragments()]
    assert _base_ids(made) == [None, 2, 1, 2]
    assert based.count_rows() == 20


def test_bases_are_known_where_only_the_uri_is_given(based: lance.LanceDataset) -> None:
    made = write_fragments(ROWS, based.uri, target_all_bases=True, max_rows_per_file=4)
    assert isinstance(made, list)
    assert _base_ids(made) == [None, 1, 2]


def test_a_transaction_of_a_new_table_declares_its_bases(tmp_path: Path) -> None:
    bases = _bases(tmp_path, "x")
    made = write_fragments(
        ROWS,
        tmp_path / "t",
        mode="create",
        initial_bases=bases,
        target_bases=["x"],
        return_transaction=True,
    )
    assert isinstance(made, Transaction)
    table = lance.LanceDataset.commit(str(tmp_path / "t"), made)
    assert (table.count_rows(), list(table.base_paths())) == (10, [1])


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_only_a_new_table_declares_bases(based: lance.LanceDataset, mode: str) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot register new bases in"):
        lance.write_dataset(
            ROWS, based, mode=mode, initial_bases=[lance.DatasetBasePath("/z", "z")]
        )
    assert based.latest_version == 1


@pytest.mark.parametrize("path", ["{}/x/", "file://{}/x"])
def test_a_base_at_the_place_of_another_is_refused(
    based: lance.LanceDataset, tmp_path: Path, path: str
) -> None:
    with pytest.raises(InvalidRequestError, match="already registered"):
        based.add_bases([lance.DatasetBasePath(path.format(tmp_path), "z")])
    assert based.latest_version == 1


def test_a_new_table_starts_with_its_cleanup_settings(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path, auto_cleanup_options={"older_than_seconds": 3600})
    assert made.config() == {
        "lance.auto_cleanup.interval": "20",
        "lance.auto_cleanup.older_than": "1h",
    }


@pytest.mark.parametrize("interval", [-1, "5", 1.5, True])
def test_nonsense_about_cleanup_is_refused(tmp_path: Path, interval: Any) -> None:
    with pytest.raises(InvalidRequestError, match="interval of auto_cleanup_options"):
        lance.write_dataset(ROWS, tmp_path, auto_cleanup_options={"interval": interval})
    assert not (tmp_path / "_versions").exists()


def test_stable_row_ids_cannot_come_with_an_overwrite(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path)
    with pytest.raises(InvalidRequestError, match="has no stable row ids"):
        lance.write_dataset(ROWS, tmp_path, mode="overwrite", enable_stable_row_ids=True)
    made = write_fragments(ROWS, tmp_path)
    with pytest.raises(InvalidRequestError, match="has no stable row ids"):
        lance.LanceDataset.commit(
            tmp_path,
            lance.LanceOperation.Overwrite(ROWS.schema, made),  # type: ignore[arg-type]
            enable_stable_row_ids=True,
        )
    assert lance.dataset(tmp_path).version == 1


def test_what_only_tunes_official_lance_changes_nothing(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path, max_rows_per_group=5, max_page_bytes=7, session=None)
    made.insert(ROWS, max_rows_per_group=5, data_cache_bytes=1)
    assert made.count_rows() == 20


@pytest.mark.parametrize("name", ["namespace", "base_store_params"])
def test_what_is_not_offered_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{name} is not supported"):
        lance.write_dataset(ROWS, tmp_path, **{name: "x"})  # type: ignore[arg-type]


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        lance.write_dataset(ROWS, tmp_path, foo=1)


def test_fragments_of_a_table_that_is_there_are_not_created(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path)
    with pytest.raises(AlreadyExistsError):
        write_fragments(ROWS, tmp_path, mode="create")


def test_a_fragment_takes_all_rows(tmp_path: Path) -> None:
    made = LanceFragment.create(tmp_path, ROWS, fragment_id=5)
    assert (made.id, made.physical_rows, len(made.files)) == (5, 10, 1)
    table = lance.LanceDataset.commit(tmp_path, lance.LanceOperation.Overwrite(ROWS.schema, [made]))
    assert table.to_table() == ROWS


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (ROWS.select(["b"]), r"missing=\[a\]"),
        (pa.table({"a": ["x"], "b": ["y"]}), "column a has type int64"),
        (ROWS.append_column("c", [list(range(10))]), "does not have: c"),
        (ROWS.slice(0, 0), "Input data was empty"),
    ],
)
def test_a_fragment_that_does_not_fit_is_refused(
    tmp_path: Path, rows: pa.Table, problem: str
) -> None:
    lance.write_dataset(ROWS, tmp_path)
    with pytest.raises(InvalidRequestError, match=problem):
        LanceFragment.create(tmp_path, rows)


def test_a_fragment_of_another_schema_may_be_created(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path)
    made = LanceFragment.create(tmp_path, pa.table({"z": [1]}), mode="overwrite")
    assert made.files[0].fields == [0]


NESTED = pa.table({"s": [{"x": 1, "y": [{"z": "a"}]}, None], "n": [1, 2]})


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_file_describes_its_content(tmp_path: Path, version: str) -> None:
    rows = NESTED.slice(0, 1) if version == "2.0" else NESTED
    table = lance.write_dataset(rows, tmp_path, data_storage_version=version)
    (fragment,) = table.get_fragments()
    assert LanceFragment.create_from_file(fragment.data_files()[0].path, table, 0) == (
        fragment.metadata
    )


def test_a_file_with_some_columns_can_be_described(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path)
    path = LanceFragment.create(tmp_path, ROWS.select(["b"]), mode="overwrite").files[0].path
    assert DataFile.create(table, path).fields == [1]
    with pytest.raises(SchemaMismatchError, match=r"expected: \[a, b\], actual: \[b\]"):
        LanceFragment.create_from_file(path, table, 7)


def test_a_file_that_is_not_there_cannot_be_described(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path)
    with pytest.raises(ObjectNotFoundError, match=r"Not found: .*nope\.lance"):
        LanceFragment.create_from_file("nope.lance", table, 7)


def test_members_in_another_order_are_refused(tmp_path: Path) -> None:
    table = lance.write_dataset(pa.table({"s": [{"x": 1, "y": 2}]}), tmp_path)
    other = pa.table({"s": [{"y": 1, "x": 2}]})
    path = LanceFragment.create(tmp_path, other, mode="overwrite").files[0].path
    with pytest.raises(SchemaMismatchError, match="another order"):
        LanceFragment.create_from_file(path, table, 7)


@pytest.mark.parametrize(
    "data",
    [pd.DataFrame([{}]), ONLY_ROWS, ONLY_ROWS.to_batches()[0], [{}, {}]],
    ids=["frame", "table", "batch", "dicts"],
)
@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_rows_without_columns_are_refused(tmp_path: Path, data: Any, mode: str) -> None:
    uri = tmp_path / "t"
    if mode != "create":
        lance.write_dataset(ROWS, uri)
    with pytest.raises(OSError, match="no columns"):
        lance.write_dataset(data, uri, mode=mode)
    assert sum(1 for _ in (uri / "data").glob("*")) == (mode != "create")


def test_a_fragment_of_rows_without_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no columns"):
        LanceFragment.create(tmp_path / "t", pd.DataFrame([{}]))
    with pytest.raises(OSError, match="no columns"):
        write_fragments(ONLY_ROWS, tmp_path / "t")


def test_a_table_without_rows_may_have_no_columns(tmp_path: Path) -> None:
    assert lance.write_dataset(pd.DataFrame(), tmp_path / "t").count_rows() == 0


NEWER = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "+01:00"))])


def test_types_that_only_newer_releases_read_are_appended_to_a_table_that_has_them(
    tmp_path: Path,
) -> None:
    uri = str(tmp_path / "t.lance")
    lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(NEWER, []))
    rows = pa.table({"id": [1], "at": [0]}).cast(NEWER)
    lance.write_dataset(rows, uri, mode="append")
    assert lance.dataset(uri).to_table() == rows


def test_rows_of_types_that_only_newer_releases_read_are_updated(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(NEWER, []))
    made = lance.write_dataset(pa.table({"id": [1], "at": [0]}).cast(NEWER), uri, mode="append")
    made.update({"id": "2"})
    assert lance.dataset(uri).to_table() == pa.table({"id": [2], "at": [0]}).cast(NEWER)


@pytest.mark.parametrize("dtype", [pa.map_(pa.string(), pa.int64()), NEWER.field("at").type])
def test_a_column_that_cannot_be_stored_is_not_added_by_an_append(
    tmp_path: Path, dtype: pa.DataType
) -> None:
    rows = pa.table({"id": [1]})
    made = lance.write_dataset(rows, tmp_path / "t.lance", data_storage_version="2.1")
    wider = rows.append_column("more", pa.nulls(1, dtype))
    with pytest.raises(UnsupportedError, match="column more"):
        lance.write_dataset(wider, made.uri, mode="append", schema_mode="merge")
    assert lance.dataset(made.uri).latest_version == 1
    assert lance.write_dataset(rows, made.uri, mode="append").count_rows() == 2


MAPS = pa.table({"m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})


def test_a_new_table_has_the_file_version_that_its_columns_need(tmp_path: Path) -> None:
    made = lance.write_dataset(MAPS, tmp_path / "t.lance")
    assert made.data_storage_version == "2.2"
    assert made.to_table() == MAPS


def test_an_overwritten_table_gets_the_file_version_that_its_columns_need(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path / "t.lance", data_storage_version="2.0")
    made = lance.write_dataset(MAPS, tmp_path / "t.lance", mode="overwrite")
    assert made.data_storage_version == "2.2"
    assert made.to_table() == MAPS


def test_a_file_version_that_was_asked_for_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="column m is a map"):
        lance.write_dataset(MAPS, tmp_path / "t.lance", data_storage_version="2.1")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_an_append_adds_members_of_structs_if_asked(tmp_path: Path, version: str) -> None:
    rows = pa.table({"s": [{"a": 1}]})
    made = lance.write_dataset(rows, tmp_path / "t.lance", data_storage_version=version)
    wider = pa.table({"s": [{"a": 2, "b": 3}]})
    after = lance.write_dataset(wider, made.uri, mode="append", schema_mode="merge")
    after.validate()
    values = after.to_table()["s"].to_pylist()
    assert values == [{"a": 1, "b": None}, {"a": 2, "b": 3}]


LEGACY = Path(__file__).parents[4] / "golden" / "tables" / "v0.13.0" / "legacy_indices.lance"


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_every_write_to_a_table_with_legacy_files_is_refused_alike(
    tmp_path: Path, mode: str
) -> None:
    shutil.copytree(LEGACY, tmp_path / "t")
    base = lance.dataset(tmp_path / "t")._snapshot
    rows = lance.dataset(tmp_path / "t").to_table(limit=1)
    refused = r"legacy data files can be read, but not written.*2\.0, 2\.1, 2\.2"
    with pytest.raises(UnsupportedError, match=refused):
        lance.write_dataset(rows, tmp_path / "t", mode=mode)
    with pytest.raises(UnsupportedError, match=refused):
        options = WriteOptions(mode=WriteMode(mode), keeps_schema=True, casts=True)
        plan(base, base.location, rows.schema, options)


def test_a_table_with_legacy_files_is_overwritten_in_another_version(tmp_path: Path) -> None:
    shutil.copytree(LEGACY, tmp_path / "t")
    made = lance.write_dataset(ROWS, tmp_path / "t", mode="overwrite", data_storage_version="2.1")
    assert made.to_table() == ROWS


def test_rows_of_an_append_that_is_refused_are_removed(tmp_path: Path) -> None:
    stale = lance.write_dataset(ROWS, tmp_path / "t")
    lance.write_dataset(ROWS, tmp_path / "t", mode="overwrite")
    before = sorted((tmp_path / "t/data").iterdir())
    with pytest.raises(ConflictError, match="the table was replaced"):
        lance.write_dataset(ROWS, stale, mode="append")
    assert sorted((tmp_path / "t/data").iterdir()) == before


def test_rows_of_a_commit_in_doubt_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = lance.write_dataset(ROWS, tmp_path / "t")

    def lost(*_: object, **__: object) -> None:
        raise UncertainCommitError("no reply")

    monkeypatch.setattr("lancelake.table.publish.commit", lost)
    with pytest.raises(UncertainCommitError):
        ds.insert(ROWS)
    assert len(list((tmp_path / "t/data").iterdir())) == 2
