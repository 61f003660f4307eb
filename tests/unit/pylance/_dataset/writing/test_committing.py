from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance.commit import CommitConflictError
from lancelake.pylance.fragment import write_fragments

ROWS = pa.table({"a": [1, 2]})
Append = lance.LanceOperation.Append


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path)


def _commit(table: lance.LanceDataset, **options: Any) -> lance.LanceDataset:
    fragments: Any = write_fragments(ROWS, table)
    return lance.LanceDataset.commit(table, Append(fragments), table.version, **options)


def test_a_lock_is_asked_for_the_version(table: lance.LanceDataset) -> None:
    seen: list[int] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        seen.append(version)
        yield

    made = _commit(table, commit_lock=lock)
    lance.write_dataset(ROWS, made, mode="append", commit_lock=lock)
    assert seen == [2, 3]


def test_a_lock_that_is_taken_for_good_is_a_conflict(table: lance.LanceDataset) -> None:
    def lock(version: int) -> AbstractContextManager[None]:
        raise CommitConflictError(f"another has {version}")

    with pytest.raises(CommitConflictError) as caught:
        _commit(table, commit_lock=lock, max_retries=1)
    assert caught.value.retryable
    assert table.latest_version == 1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"commit_lock": 5}, TypeError),
        ({"commit_timeout": 5}, TypeError),
        ({"commit_timeout": timedelta(0)}, InvalidRequestError),
        ({"commit_timeout": timedelta(seconds=-1)}, InvalidRequestError),
        ({"max_retries": -1}, InvalidRequestError),
        ({"storage_options_provider": object()}, UnsupportedError),
        ({"namespace": object()}, UnsupportedError),
        ({"foo": 1}, TypeError),
    ],
)
def test_options_that_make_no_sense_are_refused(
    table: lance.LanceDataset, options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        _commit(table, **options)
    assert table.latest_version == 1


def test_a_commit_may_take_as_long_as_it_takes(table: lance.LanceDataset) -> None:
    assert _commit(table, commit_timeout=None).version == 2


def test_only_operations_and_transactions_are_committed(table: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match="operation must be a LanceOperation"):
        lance.LanceDataset.commit(table, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="base_uri must be str, Path, or LanceDataset"):
        lance.LanceDataset.commit(7, Append([]), 1)  # type: ignore[arg-type]


def test_only_appends_are_committed_in_a_batch(table: lance.LanceDataset) -> None:
    anew: Any = write_fragments(ROWS, table, mode="overwrite", return_transaction=True)
    with pytest.raises(UnsupportedError, match="Only append transactions"):
        lance.LanceDataset.commit_batch(table, [anew])
    with pytest.raises(InvalidRequestError, match="No transactions"):
        lance.LanceDataset.commit_batch(table, [])


def test_the_version_that_was_read_must_be_named_beside_a_dataset(
    table: lance.LanceDataset,
) -> None:
    fragments: Any = write_fragments(ROWS, table)
    with pytest.raises(ValueError, match="read_version is required"):
        lance.LanceDataset.commit(table, Append(fragments))
    assert table.latest_version == 1
