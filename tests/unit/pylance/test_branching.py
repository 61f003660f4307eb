"""Branches, tags and URIs as in pylance."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, InvalidRequestError

ROWS = pa.table({"a": [1, 2]})
FACES = pytest.mark.parametrize("face", [lance, official], ids=["ours", "pylance"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@FACES
@pytest.mark.parametrize("given", ["t", "./t/", "file://{}/t", Path("t"), Path("./t/")])
def test_a_uri_is_the_one_given(here: Path, face: Any, given: str | Path) -> None:
    where = given.format(here) if isinstance(given, str) else given
    assert face.write_dataset(ROWS, where).uri == str(where)
    assert face.dataset(where).uri == str(where)
    operation = face.LanceOperation.Append([])
    assert face.LanceDataset.commit(where, operation, read_version=1).uri == str(where)


@FACES
def test_a_version_that_is_checked_out_keeps_the_uri(here: Path, face: Any) -> None:
    main = face.write_dataset(ROWS, "t")
    made = main.create_branch("dev")
    on_branch = main.checkout_version(("dev", None))
    assert (made.uri, on_branch.uri) == ("t/tree/dev", "t")
    assert made.checkout_version((None, 1)).uri == "t/tree/dev"
    assert on_branch.create_branch("more").uri == made.create_branch("else").uri[:-4] + "more"
    on_branch.insert(ROWS)
    assert (on_branch.uri, on_branch.version) == ("t", 2)
    assert face.write_dataset(ROWS, on_branch, mode="append").uri == "t/tree/dev"
    assert pickle.loads(pickle.dumps(made)).uri == "t/tree/dev"


@FACES
def test_a_clone_has_the_uri_it_was_given(here: Path, face: Any) -> None:
    main = face.write_dataset(ROWS, "t")
    assert main.shallow_clone(Path("c"), 1).uri == "c"
    assert main.deep_clone("./d", 1).uri == "./d"


@FACES
def test_a_branch_that_a_tag_names_is_not_deleted(tmp_path: Path, face: Any) -> None:
    main = face.write_dataset(ROWS, tmp_path)
    main.create_branch("dev")
    main.tags.create("v1", ("dev", 1))
    with pytest.raises(OSError, match="dev is referenced by tags"):
        main.branches.delete("dev")
    main.tags.delete("v1")
    main.branches.delete("dev")
    assert main.branches.list() == {}


def test_the_tags_in_the_way_are_named(tmp_path: Path) -> None:
    main = lance.write_dataset(ROWS, tmp_path)
    main.create_branch("dev")
    main.tags.create("v1", ("dev", 1))
    main.tags.create("other", 1)
    with pytest.raises(InvalidRequestError, match=r"tags \(v1 at version 1\), can not delete"):
        main.branches.delete("dev")


@FACES
def test_a_branch_that_another_began_on_is_not_deleted(tmp_path: Path, face: Any) -> None:
    main = face.write_dataset(ROWS, tmp_path)
    main.create_branch("dev").create_branch("more")
    with pytest.raises(OSError, match="dev is referenced by"):
        main.branches.delete("dev")


@FACES
def test_notes_of_tags_and_branches_are_replaced(tmp_path: Path, face: Any) -> None:
    main = face.write_dataset(ROWS, tmp_path)
    main.create_branch("dev")
    main.tags.create("v1", 1)
    main.tags.replace_metadata("v1", {"a": "b"})
    main.tags.update("v1", 1)
    main.branches.replace_metadata("dev", {"c": "d"})
    assert main.tags.list()["v1"]["metadata"] == {"a": "b"}
    assert main.branches.list()["dev"]["metadata"] == {"c": "d"}
    with pytest.raises(ValueError, match="does not exist"):
        main.tags.replace_metadata("none", {})


def test_names_beyond_ascii_are_found_by_official_releases_and_back(tmp_path: Path) -> None:
    ours = lance.write_dataset(ROWS, tmp_path)
    theirs = official.dataset(tmp_path)
    ours.tags.create("grün", 1)
    ours.create_branch("größe/日")
    assert theirs.tags.get_version("grün") == 1
    assert list(theirs.branches.list()) == ["größe/日"]
    theirs.tags.create("später", 1)
    theirs.create_branch(".x")
    assert list(ours.tags.list()) == ["grün", "später"]
    assert list(ours.branches.list()) == [".x", "größe/日"]


def test_a_deep_clone_copies_nothing_where_a_table_is(tmp_path: Path) -> None:
    main = lance.write_dataset(ROWS, tmp_path / "t")
    lance.write_dataset(ROWS, tmp_path / "taken")
    before = sorted(tmp_path.joinpath("taken").rglob("*"))
    with pytest.raises(AlreadyExistsError):
        main.deep_clone(tmp_path / "taken", 1)
    assert sorted(tmp_path.joinpath("taken").rglob("*")) == before


@FACES
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda t: t.checkout_version("none"), OSError),
        (lambda t: t.tags.get_version("none"), ValueError),
        (lambda t: t.tags.delete("none"), ValueError),
        (lambda t: t.tags.update("none", 1), ValueError),
        (lambda t: t.branches.delete("none"), ValueError),
        (lambda t: t.checkout_version(("none", 1)), OSError),
        (lambda t: t.create_branch("x", "none"), OSError),
        (lambda t: t.tags.create("x", 99), ValueError),
        (lambda t: t.tags.create("a b", 1), OSError),
        (lambda t: t.tags.update("a b", 1), RuntimeError),
        (lambda t: t.create_branch("a b"), OSError),
        (lambda t: t.create_branch("main"), OSError),
        (lambda t: t.tags.list_ordered("x"), ValueError),
        (lambda t: t.to_table(filter="zz = 1"), ValueError),
        (lambda t: t.to_table(filter="a ==="), ValueError),
        (lambda t: t.count_rows(filter="nofn(a) = 1"), OSError),
        (lambda t: t.to_table(columns={"x": "a +"}), ValueError),
        (lambda t: t.update_field_metadata({"zz": {}}), OSError),
    ],
)
def test_errors_are_of_the_kind_of_pylance(
    tmp_path: Path, face: Any, call: Any, kind: type[Exception]
) -> None:
    table = face.write_dataset(ROWS, tmp_path)
    with pytest.raises(kind):
        call(table)
