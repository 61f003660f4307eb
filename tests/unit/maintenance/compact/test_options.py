"""Invalid options are refused, and the table's config sets defaults."""

from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.maintenance.compact.options import CompactionMode, CompactionSettings, from_config


def test_config_sets_what_is_not_given() -> None:
    found = from_config(
        {
            "lance.compaction.target_rows_per_fragment": "500",
            "lance.compaction.materialize_deletions": "false",
            "lance.compaction.materialize_deletions_threshold": "0.5",
            "lance.compaction.compaction_mode": "try_binary_copy",
            "lance.other": "x",
        }
    )
    assert found == CompactionSettings(
        target_rows_per_fragment=500,
        materialize_deletions=False,
        materialize_deletions_threshold=0.5,
        compaction_mode=CompactionMode.TRY_BINARY_COPY,
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("target_rows_per_fragment", "many"),
        ("max_source_rows", "-1"),
        ("materialize_deletions", "yes"),
        ("materialize_deletions_threshold", "a tenth"),
        ("compaction_mode", "fast"),
    ],
)
def test_config_that_cannot_be_read_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=text):
        from_config({f"lance.compaction.{name}": text})


@pytest.mark.parametrize("name", ["max_source_fragments", "max_source_rows", "max_source_bytes"])
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        CompactionSettings(**{name: 0})


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="target_rows_per_fragment"):
        CompactionSettings(target_rows_per_fragment=-1)
