"""Official releases open, validate and change our tables, and we read the result."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.pylance import LanceOperation
from lancelake.pylance._dataset.write import write_fragments
from lancelake.storage.location import Location
from tests.support.compare import assert_same_rows, assert_same_table
from tests.support.official import Official
from tests.support.row_changes import delete_rows, update_rows
from tests.support.table_surgery import FOOTER, LENGTH, edit_manifest, manifest_path

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64())])),
        pa.field("vector", pa.list_(pa.float32(), 4)),
    ],
    metadata={"owner": "tests"},
)
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)


def rows(first: int, last: int) -> pa.Table:
    """Return rows of many types, with nulls among them."""
    numbers = range(first, last)
    columns = [
        list(numbers),
        [None if i % 5 == 4 else f"text {i}" for i in numbers],
        [None if i % 7 == 6 else NOON + datetime.timedelta(hours=i) for i in numbers],
        [None if i % 4 == 3 else [str(i)] * (i % 3) for i in numbers],
        [{"x": i / 2, "y": None} for i in numbers],
        [[float(i)] * 4 for i in numbers],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def _create(uri: str, **options: Any) -> None:
    lance.write_dataset(rows(0, 20), uri, max_rows_per_file=10, **options)


def create_and_append(uri: str) -> None:
    _create(uri)
    lance.write_dataset(rows(20, 30), uri, mode="append", commit_message="more")


def stable_row_ids(uri: str) -> None:
    _create(uri, enable_stable_row_ids=True)
    lance.write_dataset(rows(20, 30), uri, mode="append")
    delete_rows(uri, "id in (1, 22)")
    update_rows(uri, "id in (3, 13, 23)", "text", "changed")


def overwritten(uri: str) -> None:
    lance.write_dataset(pa.table({"other": [1, 2, 3]}), uri)
    lance.write_dataset(rows(0, 20), uri, mode="overwrite", max_rows_per_file=10)


def wider_append(uri: str) -> None:
    lance.write_dataset(rows(0, 20).drop_columns(["vector", "text"]), uri, max_rows_per_file=10)
    lance.write_dataset(rows(20, 30), uri, mode="append", schema_mode="merge")


def settings(uri: str) -> None:
    _create(uri)
    ds = lance.dataset(uri)
    ds.update_config({"a": "1", "b": "2"})
    ds.update_config({"b": None})
    ds.update_metadata({"about": "tables"})
    ds.update_schema_metadata({"owner": "others", "more": "1"})
    ds.update_field_metadata({"text": {"language": "en"}})


def deleted(uri: str) -> None:
    _create(uri)
    delete_rows(uri, "id in (1, 2, 12)")
    delete_rows(uri, "id in (3, 13)")


def deleted_fragment(uri: str) -> None:
    _create(uri)
    delete_rows(uri, "id < 10")


def updated(uri: str) -> None:
    _create(uri)
    update_rows(uri, "id in (1, 12)", "text", "changed")
    update_rows(uri, "id in (1, 3)", "text", "changed again")


def restored(uri: str) -> None:
    _create(uri)
    delete_rows(uri, "id < 15")
    lance.dataset(uri, version=1).restore()
    lance.write_dataset(rows(20, 25), uri, mode="append")


def compacted(uri: str) -> None:
    _create(uri)
    delete_rows(uri, "id in (1, 12)")
    ds = lance.dataset(uri)
    old = [fragment.metadata for fragment in ds.get_fragments()]
    new: Any = write_fragments(ds.to_table(), ds)
    operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], [])
    lance.LanceDataset.commit(uri, operation, read_version=ds.version)


def projected(uri: str) -> None:
    _create(uri)
    ds = lance.dataset(uri)
    narrow = lance.write_dataset(rows(0, 1).select(["id", "text"]), f"{uri}-narrow").lance_schema
    lance.LanceDataset.commit(uri, LanceOperation.Project(narrow), read_version=ds.version)


HISTORIES: list[Callable[[str], None]] = [
    create_and_append,
    stable_row_ids,
    overwritten,
    wider_append,
    settings,
    deleted,
    deleted_fragment,
    updated,
    restored,
    compacted,
    projected,
]

DESCRIBE = """
ds = lance.dataset(uri)
ds.validate()
result = {
    "versions": [v["version"] for v in ds.versions()],
    "config": ds.config(),
    "metadata": ds.metadata,
    "counts": [lance.dataset(uri, version=v["version"]).count_rows() for v in ds.versions()],
}
"""
CHANGE = """
ds = lance.dataset(uri)
first = ds.to_table(columns=["id"])["id"].to_pylist()[0]
lance.write_dataset(ds.to_table(limit=3), uri, mode="append")
ds = lance.dataset(uri)
ds.delete(f"id = {first}")
ds.update({"id": "id + 1000"}, where="id % 2 = 1")
ds.update_config({"by": "official"})
ds.optimize.compact_files(target_rows_per_fragment=1000)
ds.validate()
"""


def assert_agreed(uri: str, official: Official) -> None:
    """An official release finds the table valid, and every version as we do."""
    ds = lance.dataset(uri)
    body = official.run(uri, DESCRIBE)
    assert body["versions"] == [v["version"] for v in ds.versions()]
    assert body["config"] == ds.config()
    assert body["metadata"] == ds.metadata
    counts = [lance.dataset(uri, version=v).count_rows() for v in body["versions"]]
    assert body["counts"] == counts
    assert_same_table(official.read(uri), ds.to_table())
    found = check(Location.parse(uri), data=True, versions="all")
    assert [f for f in found if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_written_table_is_read_and_changed_by_official_and_by_us_again(
    history: Callable[[str], None], official: Official, tmp_path: Path
) -> None:
    uri = str(tmp_path / "table.lance")
    history(uri)
    assert_agreed(uri, official)
    official.run(uri, CHANGE)
    assert_agreed(uri, official)
    ds = lance.dataset(uri)
    lance.write_dataset(ds.to_table(limit=2), uri, mode="append")
    delete_rows(uri, "id > 1010")
    lance.dataset(uri).update_config({"by": "us"})
    assert_agreed(uri, official)


def test_tags_of_ours_are_those_of_official(official: Official, tmp_path: Path) -> None:
    uri = str(tmp_path / "table.lance")
    create_and_append(uri)
    ds = lance.dataset(uri)
    ds.tags.create("first", 1)
    ds.tags.create("moved", 1)
    ds.tags.update("moved", 2)
    ds.tags.create("gone", 1)
    ds.tags.delete("gone")
    assert {k: t["version"] for k, t in official.info(uri).tags.items()} == {"first": 1, "moved": 2}
    assert_same_table(official.read(uri, version="first"), lance.dataset(uri, "first").to_table())
    official.tag(uri, "theirs", 2)
    assert lance.dataset(uri, version="theirs").version == 2


def test_branch_of_ours_is_continued_by_official(official: Official, tmp_path: Path) -> None:
    uri = str(tmp_path / "table.lance")
    create_and_append(uri)
    branch = lance.dataset(uri).create_branch("side/way", 1)
    lance.write_dataset(rows(50, 55), branch, mode="append")
    place = branch.uri
    assert official.info(uri).branches.keys() == {"side/way"}
    assert_same_table(official.read(place), lance.dataset(place).to_table())
    official.append(place, rows(60, 62))
    assert lance.dataset(place).count_rows() == 27
    assert lance.dataset(uri).count_rows() == 30
    assert_same_table(official.read(place), lance.dataset(place).to_table())


@pytest.mark.parametrize("kind", ["shallow_clone", "deep_clone"])
def test_clone_of_ours_is_continued_by_official(
    kind: str, official: Official, tmp_path: Path
) -> None:
    uri, copy = str(tmp_path / "table.lance"), str(tmp_path / "copy.lance")
    create_and_append(uri)
    delete_rows(uri, "id in (1, 22)")
    getattr(lance.dataset(uri), kind)(copy, 3)
    assert_same_table(official.read(copy), lance.dataset(uri).to_table())
    official.append(copy, rows(60, 62))
    official.delete(copy, "id = 5")
    lance.write_dataset(rows(70, 72), copy, mode="append")
    delete_rows(copy, "id in (6, 61)")
    assert_same_rows(official.read(copy), lance.dataset(copy).to_table())
    assert lance.dataset(copy).count_rows() == 28 + 2 - 1 + 2 - 2
    assert lance.dataset(uri).count_rows() == 28


STRANGER = b"\xca\xf3\x18\x05hello"  # field 50745, a string that no release knows


def _estranged(message: Any) -> None:
    for part in (message, message.fragments[0], message.fragments[0].files[0], message.fields[0]):
        part.MergeFromString(STRANGER)


def _strangers(root: Path) -> int:
    data = manifest_path(root).read_bytes()
    position = FOOTER.unpack(data[-FOOTER.size :])[0]
    return data[position + LENGTH.size : -FOOTER.size].count(STRANGER)


def test_fields_of_a_later_release_survive_our_commits(
    official_14: Official, tmp_path: Path
) -> None:
    root = tmp_path / "table.lance"
    official_14.write(root, rows(0, 20), data_storage_version="2.1", max_rows_per_file=10)
    edit_manifest(root, _estranged)
    lance.write_dataset(rows(20, 25), str(root), mode="append")
    delete_rows(str(root), "id in (1, 2)")
    lance.dataset(str(root)).update_config({"a": "1"})
    lance.dataset(str(root), version=2).restore()
    assert _strangers(root) == 4
    assert_same_table(official_14.read(root), lance.dataset(str(root)).to_table())


def test_table_with_a_later_writer_feature_is_not_written(
    official_14: Official, tmp_path: Path
) -> None:
    root = tmp_path / "table.lance"
    official_14.write(root, rows(0, 10), data_storage_version="2.0")
    official_14.append(root, rows(10, 12), data_storage_version="2.2")
    assert lance.dataset(str(root)).count_rows() == 12
    with pytest.raises(UnsupportedError):
        lance.write_dataset(rows(12, 13), str(root), mode="append")


def test_flags_of_a_later_release_survive_our_commits(
    official_14: Official, tmp_path: Path
) -> None:
    root = tmp_path / "table.lance"
    official_14.write(root, rows(0, 10), data_storage_version="2.1", enable_stable_row_ids=True)
    official_14.update_config(root, {"a": "1"})
    official_14.delete(root, "id = 1")
    before = lance.dataset(str(root))._snapshot.manifest
    lance.write_dataset(rows(10, 12), str(root), mode="append")
    after = lance.dataset(str(root))._snapshot.manifest
    assert after.reader_feature_flags == before.reader_feature_flags
    assert after.writer_feature_flags == before.writer_feature_flags
