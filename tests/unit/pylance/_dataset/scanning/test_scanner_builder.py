"""The builder of scans."""

from __future__ import annotations

from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.pylance import LanceDataset
from lancelake.pylance._dataset.scanner_builder import ScannerBuilder
from lancelake.pylance._values.opened import ColumnOrdering
from tests.support.read_tables import Varied, varied


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table of 27 rows."""
    return varied(tmp_path_factory.mktemp("builder") / "t.lance")


@pytest.fixture(scope="module")
def ds(table: Varied) -> LanceDataset:
    """Return the table, open."""
    return lance.dataset(table.uri)


def test_steps_add_up(ds: LanceDataset) -> None:
    builder = ScannerBuilder(ds).columns(["key"]).filter("key > 10").limit(2).offset(1)
    scanner = builder.with_row_id().order_by(["key"]).batch_size(1).to_scanner()
    assert scanner.to_table()["key"].to_pylist() == [12, 14]
    assert scanner.projected_schema.names == ["key", "_rowid"]


def test_later_step_replaces_an_earlier_one(ds: LanceDataset) -> None:
    scanner = ScannerBuilder(ds).limit(1).limit(None).filter("key = 0").to_scanner()
    assert scanner.to_table().num_rows == 1


def test_options_are_steps(ds: LanceDataset) -> None:
    builder = ScannerBuilder(ds).apply_defaults({"limit": 3, "with_row_id": True})
    assert builder.to_scanner().to_table().num_rows == 3


def test_unknown_option_is_refused(ds: LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="nosuch"):
        ScannerBuilder(ds).apply_defaults({"nosuch": 1})


@pytest.mark.parametrize(
    "step",
    [
        lambda b: b.io_buffer_size(10),
        lambda b: b.scan_in_order(False),
        lambda b: b.prefilter(True),
        lambda b: b.use_stats(False),
        lambda b: b.use_scalar_index(False),
        lambda b: b.fast_search(True),
        lambda b: b.batch_readahead(3),
        lambda b: b.fragment_readahead(3),
        lambda b: b.disable_scoring_autoprojection(),
        lambda b: b.with_fragments(None),
        lambda b: b.blob_handling("blobs_descriptions"),
    ],
)
def test_step_that_tunes_changes_no_row(ds: LanceDataset, table: Varied, step: Any) -> None:
    assert step(ScannerBuilder(ds)).to_scanner().to_table().num_rows == table.rows.num_rows


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        (lambda b: b.limit(-1), ValueError, "Limit must be non-negative"),
        (lambda b: b.offset(-1), ValueError, "Offset must be non-negative"),
        (lambda b: b.limit("1"), TypeError, "integer"),
        (lambda b: b.offset(1.5), TypeError, "integer"),
        (lambda b: b.batch_size(0), ValueError, "batch_size"),
        (lambda b: b.batch_readahead(-1), ValueError, "batch_readahead"),
        (lambda b: b.fragment_readahead(-1), ValueError, "fragment_readahead"),
        (lambda b: b.columns("key"), TypeError, "columns must be a list or dict"),
        (lambda b: b.columns([5]), TypeError, "strings"),
        (lambda b: b.late_materialization("key"), ValueError, "bool or a list of strings"),
        (lambda b: b.late_materialization([1]), ValueError, "bool or a list of strings"),
        (lambda b: b.with_fragments([1]), TypeError, "iterable of LanceFragment"),
        (lambda b: b.nearest("key", [1.0], k=0), ValueError, "Nearest-K"),
        (lambda b: b.full_text_search(5), TypeError, "full text query"),
        (lambda b: b.full_text_search({"text": "x"}), ValueError, "keys"),
        (lambda b: b.blob_handling("nonsense"), ValueError, "nonsense"),
        (lambda b: b.include_deleted_rows(True).to_scanner(), ValueError, "with_row_id"),
    ],
)
def test_wrong_step_is_refused(
    ds: LanceDataset, step: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        step(ScannerBuilder(ds))


def test_fragments_may_come_from_an_iterator(ds: LanceDataset) -> None:
    chosen = iter([ds.get_fragment(4), ds.get_fragment(3)])
    found = ScannerBuilder(ds).with_fragments(chosen).to_scanner().to_table()
    assert found["key"].to_pylist() == [36, 31, 32, 33, 34]


def test_order_is_by_name_or_by_key(ds: LanceDataset) -> None:
    order = [ColumnOrdering("n", ascending=False, nulls_first=True), "key"]
    scanner = ScannerBuilder(ds).columns(["key"]).order_by(order).limit(5).to_scanner()
    assert scanner.to_table()["key"].to_pylist() == [31, 32, 33, 34, 36]
