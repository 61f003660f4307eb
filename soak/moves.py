"""Execute each operation with a pylance-compatible library.

A move takes the newest version and the arguments that were drawn for it, and returns the version it
made, if any, with what the library says about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from soak.journal import Journal
from soak.table import COLUMN, plain, rows_for

Outcome = tuple[int | None, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A library, the table it works on, and the log."""

    lance: Any  # lancelake.pylance or an official release
    uri: str
    options: dict[str, str] | None
    journal: Journal

    def open(self, version: int | str | None = None) -> Any:
        """Open the newest version, or another."""
        return self.lance.dataset(self.uri, version=version, storage_options=self.options)

    def read(self, ds: Any, how: str, **scan: Any) -> None:
        """Scan a version and return its content."""
        rows, columns = plain(ds.to_table(**scan))
        self.journal.read(ds.version, rows, columns, how)


Move = Callable[[Place, Any, str, dict[str, Any]], Outcome]


def append(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Add rows."""
    rows = rows_for(ds.schema, args["ids"], args["value"], op)
    made = place.lance.write_dataset(rows, place.uri, mode="append", storage_options=place.options)
    return made.version, {}


def delete(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Delete rows by key."""
    result = ds.delete(where(args["ids"]))
    return ds.version, {"rows": (result or {}).get("num_deleted_rows")}


def update(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Add to the values of some rows."""
    updates = {"v": f"v + {args['add']}", "by": f"'{op}'"}
    result = ds.update(updates, where=where(args["ids"]))
    return ds.version, {"rows": result["num_rows_updated"]}


def transfer(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Move a value from one account to another."""
    source, target, amount = args["source"], args["target"], args["amount"]
    # Official releases know no CASE here; the quotient is -1 for the smaller key, 1 for the other.
    side = f"(2 * id - {source + target}) / {abs(target - source)}"
    value = f"v {'+' if target > source else '-'} {amount} * ({side})"
    result = ds.update({"v": value, "by": f"'{op}'"}, where=where([source, target]))
    return ds.version, {"rows": result["num_rows_updated"]}


def upsert(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Write rows by key, whether they are there or not."""
    rows = rows_for(ds.schema, args["ids"], args["value"], op)
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute(rows)
    return ds.version, {
        "inserted": result["num_inserted_rows"],
        "updated": result["num_updated_rows"],
    }


def insert(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Write rows whose keys are not there."""
    rows = rows_for(ds.schema, args["ids"], args["value"], op)
    result = ds.merge_insert("id").when_not_matched_insert_all().execute(rows)
    return ds.version, {"rows": result["num_inserted_rows"]}


def add_column(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Add a column that is computed from others."""
    ds.add_columns({args["name"]: COLUMN})
    return ds.version, {}


def drop_column(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Drop a column."""
    ds.drop_columns([args["name"]])
    return ds.version, {}


def compact(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Write small fragments together."""
    ds.optimize.compact_files(**args)
    return ds.version, {}


def cleanup(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Remove versions that are older than some seconds, but for those with a name."""
    ds.cleanup_old_versions(
        older_than=timedelta(seconds=args["seconds"]), error_if_tagged_old_versions=False
    )
    return None, {}


def tag(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Name the newest version."""
    ds.tags.create(args["name"], args["version"])
    return None, {}


def branch(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Begin a branch, and write to it."""
    made = ds.create_branch(args["name"], args["version"])
    rows = rows_for(made.schema, args["ids"], 0, op)
    grown = place.lance.write_dataset(rows, made.uri, mode="append", storage_options=place.options)
    return None, {"uri": made.uri, "rows": plain(grown.to_table())[0]}


def restore(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Restore an old version as the newest."""
    old = place.open(args["version"])
    old.restore()
    return old.version, {}


def create_index(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Index a column, in place of an index of the same name."""
    ds.create_scalar_index(args["column"], args["kind"], name=args["name"], replace=True)
    return ds.version, {}


def refresh_index(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Add the rows that the indices do not cover."""
    before = ds.version
    ds.optimize.optimize_indices(**args)
    return (ds.version if ds.version > before else None), {}


def drop_index(_: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Drop an index."""
    ds.drop_index(args["name"])
    return ds.version, {}


def filtered(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Read the newest version in two parts, by a filter and by its opposite, and as a whole."""
    text = args["filter"]
    parts = [ds.to_table(filter=where) for where in (text, f"NOT ({text})")]
    found = [plain(part) for part in parts]
    rows = [row for part, _ in found for row in part]
    counts = [columns for _, columns in found]
    columns = {
        name: [a + b for a, b in zip(n, counts[1][name], strict=True)]
        for name, n in counts[0].items()
    }
    place.journal.read(ds.version, rows, columns, f"filter {text}")
    place.read(ds, "without indices", use_scalar_index=False)
    return ds.version, {}


def scan(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Read the newest version."""
    place.read(ds, "scan")
    return ds.version, {}


def pinned(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Read a version twice, with other versions made in between."""
    old = place.open(args["version"])
    place.read(old, "pinned")
    place.open()
    place.read(old, "pinned again", batch_size=7)
    return old.version, {}


def travel(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Read what a tag names."""
    old = place.open(args["tag"])
    place.read(old, "tag")
    return old.version, {}


def changes(place: Place, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Ask the change feed what happened."""
    feed(place, ds, args["begin"], args["end"])
    return None, {}


MOVES: dict[str, Move] = {
    move.__name__: move
    for move in (
        append,
        delete,
        update,
        transfer,
        upsert,
        insert,
        add_column,
        drop_column,
        compact,
        cleanup,
        tag,
        branch,
        restore,
        create_index,
        refresh_index,
        drop_index,
        filtered,
        scan,
        pinned,
        travel,
        changes,
    )
}


def feed(place: Place, ds: Any, begin: int, end: int) -> None:
    """Tell what the change feed says between two versions."""
    names = ("_change_type", "_commit_version", "id", "v", "by")
    found = ds.changes(begin, end, columns=["id", "v", "by"]).read_all()
    columns = [found[name].to_pylist() for name in names]
    place.journal.feed(begin, end, [list(row) for row in zip(*columns, strict=True)])


def where(ids: Iterable[int]) -> str:
    """Return the predicate that holds for some keys."""
    return f"id IN ({', '.join(map(str, ids))})"
