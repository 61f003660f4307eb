from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.errors import CorruptTableError, WriterFencedError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.generations import replayed
from lancelake.memwal.region import RegionFiles
from lancelake.memwal.shape import RowShape
from lancelake.storage.location import Location
from tests.support.memwal_tables import REGION, SCHEMA, rows

SHAPE = RowShape(table=from_arrow(SCHEMA), data_version=FileVersion.V2_1, keys=("id",))
NEW = RegionManifest(region_id=REGION)


@pytest.fixture
def files(tmp_path: Path) -> RegionFiles:
    return RegionFiles.at(Location.parse(tmp_path), REGION)


def _write(files: RegionFiles, position: int, generation: int, *pairs: tuple[int, str]) -> None:
    batches: Sequence[pa.RecordBatch] = SHAPE.upserts(rows(*pairs))
    data = wal_files.encode(SHAPE.arrow, batches, writer_epoch=1, generation=generation)
    files.create_entry(position, data)


def test_each_generation_has_a_memtable(files: RegionFiles) -> None:
    _write(files, 1, 1, (1, "a"))
    _write(files, 2, 1, (2, "a"))
    files.create_entry(3, wal_files.encode_sentinel(2))
    _write(files, 4, 2, (1, "b"))
    found = [
        (t.generation, t.num_rows, t.last_position) for t in replayed(files, NEW, SHAPE, last=4)
    ]
    assert found == [(1, 2, 2), (2, 1, 4)]


def test_entries_of_a_flushed_generation_are_skipped(files: RegionFiles) -> None:
    _write(files, 1, 1, (1, "a"))
    _write(files, 2, 2, (2, "b"))
    flushed = replace(NEW, current_generation=2)
    assert [t.generation for t in replayed(files, flushed, SHAPE, last=2)] == [2]


def test_a_hole_is_corrupt(files: RegionFiles) -> None:
    _write(files, 2, 1, (1, "a"))
    with pytest.raises(CorruptTableError, match="no entry at position 1"):
        list(replayed(files, NEW, SHAPE, last=2))


@pytest.mark.parametrize("generations", [(1, 3), (2, 2)])
def test_generations_out_of_order_are_corrupt(
    files: RegionFiles, generations: tuple[int, int]
) -> None:
    for position, generation in enumerate(generations, 1):
        _write(files, position, generation, (1, "a"))
    with pytest.raises(CorruptTableError, match="has rows of generation"):
        list(replayed(files, NEW, SHAPE, last=2))


def test_an_entry_of_a_later_writer_fences(files: RegionFiles) -> None:
    files.create_entry(1, wal_files.encode_sentinel(3))
    with pytest.raises(WriterFencedError):
        list(replayed(files, NEW, SHAPE, last=1, epoch=2))
