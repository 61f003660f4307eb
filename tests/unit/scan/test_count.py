"""Rows are counted without reading them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import physical_rows
from lancelake.format.fragment import Fragment
from lancelake.scan.live_rows import count_rows, live_rows
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import count
from tests.support.read_tables import Varied


def places(source: Snapshot) -> tuple[object, object]:
    return source.files, source.manifest_at


def test_version_has_the_rows_that_are_not_deleted(source: Snapshot, table: Varied) -> None:
    assert count_rows(source) == table.rows.num_rows


def test_fragment_has_live_and_physical_rows(source: Snapshot) -> None:
    fragments = source.manifest.fragments
    assert [live_rows(*places(source), f) for f in fragments] == [7, 8, 7, 4, 1]
    assert [physical_rows(*places(source), f) for f in fragments] == [10, 10, 10, 6, 1]


def without_counts(fragment: Fragment) -> Fragment:
    deletion = fragment.deletion_file
    uncounted = None if deletion is None else replace(deletion, num_deleted_rows=None)
    return replace(fragment, physical_rows=None, deletion_file=uncounted)


def test_counts_that_the_manifest_does_not_have_come_from_files(source: Snapshot) -> None:
    bare = [without_counts(f) for f in source.manifest.fragments]
    assert [live_rows(*places(source), f) for f in bare] == [7, 8, 7, 4, 1]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ScanRequest(), 27),
        (ScanRequest(limit=5), 5),
        (ScanRequest(offset=20), 7),
        (ScanRequest(offset=20, limit=3), 3),
        (ScanRequest(offset=100), 0),
        (ScanRequest(filter="key < 10"), 7),
        (ScanRequest(filter="key < 10", limit=2, offset=6), 1),
        (ScanRequest(filter="false"), 0),
        (ScanRequest(include_deleted_rows=True), 37),
        (ScanRequest(include_deleted_rows=True, filter="key < 10"), 10),
    ],
)
def test_scan_is_counted(source: Snapshot, request_: ScanRequest, expected: int) -> None:
    assert count(plan(source, request_)) == expected
