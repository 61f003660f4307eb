"""Operations on a table, and what readers observe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.errors import TableNotFoundError
from tests.support.row_changes import delete_rows

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.int64())])
Work = Callable[[str], object]
Seen = dict[str, Any]


def rows(*ids: int) -> pa.Table:
    """Return rows with these ids."""
    return pa.table([list(ids), [i * 10 for i in ids]], schema=SCHEMA)


def begin(uri: str) -> None:
    """Make a table with two fragments, a deleted row, a setting, a tag and two branches."""
    lance.write_dataset(rows(*range(8)), uri, max_rows_per_file=4)
    delete_rows(uri, "id = 2")
    ds = lance.dataset(uri)
    ds.update_config({"kept": "yes"})
    ds.tags.create("first", 1)
    ds.create_branch("side")
    ds.create_branch("spare")


def clone_of(uri: str) -> str:
    """Return where the clone of a table goes."""
    return str(Path(uri).with_name("clone.lance"))


WORKS: dict[str, Work] = {
    "create": lambda uri: lance.write_dataset(rows(1, 2, 3), clone_of(uri), max_rows_per_file=2),
    "append": lambda uri: lance.write_dataset(rows(20, 21), uri, mode="append"),
    "append to a branch": lambda uri: _on(uri, "side").insert(rows(20)),
    "overwrite": lambda uri: lance.write_dataset(rows(30), uri, mode="overwrite"),
    "delete": lambda uri: lance.dataset(uri).delete("id = 5"),
    "delete a fragment": lambda uri: lance.dataset(uri).delete("id < 4"),
    "delete all": lambda uri: lance.dataset(uri).truncate_table(),
    "update": lambda uri: lance.dataset(uri).update({"value": "value + 7"}, where="id > 2"),
    "merge": lambda uri: _upsert(uri, rows(1, 5, 20)),
    "merge and delete": lambda uri: _replace(uri, rows(1, 20)),
    "merge keys in": lambda uri: _insert_new(uri, rows(1, 20)),
    "add a column": lambda uri: lance.dataset(uri).add_columns({"twice": "value * 2"}),
    "rename a column": lambda uri: lance.dataset(uri).alter_columns(
        {"path": "value", "name": "other"}
    ),
    "cast a column": lambda uri: lance.dataset(uri).alter_columns(
        {"path": "value", "data_type": pa.int32()}
    ),
    "drop a column": lambda uri: lance.dataset(uri).drop_columns(["value"]),
    "restore": lambda uri: lance.dataset(uri, version=1).restore(),
    "config": lambda uri: lance.dataset(uri).update_config({"new": "1"}),
    "metadata": lambda uri: lance.dataset(uri).update_metadata({"new": "1"}),
    "schema metadata": lambda uri: lance.dataset(uri).update_schema_metadata({"new": "1"}),
    "field metadata": lambda uri: lance.dataset(uri).update_field_metadata({"id": {"new": "1"}}),
    "create a tag": lambda uri: lance.dataset(uri).tags.create("second", 2),
    "move a tag": lambda uri: lance.dataset(uri).tags.update("first", 2),
    "remove a tag": lambda uri: lance.dataset(uri).tags.delete("first"),
    "create a branch": lambda uri: lance.dataset(uri).create_branch("new"),
    "branch off a branch": lambda uri: _on(uri, "side").create_branch("new"),
    "remove a branch": lambda uri: lance.dataset(uri).branches.delete("spare"),
    "shallow clone": lambda uri: lance.dataset(uri).shallow_clone(clone_of(uri), 2),
    "deep clone": lambda uri: lance.dataset(uri).deep_clone(clone_of(uri), 2),
    "add a base": lambda uri: lance.dataset(uri).add_bases(
        [lance.DatasetBasePath(str(Path(uri).with_name("base")), name="other")]
    ),
}


def seen(uri: str) -> Seen:
    """Look at a table, its branches, and the clone of it."""
    found = _seen(uri)
    ds = lance.dataset(uri)
    return {
        "table": found,
        "tags": {name: tag["version"] for name, tag in ds.tags.list().items()},
        "branches": {name: _seen(uri, name) for name in ds.branches.list()},
        "clone": _seen(clone_of(uri)),
    }


def _upsert(uri: str, source: pa.Table) -> object:
    merge = lance.dataset(uri).merge_insert("id").when_matched_update_all()
    return merge.when_not_matched_insert_all().execute(source)


def _replace(uri: str, source: pa.Table) -> object:
    merge = lance.dataset(uri).merge_insert("id").when_matched_update({"value": "source.id"})
    merge = merge.when_not_matched_insert_all().when_not_matched_by_source_delete("id > 3")
    return merge.execute(source)


def _insert_new(uri: str, source: pa.Table) -> object:
    return lance.dataset(uri).merge_insert("id").when_not_matched_insert_all().execute(source)


def _on(uri: str, branch: str) -> lance.LanceDataset:
    return lance.dataset(uri).checkout_version((branch, None))


def _seen(uri: str, branch: str | None = None) -> Seen | None:
    try:
        ds = lance.dataset(uri) if branch is None else _on(uri, branch)
    except TableNotFoundError:
        return None
    values = ds.to_table()
    return {
        "version": ds.version,
        "rows": sorted(values.to_pylist(), key=str),
        "schema": ds.schema,
        "config": ds.config(),
        "metadata": ds.metadata,
        "bases": [base.path for base in ds.base_paths().values()],
    }
