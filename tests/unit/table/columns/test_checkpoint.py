"""Functions resume from their checkpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import FunctionError, InvalidRequestError
from lancelake.pylance.udf import BatchUDF, BatchUDFCheckpoint
from lancelake.table.columns.add import Checkpoint

NUMBERS = pa.schema([("n", pa.int64())])
KILLED = """
import os, signal, sys
import pyarrow as pa
import lancelake.pylance as lance
uri, path = sys.argv[1:]
def function(batch):
    if 6 in batch.column("id").to_pylist():
        os.kill(os.getpid(), signal.SIGKILL)
    return pa.record_batch({"n": batch.column("id")})
udf = lance.batch_udf(pa.schema([("n", pa.int64())]), path)(function)
lance.dataset(uri).add_columns(udf, batch_size=2)
"""


class Recorder:
    """A function that takes note of its calls, and fails at some ids."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.seen: list[int] = []
        self.fails_at = fails_at

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch.column("id").to_pylist()
        if self.fails_at in ids:
            raise RuntimeError("failed")
        self.seen.extend(ids)
        return pa.record_batch({"n": batch.column("id")})


def test_what_was_computed_before_an_error_is_not_computed_again(
    dataset: lance.LanceDataset, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    first, second = Recorder(fails_at=7), Recorder()
    with pytest.raises(FunctionError):
        dataset.add_columns(BatchUDF(first, NUMBERS, path), batch_size=1)
    dataset.add_columns(BatchUDF(second, NUMBERS, path), batch_size=1)
    assert (first.seen, second.seen) == ([0, 1, 3, 4, 5, 6], [7, 8, 9])
    assert dataset.to_table(columns=["n"]).column("n").to_pylist() == [*first.seen, *second.seen]


def test_a_checkpoint_is_kept_until_the_commit(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(FunctionError):
        dataset.add_columns(BatchUDF(Recorder(fails_at=0), NUMBERS, path))
    assert path.exists()
    dataset.add_columns(BatchUDF(Recorder(), NUMBERS, path))
    assert not path.exists()


def test_a_killed_run_continues(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    command = [sys.executable, "-c", KILLED, dataset.uri, str(path)]
    killed = subprocess.run(command, check=False, capture_output=True, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    recorder = Recorder()
    dataset.add_columns(BatchUDF(recorder, NUMBERS, path), batch_size=2)
    assert recorder.seen[0] == 6
    assert dataset.to_table(columns=["n"]).column("n").to_pylist()[:3] == [0, 1, 3]


def test_results_for_other_rows_are_not_used(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(FunctionError):
        dataset.add_columns(BatchUDF(Recorder(fails_at=7), NUMBERS, path))
    dataset.delete("id = 0")
    recorder = Recorder()
    dataset.add_columns(BatchUDF(recorder, NUMBERS, path))
    assert recorder.seen[:2] == [1, 3]


def test_a_file_that_is_gone_is_written_again(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    known = {file.path for f in dataset.get_fragments() for file in f.data_files()}
    with pytest.raises(FunctionError):
        dataset.add_columns(BatchUDF(Recorder(fails_at=7), NUMBERS, path))
    for file in (Path(dataset.uri) / "data").iterdir():
        if file.name not in known:
            file.unlink()
    recorder = Recorder()
    dataset.add_columns(BatchUDF(recorder, NUMBERS, path))
    assert recorder.seen[0] == 0


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("this is not a checkpoint" * 100)
    with pytest.raises(InvalidRequestError, match="cannot be used"):
        Checkpoint(path=path).batch("source", 0)


def test_results_by_fragment_and_batch(tmp_path: Path) -> None:
    checkpoint = BatchUDFCheckpoint(tmp_path / "checkpoint")
    batch, info = pa.record_batch({"n": [1, 2]}), BatchUDFCheckpoint.BatchInfo(3, 4)
    assert checkpoint.get_batch(info) is None
    checkpoint.insert_batch(info, batch)
    assert checkpoint.get_batch(info) == batch


def test_a_fragment_takes_the_place_of_its_batches(
    dataset: lance.LanceDataset, tmp_path: Path
) -> None:
    checkpoint = BatchUDFCheckpoint(tmp_path / "checkpoint")
    info = BatchUDFCheckpoint.BatchInfo(0, 0)
    checkpoint.insert_batch(info, pa.record_batch({"n": [1, 2]}))
    (fragment, *_) = dataset.get_fragments()
    shown = fragment.metadata
    checkpoint.insert_fragment(0, json.dumps(shown.to_json()))
    kept = checkpoint.get_fragment(0)
    assert checkpoint.get_batch(info) is None
    assert lance.FragmentMetadata.from_json(kept or "") == shown
