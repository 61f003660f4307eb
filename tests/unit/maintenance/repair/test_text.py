"""Strings that are not UTF-8 make a column unreadable: found by a check, replaced by a repair."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.run import check
from lancelake.maintenance.repair import RepairOptions, apply, plan, repair
from lancelake.storage.location import Location
from tests.support.raw_text import REPLACED, TEXTS, binaries, with_text

REPLACE = RepairOptions(replace_invalid_utf8=True)
COUNT = len(TEXTS)
WORDS = binaries(*TEXTS)
SHAPES: dict[str, pa.Array] = {
    "string": WORDS,
    "large string": binaries(*TEXTS, dtype=pa.large_binary()),
    "list": pa.array([[text, b"tail"] for text in TEXTS], pa.list_(pa.binary())),
    "large list": pa.array([[text] for text in TEXTS], pa.large_list(pa.binary())),
    "struct": pa.StructArray.from_arrays([WORDS, pa.array(range(COUNT))], ["text", "n"]),
    "list of structs": pa.array(
        [[{"text": text, "n": 1}, {"text": None, "n": 2}] for text in TEXTS],
        pa.list_(pa.struct([("text", pa.binary()), ("n", pa.int64())])),
    ),
    "struct of lists": pa.array(
        [{"words": [text], "n": 1} for text in TEXTS],
        pa.struct([("words", pa.list_(pa.binary())), ("n", pa.int64())]),
    ),
}
MAP = pa.array([[(b"key", text)] for text in TEXTS], pa.map_(pa.binary(), pa.binary()))


def decoded(value: object) -> object:
    """Return binary values as a repair leaves them."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return {key: decoded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(decoded(each) for each in value)
    return value


def damaged(
    tmp_path: Path, column: pa.Array, *, version: str = "2.1", stable: bool = False
) -> tuple[Path, pa.Table]:
    """Return a table of two fragments with invalid strings, and its rows before."""
    rows = pa.table({"id": range(COUNT), "c": column, "n": range(0, 10 * COUNT, 10)})
    ds = lance.write_dataset(
        rows,
        tmp_path / "binary.lance",
        max_rows_per_file=4,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )
    return with_text(tmp_path / "binary.lance", tmp_path / "t.lance"), ds.to_table()


def findings(root: Path) -> list[tuple[str, int | None, str | None]]:
    found = check(Location.parse(root), data=True)
    return [(f.code, f.fragment, f.column) for f in found if f.severity.value == "error"]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_invalid_bytes_are_replaced_and_all_else_stays(
    shape: str, version: str, tmp_path: Path
) -> None:
    root, before = damaged(tmp_path, SHAPES[shape], version=version)
    with pytest.raises(LanceTableError):
        lance.dataset(root).to_table()
    assert findings(root) == [("text-not-utf8", 0, "c")]
    done = repair(Location.parse(root), REPLACE)
    assert (len(done.versions), done.since.left) == (1, ())
    assert lance.dataset(root).to_table().to_pylist() == decoded(before.to_pylist())
    assert findings(root) == []


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_words_of_a_dictionary_are_replaced(version: str, tmp_path: Path) -> None:
    words = pa.array([b"ok", b"\xff", b"\xfe", b"fine"], pa.binary())
    indices = pa.array([0, 1, 2, 3, None, 2, 0], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, words)
    root, before = damaged(tmp_path, column, version=version)
    repair(Location.parse(root), REPLACE)
    assert lance.dataset(root).to_table().to_pylist() == decoded(before.to_pylist())
    assert findings(root) == []


def test_a_map_is_replaced(tmp_path: Path) -> None:
    root, before = damaged(tmp_path, MAP, version="2.2")
    repair(Location.parse(root), REPLACE)
    assert lance.dataset(root).to_table().to_pylist() == decoded(before.to_pylist())


def test_without_the_flag_nothing_is_changed_and_the_advice_names_it(tmp_path: Path) -> None:
    root, _ = damaged(tmp_path, WORDS)
    files = sorted(root.rglob("*"))
    done = repair(Location.parse(root), RepairOptions(data=True))
    assert (done.versions, sorted(root.rglob("*"))) == ((), files)
    (left,) = done.since.left
    assert "--replace-invalid-utf8" in left.advice
    assert "--replace-invalid-utf8" in (left.finding.hint or "")


def test_the_finding_names_the_paths_and_the_file(tmp_path: Path) -> None:
    root, _ = damaged(tmp_path, SHAPES["list of structs"])
    (found,) = check(Location.parse(root), data=True)
    assert "c.item.text" in found.message
    assert found.path == lance.dataset(root).get_fragments()[0].data_files()[0].path


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    root, _ = damaged(tmp_path, WORDS)
    files = sorted(root.rglob("*"))
    planned = plan(Location.parse(root), REPLACE)
    assert (planned.has_work, planned.left) == (True, ())
    assert sorted(root.rglob("*")) == files


