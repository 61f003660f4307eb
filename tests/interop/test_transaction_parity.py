"""Transactions of official releases are shown with the same values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lancelake.format import layout
from lancelake.format.manifest import decode_manifest
from lancelake.format.operations import decode_transaction, encode_transaction
from lancelake.pylance._dataset.transactions import Transaction, from_transaction, to_transaction
from tests.interop import plain_values
from tests.interop.plain_values import plain, printed
from tests.support.official import Official

DUMPER = Path(plain_values.__file__).read_text(encoding="utf-8")

SHOW = """
def shown(uri):
    ds = lance.dataset(uri)
    return {str(v["version"]): show(ds, v["version"]) for v in ds.versions()}

def show(ds, version):
    try:
        found = ds.read_transaction(version)
        return {"values": plain(found), "printed": printed(found)}
    except BaseException as error:
        return {"error": type(error).__name__}
"""

HISTORY = """
import shutil, warnings
from pathlib import Path
from lance.fragment import DataFile

warnings.simplefilter("ignore")

def rows(start, stop):
    numbers = range(start, stop)
    nested = pa.array([{"x": i} for i in numbers])
    return pa.table({"a": numbers, "b": [f"v{i}" for i in numbers], "n": nested})

def latest():
    return lance.dataset(uri)

def replace_file():
    fragment = latest().get_fragments()[0].metadata
    old = fragment.files[-1]
    folder = Path(uri) / "data"
    shutil.copy(folder / str(old.path), folder / "copy.lance")
    new = DataFile("copy.lance", old.fields, old.column_indices, old.file_major_version,
                   old.file_minor_version, old.file_size_bytes)
    group = lance.LanceOperation.DataReplacementGroup(fragment.id, new)
    operation = lance.LanceOperation.DataReplacement([group])
    lance.LanceDataset.commit(uri, operation, read_version=latest().version)

lance.write_dataset(rows(0, 40), uri, max_rows_per_file=20, enable_stable_row_ids=stable)
lance.write_dataset(rows(40, 60), uri, mode="append", commit_message="more")
latest().create_scalar_index("a", "BTREE")
latest().tags.create("indexed", latest().version)
latest().delete("a = 5")
latest().update({"b": "'z'"}, where="a < 4")
upsert = latest().merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
upsert.execute(rows(58, 65))
latest().merge_insert("a").when_matched_update_all().execute(rows(20, 22).select(["a", "b"]))
latest().add_columns({"c": "a + 1"})
replace_file()
latest().add_columns(pa.field("q", pa.int8()))
latest().alter_columns({"path": "c", "name": "c2"})
latest().drop_columns(["c2"])
latest().alter_columns({"path": "q", "data_type": pa.int32()})
latest().update_config({"k": "v"})
latest().delete_config_keys(["k"])
latest().update_metadata({"table": "1"})
latest().update_schema_metadata({"schema": "1"})
latest().update_field_metadata({"a": {"field": "1"}})
latest().optimize.compact_files()
latest().optimize.optimize_indices()
latest().drop_index("a_idx")
lance.dataset(uri, version=3).restore()
lance.write_dataset(rows(0, 3), uri, mode="overwrite")
latest().add_bases([lance.DatasetBasePath(uri + "-elsewhere", name="n")])
latest().delete("a = 0")
latest().delete("true")
branch = latest().create_branch("side")
lance.write_dataset(rows(0, 3), branch.uri, mode="append")
latest().shallow_clone(uri + "-clone", latest().version)
Path(uri + "-base").mkdir()
lance.write_dataset(rows(0, 3), uri + "-based", target_bases=["b"],
    initial_bases=[lance.DatasetBasePath(uri + "-base", name="b", is_dataset_root=True)])
places = {"main": uri, "branch": branch.uri, "clone": uri + "-clone", "based": uri + "-based"}
result = {"places": places, "shown": {name: shown(place) for name, place in places.items()}}
"""

# What 14.0.2 shows beyond 4.0.2.
ADDED_KEYS = {
    "overlays",
    "index_details",
    "covering_fields",
    "preserves_nullability",
    "updated_fragment_offsets",
}
ADDED_TEXT = re.compile(
    r", overlays=\[\]"
    r"|, unenforced_clustering_key_position: None"
    r"|, index_details=(None|\('[^']*', b'[^']*'\)), covering_fields=\[\]"
    r"|, preserves_nullability=(False|True)"
    r"|, updated_fragment_offsets=None"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a release and this library say about the same version."""

    release: str
    where: str
    theirs: dict[str, Any]
    ours: Transaction


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable-ids"])
def told(
    official: Official, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Told]:
    """Have the release make tables with a history, and read each transaction twice."""
    uri = str(tmp_path_factory.mktemp("history") / "table")
    made = official.run(uri, f"{DUMPER}\n{SHOW}\n{HISTORY}", stable=request.param)
    return [
        Told(
            release=official.release,
            where=f"{place} version {version}",
            theirs=theirs,
            ours=from_transaction(decoded(Path(path), int(version))),
        )
        for place, path in made["places"].items()
        for version, theirs in made["shown"][place].items()
    ]


def decoded(root: Path, version: int) -> Transaction:
    """Read what led to a version straight from the table's files."""
    for path in (root / "_versions").iterdir():
        name = layout.parse_manifest_name(path.name)
        if name is not None and name.version == version:
            file = decode_manifest(path.read_bytes())
            data = file.inline_transaction
            if data is None:
                data = (root / "_transactions" / file.manifest.transaction_file).read_bytes()
            return decode_transaction(data)
    raise LookupError(version)


def without_additions(value: Any) -> Any:
    """Leave out what 4.0.2 does not have."""
    if isinstance(value, dict):
        return {k: without_additions(v) for k, v in value.items() if k not in ADDED_KEYS}
    return [without_additions(v) for v in value] if isinstance(value, list) else value


def test_all_operations_of_a_long_history_are_there(told):
    shown = {type(each.ours.operation).__name__ for each in told}

    assert shown == {
        "Append",
        "BaseOperation",
        "Clone",
        "CreateIndex",
        "DataReplacement",
        "Delete",
        "Merge",
        "Overwrite",
        "Project",
        "Restore",
        "Rewrite",
        "Update",
        "UpdateConfig",
    }


def test_every_value_is_the_one_the_release_shows(told):
    for each in told:
        if "error" in each.theirs:
            continue
        ours = plain(each.ours)
        if each.release == "4.0.2":
            ours = without_additions(ours)
        assert ours == each.theirs["values"], each.where


def test_every_transaction_is_printed_as_the_release_prints_it(told):
    for each in told:
        if "error" in each.theirs:
            continue
        ours = printed(each.ours)
        if each.release == "4.0.2":
            ours = ADDED_TEXT.sub("", ours)
        assert ours == each.theirs["printed"], each.where


def test_the_release_fails_only_where_its_own_classes_do(told):
    failed = {
        (type(each.ours.operation).__name__, each.theirs["error"])
        for each in told
        if "error" in each.theirs
    }

    assert failed <= {("Clone", "PanicException"), ("Rewrite", "TypeError")}


def test_nothing_is_lost_on_the_way_to_users_and_back(told):
    for each in told:
        entry = to_transaction(each.ours)
        assert decode_transaction(encode_transaction(entry)) == entry, each.where
        assert from_transaction(entry) == each.ours or is_base(each.ours), each.where


def is_base(shown: Transaction) -> bool:
    """Tell operations that are compared by identity."""
    return type(shown.operation).__name__ == "BaseOperation"
