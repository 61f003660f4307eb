"""Sizes of Arrow messages, of bytes that may be damaged."""

from __future__ import annotations

import random
from contextlib import suppress

import pyarrow as pa
import pytest

from lancelake.format.deletion import first_batch_size, stream_size
from tests.hostile.mutations import flip

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", None, "y"]})


def encoded(*, is_file: bool) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    new = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with new(sink, ROWS.schema, options=options) as writer:
        writer.write_table(ROWS)
    return sink.getvalue().to_pybytes()


def test_the_rows_of_a_file_are_counted() -> None:
    rows, size = first_batch_size(encoded(is_file=True))
    assert rows == 3
    assert size > 0


def test_a_stream_has_the_size_of_its_values() -> None:
    assert stream_size(encoded(is_file=False)) >= 3 * 8


@pytest.mark.parametrize(("measure", "is_file"), [(first_batch_size, True), (stream_size, False)])
def test_damaged_bytes_give_a_size_or_a_value_error(measure, is_file: bool) -> None:
    data = encoded(is_file=is_file)
    for seed in range(3_000):
        with suppress(ValueError):
            measure(flip(data, random.Random(seed)))
