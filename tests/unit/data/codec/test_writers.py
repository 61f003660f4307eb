"""A file that does not have the rows that it was given is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lancelake.data.codec import official
from lancelake.data.codec.official import CodecAddress, CodecWriter, file_writer
from lancelake.errors import InternalError
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

BATCH = pa.record_batch({"n": [1, 2, 3]})


def writer(folder: Path) -> CodecWriter:
    place = FileAt(root=Location.parse(folder), path="f.lance")
    return CodecWriter(CodecAddress.of(place), "f.lance", BATCH.schema, version="2.1")


def test_a_closed_file_has_its_size(tmp_path: Path) -> None:
    file = writer(tmp_path)
    file.write(BATCH)
    assert file.close() == (tmp_path / "f.lance").stat().st_size


def test_a_file_without_all_its_rows_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = file_writer

    class Losing:
        def __init__(self, *args: Any, **options: Any) -> None:
            self._codec = real(*args, **options)

        def write_batch(self, batch: pa.RecordBatch) -> None:
            self._codec.write_batch(batch.slice(1))

        def __getattr__(self, name: str) -> object:
            return getattr(self._codec, name)

    monkeypatch.setattr(official, "file_writer", Losing)
    file = writer(tmp_path)
    file.write(BATCH)
    with pytest.raises(InternalError, match=r"f\.lance has 2 rows, but 3 were written"):
        file.close()
