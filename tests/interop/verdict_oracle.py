"""What does an official release say to two changes of one version? Code to run inside it."""

from __future__ import annotations

# The table and the changes are those of `lancelake.txn.shapes`, under the same names.
CODE = """
import pathlib, shutil, uuid
from lance import LanceOperation as O
from lance.file import LanceFileWriter
from lance.fragment import DataFile, write_fragments

Index = getattr(lance, "Index", None)
if Index is None:
    import importlib
    Index = importlib.import_module("lance.dataset").Index

SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    pa.field("value", pa.int32()),
    pa.field("text", pa.string()),
])

def rows(count, start=0):
    ids = list(range(start, start + count))
    return pa.table(
        [pa.array(ids, pa.int64()), pa.array(ids, pa.int32()), [str(i) for i in ids]],
        schema=SCHEMA,
    )

template = uri + "-template"
lance.write_dataset(rows(20), template, data_storage_version="2.1", max_rows_per_file=10)
table = lance.dataset(template)
first, second = table.get_fragments()

def written(count=10):
    return write_fragments(rows(count), template, data_storage_version="2.1")

def renumbered(fragments, number):
    for fragment in fragments:
        fragment.id = number
    return fragments

def column(fragment, field, values):
    name = f"column-{field}-{fragment.fragment_id}.lance"
    path = pathlib.Path(template) / "data" / name
    with LanceFileWriter(str(path), version="2.1") as writer:
        writer.write_batch(pa.table({"c": values}))
    return DataFile(name, [field], [0], 2, 1, path.stat().st_size)

def replacement(field, fragment, values):
    group = O.DataReplacementGroup(fragment.fragment_id, column(fragment, field, values))
    return O.DataReplacement([group])

def index(name, field, *covered):
    return Index(
        uuid=str(uuid.uuid4()), name=name, fields=[field], dataset_version=1,
        fragment_ids=set(covered), index_version=0,
    )

def update(fragment, predicate):
    return O.Update(
        updated_fragments=[fragment.delete(predicate)], new_fragments=written(2),
        fields_for_preserving_frag_bitmap=[1],
    )

def settings(**maps):
    a = {k: O.UpdateMap(v) for k, v in maps.items()}
    return O.UpdateConfig(**a)

def merged():
    parts = [f.merge_columns(lambda b: pa.record_batch(
        [pa.array([None] * len(b), pa.int32())], names=["added"])) for f in (first, second)]
    return [p[0] for p in parts], parts[0][1]

fragments, schema = merged()
numbers = pa.array([1] * 10, pa.int32())
texts = pa.array(["x"] * 10)
kept = {"preserves_nullability": True}
later = "preserves_nullability" in O.Merge.__dataclass_fields__
part = rows(1).select(["id", "value"])
lance.write_dataset(part, uri + "-part", data_storage_version="2.1")
projected = lance.dataset(uri + "-part").lance_schema

by_value = index("by_value", 1, 0)
SHAPES = {
    ("Append", "rows"): O.Append(written()),
    ("Delete", "some rows of fragment 0"): O.Delete([first.delete("id in (1, 2)")], [], "p"),
    ("Delete", "some rows of fragment 1"): O.Delete([second.delete("id in (13, 14)")], [], "p"),
    ("Delete", "fragment 0"): O.Delete([], [0], "p"),
    ("Overwrite", "rows"): O.Overwrite(SCHEMA, written()),
    ("CreateIndex", "value over fragment 0"): O.CreateIndex([by_value], []),
    ("CreateIndex", "text over fragment 1"): O.CreateIndex([index("by_text", 2, 1)], []),
    ("CreateIndex", "value removed"): O.CreateIndex([], [by_value]),
    ("Rewrite", "fragment 0"): O.Rewrite(
        [O.RewriteGroup([first.metadata], renumbered(written(), 10))], []),
    ("Rewrite", "fragment 1"): O.Rewrite(
        [O.RewriteGroup([second.metadata], renumbered(written(), 11))], []),
    ("Merge", "a column"): O.Merge(fragments, schema),
    ("Restore", "old version"): O.Restore(1),
    ("Update", "some rows of fragment 0"): update(first, "id in (1, 2)"),
    ("Update", "some rows of fragment 1"): update(second, "id in (13, 14)"),
    ("Update", "fragment 0"): O.Update(removed_fragment_ids=[0], new_fragments=written()),
    ("Project", "without text"): O.Project(projected),
    ("UpdateConfig", "config a"): settings(config_updates={"a": "1"}),
    ("UpdateConfig", "config b"): settings(config_updates={"b": "1"}),
    ("UpdateConfig", "table metadata a"): settings(table_metadata_updates={"a": "1"}),
    ("UpdateConfig", "schema metadata a"): settings(schema_metadata_updates={"a": "1"}),
    ("UpdateConfig", "metadata of value"): O.UpdateConfig(
        field_metadata_updates={1: O.UpdateMap({"a": "1"})}),
    ("DataReplacement", "field 1 of fragment 0"): replacement(1, first, numbers),
    ("DataReplacement", "field 1 of fragment 1"): replacement(1, second, numbers),
    ("DataReplacement", "field 2 of fragment 0"): replacement(2, first, texts),
}
if later:
    SHAPES["Merge", "a column, nulls as before"] = O.Merge(fragments, schema, **kept)
    SHAPES["Project", "without text, nulls as before"] = O.Project(projected, **kept)

def committed(root, operation):
    try:
        lance.LanceDataset.commit(root, operation, read_version=1)
    except Exception as error:
        text = str(error)
        if "Retryable" in text or "preempted" in text:
            return "R"
        if "Incompatible" in text or "incompatible" in text:
            return "X"
        return "failed: " + text[:200]
    return "·"

result = []
for theirs, their_operation in SHAPES.items():
    after = uri + "-after"
    shutil.copytree(template, after)
    before = committed(after, their_operation)
    for mine, my_operation in SHAPES.items():
        target = uri + "-both"
        shutil.copytree(after, target)
        found = committed(target, my_operation) if before == "·" else before
        result.append([list(mine), list(theirs), found])
        shutil.rmtree(target)
    shutil.rmtree(after)
"""