def test_only_the_column_is_written_again(tmp_path: Path) -> None:
    root, _ = damaged(tmp_path, WORDS)
    before = [fragment.data_files() for fragment in lance.dataset(root).get_fragments()]
    repair(Location.parse(root), REPLACE)
    first, second = [fragment.data_files() for fragment in lance.dataset(root).get_fragments()]
    assert [list(file.fields) for file in first] == [[0, -2, 2], [1]]
    assert first[0].path == before[0][0].path
    assert [file.path for file in second] == [file.path for file in before[1]]


@pytest.mark.parametrize("stable", [False, True])
def test_row_ids_versions_and_deletions_stay(stable: bool, tmp_path: Path) -> None:
    rows = pa.table({"id": range(COUNT), "c": WORDS})
    ds = lance.write_dataset(rows, tmp_path / "binary.lance", enable_stable_row_ids=stable)
    ds.delete("id IN (0, 3)")
    meta = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    columns = ["id", *(meta if stable else meta[:1])]
    before = ds.to_table(columns)
    root = with_text(tmp_path / "binary.lance", tmp_path / "t.lance")
    repair(Location.parse(root), REPLACE)
    after = lance.dataset(root)
    assert after.to_table(columns) == before
    assert after.to_table(["c"])["c"].to_pylist() == [REPLACED[i] for i in (1, 2, 4, 5, 6)]


def test_a_string_of_a_deleted_row_is_replaced_too(tmp_path: Path) -> None:
    rows = pa.table({"id": range(COUNT), "c": WORDS})
    lance.write_dataset(rows, tmp_path / "binary.lance").delete("id IN (1, 3)")
    root = with_text(tmp_path / "binary.lance", tmp_path / "t.lance")
    assert findings(root) == [("text-not-utf8", 0, "c")]
    repair(Location.parse(root), REPLACE)
    assert findings(root) == []
    assert lance.dataset(root).to_table(["c"])["c"].to_pylist()[:2] == ["ok", None]


def test_several_columns_of_a_fragment_are_replaced(tmp_path: Path) -> None:
    rows = pa.table({"a": WORDS, "id": range(COUNT), "b": SHAPES["list"]})
    ds = lance.write_dataset(rows, tmp_path / "binary.lance")
    root = with_text(tmp_path / "binary.lance", tmp_path / "t.lance")
    repair(Location.parse(root), REPLACE)
    assert lance.dataset(root).to_table().to_pylist() == decoded(ds.to_table().to_pylist())


def test_a_fragment_with_invalid_text_is_not_given_up_with_lost_ones(tmp_path: Path) -> None:
    root, before = damaged(tmp_path, WORDS)
    second = lance.dataset(root).get_fragments()[1].data_files()[0].path
    (root / "data" / second).unlink()
    options = RepairOptions(replace_invalid_utf8=True, drop_lost=True)
    assert repair(Location.parse(root), options).since.left == ()
    assert lance.dataset(root).to_table().to_pylist() == decoded(before.slice(0, 4).to_pylist())


def test_an_older_version_keeps_what_it_had(tmp_path: Path) -> None:
    root, _ = damaged(tmp_path, WORDS)
    repair(Location.parse(root), REPLACE)
    assert lance.dataset(root, version=1).to_table(["id"])["id"].to_pylist() == list(range(COUNT))
    with pytest.raises(LanceTableError):
        lance.dataset(root, version=1).to_table(["c"])


def test_rows_that_are_added_meanwhile_stay(tmp_path: Path) -> None:
    root, before = damaged(tmp_path, WORDS)
    planned = plan(Location.parse(root), REPLACE)
    lance.dataset(root).insert(pa.table({"id": [99], "c": ["new"], "n": [1]}))
    done = apply(planned, REPLACE)
    assert done.since.left == ()
    rows = [decoded(row) for row in before.to_pylist()]
    rows += [{"id": 99, "c": "new", "n": 1}]
    assert lance.dataset(root).to_table().to_pylist() == rows


def test_a_struct_with_blobs_is_left_with_advice(tmp_path: Path) -> None:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    pair = pa.StructArray.from_arrays(
        [WORDS, pa.array([b"x"] * COUNT, pa.large_binary())],
        fields=[pa.field("text", pa.binary()), blob],
    )
    binary = tmp_path / "binary.lance"
    lance.write_dataset(pa.table({"c": pair}), binary, data_storage_version="2.0")
    # The length before its name sets the type apart from that of the blobs.
    root = with_text(binary, tmp_path / "t.lance", types=b"\x06binary")
    done = repair(Location.parse(root), REPLACE)
    assert (done.versions, len(done.since.left)) == ((), 1)
