"""Names of tables and their folders."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.errors import (
    AlreadyExistsError,
    InvalidNameError,
    InvalidRequestError,
    PlaceNotAllowedError,
)
from lancelake.spark.sql.warehouse import Directory
from lancelake.storage.location import Location


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """Return a catalog with the table `db.t`."""
    lancelake.write_dataset(pa.table({"id": [1]}), tmp_path / "db" / "t.lance")
    return Directory(root=Location.parse(tmp_path))


def test_a_table_is_in_the_folder_of_its_namespace(directory: Directory) -> None:
    assert directory.table(("a", "b"), "t").uri == f"{directory.root.uri}/a/b/t.lance"


def test_tables_and_namespaces_are_distinguished(directory: Directory) -> None:
    assert directory.tables(("db",)) == ["t"]
    assert directory.namespaces(()) == [("db",)]
    assert not directory.has_namespace(("db", "t"))


def test_a_name_with_a_slash_is_a_path(directory: Directory) -> None:
    assert directory.table((), "/some/where.lance").uri == "/some/where.lance"
    assert directory.table((), "s3://bucket/t").uri == "s3://bucket/t"


def test_the_last_part_of_a_name_may_say_what_of_the_table(directory: Directory) -> None:
    home = directory.table(("db",), "t")
    found = [directory.resolve(("db", "t"), n) for n in ("history", "branch_x", "tag_y")]
    assert [f.location for f in found] == [home] * 3
    assert (found[0].facts, found[1].branch, found[2].tag) == ("history", "x", "y")


def test_a_table_may_be_called_history(directory: Directory) -> None:
    assert directory.resolve(("other",), "history").facts is None


def test_a_namespace_remembers_what_was_said_about_it(directory: Directory) -> None:
    directory.create_namespace(("new",), {"comment": "hello"})
    assert directory.properties(("new",))["comment"] == "hello"
    with pytest.raises(AlreadyExistsError):
        directory.create_namespace(("new",), {})


def test_a_namespace_with_tables_is_dropped_only_on_request(directory: Directory) -> None:
    with pytest.raises(InvalidRequestError, match="not empty"):
        directory.drop_namespace(("db",), cascade=False)
    assert directory.drop_namespace(("db",), cascade=True)
    assert directory.namespaces(()) == []
    assert not directory.drop_namespace(("db",), cascade=False)


@pytest.mark.parametrize("name", ["", ".hidden", "_system", "a.lance"])
def test_a_name_that_would_be_something_else_is_refused(directory: Directory, name: str) -> None:
    with pytest.raises(InvalidNameError):
        directory.table(("db",), name)


def test_an_external_table_has_a_name_and_a_location(directory: Directory) -> None:
    directory.add_external(("db",), "far", Location.parse("/else/where.lance"))
    assert directory.tables(("db",)) == ["far", "t"]
    assert directory.namespaces(()) == [("db",)]
    assert directory.table(("db",), "far").uri == "/else/where.lance"
    assert directory.forget_external(("db",), "far")
    assert not directory.forget_external(("db",), "far")
    assert directory.tables(("db",)) == ["t"]


def test_an_external_table_stays_within_a_confinement(directory: Directory) -> None:
    directory.add_external(("db",), "far", Location.parse("/else/where.lance"))
    confined = Directory(root=Location.parse(directory.root.uri, confine_to=["/other"]))
    with pytest.raises(PlaceNotAllowedError):
        confined.table(("db",), "far")


def test_names_are_found_in_another_case(directory: Directory) -> None:
    assert directory.spell(("DB",), "T", is_exact=False) == (("db",), "t")
    assert directory.spell(("DB",), "T", is_exact=True) == (("DB",), "T")
    assert directory.spell(("Db", "T"), "history", is_exact=False) == (("db", "t"), "history")
    assert directory.spell(("db",), "New", is_exact=False) == (("db",), "New")


def test_parts_of_a_table_exist_or_not(directory: Directory) -> None:
    table = lancelake.dataset(directory.table(("db",), "t").uri)
    table.create_branch("dev")
    table.tags.create("one", 1)
    names = ("branch_dev", "branch_main", "tag_one", "history", "branch_no", "tag_no", "tag_..")
    found = [directory.exists(directory.resolve(("db", "t"), name)) for name in names]
    assert found == [True] * 4 + [False] * 3
