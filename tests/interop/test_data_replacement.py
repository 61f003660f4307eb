"""Replaced column files of official Lance and ours; each continues with the other's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.official import Official, OfficialError

ROWS = pa.table({"a": range(6), "b": [f"b{i}" for i in range(6)], "c": range(10, 16)})
SWAPPED = """
groups = [
    lance.LanceOperation.DataReplacementGroup(
        i, lance.fragment.DataFile(path, fields, list(range(len(fields))), *version)
    )
    for i, path in files
]
operation = lance.LanceOperation.DataReplacement(groups)
lance.LanceDataset.commit(uri, operation, read_version=ds.version)
result = None
"""


def made(official: Official, folder: Path, file_version: str, *, stable: bool = False) -> Path:
    """Return a table of two fragments with an all-null column `n`, and an index on `c`."""
    uri = folder / "theirs"
    official.write(
        uri,
        ROWS,
        max_rows_per_file=3,
        data_storage_version=file_version,
        enable_stable_row_ids=stable,
    )
    official.create_scalar_index(uri, "c")
    official.add_null_column(uri, pa.field("n", pa.int64()))
    return uri


def files(uri: Path, values: pa.Table, file_version: str) -> list[tuple[int, str]]:
    """Write the values of both fragments to files of the table."""
    found = []
    for i in range(2):
        path = f"replacement-{i}-{'-'.join(values.schema.names)}.lance"
        with LanceFileWriter(
            str(uri / "data" / path), values.schema, version=file_version
        ) as writer:
            writer.write_batch(values.slice(3 * i, 3).combine_chunks().to_batches()[0])
        found.append((i, path))
    return found


CASES = [
    pytest.param({"n": range(100, 106)}, [3], id="a column without files"),
    pytest.param({"c": range(100, 106)}, [2], id="a column among others"),
    pytest.param({"a": range(6), "c": range(100, 106)}, [0, 2], id="two columns among others"),
]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("file_version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(("columns", "fields"), CASES)
def test_both_swap_files_alike(
    columns: dict[str, Any],
    fields: list[int],
    file_version: str,
    stable: bool,
    official_14: Official,
    tmp_path: Path,
) -> None:
    theirs = made(official_14, tmp_path, file_version, stable=stable)
    values = pa.table({name: pa.array(v, pa.int64()) for name, v in columns.items()})
    numbers = [int(part) for part in file_version.split(".")]
    inputs = {
        "files": files(theirs, values, file_version),
        "fields": fields,
        "version": numbers,
    }
    ours = Path(shutil.copytree(theirs, tmp_path / "ours"))
    code = f"ds = lance.dataset(uri)\n{SWAPPED}"
    official_14.run(theirs, f"import lance.fragment\n{code}", **inputs)
    exec(code, {"lance": lance, "uri": str(ours), **inputs})
    for uri in (theirs, ours):
        found = official_14.read(uri)
        assert found == lance.dataset(uri).to_table()
        assert found.select(values.schema.names).cast(values.schema) == values
        wrong = check(Location.parse(uri), data=True, versions="all")
        assert [f for f in wrong if f.severity is Severity.ERROR] == []
    assert described(ours) == described(theirs)
    # Each goes on with the other's table.
    official_14.delete(ours, "a = 1")
    lance.dataset(theirs).delete("a = 1")
    assert official_14.read(theirs) == lance.dataset(ours).to_table()


def described(uri: Path) -> Any:
    """Return what files, rows and indices of a table say about columns."""
    ds = lance.dataset(uri)
    shown = [[(f.fields, f.column_indices) for f in x.data_files()] for x in ds.get_fragments()]
    covered = [sorted(index["fragment_ids"]) for index in ds.list_indices()]
    lineage = ds.to_table(columns=["_row_last_updated_at_version"]).to_pylist()
    return shown, covered, lineage


def test_a_fragment_that_does_not_exist_is_refused(official_14: Official, tmp_path: Path) -> None:
    uri = made(official_14, tmp_path, "2.1")
    inputs = {"files": [(7, "nowhere.lance")], "fields": [3], "version": [2, 1]}
    code = f"ds = lance.dataset(uri)\n{SWAPPED}"
    with pytest.raises(OfficialError):
        official_14.run(uri, f"import lance.fragment\n{code}", **inputs)
    with pytest.raises(LanceTableError):
        exec(code, {"lance": lance, "uri": str(uri), **inputs})
