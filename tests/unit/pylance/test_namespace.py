"""Tables by name below a root."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, TableNotFoundError, UnsupportedError
from lancelake.pylance.namespace import DirectoryNamespace

ROWS = pa.table({"a": [1, 2, 3]})


@pytest.fixture
def namespace(tmp_path: Path) -> DirectoryNamespace:
    return DirectoryNamespace(root=str(tmp_path))


def test_a_table_is_written_and_opened_by_its_name(
    namespace: DirectoryNamespace, tmp_path: Path
) -> None:
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"])
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"], mode="append")
    found = lance.dataset(namespace_client=namespace, table_id=["t"])
    assert found.count_rows() == 6
    assert found.uri == str(tmp_path / "t.lance")
    assert namespace.list_tables(None) == ["t"]


def test_a_name_is_taken_once(namespace: DirectoryNamespace) -> None:
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"])
    with pytest.raises(AlreadyExistsError, match="already exists: t"):
        lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"])


def test_an_unknown_name_is_not_found(namespace: DirectoryNamespace) -> None:
    with pytest.raises(TableNotFoundError, match="table id 'x'"):
        lance.dataset(namespace_client=namespace, table_id=["x"])


def test_tables_of_nested_namespaces_are_found_in_the_manifest(
    namespace: DirectoryNamespace, tmp_path: Path
) -> None:
    rows = [{"object_id": "s$t", "object_type": "table", "location": "abc_s$t"}]
    lance.write_dataset(pa.Table.from_pylist(rows), tmp_path / "__manifest")
    lance.write_dataset(ROWS, tmp_path / "abc_s$t")
    found = lance.dataset(namespace_client=namespace, table_id=["s", "t"])
    assert found.count_rows() == 3
    with pytest.raises(UnsupportedError, match="root of the namespace"):
        lance.write_dataset(ROWS, namespace_client=namespace, table_id=["s", "u"])


def test_fragments_are_written_by_name(namespace: DirectoryNamespace) -> None:
    made = lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"])
    fragment = lance.LanceFragment.create("", ROWS, namespace_client=namespace, table_id=["t"])
    operation = lance.LanceOperation.Append([fragment])
    assert lance.LanceDataset.commit(made, operation, read_version=1).count_rows() == 6
