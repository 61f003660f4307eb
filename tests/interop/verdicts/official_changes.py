"""Changes of one small table that are judged pairwise; runs inside official releases."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance as typed_lance
import pyarrow as pa
from lance.dataset import Index, LanceOperation
from lance.file import LanceFileWriter
from lance.fragment import DataFile, FragmentMetadata, write_fragments

try:
    from lance import mem_wal
except ImportError:  # older releases have none
    mem_wal = None

lance: Any = typed_lance  # releases differ in their annotations
Op: Any = LanceOperation
KEPT = {"preserves_nullability": True}
IS_LATER = "preserves_nullability" in Op.Merge.__dataclass_fields__

REGION_A = "aaaaaaaa-0000-4000-8000-000000000000"
REGION_B = "bbbbbbbb-0000-4000-8000-000000000000"

SCHEMA = pa.schema(
    [
        pa.field(
            "id",
            pa.int64(),
            nullable=False,
            metadata={"lance-schema:unenforced-primary-key": "true"},
        ),
        pa.field("value", pa.int32()),
        pa.field("text", pa.string()),
    ]
)


@dataclass(frozen=True)
class Change:
    """A change of the table's latest version.

    `knows_rows` says that it carries the rows it takes; `is_official` that the release makes it.
    """

    make: Callable[[str], None]
    knows_rows: bool = False
    is_official: bool = True


def table(first: int, count: int) -> pa.Table:
    """Return rows with consecutive ids."""
    ids = list(range(first, first + count))
    texts = [str(i) for i in ids]
    return pa.table([pa.array(ids, pa.int64()), pa.array(ids, pa.int32()), texts], schema=SCHEMA)


class Workshop:
    """A table of two fragments with ten rows each, and files for changes of it."""

    def __init__(
        self,
        root: Path,
        *,
        stable_row_ids: bool = False,
        is_indexed: bool = False,
        has_mem_wal: bool = False,
    ) -> None:
        """Write the table, and what else the scene asks for."""
        self.root = root
        self.has_stable_row_ids = stable_row_ids
        self._numbers = 0
        (root / "data").mkdir(parents=True)
        lance.LanceDataset.commit(
            str(root),
            Op.Overwrite(SCHEMA, [self._fragment(0), self._fragment(10)]),
            enable_stable_row_ids=stable_row_ids,
        )
        if is_indexed:
            lance.dataset(str(root)).create_scalar_index("value", "BTREE")
        self.first, self.second = lance.dataset(str(root)).get_fragments()
        if has_mem_wal:
            lance.dataset(str(root)).initialize_mem_wal(unsharded=True)
        self.version = lance.dataset(str(root)).version

    def _fragment(self, first: int) -> FragmentMetadata:
        """Write a fragment with a file for each column: only whole files can be replaced."""
        columns = enumerate(table(first, 10).columns)
        files = [self.column(field, values.combine_chunks()) for field, values in columns]
        return FragmentMetadata(0, files, 10)

    def rows(self, first: int = 1000, count: int = 10) -> list[Any]:
        """Write fragments that no version refers to."""
        return write_fragments(table(first, count), str(self.root), data_storage_version="2.1")

    def numbered(self, number: int) -> list[Any]:
        """Write a fragment with an id."""
        made = self.rows()
        made[0].id = number
        return made

    def column(self, field: int, values: pa.Array) -> DataFile:
        """Write one column."""
        self._numbers += 1
        path = self.root / "data" / f"column-{self._numbers}.lance"
        with LanceFileWriter(str(path), version="2.1") as writer:
            writer.write_batch(pa.table({"c": values}))
        return DataFile(path.name, [field], [0], 2, 1, path.stat().st_size)

    def replacement(self, field: int, fragment: int) -> Any:
        """Replace one column of one fragment."""
        values = pa.array([1] * 10, pa.int32()) if field == 1 else pa.array(["x"] * 10)
        group = Op.DataReplacementGroup(fragment, self.column(field, values))
        return Op.DataReplacement([group])

    def widened(self) -> tuple[list[Any], Any]:
        """Write a further column for all fragments."""
        parts = [
            fragment.merge_columns(
                lambda batch: pa.record_batch(
                    [pa.array([None] * len(batch), pa.int32())], names=["added"]
                )
            )
            for fragment in (self.first, self.second)
        ]
        return [fragment for fragment, _ in parts], parts[0][1]

    def narrowed(self) -> Any:
        """Return the schema without the last column."""
        place = f"{self.root}-narrowed"
        lance.write_dataset(table(0, 1).select(["id", "value"]), place, data_storage_version="2.1")
        return lance.dataset(place).lance_schema


def operations(shop: Workshop) -> dict[str, Any]:
    """Return the changes that `LanceDataset.commit` takes as they are."""
    fragments, wider = shop.widened()
    narrower = shop.narrowed()
    found = {
        "append": Op.Append(shop.rows()),
        "overwrite": Op.Overwrite(SCHEMA, shop.rows()),
        "overwrite, other schema": _other_schema(shop),
        "merge, a column": Op.Merge(fragments, wider),
        "project, without text": Op.Project(narrower),
        "restore": Op.Restore(shop.version),
        "replace value in 0": shop.replacement(1, 0),
        "replace value in 1": shop.replacement(1, 1),
        "replace text in 0": shop.replacement(2, 0),
        **_row_operations(shop),
        **_index_operations(shop.version),
        **_settings(),
    }
    if IS_LATER:
        found["merge, a column, nulls as before"] = Op.Merge(fragments, wider, **KEPT)
        found["project, without text, nulls as before"] = Op.Project(narrower, **KEPT)
    return found


def _other_schema(shop: Workshop) -> Any:
    rows = pa.table({"other": pa.array([1, 2, 3], pa.int64())})
    made = write_fragments(rows, f"{shop.root}-other", data_storage_version="2.1")
    for file in (Path(f"{shop.root}-other") / "data").iterdir():
        shutil.copy(file, shop.root / "data")
    return Op.Overwrite(rows.schema, made)


def _row_operations(shop: Workshop) -> dict[str, Any]:
    first, second = shop.first, shop.second

    def update(fragment: Any, where: str) -> Any:
        return Op.Update(
            updated_fragments=[fragment.delete(where)],
            new_fragments=shop.rows(2000, 2),
            fields_for_preserving_frag_bitmap=[1],
        )

    def rewrite(fragment: Any, number: int) -> Any:
        return Op.Rewrite([Op.RewriteGroup([fragment.metadata], shop.numbered(number))], [])

    both = Op.RewriteGroup([first.metadata, second.metadata], shop.numbered(12))
    rewrites = {
        "rewrite 0": rewrite(first, 10),
        "rewrite 1": rewrite(second, 11),
        "rewrite 0 and 1": Op.Rewrite([both], []),
    }
    return {
        # The row ids of rewritten rows cannot be given through this class.
        **({} if shop.has_stable_row_ids else rewrites),
        "delete some of 0": Op.Delete([first.delete("id in (1, 2)")], [], "p"),
        "delete others of 0": Op.Delete([first.delete("id in (3, 4)")], [], "p"),
        "delete some of 1": Op.Delete([second.delete("id in (13, 14)")], [], "p"),
        "delete 0": Op.Delete([], [0], "p"),
        "update some of 0": update(first, "id in (1, 2)"),
        "update some of 1": update(second, "id in (13, 14)"),
        "update 0": Op.Update(removed_fragment_ids=[0], new_fragments=shop.rows()),
        "insert by update": Op.Update(new_fragments=shop.rows(3000)),
    }


def _index_operations(version: int) -> dict[str, Any]:
    def index(name: str, field: int, *covered: int) -> Index:
        return Index(
            uuid=str(uuid.uuid4()),
            name=name,
            fields=[field],
            dataset_version=version,
            fragment_ids=set(covered),
            index_version=0,
        )

    by_value = index("by_value", 1, 0)
    return {
        "index value of 0": Op.CreateIndex([by_value], []),
        "index value of 1, same name": Op.CreateIndex([index("by_value", 1, 1)], []),
        "index text of 1": Op.CreateIndex([index("by_text", 2, 1)], []),
        "index value removed": Op.CreateIndex([], [by_value]),
    }


def _settings() -> dict[str, Any]:
    def setting(kind: str, values: dict[str, str | None], *, replace: bool = False) -> Any:
        return Op.UpdateConfig(**{f"{kind}_updates": Op.UpdateMap(values, replace)})

    def of_field(number: int) -> Any:
        return Op.UpdateConfig(field_metadata_updates={number: Op.UpdateMap({"a": "1"})})

    return {
        "config a": setting("config", {"a": "1"}),
        "config a removed": setting("config", {"a": None}),
        "config b": setting("config", {"b": "1"}),
        "config replaced": setting("config", {"c": "1"}, replace=True),
        "table metadata a": setting("table_metadata", {"a": "1"}),
        "table metadata b": setting("table_metadata", {"b": "1"}),
        "schema metadata a": setting("schema_metadata", {"a": "1"}),
        "schema metadata b": setting("schema_metadata", {"b": "1"}),
        "metadata of value": of_field(1),
        "metadata of text": of_field(2),
    }


def _upserted(ds: Any, rows: pa.Table, merged: tuple[tuple[str, int], ...]) -> None:
    builder = ds.merge_insert("id").when_matched_update_all()
    if rows.num_columns == len(SCHEMA):
        builder = builder.when_not_matched_insert_all()
    if merged:
        marks = [mem_wal.CompactedSsTable(*mark) for mark in merged]
        builder = builder.mark_sstables_as_compacted(marks)
    builder.conflict_retries(0).execute(rows)


def calls(shop: Workshop) -> dict[str, Change]:
    """Return the changes that a method makes, on a handle that stays at the first version."""

    def call(function: Callable[[Any], Any], *, knows_rows: bool = False) -> Change:
        def make(uri: str) -> None:
            function(lance.dataset(uri, version=shop.version))

        return Change(make, knows_rows)

    def delete(where: str) -> Change:
        return call(lambda ds: ds.delete(where, conflict_retries=0), knows_rows=True)

    def update(where: str) -> Change:
        return call(
            lambda ds: ds.update({"value": "7"}, where, conflict_retries=0), knows_rows=True
        )

    def upsert(rows: pa.Table, *merged: tuple[str, int]) -> Change:
        return call(lambda ds: _upserted(ds, rows, merged), knows_rows=True)

    def base(name: str) -> Change:
        value = lance.DatasetBasePath(f"{shop.root}-{name}", name)
        return call(lambda ds: ds.add_bases([value]))

    def compact(**options: Any) -> Change:
        return call(lambda ds: ds.optimize.compact_files(target_rows_per_fragment=1000, **options))

    return {
        "delete() 1, 2": delete("id in (1, 2)"),
        "delete() 3, 4": delete("id in (3, 4)"),
        "delete() 13": delete("id = 13"),
        "delete() all of 0": delete("id < 10"),
        "delete() none": delete("id = 99"),
        "update() 1, 2": update("id in (1, 2)"),
        "update() 3, 4": update("id in (3, 4)"),
        "update() 13": update("id = 13"),
        "upsert 1": upsert(table(1, 1)),
        "upsert 3": upsert(table(3, 1)),
        "upsert 1, two columns": upsert(table(1, 1).select(["id", "value"])),
        "upsert 19 to 22": upsert(table(19, 4)),
        "upsert 100 to 104": upsert(table(100, 5)),
        "upsert 200 to 204": upsert(table(200, 5)),
        "upsert 100 to 104, A at 1": upsert(table(100, 5), (REGION_A, 1)),
        "upsert 100 to 104, A at 2": upsert(table(100, 5), (REGION_A, 2)),
        "upsert 200 to 204, A at 1": upsert(table(200, 5), (REGION_A, 1)),
        "upsert 200 to 204, B at 1": upsert(table(200, 5), (REGION_B, 1)),
        "compact": compact(),
        "compact, indices later": compact(defer_index_remap=True),
        "create_scalar_index value": call(lambda ds: ds.create_scalar_index("value", "BTREE")),
        "create_scalar_index text": call(lambda ds: ds.create_scalar_index("text", "BITMAP")),
        "add_columns": call(lambda ds: ds.add_columns({"added": "value + 1"})),
        "add null column": call(lambda ds: ds.add_columns(pa.field("added", pa.int32()))),
        "drop_columns text": call(lambda ds: ds.drop_columns(["text"])),
        "rename text": call(lambda ds: ds.alter_columns({"path": "text", "name": "words"})),
        "cast value": call(lambda ds: ds.alter_columns({"path": "value", "data_type": pa.int64()})),
        "add_bases x": base("x"),
        "add_bases y": base("y"),
    }


def changes(shop: Workshop, ours: list[str]) -> dict[str, Change]:
    """Return all changes by name; `ours` is a command that makes those no release offers."""

    def committed(operation: Any) -> Change:
        return Change(
            lambda uri: (
                lance.LanceDataset.commit(uri, operation, read_version=shop.version) and None
            )
        )

    def progress(region: str) -> Change:
        def make(uri: str) -> None:
            subprocess.run([*ours, uri, region, "1"], check=True)

        return Change(make, is_official=False)

    made = {name: committed(operation) for name, operation in operations(shop).items()}
    marks = {"A at 1": progress(REGION_A), "B at 1": progress(REGION_B)}
    return {**made, **calls(shop), **marks}


def copied(source: Path, target: Path) -> Path:
    """Copy a table; its files never change, so that links will do."""
    shutil.copytree(source, target, copy_function=os.link)
    return target


def verdict(change: Change, uri: Path) -> str:
    """Make a change and tell what the release says to it."""
    try:
        change.make(str(uri))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer
        text = str(error)
        if any(word in text for word in ("Retryable", "preempted", "Too many concurrent writers")):
            return "retry"
        if "ncompatible transaction" in text:
            return "conflict"
        # Official errors end with the place in its source.
        said = text.splitlines()[0].replace(str(uri), "").partition(", /")[0]
        return f"invalid: {said[:120]}"
    return f"ok, {lance.dataset(str(uri)).count_rows()} rows"


def record(
    root: Path, *, settings: dict[str, bool], chosen: list[str], ours: list[str]
) -> dict[str, Any]:
    """Judge every pair of the chosen changes; leave the table after each one in `root/alone`."""
    shop = Workshop(root / "table", **settings)
    known = {name: change for name, change in changes(shop, ours).items() if name in chosen}
    verdicts: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for number, (theirs, change) in enumerate(known.items()):
        alone = copied(shop.root, root / "alone" / str(number))
        first = verdict(change, alone)
        if not first.startswith("ok"):
            raise AssertionError(f"{theirs} alone: {first}")
        places[theirs] = str(alone)
        verdicts[theirs] = {}
        for mine, other in known.items():
            if not other.is_official:
                continue
            both = copied(alone, root / "both")
            verdicts[theirs][mine] = verdict(other, both)
            shutil.rmtree(both)
    knowing = [name for name, change in known.items() if change.knows_rows]
    return {
        "verdicts": verdicts,
        "alone": places,
        "knowing": knowing,
        "version": shop.version,
    }
