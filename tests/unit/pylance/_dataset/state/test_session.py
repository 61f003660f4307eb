"""Sessions: their tables in memory, and what is cached for their tables."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.fragment import write_fragments
from lancelake.storage import location

ROWS = pa.table({"a": [1, 2, 3]})


def test_tables_of_one_name_do_not_meet() -> None:
    first = lance.write_dataset(ROWS, "memory://same")
    second = lance.write_dataset(ROWS.slice(0, 1), "memory://same")
    assert (first.count_rows(), second.count_rows()) == (3, 1)


def test_another_user_does_not_find_a_table() -> None:
    made = lance.write_dataset(ROWS, "memory://private")
    with pytest.raises(ValueError, match="not found"):
        lance.dataset("memory://private")
    assert made.uri == "memory://private"


def test_a_session_shares_its_tables() -> None:
    made = lance.write_dataset(ROWS, "memory://shared/t")
    assert lance.dataset("memory://shared/t", session=made.session()).count_rows() == 3
    session = lance.Session()
    lance.write_dataset(ROWS, "memory://shared/t", session=session).session()
    with pytest.raises(OSError, match="already exists"):
        lance.write_dataset(ROWS, "memory://shared/t", session=session)


def test_shared_memory_is_shared_by_the_process() -> None:
    lance.write_dataset(ROWS, "shared-memory://process/t")
    assert lance.dataset("shared-memory://process/t").count_rows() == 3


def test_versions_and_branches_of_a_table_share_its_session() -> None:
    made = lance.write_dataset(ROWS, "memory://branches")
    branch = made.create_branch("b")
    branch.insert(ROWS)
    assert (made.count_rows(), branch.count_rows()) == (3, 6)
    assert branch.session().is_same_as(made.session())
    assert not made.session().is_same_as(lance.Session())


def test_memory_is_freed_with_the_last_dataset() -> None:
    before = len(location._clients)
    made = lance.write_dataset(ROWS, "memory://freed")
    assert len(location._clients) == before + 1
    del made
    gc.collect()
    assert len(location._clients) <= before


def test_a_table_on_disk_needs_no_scope(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path / "t").session()
    assert made._made_scope is None
    in_memory = lance.write_dataset(ROWS, "memory://needed", session=made)
    assert in_memory.session() is made
    assert lance.dataset("memory://needed", session=made).count_rows() == 3


def test_cache_size_and_backend_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="mutually exclusive"):
        lance.Session(index_cache_size_bytes=1, index_cache_backend="moka://")


def test_a_session_knows_the_bytes_that_are_cached_for_its_tables(tmp_path: Path) -> None:
    session, other = lance.Session(), lance.Session()
    uri = str(tmp_path / "t")
    lance.write_dataset({"id": list(range(5000))}, uri).create_scalar_index("id", "BTREE")
    table = lance.dataset(uri, session=session)
    assert session.index_cache_size_bytes() == 0
    table.to_table(filter="id = 17")
    size = session.index_cache_size_bytes()
    assert size > 0
    metadata = session.size_bytes() - size
    assert metadata > 0
    cached = f"index_cache_size_bytes={size}, metadata_cache_size_bytes={metadata})"
    assert repr(session) == f"Session({cached}"
    assert other.size_bytes() == 0
    # A table whose path only starts alike is another one.
    lance.write_dataset({"id": [1]}, f"{uri}_2", session=other)
    assert other.size_bytes() == 0


def test_metadata_of_data_files_counts_before_an_index_is_read(tmp_path: Path) -> None:
    lance.write_dataset({"id": list(range(5000))}, str(tmp_path / "t"))
    session = lance.Session()
    lance.dataset(str(tmp_path / "t"), session=session).to_table()
    assert session.index_cache_size_bytes() == 0
    assert session.size_bytes() > 0


def test_versions_of_a_table_are_tables_of_a_session(tmp_path: Path) -> None:
    made = lance.write_dataset({"id": list(range(5000))}, str(tmp_path / "t"))
    made.create_scalar_index("id", "BTREE")
    table = lance.dataset(str(tmp_path / "t"))
    table.to_table(filter="id = 17")
    assert table.checkout_version(2).session().size_bytes() > 0


def test_fragments_of_a_dataset_are_written_with_its_own_session() -> None:
    made = lance.write_dataset(ROWS, "memory://own")
    assert len(write_fragments(ROWS, made, session=made.session())) == 1
    with pytest.raises(ValueError, match="not the destination dataset's own session"):
        write_fragments(ROWS, made, session=lance.Session())


def test_a_cache_backend_is_checked() -> None:
    lance.Session(metadata_cache_backend="moka://?capacity=1024")
    with pytest.raises(ValueError, match=r"metadata_cache_backend: .*capacity is required"):
        lance.Session(metadata_cache_backend="moka://")


def searched(uri: str, **options: Any) -> lance.LanceDataset:
    """Open a table with a key index, and read a row by each of many keys."""
    table = lance.dataset(uri, **options)
    for key in range(0, 200_000, 4_000):
        assert table.to_table(filter=f"id = {key}").num_rows == 1
    return table


@pytest.fixture
def indexed(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    lance.write_dataset({"id": list(range(200_000))}, uri).create_scalar_index("id", "BTREE")
    return uri


@pytest.mark.parametrize(
    "options",
    [{"index_cache_size_bytes": 200_000}, {"index_cache_backend": "moka://?capacity=200000"}],
    ids=["size", "backend"],
)
def test_a_session_keeps_to_the_limit_of_its_index_cache(
    indexed: str, options: dict[str, Any]
) -> None:
    session = lance.Session(**options)
    searched(indexed, session=session)
    assert 0 < session.index_cache_size_bytes() <= 200_000


def test_a_session_without_a_limit_caches_more_of_the_same_index(indexed: str) -> None:
    assert searched(indexed).session().index_cache_size_bytes() > 200_000


def test_the_limit_of_a_dataset_holds_for_its_other_versions(indexed: str) -> None:
    table = searched(indexed, index_cache_size_bytes=200_000)
    assert table.checkout_version(table.version).session() is table.session()


def test_a_limit_of_zero_caches_no_metadata(indexed: str) -> None:
    session = lance.Session(metadata_cache_size_bytes=0)
    lance.dataset(indexed, session=session).to_table()
    assert session.size_bytes() == session.index_cache_size_bytes()
