"""Files of vector indices with damaged content are reported as damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.index.kind import ROW_ID, VALUE, BuildInput
from lancelake.index.vector.kind import VECTOR
from lancelake.index.vector.segment import (
    CENTERS_FILE,
    CODES_KEY,
    IVF_KEY,
    METRIC_KEY,
    ROWS_FILE,
    SegmentFiles,
)
from lancelake.index.vector.vectors import Element, PartitionRows, VectorType, encode_rows
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

DTYPE = VectorType(element=Element.FLOAT32, dimension=4, is_multi=False)
ROWS = 20


def built(place: Path, name: str) -> SegmentFolder:
    values = np.random.default_rng(0).random((ROWS, 4), dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 4)
    ids = pa.array(np.arange(ROWS, dtype=np.uint64))
    batch = pa.RecordBatch.from_arrays([lists, ids], names=[VALUE, ROW_ID])
    folder = SegmentFolder(place=FileAt(root=Location.parse(place), path=name))
    rows = BuildInput(
        dtype=lists.type,
        batches=[batch],
        parameters={"index_type": "IVF_SQ", "num_partitions": 2},
        num_rows=ROWS,
    )
    VECTOR.build(rows, folder)
    return folder


def rewritten(folder: SegmentFolder, settings: object, counts: tuple[int, ...], width: int) -> None:
    """Write the file of the rows with other settings."""
    schema = pa.schema(
        [pa.field(ROW_ID, pa.uint64()), pa.field("__sq_code", pa.list_(pa.uint8(), width))]
    )
    file = folder.create(ROWS_FILE, schema)
    codes = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * width, np.uint8)), width)
    ids = pa.array(np.arange(ROWS, dtype=np.uint64))
    file.write(pa.RecordBatch.from_arrays([ids, codes], schema=schema))
    rows = PartitionRows.of(np.array(counts))
    number = file.add_buffer(encode_rows(rows))
    metadata = {METRIC_KEY: "l2", IVF_KEY: str(number), CODES_KEY: json.dumps([settings])}
    file.finish(metadata)


GOOD = json.dumps({"dim": 4, "num_bits": 8, "bounds": {"start": 0.0, "end": 1.0}})


@pytest.mark.parametrize(
    ("settings", "counts", "width"),
    [
        (GOOD, (10, 20), 4),
        (GOOD, (10, 5, 5), 4),
        (GOOD, (10, 10), 3),
        ("{}", (10, 10), 4),
        ("no json", (10, 10), 4),
        (None, (10, 10), 4),
    ],
    ids=["rows beyond", "partitions", "width", "no bounds", "no json", "nothing"],
)
def test_other_settings_than_those_of_the_rows(
    tmp_path: Path, settings: object, counts: tuple[int, ...], width: int
) -> None:
    folder = built(tmp_path, "good")
    other = SegmentFolder(place=FileAt(root=folder.place.root, path="other"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / CENTERS_FILE).write_bytes((tmp_path / "good" / CENTERS_FILE).read_bytes())
    rewritten(other, settings, counts, width)
    with pytest.raises(CorruptTableError):
        list(SegmentFiles(other, DTYPE).read_partitions())


def test_centers_of_another_dimension(tmp_path: Path) -> None:
    folder = built(tmp_path, "good")
    other = VectorType(element=Element.FLOAT32, dimension=8, is_multi=False)
    with pytest.raises(CorruptTableError, match="centers of partitions have 4 values"):
        _ = SegmentFiles(folder, other).model
