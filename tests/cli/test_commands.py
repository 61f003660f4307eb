"""Text output of each command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import Result

import lancelake.pylance as lance
from lancelake import __version__
from lancelake.cli.group import command_names, load_command, summary
from lancelake.errors import DamagedIndexError
from lancelake.proto.table_pb2 import Manifest
from tests.support.official import Official
from tests.support.searched_tables import add_segment
from tests.support.table_surgery import edit_manifest, manifest_path

Output = Callable[..., str]
Run = Callable[..., Result]


def test_version_is_that_of_the_package(output: Output) -> None:
    assert output("--version") == f"lancelake {__version__}\n"


def test_help_lists_every_command(output: Output) -> None:
    listed = output("--help").partition("Commands:")[2].split()
    assert set(command_names()) <= set(listed)


@pytest.mark.parametrize("name", command_names())
def test_the_list_of_commands_says_what_a_command_says_of_itself(name: str) -> None:
    assert (load_command(name).help or "").startswith(summary(name).rstrip("."))


def test_info_shows_rows_size_and_refs(output: Output, sound: Path) -> None:
    text = output("info", sound)
    for expected in ("27  3 deleted", "3  3 data files, format 2.1", "first → 1", "key=value"):
        assert expected in text


def test_info_shows_nested_columns(output: Output, sound: Path) -> None:
    assert "└ b     string" in output("info", sound)


def test_info_shows_the_rows_an_index_covers(output: Output, sound: Path) -> None:
    assert "27 of 32" in output("info", sound, "--at", "side:")


def test_info_gives_advice(output: Output, sound: Path) -> None:
    assert "! Index id_idx does not cover 1 fragment" in output("info", sound, "--at", "side:")


def test_info_of_an_old_version_names_the_latest(output: Output, sound: Path) -> None:
    assert "latest is 5" in output("info", sound, "--at", "2")


def test_info_counts_rows_that_the_manifest_does_not_know(output: Output, table: Path) -> None:
    def forget(manifest: Manifest) -> None:
        manifest.fragments[0].physical_rows = 0

    edit_manifest(table, forget)
    assert "rows       27" in output("info", table)


def test_info_cuts_a_long_schema(output: Output, official_14: Official, tmp_path: Path) -> None:
    official_14.write(tmp_path / "t.lance", pa.table({f"c{i}": [i] for i in range(30)}))
    assert "10 more fields" in output("info", tmp_path / "t.lance")


def test_schema_shows_ids_types_and_nulls(output: Output, sound: Path) -> None:
    lines = [line.split() for line in output("schema", sound).splitlines()]
    assert ["id", "0", "int64", "no"] in lines
    assert ["├", "a", "3", "int32", "yes"] in lines


def test_schema_shows_key_and_metadata(
    output: Output, official_14: Official, tmp_path: Path
) -> None:
    key = {"lance-schema:unenforced-primary-key": "true", "unit": "m"}
    field = pa.field("k", pa.int64(), nullable=False, metadata=key)
    official_14.write(tmp_path / "t.lance", pa.table([[1]], schema=pa.schema([field])))
    assert "primary key, unit=m" in output("schema", tmp_path / "t.lance")


def test_log_shows_newest_first(output: Output, sound: Path) -> None:
    versions = [line.split()[0] for line in output("log", sound).splitlines()[1:]]
    assert versions == ["5", "4", "3", "2", "1"]


def test_log_shows_operations_counts_and_tags(output: Output, sound: Path) -> None:
    lines = output("log", sound).splitlines()
    assert "DELETE" in lines[3] and "-3" in lines[3] and "id in (1, 2, 25)" in lines[3]
    assert "WRITE" in lines[4] and "+10" in lines[4]
    assert lines[5].endswith("[first]")


def test_log_is_limited(output: Output, sound: Path) -> None:
    lines = output("log", sound, "--limit", "2").splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("… 3 older versions")


def test_log_of_a_version_ends_there(output: Output, sound: Path) -> None:
    assert output("log", sound, "--at", "2").splitlines()[1].split()[0] == "2"


def test_log_of_a_branch_shows_its_versions(output: Output, sound: Path) -> None:
    lines = output("log", sound, "--at", "side:").splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["6", "5"]
    assert "CLONE" in lines[2]


def test_log_shows_the_message_of_a_commit(
    output: Output, official_14: Official, tmp_path: Path
) -> None:
    code = """
