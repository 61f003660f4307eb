"""Answers with rows: pages, values, queries and searches."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.explorer_tables import TEXT, png
from tests.unit.ui.conftest import AUTHORIZED, Ask


def _column(found: dict[str, Any], name: str) -> list[Any]:
    place = [column["name"] for column in found["columns"]].index(name)
    return [row[place] for row in found["rows"]]


def _ids(found: dict[str, Any]) -> list[int]:
    return [int(cell["text"]) for cell in _column(found, "id")]


def test_rows_are_paged(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/rows", offset=2, limit=3)
    assert (_ids(found), found["has_more"]) == ([2, 4, 5], True)


def test_the_last_page_has_no_more(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/rows", offset=37, limit=3)
    assert (_ids(found), found["has_more"]) == ([38, 39], False)


def test_the_number_of_rows_is_bounded(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/rows", limit=10**9)
    assert len(found["rows"]) == 39


def test_rows_are_filtered_and_counted(ask: Ask, photos_id: str) -> None:
    assert _ids(ask(f"tables/{photos_id}/rows", filter="id > 37")) == [38, 39]
    assert ask(f"tables/{photos_id}/count", filter="id > 37") == {"rows": 2}


def test_rows_of_a_version_and_of_a_branch(ask: Ask, photos_id: str) -> None:
    assert 3 in _ids(ask(f"tables/{photos_id}/rows", version=1))
    assert 4 not in _ids(ask(f"tables/{photos_id}/rows", branch="experiment"))


def test_large_numbers_keep_their_digits(ask: Ask, photos_id: str) -> None:
    first = _column(ask(f"tables/{photos_id}/rows", limit=1), "large")[0]
    assert first == {"kind": "number", "text": str(2**63)}


def test_a_long_text_is_cut_and_can_be_read_whole(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/rows", limit=1)
    (caption,) = _column(found, "caption")
    assert caption["is_cut"] and caption["length"] == len(TEXT * 60)
    place = {"address": found["addresses"][0], "column": "caption"}
    assert ask(f"tables/{photos_id}/text", **place)["text"] == TEXT * 60


def test_an_image_has_its_media_type(client: TestClient, ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/rows", limit=1)
    assert _column(found, "image")[0]["media_type"] == "image/png"
    place = {"address": found["addresses"][0], "column": "image"}
    answer = client.get(f"/api/tables/{photos_id}/image", params=place, headers=AUTHORIZED)
    assert (answer.headers["content-type"], answer.content) == ("image/png", png())


@pytest.mark.parametrize("column", ["image", "caption", "embedding"])
def test_a_value_that_is_not_an_image_is_refused(ask: Ask, photos_id: str, column: str) -> None:
    found = ask(f"tables/{photos_id}/rows", offset=1, limit=1)
    place = {"address": found["addresses"][0], "column": column}
    assert "is not an image" in ask(f"tables/{photos_id}/image", 400, **place)["problem"]


def test_a_row_that_does_not_exist_is_refused(ask: Ask, photos_id: str) -> None:
    for address in (3, 2**63, 2**64 - 1):
        ask(f"tables/{photos_id}/image", 400, address=address, column="image")


def test_a_column_that_does_not_exist_is_refused(ask: Ask, photos_id: str) -> None:
    ask(f"tables/{photos_id}/text", 400, address=0, column="other")


def test_a_query_returns_its_first_rows(send: Ask, photos_id: str) -> None:
    body = {"query": "SELECT id * 2 AS twice FROM dataset WHERE id > 37"}
    found = send(f"tables/{photos_id}/sql", body)
    assert [cell["text"] for cell in _column(found, "twice")] == ["76", "78"]
    assert found["has_more"] is False


def test_more_rows_of_a_query_are_mentioned(send: Ask, photos_id: str) -> None:
    body = {"query": "SELECT a.id FROM dataset a CROSS JOIN dataset b"}
    found = send(f"tables/{photos_id}/sql", body)
    assert (len(found["rows"]), found["has_more"]) == (200, True)


def test_small_images_of_a_query_are_included(send: Ask, photos_id: str) -> None:
    found = send(f"tables/{photos_id}/sql", {"query": "SELECT image FROM dataset LIMIT 1"})
    assert base64.b64decode(found["rows"][0][0]["base64"]) == png()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM 'secret.lance'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/lancelake-explorer.csv'",
        "INSERT INTO dataset SELECT * FROM dataset",
        "SET datafusion.execution.batch_size = 1",
        "not sql",
        "",
    ],
)
def test_a_query_only_reads_the_table(send: Ask, photos_id: str, query: str) -> None:
    send(f"tables/{photos_id}/sql", {"query": query}, 400)


def test_words_are_found(send: Ask, photos_id: str) -> None:
    found = send(f"tables/{photos_id}/search", {"text": "harbour", "filter": "id < 3", "k": 5})
    assert sorted(_ids(found)) == [0, 1, 2]


def test_rows_like_a_row_are_found_without_it(ask: Ask, send: Ask, photos_id: str) -> None:
    like = ask(f"tables/{photos_id}/rows", filter="id = 10")["ids"][0]
    found = send(f"tables/{photos_id}/search", {"like": like, "column": "embedding", "k": 2})
    assert sorted(_ids(found)) == [9, 11]


def test_rows_near_a_vector_are_found(send: Ask, photos_id: str) -> None:
    found = send(f"tables/{photos_id}/search", {"vector": [20.2, 1, -1, 0], "k": 1})
    assert _ids(found) == [20]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"vector": "x"},
        {"vector": [None]},
        {"vector": [1.0]},
        {"vector": [10**400]},
        {"like": 1},
        {"like": "-1"},
        {"like": "9" * 30},
        {"text": "a", "k": 0},
        {"text": "a", "k": 10**6},
        {"text": 5},
    ],
)
def test_a_search_that_is_not_one_is_refused(
    send: Ask, photos_id: str, body: dict[str, Any]
) -> None:
    send(f"tables/{photos_id}/search", body, 400)
