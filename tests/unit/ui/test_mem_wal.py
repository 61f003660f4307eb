"""Status of a MemWAL."""

from __future__ import annotations

from pathlib import Path

from lancelake.memwal.writer import RegionWriter
from lancelake.storage.location import Location
from lancelake.ui.calls import Call
from lancelake.ui.mem_wal import status
from lancelake.ui.open_tables import OpenTables, table_id
from tests.support.memwal_tables import INLINE, NEW_REGION, new_table, rows
from tests.unit.ui.conftest import Ask


def test_rows_that_are_not_merged_are_counted(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t.lance", (1, "a"))
    writer = RegionWriter(base, NEW_REGION, options=INLINE)
    writer.put(rows((2, "b"), (3, "c")))
    writer.flush()
    writer.put(rows((4, "d")))
    tables = OpenTables([Location.parse(tmp_path)])
    call = Call(tables=tables, table=table_id(base.location), parameters={}, body={})
    found = status(call)
    (region,) = found["regions"]
    assert found["command"] == f"lancelake wal merge --flush {base.location.uri}"
    assert (region["flushed_rows"], region["tail_rows"], region["is_sealed"]) == (2, 1, False)
    writer.close()


def test_a_table_without_a_mem_wal_is_refused(ask: Ask, photos_id: str) -> None:
    assert ask(f"tables/{photos_id}")["has_mem_wal"] is False
    assert ask(f"tables/{photos_id}/mem-wal", 400)["problem"] == "the table has no MemWAL"
