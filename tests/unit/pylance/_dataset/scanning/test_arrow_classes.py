"""pyarrow's own functions, given objects of this package: an answer or an error, never a crash."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from pyarrow import acero

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError

ROWS = pa.table({"id": pa.array([3, 1, 2], pa.int64()), "v": ["c", "a", "b"]})

# Public functions of pyarrow, and methods of its dataset class that are called on the class.
CALL_ALL = """
import itertools, sys
import pyarrow as pa, pyarrow.acero as acero, pyarrow.compute as pc, pyarrow.dataset as pads
import lancelake.pylance as lance

ds = lance.dataset(sys.argv[1])
ours = [ds, ds.scanner(), ds.get_fragments()[0], lance.LanceDataset.__new__(lance.LanceDataset)]
schema = pa.schema([("id", pa.int64())])
folders = (f"{sys.argv[2]}/{number}" for number in itertools.count())

def given(subject):
    yield [subject], {}
    yield [[subject]], {}
    yield [[subject, subject]], {}
    yield [subject], {"schema": schema}
    yield [subject], {"columns": ["id"], "filter": pc.field("id") > 1}
    yield [schema, [subject]], {}
    yield [[subject], schema, pads.IpcFileFormat()], {}
    yield [subject, next(folders)], {"format": "parquet"}
    yield ["scan", subject], {}

def functions():
    for function in (pa.table, pa.record_batch, pa.Table.from_batches):
        yield function.__name__, function
    for module in (pads, acero):
        for name in sorted(vars(module)):
            if not name.startswith("_") and callable(getattr(module, name)):
                yield f"{module.__name__}.{name}", getattr(module, name)
    for kind in (pads.Scanner, pads.InMemoryDataset, pads.UnionDataset, pads.FileSystemDataset):
        for name in ("from_dataset", "from_fragment", "from_batches", "from_paths"):
            if hasattr(kind, name):
                yield f"{kind.__name__}.{name}", getattr(kind, name)
    for name in dir(pads.UnionDataset):
        if not name.startswith("__") and callable(getattr(pads.UnionDataset, name)):
            yield f"UnionDataset.{name}", getattr(pads.UnionDataset, name)

def consume(value):
    for name in ("to_table", "count_rows", "read_all", "get_fragments"):
        if hasattr(value, name) and not isinstance(value, type):
            try:
                result = getattr(value, name)()
                list(result) if hasattr(result, "__next__") else result
            except Exception:
                pass

for name, function in functions():
    print(name, flush=True)
    # pyarrow does not look at the type of what its methods are called on.
    is_method = name.startswith("UnionDataset.")
    for subject in [ours[0], ours[3]] if is_method else ours:
        for arguments, options in given(subject):
            if is_method and arguments[0] is not subject:
                continue
            try:
                consume(function(*arguments, **options))
            except Exception:
                pass
print("alive")
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arrow") / "t.lance"
    lance.write_dataset(ROWS, path)
    return path


@pytest.fixture
def dataset(uri: Path) -> lance.LanceDataset:
    return lance.dataset(uri)


def test_no_function_of_pyarrow_ends_the_process(uri: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", CALL_ALL, str(uri), str(tmp_path)]
    # Some of the functions create files of the names that they are given.
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["alive"]), run.stderr


def test_objects_are_instances_of_the_classes_of_pyarrow(dataset: lance.LanceDataset) -> None:
    scanner, fragment = dataset.scanner(), dataset.get_fragments()[0]
    assert isinstance(dataset, pads.Dataset)
    assert isinstance(scanner, pads.Scanner)
    assert isinstance(fragment, pads.Fragment)
    assert isinstance(scanner, lance.LanceScanner)
    assert isinstance(fragment, lance.LanceFragment)


def test_pickles_and_copies_are_instances_too(dataset: lance.LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    for other in (pickle.loads(pickle.dumps(dataset)), copy.copy(dataset)):
        assert isinstance(other, pads.Dataset)
        assert other.to_table() == ROWS
    for other in (pickle.loads(pickle.dumps(fragment)), copy.copy(fragment)):
        assert isinstance(other, pads.Fragment)
        assert other.to_table() == ROWS


def test_scans_by_pyarrow_are_refused_with_advice(dataset: lance.LanceDataset) -> None:
    with pytest.raises(UnsupportedError, match=r"to_reader\(\)"):
        pads.Scanner.from_dataset(dataset, columns=["id"])
    with pytest.raises(UnsupportedError, match=r"to_reader\(\)"):
        acero.ScanNodeOptions(dataset)
    with pytest.raises(TypeError, match="LanceFragment"):
        pads.Scanner.from_fragment(dataset.get_fragments()[0], schema=ROWS.schema)


def test_unions_of_pyarrow_are_refused_with_advice(dataset: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match=r"to_reader\(\)"):
        pads.UnionDataset(ROWS.schema, [dataset])


def test_no_rows_are_read_through_the_methods_of_the_base_class(
    dataset: lance.LanceDataset,
) -> None:
    (fragment,) = pads.Dataset.get_fragments(dataset)
    with pytest.raises(UnsupportedError, match=r"to_reader\(\)"):
        fragment.to_table()
    other = pads.Dataset.replace_schema(dataset, ROWS.schema)
    with pytest.raises(UnsupportedError, match=r"to_reader\(\)"):
        other.to_table()


def test_a_table_is_no_union(dataset: lance.LanceDataset) -> None:
    assert not hasattr(dataset, "children")


def test_pyarrow_writes_datasets_and_scanners(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    pads.write_dataset(dataset, tmp_path / "all", format="parquet")
    pads.write_dataset(dataset.scanner(["v"]), tmp_path / "some", format="parquet")
    assert pads.dataset(tmp_path / "all").to_table() == ROWS
    assert pads.dataset(tmp_path / "some").to_table() == ROWS.select(["v"])


def test_rows_are_exported_as_an_arrow_stream(dataset: lance.LanceDataset) -> None:
    assert pa.table(dataset) == ROWS
    assert pa.table(dataset.scanner(["v"])) == ROWS.select(["v"])
    assert pa.table(dataset.get_fragments()[0]) == ROWS
