"""Tests of what data files of a version can hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.schema_check import ensure_storable, suitable
from lancelake.errors import UnsupportedError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion

V20, V21, V22 = FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2
PAIR = pa.struct([("x", pa.int32())])
BLOB_V1 = {"lance-encoding:blob": "true"}
BLOB_V2 = {"ARROW:extension:name": "lance.blob.v2"}
BLOB = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])


def _ensure(field: pa.Field, version: FileVersion, **options: bool) -> None:
    ensure_storable(from_arrow(pa.schema([field])), version, **options)


@pytest.mark.parametrize("version", [FileVersion.LEGACY, FileVersion.V2_3])
def test_other_versions_are_not_written(version: FileVersion) -> None:
    with pytest.raises(UnsupportedError, match=r"2\.0, 2\.1, 2\.2"):
        _ensure(pa.field("c", pa.int32()), version)


@pytest.mark.parametrize(
    ("field", "version", "hint"),
    [
        (pa.field("c", pa.map_(pa.string(), pa.int8())), V21, '"2.2"'),
        (pa.field("c", pa.list_(PAIR, 2)), V20, '"2.2"'),
        (pa.field("c", BLOB, metadata=BLOB_V2), V21, '"2.2"'),
        (pa.field("c", pa.large_binary(), metadata=BLOB_V1), V22, "lance.blob.v2"),
        (pa.field("c", pa.timestamp("us", "+05:30")), V21, "named time zone"),
        (pa.field("c", pa.list_(pa.timestamp("s", "-01:00"), 2)), V20, "named time zone"),
        (pa.field("c", pa.list_(pa.null())), V21, "another type"),
    ],
    ids=str,
)
def test_what_a_version_cannot_hold_is_refused_with_a_way_out(
    field: pa.Field, version: FileVersion, hint: str
) -> None:
    with pytest.raises(UnsupportedError, match=rf"column c.*{hint}"):
        _ensure(field, version)


@pytest.mark.parametrize(
    ("field", "version"),
    [
        (pa.field("c", pa.map_(pa.string(), PAIR)), V22),
        (pa.field("c", pa.list_(PAIR, 2)), V22),
        (pa.field("c", BLOB, metadata=BLOB_V2), V22),
        (pa.field("c", pa.large_binary(), metadata=BLOB_V1), V21),
        (pa.field("c", pa.timestamp("us", "Asia/Kolkata")), V21),
        (pa.field("c", pa.list_(pa.null())), V20),
        (pa.field("c", pa.struct([("x", pa.null())])), V21),
    ],
    ids=str,
)
def test_what_a_version_holds_passes(field: pa.Field, version: FileVersion) -> None:
    _ensure(field, version)


@pytest.mark.parametrize("dtype", [pa.timestamp("us", "+05:30"), pa.list_(pa.null())], ids=str)
def test_what_only_newer_releases_read_passes_when_asked_for(dtype: pa.DataType) -> None:
    _ensure(pa.field("c", dtype), V21, newest_readers_only=True)


def test_a_column_inside_another_is_named_by_its_path() -> None:
    field = pa.field("s", pa.struct([("m", pa.map_(pa.string(), pa.int8()))]))
    with pytest.raises(UnsupportedError, match=r"column s\.m is a map"):
        _ensure(field, V21)


def test_a_blob_inside_a_struct_passes() -> None:
    _ensure(pa.field("s", pa.struct([pa.field("b", BLOB, metadata=BLOB_V2)])), V22)


def test_a_blob_inside_a_list_is_refused() -> None:
    field = pa.field("s", pa.list_(pa.field("b", BLOB, metadata=BLOB_V2)))
    with pytest.raises(UnsupportedError, match="is a blob inside a list or a map"):
        _ensure(field, V22)


@pytest.mark.parametrize(
    ("field", "version"),
    [
        (pa.field("c", pa.int32()), V21),
        (pa.field("c", pa.map_(pa.string(), pa.int8())), V22),
        (pa.field("c", BLOB, metadata=BLOB_V2), V22),
        (pa.field("c", pa.large_binary(), metadata=BLOB_V1), V21),
    ],
    ids=str,
)
def test_the_version_of_new_files_is_the_oldest_that_holds_the_columns(
    field: pa.Field, version: FileVersion
) -> None:
    assert suitable(from_arrow(pa.schema([field]))) is version
    assert suitable(from_arrow(pa.schema([field])), V22) is V22
