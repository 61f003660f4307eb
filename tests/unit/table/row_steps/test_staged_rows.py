"""Rows that no version has yet are read as they were written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.table.row_steps import staged
from tests.support.searched_tables import add_segment


def test_indices_of_the_version_are_not_asked_about_other_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"n": [1, 2, 3]}), uri)
    add_segment(uri, "n", "BTREE")
    lance.write_dataset(pa.table({"n": [3, 4]}), tmp_path / "new.lance")
    new = lance.dataset(tmp_path / "new.lance")._snapshot
    there = staged(lance.dataset(uri)._snapshot, new.manifest.fragments)
    found = plan(there, ScanRequest(filter="n = 3"))
    assert found.index_search is None
    assert found.tasks[0].rows is None
    assert run(plan(staged(new, new.manifest.fragments), ScanRequest(filter="n = 3"))).read_all()
