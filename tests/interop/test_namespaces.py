"""Directory namespaces are shared with release 14."""

from __future__ import annotations

from pathlib import Path

import lance_namespace as api
import pyarrow as pa

import lancelake.pylance as lance
from lancelake.pylance.namespace import DirectoryNamespace
from tests.support.official import Official

ROWS = pa.table({"a": [1, 2, 3]})
READ = """
from lance.namespace import DirectoryNamespace
from lance_namespace import DescribeNamespaceRequest, ListTablesRequest
ns = DirectoryNamespace(root=uri)
result = [
    lance.dataset(namespace_client=ns, table_id=["s", "t"]).count_rows(),
    ns.list_tables(ListTablesRequest(id=["s"])).tables,
    ns.describe_namespace(DescribeNamespaceRequest(id=["s"])).properties,
]
"""
WRITE = """
from lance.namespace import DirectoryNamespace
from lance_namespace import CreateNamespaceRequest
ns = DirectoryNamespace(root=uri)
ns.create_namespace(CreateNamespaceRequest(id=["s"], properties={"owner": "me"}))
made = lance.write_dataset({"a": [1, 2, 3]}, namespace_client=ns, table_id=["s", "t"])
result = made.count_rows()
"""


def test_release_14_finds_what_is_created_here(tmp_path: Path, official_14: Official) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path))
    namespace.create_namespace(api.CreateNamespaceRequest(id=["s"], properties={"owner": "me"}))
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["s", "t"])
    assert official_14.run(str(tmp_path), READ) == [3, ["t"], {"owner": "me"}]


def test_what_release_14_creates_is_found_here(tmp_path: Path, official_14: Official) -> None:
    assert official_14.run(str(tmp_path), WRITE) == 3
    namespace = DirectoryNamespace(root=str(tmp_path))
    assert lance.dataset(namespace_client=namespace, table_id=["s", "t"]).count_rows() == 3
    assert namespace.list_tables(api.ListTablesRequest(id=["s"])).tables == ["t"]
    described = namespace.describe_namespace(api.DescribeNamespaceRequest(id=["s"]))
    assert described.properties == {"owner": "me"}
    namespace.drop_table(api.DropTableRequest(id=["s", "t"]))
    namespace.drop_namespace(api.DropNamespaceRequest(id=["s"]))
    assert namespace.list_namespaces(api.ListNamespacesRequest(id=[])).namespaces == []
