"""The check reports no errors in tables of official releases."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.strategies.histories import histories
from tests.strategies.history import run_history
from tests.strategies.target import FILE_VERSIONS, Target
from tests.support.official import RELEASES, Official, OfficialPool, is_installed
from tests.support.sound_tables import build_sound, findings

TARGETS = [
    Target(release=release, file_version=version)
    for release, version in itertools.product(RELEASES, FILE_VERSIONS)
]


def test_a_table_with_every_feature_is_in_order(official: Official, tmp_path: Path) -> None:
    root = build_sound(official, tmp_path / "table.lance")
    assert findings(root, data=True, versions="all") == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_history_leaves_a_table_in_order(
    target: Target,
    data: st.DataObject,
    officials: OfficialPool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if not is_installed(target.release):
        pytest.skip(f"official release {target.release} is not installed under .interop/")
    root: Path = tmp_path_factory.mktemp("history") / "table.lance"
    run_history(officials(target.release), str(root), data.draw(histories(target)))
    found = check(Location.parse(root), data=True, versions="all")
    # Rows that no index covers are right, and no damage.
    bad = [f for f in found if f.severity is not Severity.INFO and f.code != "index-coverage-low"]
    assert bad == []
