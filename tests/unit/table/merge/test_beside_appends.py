"""The finished work of a merge is kept when others append concurrently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.table.merge import run
from lancelake.table.merge.run import plan_merge


def _rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([v] * len(ids), pa.int64())})


class Meanwhile:
    """Does something to the table each time a merge has found out what it changes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> None:
        self.attempts = 0
        self._steps = steps
        monkeypatch.setattr(run, "plan_merge", self._found)

    def _found(self, *args: object, **named: object) -> object:
        outcome = plan_merge(*args, **named)
        if self.attempts < len(self._steps):
            self._steps[self.attempts]()
        self.attempts += 1
        return outcome


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance.write_dataset(_rows(1, 2, 3), place)
    return place


def _append(uri: str, *ids: int) -> Callable[[], object]:
    return lambda: lance.write_dataset(_rows(*ids, v=-1), uri, mode="append")


def _upsert(uri: str, *ids: int) -> None:
    lance.dataset(uri).merge_insert(
        "id"
    ).when_matched_update_all().when_not_matched_insert_all().execute(_rows(*ids, v=9))


def _ids(uri: str) -> list[int]:
    return sorted(lance.dataset(uri).to_table().column("id").to_pylist())


def test_a_merge_is_done_once_beside_an_append_of_other_keys(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(monkeypatch, _append(uri, 50))
    _upsert(uri, 2, 10)
    assert meanwhile.attempts == 1
    assert _ids(uri) == [1, 2, 3, 10, 50]


def test_a_merge_is_done_once_beside_an_append_of_a_key_that_it_updates(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(monkeypatch, _append(uri, 2))
    _upsert(uri, 2, 10)
    assert meanwhile.attempts == 1
    assert _ids(uri) == [1, 2, 2, 3, 10]


def test_a_merge_is_done_again_when_a_key_that_it_inserts_was_appended(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(monkeypatch, _append(uri, 10))
    _upsert(uri, 2, 10)
    assert meanwhile.attempts == 2
    assert _ids(uri) == [1, 2, 3, 10]


def test_a_merge_of_more_keys_than_the_filter_can_distinguish_is_done_once(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = range(1_000, 201_000)
    meanwhile = Meanwhile(monkeypatch, _append(uri, *range(500_000, 501_000)))
    _upsert(uri, *many)
    assert meanwhile.attempts == 1
    assert lance.dataset(uri).count_rows() == 3 + 200_000 + 1_000


def test_a_merge_is_done_once_beside_an_update_of_other_rows(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update() -> None:
        lance.dataset(uri).update({"v": "7"}, where="id = 3")

    meanwhile = Meanwhile(monkeypatch, update)
    _upsert(uri, 2, 10)
    assert meanwhile.attempts == 1
    assert _ids(uri) == [1, 2, 3, 10]


def test_a_merge_is_done_again_when_an_update_gave_a_row_a_key_that_it_inserts(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update() -> None:
        lance.dataset(uri).update({"id": "10"}, where="id = 3")

    meanwhile = Meanwhile(monkeypatch, update)
    _upsert(uri, 2, 10)
    assert meanwhile.attempts == 2
    assert _ids(uri) == [1, 2, 10]


def test_a_merge_is_done_again_when_appended_rows_cannot_be_read(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_and_rewrite() -> None:
        _append(uri, 50)()
        fragment = lance.dataset(uri).get_fragments()[-1]
        (file,) = fragment.data_files()
        lance.dataset(uri).optimize.compact_files()
        Path(uri, "data", file.path).unlink()

    meanwhile = Meanwhile(monkeypatch, append_and_rewrite)
    _upsert(uri, 2, 10)
    assert meanwhile.attempts == 2
    assert _ids(uri) == [1, 2, 3, 10, 50]
