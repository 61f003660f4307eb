"""The harness survives failures of official releases."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_table
from tests.support.official import Official, OfficialError

ROWS = pa.table({"key": pa.array([1, 2, 3]), "text": ["a", None, ""]})


def test_a_table_comes_back_as_it_was_sent(official: Official, tmp_table: str) -> None:
    assert official.write(tmp_table, ROWS, data_storage_version="2.1") == 1
    assert_same_table(official.read(tmp_table), ROWS)


def test_wide_values_survive_the_transport(official: Official, tmp_table: str) -> None:
    wide = pa.table({"n": pa.array([None, 1, None], pa.decimal128(38, 3))})
    official.write(tmp_table, wide, data_storage_version="2.1")
    assert_same_table(official.read(tmp_table), wide)


def test_info_describes_versions_fragments_and_refs(official: Official, tmp_table: str) -> None:
    official.write(tmp_table, ROWS, max_rows_per_file=2)
    official.tag(tmp_table, "first", 1)
    official.delete(tmp_table, "key = 1")
    info = official.info(tmp_table)
    assert (info.version, info.versions, info.count_rows) == (2, (1, 2), 2)
    assert [(f.physical_rows, f.num_deletions) for f in info.fragments] == [(2, 1), (1, 0)]
    assert info.tags["first"]["version"] == 1
    assert info.schema.names == ["key", "text"]


def test_a_branch_is_opened_by_its_uri(official: Official, tmp_table: str) -> None:
    official.write(tmp_table, ROWS)
    side = official.branch(tmp_table, "side")
    official.append(side, ROWS)
    assert (official.count_rows(tmp_table), official.count_rows(side)) == (3, 6)


def test_a_refusal_keeps_its_kind(official: Official, tmp_table: str) -> None:
    with pytest.raises(OfficialError, match="was not found") as caught:
        official.read(tmp_table)
    assert caught.value.kind == "ValueError"
    assert not caught.value.is_crash


def test_a_dead_worker_shows_its_last_words_and_is_replaced(
    official: Official, tmp_table: str
) -> None:
    last_words = "import os, sys; sys.stderr.write('farewell'); sys.stderr.flush(); os._exit(3)"
    with pytest.raises(OfficialError, match=r"(?s)exit code 3; stderr: .*farewell") as caught:
        official.run(tmp_table, last_words)
    assert caught.value.is_crash
    assert official.write(tmp_table, ROWS) == 1


def test_a_panic_is_reported_as_a_crash(official_4: Official, tmp_table: str) -> None:
    zoned = pa.table({"t": pa.array([0], pa.timestamp("us", "+05:30"))})
    with pytest.raises(OfficialError) as caught:
        official_4.write(tmp_table, zoned)
    assert caught.value.kind == "PanicException"
    assert official_4.write(tmp_table, ROWS) == 1


def test_a_worker_that_hangs_is_given_up(tmp_path: Path, official_4: Official) -> None:
    with Official(official_4.release, timeout_s=60.0) as impatient:
        impatient.run(tmp_path, "pass")
        impatient.timeout_s = 0.2
        with pytest.raises(OfficialError) as caught:
            impatient.run(tmp_path, "import threading; threading.Event().wait()")
    assert caught.value.kind == "TimedOut"


def test_noise_on_stdout_does_not_reach_the_answers(official: Official, tmp_path: Path) -> None:
    assert official.run(tmp_path, "import os; os.write(1, b'noise'); result = 7") == 7
