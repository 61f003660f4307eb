"""Record bytes of an official release, in its environment: `python datagen.py 4.0.2`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import lance
import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import DataFile

HERE = Path(__file__).parent
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"note": "key"}),
        pa.field("name", pa.string()),
        pa.field("point", pa.struct([pa.field("x", pa.float32()), pa.field("y", pa.float32())])),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("unit", pa.dictionary(pa.int8(), pa.string())),
        pa.field("uuid", pa.uuid()),
    ],
    metadata={"owner": "golden"},
)


def rows(start: int, stop: int) -> pa.Table:
    """Return rows whose ids lie in the range."""
    ids = range(start, stop)
    columns = [
        pa.array(ids, pa.int64()),
        pa.array([f"name {i}" for i in ids]),
        pa.array([{"x": float(i), "y": -float(i)} for i in ids], SCHEMA.field("point").type),
        pa.array([["a"] * (i % 3) for i in ids], SCHEMA.field("tags").type),
        pa.array([("m", "kg")[i % 2] for i in ids])
        .dictionary_encode()
        .cast(SCHEMA.field("unit").type),
        pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([i.to_bytes(16, "big") for i in ids], pa.binary(16))
        ),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def keep(table: Path, target: Path, names: list[str]) -> None:
    """Copy the manifest and transaction of each version under the name of the step."""
    dataset = lance.dataset(str(table))
    assert dataset.version == len(names), (dataset.version, names)
    manifests = sorted((table / "_versions").glob("*.manifest"), reverse=True)
    transactions = sorted((table / "_transactions").glob("*.txn"))
    for name, manifest in zip(names, manifests, strict=True):
        shutil.copyfile(manifest, target / f"{name}.manifest")
        body = manifest.read_bytes()
        (file,) = [t for t in transactions if t.name.encode() in body]
        shutil.copyfile(file, target / f"{name}.txn")


def replace_file(dataset: lance.LanceDataset) -> None:
    """Swap the file of one column."""
    fragment = dataset.get_fragments()[0]
    old = next(f for f in fragment.metadata.files if len(f.fields) == 1)
    path = Path(dataset.uri) / "data" / "replacement.lance"
    values = pa.array([7] * fragment.physical_rows, pa.int32())
    with LanceFileWriter(str(path), version="2.1") as writer:
        writer.write_batch(pa.table({"extra": values}))
    size = path.stat().st_size
    new = DataFile(path.name, old.fields, old.column_indices, 2, 1, size)
    group = lance.LanceOperation.DataReplacementGroup(fragment.fragment_id, new)
    operation = lance.LanceOperation.DataReplacement([group])
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def by_address(table: Path) -> list[str]:
    """Walk through the operations on a table with row addresses."""
    uri = str(table)

    def opened() -> lance.LanceDataset:
        return lance.dataset(uri)

    lance.write_dataset(rows(0, 100), uri, data_storage_version="2.1", max_rows_per_file=60)
    lance.write_dataset(rows(100, 150), uri, mode="append")
    opened().delete("id in (3, 5, 70)")
    opened().create_scalar_index("id", "BTREE")
    opened().add_columns({"extra": "cast(id * 2 as int)"})
    replace_file(opened())
    opened().alter_columns({"path": "name", "name": "label"})
    opened().drop_columns(["tags"])
    opened().update_config({"lance.some.key": "1", "other": "2"})
    opened().optimize.compact_files(target_rows_per_fragment=1000)
    lance.dataset(uri, version=3).restore()
    lance.write_dataset(rows(0, 10), uri, mode="overwrite")
    return [
        "create",
        "append",
        "delete",
        "create_index",
        "merge",
        "data_replacement",
        "project_rename",
        "project_drop",
        "update_config",
        "reserve_fragments",
        "rewrite",
        "restore",
        "overwrite",
    ]


def by_stable_id(table: Path) -> list[str]:
    """Walk through the operations on a table with stable row ids."""
    uri = str(table)
    lance.write_dataset(rows(0, 100), uri, data_storage_version="2.1", enable_stable_row_ids=True)
    lance.dataset(uri).update({"name": "'x'"}, where="id % 3 = 0")
    lance.write_dataset(rows(100, 120), uri, mode="append")
    lance.dataset(uri).delete("id < 50 and id % 7 = 0")
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=1000)
    steps = ["create", "update", "append", "delete", "reserve_fragments", "rewrite"]
    return [f"stable_{step}" for step in steps]


def deletions(table: Path, target: Path) -> None:
    """Keep a deletion file of each encoding."""
    ids = pa.table({"id": pa.array(range(20_000), pa.int64())})
    lance.write_dataset(ids, str(table), data_storage_version="2.1")
    lance.dataset(str(table)).delete("id % 7 = 3 and id < 700")
    lance.dataset(str(table)).delete("id % 3 = 1")
    for suffix in ("arrow", "bin"):
        (file,) = (table / "_deletions").glob(f"*.{suffix}")
        shutil.copyfile(file, target / f"deletions.{suffix}")


def references(table: Path, target: Path) -> None:
    """Keep a tag and two branches, one forked from the other."""
    lance.write_dataset(rows(0, 1), str(table))
    dataset = lance.dataset(str(table))
    dataset.tags.create("v1", 1)
    dataset.create_branch("dev", 1).create_branch("dev/sub", ("dev", 1))
    shutil.copyfile(table / "_refs" / "tags" / "v1.json", target / "tag.json")
    for source, name in (("dev", "branch"), ("dev%2Fsub", "sub_branch")):
        shutil.copyfile(table / "_refs" / "branches" / f"{source}.json", target / f"{name}.json")


def main(release: str) -> None:
    """Write everything for one release."""
    assert lance.__version__ == release, f"this is {lance.__version__}"
    target = HERE / release
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        for number, walk in enumerate((by_address, by_stable_id)):
            table = Path(folder) / str(number)
            keep(table, target, walk(table))
        deletions(Path(folder) / "deletions", target)
        references(Path(folder) / "references", target)


if __name__ == "__main__":
    main(sys.argv[1])
