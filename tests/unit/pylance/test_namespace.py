"""Tables by name below a root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance_namespace as api
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, InvalidRequestError, TableNotFoundError
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
    assert namespace.list_tables(None).tables == ["t"]


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
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["s", "u"])
    for name in ("t", "u"):
        assert lance.dataset(namespace_client=namespace, table_id=["s", name]).count_rows() == 3


def test_fragments_are_written_by_name(namespace: DirectoryNamespace) -> None:
    made = lance.write_dataset(ROWS, namespace_client=namespace, table_id=["t"])
    fragment = lance.LanceFragment.create("", ROWS, namespace_client=namespace, table_id=["t"])
    operation = lance.LanceOperation.Append([fragment])
    assert lance.LanceDataset.commit(made, operation, read_version=1).count_rows() == 6


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.fixture(params=["folder", "memory"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> DirectoryNamespace:
    made = DirectoryNamespace(root=str(tmp_path) if request.param == "folder" else "memory://ns")
    made.create_namespace(api.CreateNamespaceRequest(id=["w"], properties={"owner": "me"}))
    return made


def test_a_table_lives_in_a_namespace(workspace: DirectoryNamespace) -> None:
    made = workspace.create_table(api.CreateTableRequest(id=["w", "t"]), ipc(ROWS))
    assert made.version == 1
    described = workspace.describe_table(api.DescribeTableRequest(id=["w", "t"]))
    assert (described.table, described.namespace) == ("t", ["w"])
    assert described.location == made.location
    assert workspace.list_tables(api.ListTablesRequest(id=["w"])).tables == ["t"]
    assert workspace.list_tables(api.ListTablesRequest(id=[])).tables == []
    workspace.drop_table(api.DropTableRequest(id=["w", "t"]))
    assert workspace.list_tables(api.ListTablesRequest(id=["w"])).tables == []
    with pytest.raises(api.TableNotFoundError, match=r"w\$t"):
        workspace.table_exists(api.TableExistsRequest(id=["w", "t"]))


def test_namespaces_are_nested(workspace: DirectoryNamespace) -> None:
    workspace.create_namespace(api.CreateNamespaceRequest(id=["w", "x"]))
    assert workspace.list_namespaces(api.ListNamespacesRequest(id=[])).namespaces == ["w"]
    assert workspace.list_namespaces(api.ListNamespacesRequest(id=["w"])).namespaces == ["x"]
    described = workspace.describe_namespace(api.DescribeNamespaceRequest(id=["w"]))
    assert described.properties == {"owner": "me"}
    with pytest.raises(api.NamespaceNotEmptyError, match="contains 1 child"):
        workspace.drop_namespace(api.DropNamespaceRequest(id=["w"]))
    workspace.drop_namespace(api.DropNamespaceRequest(id=["w", "x"]))
    workspace.drop_namespace(api.DropNamespaceRequest(id=["w"]))
    with pytest.raises(api.NamespaceNotFoundError):
        workspace.namespace_exists(api.NamespaceExistsRequest(id=["w"]))


@pytest.mark.parametrize(
    ("call", "request_", "kind", "text"),
    [
        ("create_namespace", api.CreateNamespaceRequest(id=["w"]), AlreadyExistsError, "exists: w"),
        ("create_namespace", api.CreateNamespaceRequest(id=[]), AlreadyExistsError, "the root"),
        (
            "create_namespace",
            api.CreateNamespaceRequest(id=["no", "x"]),
            api.NamespaceNotFoundError,
            "parent namespace 'no'",
        ),
        ("drop_namespace", api.DropNamespaceRequest(id=[]), InvalidRequestError, "Root namespace"),
        ("describe_table", api.DescribeTableRequest(id=[]), InvalidRequestError, "cannot be empty"),
        ("deregister_table", api.DeregisterTableRequest(id=["w", "q"]), TableNotFoundError, "q"),
        (
            "count_table_rows",
            api.CountTableRowsRequest(id=["w"]),
            api.UnsupportedOperationError,
            "count_table_rows",
        ),
    ],
)
def test_requests_that_are_refused(
    workspace: DirectoryNamespace, call: str, request_: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        getattr(workspace, call)(request_)


def test_a_new_table_needs_rows_and_a_free_name(workspace: DirectoryNamespace) -> None:
    named = api.CreateTableRequest(id=["w", "t"])
    with pytest.raises(InvalidRequestError, match="Arrow IPC"):
        workspace.create_table(named, b"")
    workspace.create_table(named, ipc(ROWS))
    with pytest.raises(AlreadyExistsError, match="already exists: t"):
        workspace.create_table(named, ipc(ROWS))
    replaced = api.CreateTableRequest(id=["w", "t"], mode="Overwrite")
    assert workspace.create_table(replaced, ipc(ROWS)).version == 2
    kept = api.CreateTableRequest(id=["w", "t"], mode="exist_ok")
    assert workspace.create_table(kept, ipc(ROWS)).version is None
    with pytest.raises(InvalidRequestError, match="mode 'append'"):
        workspace.create_table(api.CreateTableRequest(id=["w", "t"], mode="append"), ipc(ROWS))


def test_a_table_below_the_root_gets_a_name(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path))
    lance.write_dataset(ROWS, tmp_path / "old" / "t.lance")
    named = api.RegisterTableRequest(id=["new"], location="old/t.lance")
    assert namespace.register_table(named).location == "old/t.lance"
    assert lance.dataset(namespace_client=namespace, table_id=["new"]).count_rows() == 3
    gone = namespace.deregister_table(api.DeregisterTableRequest(id=["new"]))
    assert (gone.id, gone.location) == (["new"], str(tmp_path / "old" / "t.lance"))
    assert namespace.list_tables(api.ListTablesRequest(id=[])).tables == []
    assert lance.dataset(tmp_path / "old" / "t.lance").count_rows() == 3


def test_a_declared_table_that_has_no_rows_is_dropped(namespace: DirectoryNamespace) -> None:
    namespace.declare_table(api.DeclareTableRequest(id=["t"]))
    namespace.drop_table(api.DropTableRequest(id=["t"]))
    namespace.declare_table(api.DeclareTableRequest(id=["t"]))


def test_names_come_in_pages(workspace: DirectoryNamespace) -> None:
    for name in "abc":
        workspace.declare_table(api.DeclareTableRequest(id=["w", name]))
    first = workspace.list_tables(api.ListTablesRequest(id=["w"], limit=2))
    assert (first.tables, first.page_token) == (["a", "b"], "b")
    rest = api.ListTablesRequest(id=["w"], limit=2, page_token=first.page_token)
    assert workspace.list_tables(rest).tables == ["c"]


def test_the_namespace_api_accepts_the_class(namespace: DirectoryNamespace, tmp_path: Path) -> None:
    name = f"{DirectoryNamespace.__module__}.{DirectoryNamespace.__qualname__}"
    connected = api.connect(name, {"root": str(tmp_path)})
    assert connected.namespace_id() == namespace.namespace_id()
    assert connected.namespace_id() == f'DirectoryNamespace {{ root: "{tmp_path}" }}'


def test_only_properties_that_begin_with_storage_are_options_of_the_store(tmp_path: Path) -> None:
    given = {"storage.allow_http": "true", "backup.storage.allow_http": "false"}
    found = DirectoryNamespace(root=str(tmp_path), **given)
    assert found._options == {"allow_http": "true"}
