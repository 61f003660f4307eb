"""Added columns have the right values for live rows, and nothing is committed on an error."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Job, LocalEngine
from lancelake.errors import (
    FunctionError,
    InvalidExpressionError,
    InvalidNameError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    UnsupportedError,
)
from lancelake.pylance.udf import BatchUDF
from lancelake.table.columns.add import BatchFunction, computed_plan, engine_for
from lancelake.table.columns.backfill import written_file

IDS = [0, 1, 3, 4, 5, 6, 7, 8, 9]
NUMBERS = pa.schema([("n", pa.int64())])


def column(dataset: lance.LanceDataset, name: str) -> list[Any]:
    """Return the values of a column."""
    return dataset.to_table(columns=[name]).column(name).to_pylist()


def test_a_column_is_computed_for_every_live_row(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"twice": "id * 2"})
    assert column(dataset, "twice") == [2 * i for i in IDS]


def test_several_columns_make_one_file_per_fragment(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"one": "id + 1", "two": "upper(name)"})
    assert [len(f.data_files()) for f in dataset.get_fragments()] == [2, 2, 2]


def test_expressions_are_not_evaluated_for_deleted_rows(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"safe": "100 / (id - 2)"})
    assert column(dataset, "safe")[0] == -50


def test_a_column_that_is_never_null_says_so(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"one": "1", "copy": "id"})
    assert [dataset.schema.field(n).nullable for n in ("one", "copy")] == [False, True]


def test_meta_columns_can_be_used(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"address": "_rowaddr"})
    assert column(dataset, "address")[-1] == (2 << 32) + 1


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"id": "1"}, InvalidRequestError),
        ({"a.b": "1"}, InvalidNameError),
        ({"_rowid": "1"}, InvalidNameError),
        ({"n": "nothing + 1"}, InvalidExpressionError),
        ({"n": "id +"}, InvalidExpressionError),
        ({"n": ""}, InvalidExpressionError),
        ({"n": "id / 0"}, InvalidExpressionError),
        ({"n": "CAST(name AS INT)"}, InvalidExpressionError),
        ({"pair": "id"}, SchemaMismatchError),
    ],
)
def test_nothing_is_committed_for(
    columns: dict[str, str], error: type[LanceTableError], dataset: lance.LanceDataset
) -> None:
    before = dataset.latest_version
    with pytest.raises(error):
        dataset.add_columns(columns)
    assert dataset.latest_version == before


def test_a_name_that_is_no_text_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        dataset.add_columns({"n": 1})


def test_a_function_gets_live_rows_in_order(dataset: lance.LanceDataset) -> None:
    seen: list[int] = []

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.extend(batch.column("id").to_pylist())
        return pa.record_batch({"n": pc.negate(batch.column("id"))})

    dataset.add_columns(BatchUDF(function, NUMBERS), read_columns=["id"])
    assert seen == IDS
    assert column(dataset, "n") == [-i for i in IDS]


def test_a_function_gets_batches_of_the_size_asked_for(dataset: lance.LanceDataset) -> None:
    sizes: list[int] = []

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes.append(batch.num_rows)
        return pa.record_batch({"n": batch.column("id")})

    dataset.add_columns(BatchUDF(function, NUMBERS), batch_size=2)
    assert max(sizes) == 2


def test_a_function_may_return_a_data_frame(dataset: lance.LanceDataset) -> None:
    dataset.add_columns(lambda batch: batch.select(["id"]).to_pandas().rename(columns={"id": "n"}))
    assert column(dataset, "n") == IDS


def test_row_ids_can_be_read(dataset: lance.LanceDataset) -> None:
    dataset.add_columns(
        lambda batch: pa.record_batch({"n": batch.column("_rowid")}), read_columns=["_rowid"]
    )
    assert column(dataset, "n")[-1] == (2 << 32) + 1


def test_a_function_that_fails_names_the_rows(dataset: lance.LanceDataset) -> None:
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 6 in batch.column("id").to_pylist():
            raise RuntimeError("no six")
        return pa.record_batch({"n": batch.column("id")})

    before = dataset.latest_version
    with pytest.raises(FunctionError, match="rows 2 to 3 of fragment 1: RuntimeError: no six"):
        dataset.add_columns(BatchUDF(function, NUMBERS), batch_size=2)
    assert dataset.latest_version == before


@pytest.mark.parametrize(
    "function",
    [
        lambda batch: pa.record_batch({"n": batch.column("name")}),
        lambda batch: pa.record_batch({"other": batch.column("id")}),
        lambda batch: pa.record_batch({"n": pa.array([1], pa.int64())}),
        lambda batch: None,
    ],
    ids=["type", "name", "rows", "nothing"],
)
def test_a_function_must_return_what_it_says(function: Any, dataset: lance.LanceDataset) -> None:
    before = dataset.latest_version
    with pytest.raises(SchemaMismatchError, match="fragment 0"):
        dataset.add_columns(BatchUDF(function, NUMBERS))
    assert dataset.latest_version == before


def test_a_function_that_cannot_be_tried_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match="division by zero"):
        dataset.add_columns(lambda batch: 1 / 0)


def test_without_rows_a_function_must_say_what_it_returns(tmp_path: Any) -> None:
    dataset = lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path)
    with pytest.raises(InvalidRequestError, match="output_schema"):
        dataset.add_columns(lambda batch: batch)


def test_a_stream_is_cut_at_fragments(dataset: lance.LanceDataset) -> None:
    rows = pa.table({"n": range(9)})
    dataset.add_columns(rows.to_reader(max_chunksize=5))
    assert column(dataset, "n") == list(range(9))


@pytest.mark.parametrize("count", [0, 8, 10])
def test_a_stream_must_have_as_many_rows(count: int, dataset: lance.LanceDataset) -> None:
    before = dataset.latest_version
    with pytest.raises(SchemaMismatchError):
        dataset.add_columns(pa.table({"n": pa.array(range(count), pa.int64())}))
    assert dataset.latest_version == before


def test_what_is_no_data_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match="transforms must be"):
        dataset.add_columns(5)


def test_null_columns_write_no_data(dataset: lance.LanceDataset) -> None:
    dataset.add_columns(pa.schema([("n", pa.int8()), ("v", pa.list_(pa.float32(), 3))]))
    assert [len(f.data_files()) for f in dataset.get_fragments()] == [1, 1, 1]
    assert column(dataset, "v") == [None] * 9


def test_null_columns_must_be_nullable(dataset: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="must be nullable"):
        dataset.add_columns(pa.field("n", pa.int8(), nullable=False))


def test_members_of_structs_need_files_of_2_2(dataset: lance.LanceDataset) -> None:
    more = pa.field("pair", pa.struct([("z", pa.int8())]))
    if dataset.data_storage_version == "2.2":
        dataset.add_columns(more)
        assert column(dataset, "pair")[0] == {"x": 0, "y": "y0", "z": None}
    else:
        with pytest.raises(UnsupportedError):
            dataset.add_columns(more)


def test_metadata_of_the_schema_is_added_to(dataset: lance.LanceDataset) -> None:
    dataset.replace_schema_metadata({"kept": "1"})
    dataset.add_columns(pa.schema([("n", pa.int8())], metadata={"kept": "2", "new": "3"}))
    assert dataset.schema_metadata == {"kept": "1", "new": "3"}


def test_a_task_can_run_elsewhere(base: Snapshot) -> None:
    planned = computed_plan(base, {"twice": "id * 2"})
    (first, *_) = pickle.loads(pickle.dumps(planned.tasks))
    file = written_file(first.run())
    assert file is not None
    assert file.fields == (base.manifest.schema.max_field_id + 1,)


class Elsewhere:
    """An engine that is not this process."""

    parallelism = 7

    def run(self, job: Job) -> Any:
        """Run nothing."""
        raise NotImplementedError


def test_a_function_travels_only_if_it_can() -> None:
    engine = Elsewhere()
    travels = BatchFunction(function=pc.negate, output_schema=NUMBERS)
    stays = BatchFunction(function=lambda batch: batch, output_schema=NUMBERS)
    assert engine_for(travels, engine) is engine
    assert engine_for(stays, engine) == LocalEngine(parallelism=1)


def test_rows_that_came_in_meanwhile_get_their_values(dataset: lance.LanceDataset) -> None:
    stale = lance.dataset(dataset.uri)
    calls: list[int] = []

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not calls:
            more = pa.table({"id": [50], "name": ["late"]})
            lance.write_dataset(more, dataset.uri, mode="append")
            dataset.checkout_latest()
            dataset.delete("id = 5")
        calls.extend(batch.column("id").to_pylist())
        return pa.record_batch({"n": batch.column("id")})

    stale.add_columns(BatchUDF(function, NUMBERS), read_columns=["id"])
    assert column(stale, "n") == [0, 1, 3, 4, 6, 7, 8, 9, 50]
    assert calls == [*IDS, 50]


@pytest.mark.parametrize("text", ["CAST(NULL AS INT)", " cast( null as varchar ) "])
def test_a_cast_of_null_writes_no_files(dataset: lance.LanceDataset, text: str) -> None:
    files = [fragment.data_files() for fragment in dataset.get_fragments()]
    dataset.add_columns({"nulls": text})
    assert [fragment.data_files() for fragment in dataset.get_fragments()] == files
    assert dataset.to_table()["nulls"].null_count == dataset.count_rows()


def test_nulls_beside_values_are_written(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"nulls": "CAST(NULL AS INT)", "ones": "1"})
    rows = dataset.to_table(["nulls", "ones"])
    assert (rows["nulls"].null_count, rows["ones"].null_count) == (rows.num_rows, 0)
