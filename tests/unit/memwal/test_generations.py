from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.format.manifest import WriterVersion
from lancelake.format.memwal import wal_files, wal_keys
from lancelake.format.memwal.region_manifest import Generation
from lancelake.memwal.generations import (
    MemTable,
    open_generation,
    read_generation,
    write_generation,
)
from lancelake.memwal.shape import RowShape
from lancelake.storage.location import Location
from tests.support.memwal_tables import (
    BUCKET,
    REGION,
    SIMPLE,
    generation_dir,
    keys,
    new_table,
    newest,
    rows,
)


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return new_table(tmp_path / "t", (1, "base"))


def _written(base: Snapshot) -> tuple[Generation, RowShape]:
    shape = RowShape.of(base)
    table = MemTable(shape, 1)
    table.add(shape.upserts(rows((4, "a"), (1, "a"), (4, "b"))), 1)
    table.add(shape.tombstones(keys(2)), 2)
    return write_generation(base.location, REGION, shape, table), shape


def test_a_generation_has_each_key_once(base: Snapshot) -> None:
    made, shape = _written(base)
    opened = open_generation(base.location, REGION, made)
    (batch,) = read_generation(opened, shape)
    assert batch.column("id").to_pylist() == [1, 4, 2]
    assert batch.column("name").to_pylist() == ["a", "b", None]
    assert (made.physical_rows, len(opened.manifest.fragments)) == (3, 1)


def test_a_generation_has_the_field_ids_of_the_table(base: Snapshot) -> None:
    made, shape = _written(base)
    opened = open_generation(base.location, REGION, made)
    ids = {field.name: field.id for field in opened.manifest.schema.fields}
    assert ids == {"id": 0, "name": 1, "_tombstone": 2}
    assert shape.stored.names == tuple(ids)


def test_a_generation_has_the_sidecars(base: Snapshot) -> None:
    made, _ = _written(base)
    folder = Path(base.location.uri) / wal_files.generation_dir(REGION, made.path)
    data = (folder / wal_files.BLOOM_FILE).read_bytes()
    assert wal_keys.may_contain(data, [pa.array([1, 2, 4])]).all()
    index = {path.name for path in (folder / wal_files.KEY_INDEX).iterdir()}
    official = generation_dir(SIMPLE, 1) / wal_files.KEY_INDEX
    assert index == {path.name for path in official.iterdir()}


def test_an_official_generation_is_read() -> None:
    base = newest(SIMPLE)
    opened = open_generation(
        Location.parse(SIMPLE),
        BUCKET,
        Generation(generation=1, path=generation_dir(SIMPLE, 1).name),
    )
    table = pa.Table.from_batches(read_generation(opened, RowShape.of(base)))
    assert table.column("id").to_pylist() == [1, 4, 5, 2]


@pytest.mark.parametrize(("version", "expected"), [("7.0.0", "first"), ("7.1.0", "last")])
def test_repeated_keys_of_early_releases_have_the_newest_row_first(
    tmp_path: Path, version: str, expected: str
) -> None:
    base = new_table(tmp_path / "t", (1, "first"), (1, "last"))
    writer = WriterVersion(library="lance", version=version)
    manifest = replace(base.manifest, writer_version=writer)
    opened = replace(base, file=replace(base.file, manifest=manifest))
    (batch,) = read_generation(opened, RowShape.of(base))
    assert batch.column("name").to_pylist() == [expected]
