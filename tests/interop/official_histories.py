"""Histories written by official releases, with steps for every operation they support."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lancelake.format import index_meta, layout
from lancelake.format.manifest import ManifestFile, decode_manifest
from lancelake.format.operations import Transaction, decode_transaction
from lancelake.txn.options import TableState
from tests.support.official import Official

SETUP = """
import pathlib
from lance.file import LanceFileWriter
from lance.fragment import DataFile, write_fragments

def rows(start, stop):
    ids = list(range(start, stop))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"name {i}" for i in ids]),
            "point": pa.array([{"x": float(i), "y": -float(i)} for i in ids]),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array([float(i % 7) for i in range(start * 4, stop * 4)], pa.float32()), 4
            ),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("name", pa.string()),
                pa.field("point", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
                pa.field("vector", pa.list_(pa.float32(), 4)),
            ],
            metadata={"owner": "history"},
        ),
    )

def opened():
    return lance.dataset(uri)

def fit(table):
    schema = opened().schema
    columns = [
        table[f.name].cast(f.type) if f.name in table.column_names else pa.nulls(len(table), f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)

def commit(operation, **options):
    return lance.LanceDataset.commit(
        uri, operation, read_version=opened().version, **options
    )

def column_file(fragment, fields, values):
    name = f"column-{opened().version}-{fragment.fragment_id}.lance"
    path = pathlib.Path(uri) / "data" / name
    with LanceFileWriter(str(path), version="2.1") as writer:
        writer.write_batch(values)
    columns = list(range(len(fields)))
    return DataFile(name, fields, columns, 2, 1, path.stat().st_size)

def replace_data(names, ids, value):
    groups = []
    for fragment in opened().get_fragments():
        length = fragment.physical_rows
        values = pa.table({n: pa.array([value] * length) for n in names})
        file = column_file(fragment, ids, values)
        groups.append(lance.LanceOperation.DataReplacementGroup(fragment.fragment_id, file))
    commit(lance.LanceOperation.DataReplacement(groups))
"""

CREATE = (
    "lance.write_dataset(rows(0, 100), uri, data_storage_version='2.1', max_rows_per_file=40{})"
)

STEPS: dict[str, str] = {
    "append": "lance.write_dataset(fit(rows(100, 150)), uri, mode='append')",
    "append nothing": "lance.write_dataset(fit(rows(0, 0)), uri, mode='append')",
    "delete rows": "opened().delete('id in (3, 5, 70)')",
    "delete more rows": "opened().delete('id in (4, 110)')",
    "delete nothing": "opened().delete('id < 0')",
    "delete a fragment": "opened().delete('id >= 40 and id < 80')",
    "btree": "opened().create_scalar_index('id', 'BTREE')",
    "bitmap": "opened().create_scalar_index('name', 'BITMAP')",
    "zonemap": "opened().create_scalar_index('id', 'ZONEMAP', name='zones')",
    "vector index": "opened().create_index('vector', 'IVF_FLAT', num_partitions=1)",
    "index again": "opened().create_scalar_index('name', 'BITMAP', replace=True)",
    "optimize indices": "opened().optimize.optimize_indices()",
    "drop index": "opened().drop_index('name_idx')",
    "update rows": "opened().update({'name': \"'x'\"}, where='id % 3 = 0')",
    "update a key": "opened().update({'id': 'id + 1000'}, where='id < 10')",
    "upsert": "opened().merge_insert('id').when_matched_update_all()"
    ".when_not_matched_insert_all().execute(fit(rows(90, 160)))",
    "upsert inserts": "opened().merge_insert('id').when_not_matched_insert_all()"
    ".execute(fit(rows(140, 170)))",
    "upsert deletes": "opened().merge_insert('id').when_not_matched_by_source_delete()"
    ".execute(fit(rows(0, 60)))",
    "upsert part": "opened().merge_insert('id').when_matched_update_all()"
    ".execute(rows(0, 60).select(['id', 'name']))",
    "add column": "opened().add_columns({'extra': 'nullif(cast(id as int), 3)'})",
    "add null column": "opened().add_columns(pa.field('later', pa.int32()))",
    "fill null column": "replace_data(['later'], [opened().lance_schema.field('later').id()], 1)",
    "replace column": "replace_data(['extra'], [opened().lance_schema.field('extra').id()], 7)",
    "replace name": "replace_data(['name'], [opened().lance_schema.field('name').id()], 'same')",
    "rename column": "opened().alter_columns({'path': 'point', 'name': 'spot'})",
    "cast column": "opened().alter_columns({'path': 'extra', 'data_type': pa.int64()})",
    "drop column": "opened().drop_columns(['point'])",
    "drop shared column": "opened().drop_columns(['vector'])",
    "config": "opened().update_config({'some': '1', 'other': '2'})",
    "config keys": "opened().delete_config_keys(['other'])",
    "table metadata": "opened().update_metadata({'about': 'test'})",
    "schema metadata": "opened().update_schema_metadata({'k': 'v'})",
    "replace schema metadata": "opened().replace_schema_metadata({'only': 'this'})",
    "field metadata": "opened().update_field_metadata({'name': {'note': 'text'}})",
    "primary key": "opened().update_field_metadata("
    "{'id': {'lance-schema:unenforced-primary-key': 'true'}})",
    "compact": "opened().optimize.compact_files(target_rows_per_fragment=1000)",
    "compact later": "opened().optimize.compact_files("
    "target_rows_per_fragment=1000, defer_index_remap=True)",
    "restore": "lance.dataset(uri, version=2).restore()",
    "restore first": "lance.dataset(uri, version=1).restore()",
    "overwrite": "lance.write_dataset(rows(0, 10), uri, mode='overwrite')",
    "overwrite again": "lance.write_dataset(rows(5, 25).select(['name']), uri, mode='overwrite')",
    "bases": "opened().add_bases([lance.DatasetBasePath('/nowhere/a', name='a'),"
    " lance.DatasetBasePath('/nowhere/b', name='b', is_dataset_root=True)])",
    "message": "commit(lance.LanceOperation.Append(write_fragments(rows(0, 3), uri)),"
    " commit_message='why')",
}

_ALL = (
    "append",
    "delete rows",
    "config",
    "update rows",
    "upsert",
    "rename column",
    "compact",
    "append",
    "delete a fragment",
    "table metadata",
    "restore",
    "upsert inserts",
    "delete more rows",
    "compact",
    "overwrite",
    "append",
    "restore",
    "append",
    "update rows",
    "overwrite again",
)

HISTORIES: dict[str, tuple[str, ...]] = {
    "rows": _ALL,
    "indices": (
        "btree",
        "bitmap",
        "vector index",
        "append",
        "optimize indices",
        "delete rows",
        "update rows",
        "compact",
        "index again",
        "append",
        "upsert",
        "delete a fragment",
        "update a key",
        "compact",
        "drop index",
        "restore first",
        "append",
    ),
    "coverage": (
        "bitmap",
        "vector index",
        "append",
        "optimize indices",
        "upsert deletes",
        "delete rows",
        "rename column",
        "append",
        "drop shared column",
    ),
    "zones": ("zonemap", "append", "delete rows", "compact"),
    "columns": (
        "add column",
        "replace column",
        "cast column",
        "add null column",
        "fill null column",
        "append",
        "btree",
        "bitmap",
        "drop column",
        "append nothing",
        "delete nothing",
        "compact",
    ),
    "primary key": ("primary key", "append", "upsert", "upsert inserts", "delete rows", "compact"),
    "upserts of some columns": ("bitmap", "append", "upsert part", "compact", "upsert part"),
    "settings": (
        "config",
        "config keys",
        "table metadata",
        "schema metadata",
        "field metadata",
        "append",
        "replace schema metadata",
        "delete rows",
        "bases",
        "overwrite",
        "message",
    ),
    "deferred": ("bitmap", "append", "delete rows", "compact later", "append", "delete more rows"),
}

# Release 4.0 refuses these.
LATER_HISTORIES: dict[str, tuple[str, ...]] = {
    "columns of shared files": (
        "add column",
        "append",
        "bitmap",
        "replace column",
        "replace name",
        "compact",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One version and what led to it."""

    state: TableState
    transaction: Transaction


def written(official: Official, uri: str, steps: tuple[str, ...], *, stable: bool) -> list[Step]:
    """Let the release run the steps, and read every version it wrote."""
    options = ", enable_stable_row_ids=True" if stable else ""
    code = [SETUP, CREATE.format(options), *(STEPS[s] for s in steps)]
    official.run(uri, "\n".join([*code, "result = None"]))
    return read(uri)


def read(uri: str) -> list[Step]:
    """Return the versions of a table in order."""
    paths = Path(uri, "_versions").glob("*.manifest")
    found = [_step(uri, p) for p in paths if layout.parse_manifest_name(p.name) is not None]
    return sorted(found, key=lambda s: s.state.manifest.version)


def state_of(file: ManifestFile) -> TableState:
    """Return a manifest file as the rules see it."""
    section = file.index_section
    indices = () if section is None else index_meta.decode_section(section)
    return TableState(manifest=file.manifest, indices=indices)


def _step(uri: str, path: Path) -> Step:
    file = decode_manifest(path.read_bytes())
    data = file.inline_transaction
    if data is None:
        data = Path(uri, "_transactions", file.manifest.transaction_file).read_bytes()
    return Step(state=state_of(file), transaction=decode_transaction(data))
