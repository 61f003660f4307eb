"""Answers about tables, versions, schemas and fragments."""

from __future__ import annotations

from pathlib import Path

from lancelake.memwal.writer import RegionWriter
from lancelake.storage.location import Location
from lancelake.ui import views
from lancelake.ui.calls import Call, OpenTables, table_id
from tests.support.explorer_tables import HOSTILE
from tests.support.memwal_tables import INLINE, NEW_REGION, new_table, rows
from tests.unit.ui.conftest import Ask


def test_tables_have_rows_size_and_version(ask: Ask) -> None:
    found = ask("tables")
    photos = next(t for t in found["tables"] if t["uri"].endswith("photos.lance"))
    assert (photos["rows"], photos["version"], photos["fragments"]) == (39, 4, 4)
    assert photos["data_bytes"] > 0 and found["total"] == 2


def test_tables_are_paged(ask: Ask) -> None:
    found = ask("tables", offset=1, limit=1)
    assert [t["uri"].rpartition("/")[2] for t in found["tables"]] == ["photos.lance"]


def test_a_summary_has_advice_with_a_command(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}")
    (advice,) = found["warnings"]
    assert advice["command"] == f"lancelake index refresh {found['uri']}"


def test_advice_for_a_branch_names_the_branch(ask: Ask, photos_id: str) -> None:
    (advice,) = ask(f"tables/{photos_id}", branch="experiment")["warnings"]
    assert advice["command"].endswith("photos.lance --branch experiment")


def test_a_summary_states_what_can_be_searched(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}")["search"]
    assert [v["column"] for v in found["vectors"]] == ["embedding"]
    assert found["texts"] == ["caption"]


def test_versions_are_paged(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/versions", offset=1, limit=2)
    assert found["total"] == 6 and len(found["rows"]) == 2


def test_the_page_of_a_version_is_found(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/versions", find=1, limit=2)
    assert (found["offset"], found["rows"][-1]["version"]) == (4, 1)


def test_a_version_that_does_not_exist_is_not_found_in_the_graph(ask: Ask, photos_id: str) -> None:
    ask(f"tables/{photos_id}/versions", 404, find=99)


def test_a_commit_has_its_differences(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/commit", version=3)
    assert (found["operation"], found["change"]["rows_added"]) == ("WRITE", 10)
    assert found["diff"]["totals"]["fragments"] == 1


def test_a_commit_is_compared_with_another_version(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/commit", version=4, before=1)["diff"]
    assert (found["before"]["version"], found["rows"]["before"]) == (1, 30)


def test_the_oldest_version_has_no_differences(ask: Ask, photos_id: str) -> None:
    assert ask(f"tables/{photos_id}/commit", version=1)["diff"] is None


def test_the_columns_of_a_version(ask: Ask, photos_id: str) -> None:
    names = [field["name"] for field in ask(f"tables/{photos_id}/schema")["fields"]]
    assert names == ["id", "caption", "image", "embedding", "labels", "large"]


def test_changes_of_the_schema_are_found(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/schema-changes")
    assert [c["version"] for c in found["changes"]] == [1]


def test_fragments_are_columns_of_numbers(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/fragments")
    assert (found["ids"], found["deleted"]) == ([0, 1, 2, 3], [1, 0, 0, 0])
    assert found["indices"][0]["runs"] == [[0, 3]]


def test_one_fragment_has_its_files(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/fragment", number=0)
    assert found["deletion_file"]["deleted_rows"] == 1 and len(found["data_files"]) == 1


def test_hostile_names_are_text(ask: Ask) -> None:
    key = next(t["id"] for t in ask("tables")["tables"] if "hostile" in t["uri"])
    found = ask(f"tables/{key}")
    assert found["fields"][0]["name"] == HOSTILE and found["config"][HOSTILE] == HOSTILE
    assert ask(f"tables/{key}/commit", version=1)["message"] == HOSTILE


def test_rows_that_are_not_merged_are_counted(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t.lance", (1, "a"))
    writer = RegionWriter(base, NEW_REGION, options=INLINE)
    writer.put(rows((2, "b"), (3, "c")))
    writer.flush()
    writer.put(rows((4, "d")))
    tables = OpenTables([Location.parse(tmp_path)])
    call = Call(tables=tables, table=table_id(base.location), parameters={}, body={})
    found = views.mem_wal(call)
    (region,) = found["regions"]
    assert found["command"] == f"lancelake wal merge --flush {base.location.uri}"
    assert (region["flushed_rows"], region["tail_rows"], region["is_sealed"]) == (2, 1, False)
    writer.close()


def test_a_table_without_a_mem_wal_is_refused(ask: Ask, photos_id: str) -> None:
    assert ask(f"tables/{photos_id}")["has_mem_wal"] is False
    assert ask(f"tables/{photos_id}/mem-wal", 400)["problem"] == "the table has no MemWAL"
