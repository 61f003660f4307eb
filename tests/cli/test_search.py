"""`lancelake search` and `lancelake index recall`."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

import lancelake
from tests.support.official import Official
from tests.support.search_tables import article_vectors, write_articles

Document = Callable[..., Any]
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with texts and vectors."""
    path = tmp_path_factory.mktemp("search") / "articles.lance"
    write_articles(path)
    return path


@pytest.fixture
def query(tmp_path: Path) -> str:
    """Return the option value of a stored query vector."""
    np.save(tmp_path / "query.npy", article_vectors()[17])
    return f"@{tmp_path / 'query.npy'}"


def ids(body: Any) -> list[int]:
    return [row["id"] for row in body["rows"]]


def test_a_text_search_equals_that_of_the_library(document: Document, place: Path) -> None:
    body = document("search", place, "harbour stone", "-k", "4")
    expected = lancelake.dataset(str(place)).search("harbour stone", k=4, with_row_id=True)
    assert [row["_score"] for row in body["rows"]] == pytest.approx(expected["_score"].to_pylist())
    assert ids(body) == expected["id"].to_pylist()


@pytest.mark.parametrize("weight", [None, 0.3], ids=["reciprocal ranks", "weighted scores"])
def test_a_hybrid_search_equals_that_of_the_library(
    document: Document, place: Path, query: str, weight: float | None
) -> None:
    args = ["-k", "4", "--where", "topic = 'south'"]
    args += [] if weight is None else ["--vector-weight", str(weight)]
    body = document("search", place, "stone", "--vector", query, *args)
    expected = lancelake.dataset(str(place)).search(
        "stone",
        {"q": article_vectors()[17]},
        k=4,
        filter="topic = 'south'",
        vector_weight=weight,
    )
    assert ids(body) == expected["id"].to_pylist()
    for name in ("_distance", "_score", "_relevance_score"):
        assert [row[name] for row in body["rows"]] == expected[name].to_pylist()
    names = [column["name"] for column in body["columns"]]
    assert names[-4:] == ["_distance", "_score", "_relevance_score", "_rowid"]


def test_rows_like_a_row_do_not_include_it(document: Document, place: Path) -> None:
    body = document("search", place, "--like", "17", "-k", "3", "--columns", "id")
    distances = ((article_vectors() - article_vectors()[17]) ** 2).sum(axis=1)
    assert ids(body) == np.argsort(distances)[1:4].tolist()


def test_a_vector_may_be_given_as_numbers(document: Document, place: Path, query: str) -> None:
    numbers = ",".join(map(str, article_vectors()[17]))
    by_numbers = document("search", place, "--vector", numbers)
    assert by_numbers == document("search", place, "--vector", query)


def test_the_table_shows_scores_and_row_ids(output: Callable[..., str], place: Path) -> None:
    lines = output("search", place, "stone", "-k", "2", "-c", "id,text").splitlines()
    assert lines[0].split() == ["id", "text", "_score", "_rowid"]
    assert lines[-1] == "2 rows"


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--vector", "1,2"),
        ("--vector", "1,x,3,4"),
        ("--vector", "@missing.npy"),
        ("--vector", "1,2,3,4", "--like", "3"),
        ("--like", "3", "--vector-column", "text"),
        ("--like", "4294967299000"),
        ("stone", "-k", "0"),
        ("stone", "--vector-weight", "2"),
        ("stone", "--vector-weight", "0.5"),
        ("stone", "--nprobes", "5"),
        ("stone", "--where", "nothing = 3"),
    ],
)
def test_an_impossible_search_exits_with_2(run: Run, place: Path, args: tuple[str, ...]) -> None:
    assert run("search", place, *args).exit_code == 2


def test_a_file_with_several_vectors_is_refused(run: Run, place: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "two.npy", article_vectors()[:2])
    result = run("search", place, "--vector", f"@{tmp_path / 'two.npy'}")
    assert result.exit_code == 2
    assert "one vector" in result.stderr


def test_an_inverted_index_is_created(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write_articles(path)
    document("index", "drop", path, "text_idx")
    args = ("--kind", "INVERTED", "-p", "with_position=true")
    (index,) = document("index", "create", path, "text", *args)["indices"]
    assert index["kind"] == "Inverted"
    assert ids(document("search", path, '"fox harbour"', "-k", "1")) == [6]


def test_recall_of_all_partitions_is_complete(
    official_14: Official, document: Document, output: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "t.lance"
    write_articles(path)
    official_14.create_index(path, "vector", "IVF_FLAT", num_partitions=2)
    picture = tmp_path / "recall.svg"
    args = ("--nprobes", "1,2", "--sample", "20", "-k", "5", "--seed", "1")
    body = document("index", "recall", path, *args, "--plot", picture)
    assert [point["nprobes"] for point in body["points"]] == [1, 2, None]
    assert [point["recall"] for point in body["points"]][1:] == [1.0, 1.0]
    assert body["queries"] == 20
    assert ET.parse(picture).getroot().tag.endswith("svg")
    lines = output("index", "recall", path, "vector", *args).splitlines()
    assert lines[0].split()[:2] == ["nprobes", "recall@5"]
    assert lines[-1] == "20 queries of column vector"


def test_recall_without_an_index_exits_with_2(run: Run, place: Path) -> None:
    assert run("index", "recall", place).exit_code == 2
    assert run("index", "recall", place, "--nprobes", "1,x").exit_code == 2


@pytest.mark.parametrize("name", ["recall.png", "absent/recall.svg"])
def test_a_picture_that_cannot_be_written_is_refused_at_once(
    run: Run, place: Path, tmp_path: Path, name: str
) -> None:
    result = run("index", "recall", place, "--plot", tmp_path / name)
    assert result.exit_code == 2
    assert "--plot" in result.stderr
    assert not (tmp_path / name).exists()
