"""`lancelake repair`: preview and application."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import Result

import lancelake.pylance as lance
from lancelake.proto.table_pb2 import Manifest
from tests.support.raw_text import binaries, with_text
from tests.support.table_surgery import edit_manifest, manifest_path

Document = Callable[..., Any]
Run = Callable[..., Result]
Output = Callable[..., str]


def miscounted(table: Path) -> Path:
    """Let the newest manifest count deleted rows wrongly."""

    def change(manifest: Manifest) -> None:
        manifest.fragments[0].deletion_file.num_deleted_rows = 7

    edit_manifest(table, change)
    return table


def test_a_table_in_order_needs_nothing(output: Output, sound: Path) -> None:
    said = "no problems found, nothing to repair"
    assert output("repair", sound) == f"{said}  values not read, use --data\n"
    assert output("repair", sound, "--data") == f"{said}\n"


def test_without_apply_nothing_is_done(output: Output, document: Document, table: Path) -> None:
    text = output("repair", miscounted(table))
    assert text.splitlines() == [
        "would be repaired  fragment 0: 2 deleted rows",
        "nothing was changed: use --apply to repair",
    ]
    assert document("info", table)["version"] == 5


def test_with_apply_it_is_done(output: Output, run: Run, table: Path) -> None:
    text = output("repair", miscounted(table), "--apply", "--message", "count again")
    assert text.splitlines() == ["repaired  fragment 0: 2 deleted rows", "version 6"]
    assert run("check", table).exit_code == 0


def test_the_message_is_in_the_log(document: Document, table: Path) -> None:
    document("repair", miscounted(table), "--apply", "--message", "count again")
    assert document("log", table)["versions"][0]["message"] == "count again"


def test_what_stays_is_reported_with_advice_and_an_exit_code(run: Run, table: Path) -> None:
    next((table / "data").glob("*.lance")).unlink()
    result = run("repair", table, "--apply")
    assert result.exit_code == 6
    assert "--drop-lost" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("nothing can be repaired")


def test_lost_rows_are_given_up_on_request(document: Document, run: Run, table: Path) -> None:
    next((table / "data").glob("*.lance")).unlink()
    body = document("repair", table, "--drop-lost", "--apply")
    assert (len(body["steps"]), body["left"]) == (1, [])
    assert run("check", table, "--data").exit_code == 0


def test_tags_that_lead_nowhere_are_removed_on_request(document: Document, table: Path) -> None:
    manifest_path(table, 1).unlink()
    document("repair", table, "--remove-refs", "--apply")
    assert document("info", table)["tags"] == {}


def test_it_can_go_back_to_a_version_in_order(document: Document, run: Run, table: Path) -> None:
    manifest_path(table).write_bytes(b"")
    planned = document("repair", table, "--to-healthy")
    assert (planned["healthy_version"], planned["applied"]) == (4, False)
    done = document("repair", table, "--to-healthy", "--apply")
    assert (done["applied"], done["quarantined"]) == (True, [5])
    assert run("check", table, "--data").exit_code == 0


def test_a_table_in_order_does_not_go_back(output: Output, sound: Path) -> None:
    assert "the newest version is consistent" in output("repair", sound, "--to-healthy")


def test_text_that_is_not_utf8_is_replaced_on_request(
    document: Document, run: Run, tmp_path: Path
) -> None:
    lance.write_dataset(pa.table({"c": binaries(b"ok", b"\xff")}), tmp_path / "binary.lance")
    table = with_text(tmp_path / "binary.lance", tmp_path / "t.lance")
    checked = run("check", table, "--data")
    assert "repair --replace-invalid-utf8" in checked.stdout
    assert run("repair", table, "--data", "--apply").exit_code == 6
    body = document("repair", table, "--replace-invalid-utf8", "--apply")
    assert (len(body["steps"]), body["left"]) == (1, [])
    assert lance.dataset(str(table)).to_table()["c"].to_pylist() == ["ok", "\ufffd"]
