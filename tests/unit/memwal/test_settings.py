from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.memwal.setup import RECORDED, recorded, writer_options


def test_all_settings_are_recorded_as_soon_as_one_is_given() -> None:
    assert recorded({}) == {}
    found = recorded({"max_memtable_rows": 5, "durable_write": False})
    assert found == {**RECORDED, "max_memtable_rows": "5", "durable_write": "false"}


def test_settings_of_a_writer_come_before_those_of_the_table() -> None:
    stored = {"max_memtable_rows": "5", "max_memtable_size": "100", "other": "x"}
    found = writer_options(stored, {"max_memtable_rows": 7})
    assert (found.max_memtable_rows, found.max_memtable_bytes) == (7, 100)


def test_unknown_and_impossible_settings_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no setting max_rows"):
        writer_options({}, {"max_rows": 1})
    with pytest.raises(InvalidRequestError, match="max_memtable_rows must be at least 1"):
        recorded({"max_memtable_rows": 0})


def test_a_recorded_setting_that_is_no_number_is_reported() -> None:
    with pytest.raises(CorruptTableError, match="max_memtable_rows='many'"):
        writer_options({"max_memtable_rows": "many"}, {})
