"""A table of keyed rows changed step by step, next to a simple model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

Face = Any  # `lance` or `lancelake.pylance`, which name things alike
Row = dict[str, Any]

CREATED, UPDATED = "_row_created_at_version", "_row_last_updated_at_version"
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int32()), ("s", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A row by its key: values, id once it is known, and when it was made and last changed."""

    values: Mapping[str, Any]
    row_id: int | None
    created: int
    updated: int


Model = dict[int, ModelRow]


@dataclass(slots=True)
class Past:
    """A table at every version so far; `models[n]` is what version n should hold."""

    uri: str
    models: list[Model] = field(default_factory=lambda: [{}])
    schemas: list[pa.Schema] = field(default_factory=lambda: [SCHEMA])
    next_key: int = 0

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.models) - 1

    @property
    def model(self) -> Model:
        """What the newest version should hold."""
        return self.models[-1]

    @property
    def columns(self) -> list[str]:
        """Columns of the newest version."""
        return list(self.schemas[-1].names)

    def add(self, model: Model, schema: pa.Schema | None = None) -> None:
        """Take note of the next version."""
        self.models.append(model)
        self.schemas.append(self.schemas[-1] if schema is None else schema)

    def fresh(self, count: int) -> list[int]:
        """Return keys that no row ever had."""
        keys = list(range(self.next_key, self.next_key + count))
        self.next_key += count
        return keys

    def inserted(self, values: Row) -> ModelRow:
        """Return a row that the next version makes."""
        version = self.version + 1
        whole = {name: values.get(name) for name in self.columns}
        return ModelRow(values=whole, row_id=None, created=version, updated=version)

    def changed(self, row: ModelRow, values: Row) -> ModelRow:
        """Return a row that the next version changes."""
        return replace(row, values={**row.values, **values}, updated=self.version + 1)


def rows_of(past: Past, keys: list[int], seed: int) -> list[Row]:
    """Return whole rows for keys; the seed makes them differ from others of the same key."""
    names = past.columns
    full = {k: {"k": k, "v": (k * 7 + seed) % 50, "s": f"s{seed}-{k % 3}"} for k in keys}
    return [{n: v for n, v in full[k].items() if n in names} for k in keys]


def table_of(past: Past, rows: list[Row]) -> pa.Table:
    """Return rows as a table with the columns they name."""
    named = set(rows[0]) if rows else set(past.columns)
    fields = [f for f in past.schemas[-1] if f.name in named]
    return pa.Table.from_pylist(rows, pa.schema(fields))


@dataclass(frozen=True, slots=True)
class Append:
    """Add rows."""

    count: int
    seed: int
    per_file: int = 3

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        rows = rows_of(past, past.fresh(self.count), self.seed)
        mode = "append" if past.version else "create"
        options = {"enable_stable_row_ids": True} if mode == "create" else {}
        table = table_of(past, rows)
        face.write_dataset(table, past.uri, mode=mode, max_rows_per_file=self.per_file, **options)
        past.add({**past.model, **{r["k"]: past.inserted(r) for r in rows}})


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace all rows."""

    count: int
    seed: int

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        rows = rows_of(past, past.fresh(self.count), self.seed)
        table = table_of(past, rows)
        face.write_dataset(table, past.uri, mode="overwrite", max_rows_per_file=3)
        version = past.version + 1
        past.add(
            {
                r["k"]: ModelRow(values=r, row_id=None, created=version, updated=version)
                for r in rows
            },
            table.schema,
        )


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete every n-th key."""

    every: int
    rest: int

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        dataset = face.dataset(past.uri)
        dataset.delete(f"k % {self.every} = {self.rest}")
        if dataset.version == past.version:
            return
        past.add({k: r for k, r in past.model.items() if k % self.every != self.rest})


@dataclass(frozen=True, slots=True)
class Update:
    """Change every n-th key."""

    every: int
    rest: int
    value: int

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        where = f"k % {self.every} = {self.rest}"
        hit = {k for k in past.model if k % self.every == self.rest}
        dataset = face.dataset(past.uri)
        result = dataset.update({"v": str(self.value)}, where=where)
        assert result["num_rows_updated"] == len(hit)
        if dataset.version == past.version:
            return
        past.add(
            {
                k: past.changed(r, {"v": self.value}) if k in hit else r
                for k, r in past.model.items()
            }
        )


