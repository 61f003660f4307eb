"""Tests of storing blobs beside data files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.arrays.conform import BLOB_VALUE, PREPARED_BLOB
from lancelake.data.blobs import BlobFiles, BlobLimits, stored_place
from lancelake.data.codec.official import CodecAddress
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import BasePath
from lancelake.format.ids import BaseId
from lancelake.format.schema import Field
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

NAME = {"ARROW:extension:name": "lance.blob.v2"}
BASES = (
    BasePath(id=BaseId(1), is_dataset_root=False, path="s3://bucket/blobs"),
    BasePath(id=BaseId(2), is_dataset_root=False, path="/data/blobs/"),
)

FIRST, SECOND = "1" + "0" * 31 + ".blob", "01" + "0" * 30 + ".blob"


def _column(**thresholds: int) -> Field:
    metadata = NAME | {
        f"lance-encoding:blob-{key}-size-threshold": str(value) for key, value in thresholds.items()
    }
    dtype = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    return from_arrow(pa.schema([pa.field("b", dtype, metadata=metadata)])).fields[0]


def _values(*blobs: bytes | str | None) -> pa.Array:
    rows = [None if b is None else {"uri": b} if isinstance(b, str) else {"data": b} for b in blobs]
    return pa.array(rows, BLOB_VALUE)


def _store(
    root: Path | str, column: Field, *blobs: bytes | str | None, allow_external: bool = False
) -> list[dict[str, object] | None]:
    place = FileAt(root=Location.parse(root), path="data/x.lance")
    files = BlobFiles(address=CodecAddress.of(place), allow_external=allow_external)
    prepared = files.store(column, _values(*blobs))
    files.finish()
    files.settle()
    assert prepared.type == PREPARED_BLOB
    prepared.validate(full=True)
    found: list[dict[str, object] | None] = prepared.to_pylist()
    return [
        row and {key: value for key, value in row.items() if value is not None} for row in found
    ]


def test_small_blobs_stay_in_the_data_file(tmp_path: Path) -> None:
    assert _store(tmp_path, _column(), b"abc", b"") == [
        {"kind": 0, "data": b"abc"},
        {"kind": 0, "data": b""},
    ]
    assert not (tmp_path / "data" / "x").exists()


def test_nulls_stay_null(tmp_path: Path) -> None:
    assert _store(tmp_path, _column(), None, b"a")[0] is None


def test_larger_blobs_share_a_file(tmp_path: Path) -> None:
    rows = _store(tmp_path, _column(inline=2), b"abc", b"de", b"fghi")
    assert rows == [
        {"kind": 1, "blob_id": 1, "blob_size": 3, "position": 0},
        {"kind": 0, "data": b"de"},
        {"kind": 1, "blob_id": 1, "blob_size": 4, "position": 3},
    ]
    assert (tmp_path / "data" / "x" / FIRST).read_bytes() == b"abcfghi"


def test_the_largest_blobs_have_files_of_their_own(tmp_path: Path) -> None:
    rows = _store(tmp_path, _column(inline=1, dedicated=2), b"abc", b"def")
    assert [row and row["blob_id"] for row in rows] == [1, 2]
    assert (tmp_path / "data" / "x" / SECOND).read_bytes() == b"def"


def test_a_full_pack_is_followed_by_another(tmp_path: Path) -> None:
    column = _column(inline=0, **{"pack-file": 4})
    rows = _store(tmp_path, column, b"abc", b"def")
    assert [row and (row["blob_id"], row["position"]) for row in rows] == [(1, 0), (2, 0)]


def test_an_address_is_kept_when_allowed(tmp_path: Path) -> None:
    (row,) = _store(tmp_path, _column(), "s3://b/k", allow_external=True)
    assert row == {"kind": 3, "uri": "s3://b/k", "blob_id": 0, "blob_size": 0, "position": 0}


def test_an_address_is_refused_otherwise(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="allow_external_blob_outside_bases"):
        _store(tmp_path, _column(), "s3://b/k")


@pytest.mark.parametrize("value", [{}, {"data": b"a", "uri": "s3://b/k"}], ids=["none", "both"])
def test_a_blob_is_either_data_or_an_address(tmp_path: Path, value: dict[str, object]) -> None:
    place = FileAt(root=Location.parse(tmp_path), path="data/x.lance")
    files = BlobFiles(address=CodecAddress.of(place), allow_external=True)
    with pytest.raises(SchemaMismatchError, match="exactly one of data and uri"):
        files.store(_column(), pa.array([value], BLOB_VALUE))


def test_a_memory_table_gets_its_side_files() -> None:
    root = "memory://test-blob-files/t"
    _store(root, _column(inline=1), b"abc")
    assert Location.parse(root).store.get(f"data/x/{FIRST}") == b"abc"


def test_limits_are_those_of_official_releases() -> None:
    assert BlobLimits.of(_column()) == BlobLimits(
        inline=64 << 10, dedicated=4 << 20, pack_file=1 << 30
    )


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket/blobs/a/b.bin", (1, "a/b.bin")),
        ("file:///data/blobs/x.bin", (2, "x.bin")),
        ("/data/blobs/x.bin", (2, "x.bin")),
        ("s3://bucket/blobs2/b.bin", None),
        ("s3://other/blobs/b.bin", None),
        (r"s3://a@b\c/blobs/b.bin", None),
    ],
)
def test_an_object_is_found_below_its_base(uri: str, expected: tuple[int, str] | None) -> None:
    assert stored_place(uri, BASES) == expected