lance.write_dataset(pa.table({"x": [1]}), uri)
operation = lance.LanceOperation.Append([])
lance.LanceDataset.commit(uri, operation, read_version=1, commit_message="hello there")
"""
    official_14.run(tmp_path / "t.lance", code)
    assert "hello there" in output("log", tmp_path / "t.lance")


def test_log_continues_past_a_damaged_version(output: Output, table: Path) -> None:
    manifest_path(table, 3).write_bytes(b"")
    lines = output("log", table).splitlines()
    assert "damaged" in lines[3]
    assert lines[4].split()[0] == "2"


def test_show_manifest_shows_flags_by_name(output: Output, sound: Path) -> None:
    assert "  - stable_row_ids" in output("show", sound, "manifest")


def test_show_transaction_shows_the_operation(output: Output, sound: Path) -> None:
    text = output("show", sound, "transaction", "--at", "3")
    assert "  name: Delete" in text
    assert "  predicate: id in (1, 2, 25)" in text


@pytest.mark.parametrize(("name", "kind"), [("first", "tag"), ("side", "branch")])
def test_show_ref_finds(name: str, kind: str, output: Output, sound: Path) -> None:
    assert output("show", sound, "ref", name).startswith(f"kind: {kind}\nname: {name}\n")


def test_files_shows_fragments_and_totals(output: Output, sound: Path) -> None:
    lines = output("files", sound).splitlines()
    assert lines[1].split()[:4] == ["0", "10", "2", lines[1].split()[3]]
    assert lines[2].split()[0] == "arrow"
    assert lines[-1].startswith("3 fragments, 3 data files, ")


def test_files_shows_bases_of_a_branch(output: Output, sound: Path) -> None:
    assert "base" in output("files", sound, "--at", "side:").splitlines()[0]


def test_head_shows_rows(output: Output, sound: Path) -> None:
    lines = output("head", sound, "-n", "2").splitlines()
    assert lines[1].split(maxsplit=3) == ["0", "row", "0", '{a: 0, b: "b"}']
    assert lines[-1] == "2 rows; more rows available, use --rows"


def test_head_takes_columns_and_filter(output: Output, sound: Path) -> None:
    text = output("head", sound, "--columns", "meta.a, id", "--filter", "id > 27")
    assert text.splitlines() == ["meta.a  id", "    28  28", "    29  29", "2 rows"]


def test_head_puts_columns_below_each_other_where_they_do_not_fit(
    output: Output, sound: Path
) -> None:
    lines = output("head", sound, "-n", "1", width=16).splitlines()
    assert lines[:3] == ["1 of 1", "id    0", "text  row 0"]


def test_take_keeps_the_order_asked_for(output: Output, sound: Path) -> None:
    text = output("take", sound, "9,0,9", "--columns", "id")
    assert text.split() == ["id", "11", "0", "11", "3", "rows"]


def test_count_counts(output: Output, sound: Path) -> None:
    assert (output("count", sound), output("count", sound, "-f", "id < 5")) == ("27\n", "3\n")


def test_count_at_a_version(output: Output, sound: Path) -> None:
    assert output("count", sound, "--at", "1") == "20\n"


def test_check_of_a_sound_table_says_so(output: Output, sound: Path) -> None:
    assert (
        output("check", sound, "--all-versions", "--data")
        == "no problems found  7 versions checked\n"
    )


def test_check_says_that_values_were_not_read(output: Output, sound: Path) -> None:
    said = "no problems found  2 versions checked; values not read, use --data\n"
    assert output("check", sound) == said


def test_check_shows_what_where_and_what_to_do(run: Run, table: Path) -> None:
    edit_manifest(table, lambda m: setattr(m.fragments[0].files[0], "path", "nothing.lance"))
    result = run("check", table)
    assert result.stdout.splitlines()[:4] == [
        "error  data-file-missing  version 5",
        "  data/nothing.lance",
        "  a data file of fragment 0 does not exist",
        "  Restore the file from a backup, or restore a version that does not need it.",
    ]
    assert (
        result.stdout.splitlines()[-1] == "1 error  2 versions checked; values not read, use --data"
    )


def test_check_exits_with_0_when_there_are_only_notes(run: Run, table: Path) -> None:
    (table / "data" / "stray.lance").write_bytes(b"x")
    result = run("check", table, "--all-versions")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("1 note  7 versions checked")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
@pytest.mark.parametrize("command", ["info", "schema", "log", "files", "head", "check"])
def test_no_line_is_wider_than_the_terminal(
    command: str, width: int, output: Output, sound: Path
) -> None:
    assert max(map(len, output(command, sound, width=width).splitlines())) <= width


def test_count_can_do_without_indices(run: Run, output: Output, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"n": range(10)}), uri)
    add_segment(uri, "n", "BTREE")
    for file in (tmp_path / "t.lance" / "_indices").glob("*/*"):
        file.unlink()
    refused = run("count", uri, "--filter", "n > 6")
    assert refused.exit_code == DamagedIndexError.exit_code
    assert "n_btree" in refused.output
    assert "--no-index" in refused.output
    assert output("count", uri, "--filter", "n > 6", "--no-index").strip() == "3"
    assert "3 rows" in output("head", uri, "--filter", "n > 6", "--no-index")
