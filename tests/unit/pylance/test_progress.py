from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.column_file import WriteCounts
from lancelake.errors import InvalidRequestError
from lancelake.pylance.fragment import FragmentMetadata, LanceFragment, write_fragments
from lancelake.pylance.progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    IndexProgress,
    NoopFragmentWriteProgress,
)

ROWS = pa.table({"a": range(10)})


class Notes(FragmentWriteProgress):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.begun: list[FragmentMetadata] = []
        self.completed: list[FragmentMetadata] = []

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        self.begun.append(fragment)

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        self.completed.append(fragment)


class Broken(NoopFragmentWriteProgress):
    """Fails at the end of a fragment."""

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        raise RuntimeError("out of paper")


def _paths(fragments: list[FragmentMetadata]) -> list[str]:
    return [fragment.files[0].path for fragment in fragments]


def test_every_fragment_begins_and_completes(tmp_path: Path) -> None:
    notes = Notes()
    made = lance.write_dataset(ROWS, tmp_path, progress=notes, max_rows_per_file=4)
    expected = [fragment.metadata.files[0].path for fragment in made.get_fragments()]
    assert _paths(notes.begun) == _paths(notes.completed) == expected
    assert [fragment.physical_rows for fragment in notes.completed] == [4, 4, 2]


def test_fragments_without_a_commit_are_reported_too(tmp_path: Path) -> None:
    notes = Notes()
    one = LanceFragment.create(tmp_path, ROWS, progress=notes)
    more = write_fragments(ROWS, tmp_path, progress=notes)
    assert isinstance(more, list)
    assert notes.completed == [one, *more]


def test_a_function_receives_counts(tmp_path: Path) -> None:
    told: list[WriteCounts] = []
    lance.write_dataset(ROWS, tmp_path, progress=told.append)
    assert (told[-1].rows, told[-1].files) == (10, 1)


def test_progress_that_fails_stops_the_write(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"complete\(\) on Broken: .*out of paper"):
        lance.write_dataset(ROWS, tmp_path, progress=Broken())
    assert not (tmp_path / "_versions").exists()


def test_files_name_the_fragments_that_are_being_written(tmp_path: Path) -> None:
    progress = FileSystemFragmentWriteProgress(str(tmp_path), {"worker": "7"})
    fragment = FragmentMetadata(3, [], 5)
    progress.begin(fragment)
    noted = json.loads((tmp_path / "fragment_3.in_progress").read_text())
    assert noted == {"fragment_id": 3, "metadata": {"worker": "7"}}
    assert json.loads((tmp_path / "fragment_3.json").read_text()) == fragment.to_json()
    progress.complete(fragment)
    assert [path.name for path in tmp_path.iterdir()] == ["fragment_3.json"]


@pytest.mark.parametrize(
    ("completed", "total", "fraction"),
    [(1, 4, 0.25), (5, 4, 1.0), (None, 4, None), (1, None, None), (1, 0, None)],
)
def test_the_fraction_of_an_index_build(
    completed: int | None, total: int | None, fraction: float | None
) -> None:
    assert IndexProgress("progress", "train", completed, total).fraction == fraction


def test_a_file_whose_rows_fail_was_begun_as_that_of_its_fragment(tmp_path: Path) -> None:
    def rows() -> Any:
        yield ROWS.to_batches()[0]
        raise RuntimeError("broken source")

    notes = Notes()
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, rows())
    with pytest.raises(Exception, match="broken source"):
        LanceFragment.create(tmp_path / "t", reader, fragment_id=7, progress=notes)
    assert [fragment.id for fragment in notes.begun] == [7]
    assert notes.completed == []


def _vectors() -> pa.Table:
    values = pa.array([float(i % 97) for i in range(4000)], pa.float32())
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 4), "t": ["red fox"] * 1000})


def _events(told: list[IndexProgress]) -> list[str]:
    return [f"{each.event} {each.stage}" for each in told if each.event != "progress"]


def test_a_vector_index_reports_its_stages(tmp_path: Path) -> None:
    told: list[IndexProgress] = []
    options: dict[str, Any] = {"num_partitions": 3, "num_sub_vectors": 2}
    table = lance.write_dataset(_vectors(), tmp_path)
    table.create_index("v", "IVF_PQ", progress_callback=told.append, **options)
    stages = ["train_ivf", "train_quantizer", "shuffle", "merge_partitions"]
    assert _events(told) == [f"{e} {s}" for s in stages for e in ("start", "complete")]
    done = {each.stage: each.completed for each in told}
    assert (done["shuffle"], done["merge_partitions"]) == (1000, 3)


def test_a_text_index_reports_its_stages(tmp_path: Path) -> None:
    told: list[IndexProgress] = []
    table = lance.write_dataset(_vectors(), tmp_path)
    table.create_scalar_index("t", "INVERTED", progress_callback=told.append)
    stages = ["load_data", "tokenize_docs", "copy_partitions", "write_metadata"]
    assert _events(told) == [f"{e} {s}" for s in stages for e in ("start", "complete")]
    assert max(e.completed or 0 for e in told if e.stage == "tokenize_docs") == 1000


def test_merging_parts_of_a_text_index_reports_its_stages(tmp_path: Path) -> None:
    told: list[IndexProgress] = []
    unique = "7f3c1a52-9d1e-4f7b-8a66-0c5d2b9e1f34"
    table = lance.write_dataset(_vectors(), tmp_path, max_rows_per_file=500)
    for number in (0, 1):
        table.create_scalar_index("t", "INVERTED", fragment_ids=[number], index_uuid=unique)
    table.merge_index_metadata(unique, "INVERTED", progress_callback=told.append)
    stages = ["read_partition_metadata", "remap_partition_files", "write_merged_metadata"]
    assert _events(told) == [f"{e} {s}" for s in stages for e in ("start", "complete")]


def test_a_callback_stops_a_build_where_a_stage_begins(tmp_path: Path) -> None:
    def fail(told: IndexProgress) -> None:
        raise RuntimeError("out of paper")

    table = lance.write_dataset(_vectors(), tmp_path)
    with pytest.raises(RuntimeError, match="out of paper"):
        table.create_index("v", "IVF_FLAT", num_partitions=2, progress_callback=fail)
    assert not table.has_index


def test_a_callback_that_fails_at_the_end_of_a_stage_is_only_logged(tmp_path: Path) -> None:
    def fail(told: IndexProgress) -> None:
        if told.event == "complete":
            raise RuntimeError("out of paper")

    table = lance.write_dataset(_vectors(), tmp_path)
    table.create_scalar_index("t", "INVERTED", progress_callback=fail)
    assert table.has_index
