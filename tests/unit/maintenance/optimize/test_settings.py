"""Thresholds from the table's config."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.maintenance.optimize import OptimizeSettings, from_config


def test_an_empty_config_gives_the_defaults() -> None:
    settings = from_config({})
    assert (settings.compact, settings.cleanup) == (True, True)
    assert (settings.min_fragments_saved, settings.min_versions) == (4, 20)


def test_young_versions_stay_unless_an_age_is_named() -> None:
    assert from_config({}).policy.older_than == timedelta(days=14)
    retained = from_config({"lance.auto_cleanup.retain_versions": "3"}).policy
    assert (retained.older_than, retained.retain_versions) == (timedelta(days=14), 3)
    aged = from_config({"lance.auto_cleanup.older_than": "1day"}).policy
    assert aged.older_than == timedelta(days=1)


def test_tags_are_no_reason_to_stop() -> None:
    assert not from_config({}).policy.error_if_tagged_old_versions
    assert not OptimizeSettings().policy.error_if_tagged_old_versions


def test_own_keys_are_read() -> None:
    config = {
        "lancelake.optimize.compact": "false",
        "lancelake.optimize.min_versions": "7",
        "lance.compaction.target_rows_per_fragment": "99",
    }
    settings = from_config(config)
    assert (settings.compact, settings.min_versions) == (False, 7)
    assert settings.compaction.target_rows_per_fragment == 99


@pytest.mark.parametrize(
    ("name", "text"), [("compact", "yes"), ("min_versions", "-1"), ("min_fragments_saved", "few")]
)
def test_nonsense_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        from_config({f"lancelake.optimize.{name}": text})


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="min_versions"):
        OptimizeSettings(min_versions=-1)
