"""A session decides what the locations of its tables use."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.caches import MOST_BYTES, Caches
from lancelake.errors import InvalidRequestError
from lancelake.index.cache import PARTS
from lancelake.storage.location import (
    CACHE_BYTES,
    Location,
    Session,
    bound_of_caches,
    default_session,
)
from tests.support.set_clock import ManualClock

ROWS = pa.table({"id": list(range(1000))})


def test_locations_below_and_beside_one_belong_to_its_session(tmp_path: Path) -> None:
    session = Session(clock=ManualClock())
    place = Location.parse(tmp_path, session=session)
    assert place.child("t").session is session
    assert place.beside(tmp_path / "u").session is session


def test_a_location_is_the_same_in_another_session(tmp_path: Path) -> None:
    place = Location.parse(tmp_path, session=Session())
    assert place == Location.parse(tmp_path)
    assert hash(place) == hash(Location.parse(tmp_path))


def test_another_process_uses_its_own_session(tmp_path: Path) -> None:
    place = Location.parse(tmp_path, session=Session())
    assert pickle.loads(pickle.dumps(place)).session is default_session()


def test_a_session_opens_its_stores(tmp_path: Path) -> None:
    opened: list[str] = []
    store = Location.parse(tmp_path).store
    session = Session(stores=lambda place: opened.append(place.uri) or store)  # type: ignore[func-returns-value]
    assert not Location.parse(tmp_path, session=session).store.exists("none")
    assert opened == [str(tmp_path)]


def test_what_is_read_of_a_table_is_cached_by_its_session(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path / "t").create_scalar_index("id", "BTREE")
    session = Session()
    with session.as_default():
        table = lance.dataset(tmp_path / "t")
        assert table.to_table(filter="id = 17").num_rows == 1
    assert session.caches[PARTS].used > 0
    assert session.caches.sizes["open_files"] > 0


def test_a_session_keeps_to_the_bound_of_all_its_caches(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=10)
    session = Session(caches=Caches(most_bytes=10_000))
    with session.as_default():
        assert lance.dataset(tmp_path / "t").to_table().num_rows == 1000
    assert 0 < session.caches.used <= 10_000


def test_the_bound_of_a_process_is_set_by_its_environment() -> None:
    assert bound_of_caches({}) == MOST_BYTES
    assert bound_of_caches({CACHE_BYTES: "1048576"}) == 1 << 20
    with pytest.raises(InvalidRequestError, match="must be a number of bytes, not '1 GiB'"):
        bound_of_caches({CACHE_BYTES: "1 GiB"})


def test_the_default_session_is_as_before_after_another_was(tmp_path: Path) -> None:
    before = default_session()
    with pytest.raises(KeyError), Session().as_default():
        raise KeyError
    assert default_session() is before
