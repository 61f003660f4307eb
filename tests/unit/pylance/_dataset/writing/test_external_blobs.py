"""Blobs given by URI are stored with the table on request."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.fragment import write_fragments


@pytest.fixture
def rows(tmp_path: Path) -> pa.Table:
    """Return a whole object, a part of it, bytes and a null."""
    (tmp_path / "x.bin").write_bytes(b"0123456789")
    uri = (tmp_path / "x.bin").as_uri()
    part = lance.Blob(uri=uri, position=2, size=3)
    values = [lance.Blob.from_uri(uri), part, b"q", None]
    return pa.table({"b": lance.blob_array(values)})


def _values(dataset: lance.LanceDataset) -> list[bytes | None]:
    indices = range(dataset.count_rows())
    return [value for _, value in dataset.read_blobs("b", indices=indices)]


def test_ingested_blobs_do_not_need_their_source(rows: pa.Table, tmp_path: Path) -> None:
    options = {"data_storage_version": "2.2", "external_blob_mode": "ingest"}
    made = lance.write_dataset(rows, tmp_path / "t", **options)  # type: ignore[arg-type]  # by name
    made.insert(rows, external_blob_mode="ingest")
    fragments = write_fragments(rows, made, external_blob_mode="ingest")
    operation = lance.LanceOperation.Append(fragments)
    made = lance.LanceDataset.commit(made, operation, read_version=made.version)
    (tmp_path / "x.bin").unlink()
    assert _values(made) == [b"0123456789", b"234", b"q", None] * 3


def test_references_are_kept_when_rows_are_rewritten(rows: pa.Table, tmp_path: Path) -> None:
    made = lance.write_dataset(
        rows.append_column("n", pa.array(range(4))),
        tmp_path / "t",
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    made.update({"n": "n + 10"}, where="n < 2")
    made.delete("n = 3")
    made.optimize.compact_files()
    assert len(made.get_fragments()) == 1
    assert sorted(filter(None, _values(made))) == [b"0123456789", b"234", b"q"]


def test_references_are_refused_where_bytes_are_ingested(rows: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="only applies when external_blob_mode"):
        lance.write_dataset(
            rows,
            tmp_path / "t",
            external_blob_mode="ingest",
            allow_external_blob_outside_bases=True,
        )


def test_an_unknown_mode_is_refused(rows: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid external blob mode: x"):
        lance.write_dataset(rows, tmp_path / "t", external_blob_mode="x")


def test_a_blob_below_a_base_is_stored_relative_to_it(tmp_path: Path) -> None:
    source = tmp_path / "base" / "deep" / "x.bin"
    source.parent.mkdir(parents=True)
    source.write_bytes(b"hello")
    bases = [lance.DatasetBasePath((tmp_path / "base").as_uri(), name="blobs", id=1)]
    made = lance.write_dataset(
        pa.table({"b": lance.blob_array([source.as_uri()])}),
        tmp_path / "t",
        data_storage_version="2.2",
        initial_bases=bases,
    )
    (stored,) = made.to_table()["b"].to_pylist()
    assert (stored["blob_id"], stored["blob_uri"]) == (1, "deep/x.bin")
    assert _values(made) == [b"hello"]


def test_an_added_column_may_refer_to_a_base(tmp_path: Path) -> None:
    source = tmp_path / "base" / "x.bin"
    source.parent.mkdir()
    source.write_bytes(b"hello")
    bases = [lance.DatasetBasePath((tmp_path / "base").as_uri(), name="blobs", id=1)]
    ids = pa.table({"id": [1]})
    made = lance.write_dataset(ids, tmp_path / "t", data_storage_version="2.2", initial_bases=bases)
    made.add_columns(pa.table({"b": lance.blob_array([source.as_uri()])}).to_reader())
    assert _values(made) == [b"hello"]


def test_fragments_refuse_blobs_outside_of_the_bases(rows: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="outside registered external bases"):
        write_fragments(rows, tmp_path / "t", data_storage_version="2.2")


@pytest.mark.parametrize("limit", ["inline", "dedicated", "pack_file"])
def test_an_append_cannot_change_the_limits_of_blobs(tmp_path: Path, limit: str) -> None:
    def data(size: int | None) -> pa.Table:
        given = {} if size is None else {f"{limit}_size_threshold": size}
        field = lance.blob_field("b", **given)
        return pa.table({"b": lance.blob_array([b"x"])}, schema=pa.schema([field]))

    made = lance.write_dataset(data(2048), tmp_path / "t", data_storage_version="2.2")
    made.insert(data(2048))
    made.insert(data(None))
    with pytest.raises(OSError, match="Cannot append data with blob threshold metadata"):
        made.insert(data(4096))
    assert made.count_rows() == 3
