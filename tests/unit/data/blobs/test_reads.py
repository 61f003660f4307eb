"""Locations of blobs, and the number of store calls to read them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.blobs import StoredBlob, locate, read_all
from lancelake.errors import CorruptTableError, InvalidRequestError, PlaceNotAllowedError
from lancelake.format.fragment import BasePath, DataFile, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FieldId, FragmentId
from lancelake.format.schema import Field
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from tests.support.counting_store import CountingStore

V1 = Field(
    name="b",
    id=FieldId(3),
    logical_type="large_binary",
    metadata=FrozenMap({"lance-encoding:blob": b"true"}),
)
V2 = Field(
    name="b",
    id=FieldId(3),
    logical_type="struct",
    metadata=FrozenMap({"ARROW:extension:name": b"lance.blob.v2"}),
)
FRAGMENT = Fragment(
    id=FragmentId(0),
    files=(
        DataFile(
            path="f.lance",
            fields=(FieldId(3),),
            column_indices=(0,),
            file_major_version=2,
            file_minor_version=1,
        ),
    ),
)


def described(*rows: tuple[int, int, int, int, str] | None) -> pa.StructArray:
    """Return descriptions: kind, position, size, id, uri."""
    names = ("kind", "position", "size", "blob_id", "blob_uri")
    types = (pa.uint8(), pa.uint64(), pa.uint64(), pa.uint32(), pa.string())
    values = [None if row is None else dict(zip(names, row, strict=True)) for row in rows]
    return pa.array(values, pa.struct(list(zip(names, types, strict=True))))


def files(uri: str, *bases: BasePath) -> TableFiles:
    """Return the files of a table."""
    return TableFiles(root=Location.parse(uri), bases=bases)


def test_each_kind_is_in_its_own_place() -> None:
    bases = BasePath(id=BaseId(4), path="/elsewhere", is_dataset_root=False)
    rows = described(
        (0, 64, 5, 0, ""),
        (1, 10, 6, 1, ""),
        (2, 9, 7, 2, ""),
        (3, 0, 0, 0, "file:///a%20b/c.bin"),
        (3, 5, 8, 4, "below/d.bin"),
        None,
    )
    found = locate(files("/t", bases), FRAGMENT, V2, rows)
    places = [None if b is None else (b.place.uri, b.position, b.length) for b in found]
    assert places == [
        ("/t/data/f.lance", 64, 5),
        (f"/t/data/f/1{'0' * 31}.blob", 10, 6),
        (f"/t/data/f/01{'0' * 30}.blob", 0, 7),
        ("/a b/c.bin", 0, None),
        ("/elsewhere/below/d.bin", 5, 8),
        None,
    ]


def test_no_bytes_at_a_place_is_a_null_of_the_first_kind() -> None:
    rows = pa.array([{"position": 1, "size": 0}, {"position": 0, "size": 0}, None])
    found = locate(files("/t"), FRAGMENT, V1, rows)
    assert [blob is None for blob in found] == [True, False, True]


def test_a_fragment_without_the_column_has_nulls() -> None:
    bare = Fragment(id=FragmentId(0), files=())
    assert locate(files("/t"), bare, V1, pa.array([{"position": 0, "size": 5}])) == [None]


def test_a_table_in_a_store_does_not_lead_to_local_files() -> None:
    with pytest.raises(PlaceNotAllowedError, match="another kind of store"):
        locate(files("s3://bucket/t"), FRAGMENT, V2, described((3, 0, 0, 0, "file:///etc/x")))


def test_a_path_below_a_base_stays_there() -> None:
    base = BasePath(id=BaseId(4), path="/elsewhere", is_dataset_root=False)
    with pytest.raises(CorruptTableError, match="leaves"):
        locate(files("/t", base), FRAGMENT, V2, described((3, 0, 0, 4, "../x")))


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(CorruptTableError, match="kind 9"):
        locate(files("/t"), FRAGMENT, V2, described((9, 0, 0, 0, "")))


@pytest.fixture
def place(tmp_path: Path) -> FileAt:
    """Return a file of a million bytes."""
    (tmp_path / "f").write_bytes(bytes(i % 251 for i in range(1_000_000)))
    return FileAt(root=Location.parse(tmp_path), path="f")


@pytest.fixture
def store(place: FileAt, monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """Count the calls for blobs."""
    counting = CountingStore(place.store)
    monkeypatch.setattr(Location, "store", counting)
    return counting


def test_blobs_that_are_close_together_are_read_at_once(
    place: FileAt, store: CountingStore
) -> None:
    blobs = [StoredBlob(place, start, 10) for start in (500, 0, 100, 0, 900_000)]
    found = read_all([*blobs, None, StoredBlob(place, 3, 0)])
    data = bytes(i % 251 for i in range(1_000_000))
    assert found == [*(data[b.position : b.position + 10] for b in blobs), None, b""]
    assert store.calls["get_range"] == 2
    assert store.bytes_read == 510 + 10


def test_only_the_part_that_is_asked_for_is_read(place: FileAt, store: CountingStore) -> None:
    assert len(StoredBlob(place, 1000, 900_000).read(5, 7)) == 7
    assert store.bytes_read == 7


def test_the_size_of_a_whole_file_is_asked_for_once(place: FileAt, store: CountingStore) -> None:
    blob = StoredBlob(place, 0, None)
    assert (blob.size, blob.size) == (1_000_000, 1_000_000)
    assert store.calls["head"] == 1


@pytest.mark.parametrize(("start", "length"), [(0, 11), (10, 1), (-1, 2)])
def test_a_part_beyond_the_end_is_refused(place: FileAt, start: int, length: int) -> None:
    with pytest.raises(InvalidRequestError, match="exceeds blob size 10"):
        StoredBlob(place, 0, 10).read(start, length)
