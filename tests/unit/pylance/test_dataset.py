"""The dataset API as in pylance."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import (
    OutOfRangeError,
    RefNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancelake.pylance import LanceDataset
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, varied, versioned


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of four versions, with tags and a branch."""
    path = tmp_path_factory.mktemp("dataset") / "t.lance"
    versioned(path)
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table of 27 rows in five fragments."""
    return varied(tmp_path_factory.mktemp("dataset") / "v.lance")


@pytest.fixture(scope="module")
def ds(table: Varied) -> LanceDataset:
    """Return the second table, open."""
    return lance.dataset(table.uri)


@pytest.mark.parametrize(
    ("version", "number", "rows"),
    [
        (None, 4, 5),
        (1, 1, 3),
        ("first", 1, 3),
        ("aside", 3, 9),
        (("feat/x", None), 3, 9),
        (("feat/x", 2), 2, 6),
        ((None, 2), 2, 6),
        (("main", None), 4, 5),
    ],
)
def test_version_is_opened(root: Path, version: Any, number: int, rows: int) -> None:
    for found in (lance.dataset(root, version), lance.dataset(root, 1).checkout_version(version)):
        assert (found.version, found.count_rows(), len(found)) == (number, rows, rows)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (99, VersionNotFoundError),
        (("feat/x", 99), VersionNotFoundError),
        ("nosuch", RefNotFoundError),
        (("nosuch", None), RefNotFoundError),
        (1.5, ValueError),
        ([1], ValueError),
        (("feat/x",), ValueError),
    ],
)
def test_version_that_is_not_there_is_refused(
    root: Path, version: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        lance.dataset(root, version)
    with pytest.raises(error):
        lance.dataset(root).checkout_version(version)


@pytest.mark.parametrize("zone", [None, UTC])
def test_time_of_a_version_leads_to_it(root: Path, zone: Any) -> None:
    for version in lance.dataset(root).versions():
        written = version["timestamp"].astimezone(zone)
        assert lance.dataset(root, asof=written).version == version["version"]
        assert lance.dataset(root, asof=str(written)).version == version["version"]


def test_text_with_milliseconds_includes_the_versions_of_its_millisecond(root: Path) -> None:
    newest = lance.dataset(root).versions()[-1]
    written = newest["timestamp"].isoformat(" ", "milliseconds")
    assert lance.dataset(root, asof=written).version == newest["version"]


def test_time_may_be_text(root: Path) -> None:
    assert lance.dataset(root, asof="2999-01-01").version == 4
    with pytest.raises(ValueError, match="earlier than the first version"):
        lance.dataset(root, asof="1999-01-01")


def test_version_wins_over_time(root: Path) -> None:
    assert lance.dataset(root, 2, asof=datetime(2999, 1, 1)).version == 2


def test_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="was not found") as caught:
        lance.dataset(tmp_path / "nosuch.lance")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, FileNotFoundError)


def test_uri_is_needed() -> None:
    with pytest.raises(ValueError, match="Must specify either 'uri' or both"):
        lance.dataset()


def test_misspelled_argument_is_refused(root: Path) -> None:
    with pytest.raises(TypeError, match="versoin"):
        lance.dataset(root, versoin=1)  # type: ignore[call-arg]  # the mistake under test


def test_arguments_that_tune_pylance_are_taken(root: Path) -> None:
    found = lance.dataset(
        root,
        block_size=1,
        index_cache_size=1,
        metadata_cache_size_bytes=1,
        index_cache_size_bytes=1,
        read_params={"cache_repetition_index": True},
        session=lance.Session(),
    )
    assert found.version == 4


def test_a_namespace_needs_the_id_of_a_table() -> None:
    with pytest.raises(ValueError, match="must be provided together"):
        lance.dataset(namespace_client=object())


@pytest.mark.parametrize("spelling", ["{}", "{}/", "file://{}", "file:{}"])
def test_uri_may_be_spelled_in_several_ways(root: Path, spelling: str) -> None:
    found = lance.dataset(spelling.format(root))
    assert (found.uri, found.count_rows()) == (spelling.format(root), 5)


def test_relative_path_is_understood_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    found = lance.dataset(root.name)
    monkeypatch.chdir(os.sep)
    assert (found.uri, found.count_rows()) == (root.name, 5)


def test_home_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root.parent))
    assert lance.dataset(f"~/{root.name}").count_rows() == 5


@pytest.mark.parametrize(
    "name",
    [
        "schema",
        "data_storage_version",
        "has_stable_row_ids",
        "max_field_id",
        "metadata",
        "has_index",
    ],
)
def test_attribute_is_that_of_pylance(root: Path, name: str) -> None:
    assert getattr(lance.dataset(root), name) == getattr(official.dataset(root), name)


def test_config_and_metadata_are_those_of_pylance(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())], metadata={"owner": "me"})
    written = official.write_dataset(pa.table({"a": [1]}, schema=schema), tmp_path / "t")
    written.update_config({"key": "value"})
    written.update_metadata({"about": "tests"})
    found = lance.dataset(tmp_path / "t")
    assert (found.config(), found.metadata, found.schema_metadata) == (
        {"key": "value"},
        {"about": "tests"},
        {"owner": "me"},
    )
    assert found.schema.metadata == {b"owner": b"me"}


def test_fragments_come_in_order(ds: LanceDataset) -> None:
    assert [fragment.fragment_id for fragment in ds.get_fragments()] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="filter"):
        ds.get_fragments(filter="key = 1")


def test_scan_takes_positions_and_names(ds: LanceDataset, table: Varied) -> None:
    found = ds.to_table(["key"], "key > 10", 2, 1)
    assert found["key"].to_pylist() == [12, 14]
    assert_same_table(ds.to_table(limit=2, offset=1), table.rows.slice(1, 2))


def test_unknown_scan_option_is_refused(ds: LanceDataset) -> None:
    for call in (ds.scanner, ds.to_table, ds.to_batches, ds.to_pandas):
        with pytest.raises(TypeError, match="nosuch"):
            call(nosuch=1)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"with_row_id": True}, ["_rowid"]),
        ({"with_row_address": True}, ["_rowaddr"]),
        ({"with_row_id": True, "with_row_address": True}, ["_rowid", "_rowaddr"]),
    ],
)
def test_default_options_add_columns(
    table: Varied, options: dict[str, Any], names: list[str]
) -> None:
    found = lance.dataset(table.uri, default_scan_options=options)
    assert found.schema.names == [*table.rows.schema.names, *names]
    assert found.to_table().schema == found.schema
    assert found.checkout_version(1).schema.names[-len(names) :] == names


def test_options_of_a_scan_win_over_the_defaults(table: Varied) -> None:
    found = lance.dataset(table.uri, default_scan_options={"limit": 2, "with_row_id": True})
    assert found.to_table().num_rows == 2
    assert found.to_table(limit=5, with_row_id=False).shape == (5, 7)


def test_rows_are_taken_in_the_order_asked_for(ds: LanceDataset, table: Varied) -> None:
    asked = [26, 0, 0, 13]
    assert_same_table(ds.take(asked), table.rows.take(asked))
    assert ds.take([], columns=["key"]).to_pydict() == {"key": []}
    assert ds.take(pa.array([1]), columns={"k": "key + 1"}).to_pydict() == {"k": [3]}


def test_row_that_is_not_there_is_out_of_range(ds: LanceDataset) -> None:
    with pytest.raises(OutOfRangeError) as caught:
        ds.take([27])
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, OSError)
    with pytest.raises(OverflowError):
        ds.take([-1])


def test_transactions_are_those_of_pylance(root: Path) -> None:
    def shown(transaction: Any) -> Any:
        return (
            transaction.read_version,
            transaction.uuid,
            type(transaction.operation).__name__,
            transaction.transaction_properties,
        )

    ours, theirs = lance.dataset(root), official.dataset(root)
    assert list(map(shown, ours.get_transactions())) == list(map(shown, theirs.get_transactions()))
    assert len(ours.get_transactions(2)) == 2
    assert [t.read_version for t in lance.dataset(root, 2).get_transactions()] == [1, 0]
    for version in (1, 2, 3, 4):
        assert shown(ours.read_transaction(version)) == shown(theirs.read_transaction(version))


def test_transaction_of_no_version_is_refused(root: Path) -> None:
    with pytest.raises(VersionNotFoundError):
        lance.dataset(root).read_transaction(99)


def test_dataset_is_one_to_pyarrow(ds: LanceDataset) -> None:
    assert isinstance(ds, pa.dataset.Dataset)
    assert isinstance(ds.scanner(), pa.dataset.Scanner)
    assert isinstance(ds.get_fragment(0), pa.dataset.Fragment)


def test_partitions_are_not_offered(ds: LanceDataset) -> None:
    with pytest.raises(NotImplementedError):
        _ = ds.partition_expression