@dataclass(frozen=True, slots=True)
class Upsert:
    """Merge some rows that are there and some that are not."""

    every: int
    rest: int
    count: int
    seed: int

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        old = [k for k in past.model if k % self.every == self.rest]
        rows = rows_of(past, [*old, *past.fresh(self.count)], self.seed)
        if not rows:
            return
        names = past.columns
        whole: list[Row] = [{name: r.get(name) for name in names} for r in rows]
        merge = face.dataset(past.uri).merge_insert("k")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(table_of(past, whole))
        model = dict(past.model)
        for row in whole:
            known = past.model.get(row["k"])
            model[row["k"]] = past.inserted(row) if known is None else past.changed(known, row)
        past.add(model)


@dataclass(frozen=True, slots=True)
class UpdatePart:
    """Merge a part of the columns of rows that are there."""

    every: int
    rest: int
    seed: int

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        old = [k for k in past.model if k % self.every == self.rest]
        if not old:
            return
        part: list[Row] = [{"k": k, "v": (k + self.seed) % 90} for k in old]
        merge = face.dataset(past.uri).merge_insert("k")
        merge.when_matched_update_all().execute(table_of(past, part))
        values = {row["k"]: row for row in part}
        rows = past.model.items()
        past.add({k: past.changed(r, values[k]) if k in values else r for k, r in rows})


@dataclass(frozen=True, slots=True)
class Compact:
    """Put small fragments together."""

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        face.dataset(past.uri).optimize.compact_files(target_rows_per_fragment=100)
        for _ in range(face.dataset(past.uri).version - past.version):
            past.add(past.model)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a computed column."""

    name: str

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        if self.name in past.columns:
            return
        face.dataset(past.uri).add_columns({self.name: "k * 2"})
        schema = past.schemas[-1].append(pa.field(self.name, pa.int64()))
        past.add({k: past.changed(r, {self.name: k * 2}) for k, r in past.model.items()}, schema)


@dataclass(frozen=True, slots=True)
class AddEmptyColumn:
    """Add a column without values."""

    name: str

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        if self.name in past.columns:
            return
        added = pa.field(self.name, pa.float64())
        face.dataset(past.uri).add_columns(added)
        rows = past.model.items()
        model = {k: replace(r, values={**r.values, self.name: None}) for k, r in rows}
        past.add(model, past.schemas[-1].append(added))


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Remove a column."""

    name: str

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        if self.name not in past.columns:
            return
        face.dataset(past.uri).drop_columns([self.name])
        schema = pa.schema([f for f in past.schemas[-1] if f.name != self.name])
        model = {
            k: replace(r, values={n: v for n, v in r.values.items() if n != self.name})
            for k, r in past.model.items()
        }
        past.add(model, schema)


@dataclass(frozen=True, slots=True)
class Widen:
    """Give a column another type, which writes it anew."""

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        schema = past.schemas[-1]
        if schema.field("v").type == pa.int64():
            return
        face.dataset(past.uri).alter_columns({"path": "v", "data_type": pa.int64()})
        wider = schema.set(schema.get_field_index("v"), pa.field("v", pa.int64()))
        past.add({k: past.changed(r, {}) for k, r in past.model.items()}, wider)


@dataclass(frozen=True, slots=True)
class Restore:
    """Make an old version the newest; the share says how old."""

    share: float

    def __call__(self, face: Face, past: Past) -> None:
        """Do it, and say what should come of it."""
        target = 1 + int(self.share * (past.version - 1))
        face.dataset(past.uri, version=target).restore()
        past.add(past.models[target], past.schemas[target])


Step = (
    Append
    | Overwrite
    | Delete
    | Update
    | Upsert
    | UpdatePart
    | Widen
    | Compact
    | AddColumn
    | AddEmptyColumn
    | DropColumn
    | Restore
)


def learn_ids(past: Past, found: Mapping[int, Row]) -> None:
    """Take note of the ids that rows which the newest version made have got."""
    version = past.version
    for key, row in past.models[version].items():
        if row.row_id is None and key in found:
            past.models[version][key] = replace(row, row_id=found[key]["_rowid"])
