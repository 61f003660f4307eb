"""First actions of a user on a table that may be hostile."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.hostile import rich_table

Opened = lance.LanceDataset
_MOST_FINDINGS = 1_000


def _blobs(table: Opened) -> None:
    for blob in table.take_blobs("blob", indices=[0, 1, 2, 3]):
        if blob is not None:
            blob.read(64)


def _batches(table: Opened) -> None:
    for batch in table.to_batches(batch_size=7):
        batch.validate(full=True)


def _check(table: Opened) -> None:
    place = table._snapshot.location
    found = check(Location(uri=place.uri, confine_to=place.confine_to), data=True, versions="all")
    for _ in itertools.islice(found, _MOST_FINDINGS):
        pass


def _branch(table: Opened) -> None:
    table.checkout_version(("side", None)).count_rows()


def _merge(table: Opened) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "text": ["merged"]})
    table.merge_insert("id").when_matched_update_all().execute(rows)


def _clean_up(table: Opened) -> None:
    table.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )


def _add_column(table: Opened) -> None:
    table.add_columns({"more": "id + 1"})


READS: dict[str, Callable[[Opened], object]] = {
    "scan": _batches,
    "row ids": lambda table: table.to_table(
        columns=["id"], with_row_id=True, with_row_address=True
    ),
    "count": lambda table: table.count_rows(),
    "filter": lambda table: table.to_table(columns=["text"], filter="id > 2 AND text IS NOT NULL"),
    "take": lambda table: table.take([0, 5, 20]),
    "blobs": _blobs,
    "schema": lambda table: (table.schema, str(table.lance_schema)),
    "versions": lambda table: table.versions(),
    "transactions": lambda table: table.get_transactions(),
    "tags": lambda table: table.tags.list(),
    "branches": lambda table: table.branches.list(),
    "tag": lambda table: table.checkout_version("first").count_rows(),
    "branch": _branch,
    "statistics": lambda table: table.stats.dataset_stats(),
    "indices": lambda table: table.describe_indices(),
    "changes": lambda table: table.delta(begin_version=1, end_version=table.version),
    "check": _check,
}
WRITES: dict[str, Callable[[Opened], object]] = {
    "append": lambda table: table.insert(rich_table.rows(100, 101)),
    "delete": lambda table: table.delete("id = 7"),
    "update": lambda table: table.update({"text": "'x'"}, where="id = 8"),
    "merge": _merge,
    "add column": _add_column,
    "config": lambda table: table.update_config({"a": "b"}),
    "tag it": lambda table: table.tags.create("late", table.version),
    "compact": lambda table: table.optimize.compact_files(),
    "branch it": lambda table: table.create_branch("another"),
    "cleanup": _clean_up,
    "remove branch": lambda table: table.branches.delete("side"),
}


def attempt(name: str, act: Callable[[Opened], object], uri: str, **how: Any) -> Outcome:
    """Do something with a table; `how` is that of `dataset`."""
    try:
        act(lance.dataset(uri, **how))
    except LanceTableError as error:
        return Outcome(name=name, is_typed=True, text=f"{type(error).__name__}: {error}")
    except BaseException as error:  # a panic of Rust code is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} at {where.filename}:{where.lineno}"
        return Outcome(name=name, is_typed=False, text=text)
    return Outcome(name=name, is_typed=True, text="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an action; no text when it succeeded."""

    name: str
    is_typed: bool
    text: str
