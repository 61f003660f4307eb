"""Tests of turning users' data into streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pad
import pytest

import lancelake
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.table.ingest.objects import to_reader

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
BATCH = TABLE.to_batches()[0]


class _Stream:
    """An object with nothing but an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class _Array:
    """An object with nothing but an Arrow array."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return BATCH.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        BATCH,
        TABLE.to_reader(),
        [BATCH.slice(0, 1), BATCH.slice(1)],
        (batch for batch in (BATCH.slice(0, 2), BATCH.slice(2))),
        [TABLE.slice(0, 2), TABLE.slice(2)],
        TABLE.to_pydict(),
        TABLE.to_pylist(),
        TABLE.to_pandas(),
        pad.dataset(TABLE),
        pad.dataset(TABLE).scanner(),
        _Stream(),
        _Array(),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_shape_of_data_gives_its_rows(data: object) -> None:
    assert to_reader(data).read_all().to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("frame", [pl.DataFrame(TABLE), pl.DataFrame(TABLE).lazy()])
def test_polars_frames_give_the_arrow_types_of_polars(frame: pl.DataFrame | pl.LazyFrame) -> None:
    assert to_reader(frame).read_all().equals(pl.DataFrame(TABLE).to_arrow())


def test_an_empty_lazy_frame_has_its_columns() -> None:
    frame = pl.DataFrame(TABLE).lazy().filter(pl.col("a") > 9)
    assert to_reader(frame).schema == pl.DataFrame(TABLE).to_arrow().schema


def test_a_frame_of_many_rows_arrives_in_order() -> None:
    frame = pl.DataFrame({"a": range(150_000)})
    assert to_reader(frame).read_all()["a"].to_pylist() == list(range(150_000))


@pytest.mark.parametrize("library", [lance, lancelake], ids=["pylance", "lancelake"])
def test_a_lance_dataset_gives_its_rows(tmp_path: Path, library: object) -> None:
    lance.write_dataset(TABLE, str(tmp_path / "t"), data_storage_version="2.1")
    dataset = library.dataset(str(tmp_path / "t"))  # type: ignore[attr-defined]  # both have it
    assert to_reader(dataset).read_all() == TABLE


def test_a_schema_gives_types_to_plain_values() -> None:
    schema = pa.schema([("a", pa.int8())])
    assert to_reader({"a": [1]}, schema).schema == schema
    assert to_reader([{"a": 1}], schema).schema == schema
    assert to_reader(pd.DataFrame({"a": [1]}), schema).schema.field("a").type == pa.int8()


def test_batches_of_an_iterable_are_cast_to_the_schema() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.large_string())])
    assert to_reader(iter([BATCH]), schema).read_all().schema == schema


def test_later_batches_are_cast_to_the_first() -> None:
    narrow = pa.record_batch({"a": pa.array([4], pa.int8()), "b": ["y"]})
    assert to_reader([BATCH, narrow]).read_all()["a"].to_pylist() == [1, 2, 3, 4]


def test_a_generator_is_read_only_as_far_as_its_reader() -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(1000):
            taken.append(number)
            yield BATCH

    reader = to_reader(batches())
    reader.read_next_batch()
    assert taken == [0]


def test_an_empty_iterable_with_a_schema_has_no_rows() -> None:
    assert to_reader([], BATCH.schema).read_all().num_rows == 0


def test_an_empty_iterable_without_a_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="Pass a schema"):
        to_reader([])


def test_a_batch_that_does_not_fit_the_schema_is_an_error() -> None:
    reader = to_reader([BATCH], pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match="does not match the schema"):
        reader.read_all()


def test_an_item_that_is_no_batch_is_an_error() -> None:
    with pytest.raises(SchemaMismatchError, match="tuple"):
        to_reader([(1, 2)])


def test_an_error_of_a_generator_is_not_changed() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise KeyError

    with pytest.raises(KeyError):
        to_reader(batches()).read_all()


def test_an_error_of_a_generator_before_its_first_batch_is_not_changed() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise KeyError
        yield BATCH

    with pytest.raises(KeyError):
        to_reader(batches())


@pytest.mark.parametrize("data", [5, None, "text", b"bytes", object(), pa.array([1])])
def test_other_data_is_refused_with_its_type(data: object) -> None:
    with pytest.raises(InvalidRequestError, match=type(data).__name__):
        to_reader(data)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        to_reader({"a": [1], "b": [1, 2]})


def test_a_dict_without_a_column_of_the_schema_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="a"):
        to_reader({"b": [1]}, pa.schema([("a", pa.int8())]))
