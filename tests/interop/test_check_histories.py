"""The check reports no errors in tables of official releases."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelake.storage.location import Location
from lancelake.table.check import Severity, check
from tests.strategies.histories import histories
from tests.strategies.history import run_history
from tests.strategies.target import FILE_VERSIONS, Target
from tests.support.official import RELEASES, OfficialPool, is_installed

TARGETS = [
    Target(release=release, file_version=version)
    for release, version in itertools.product(RELEASES, FILE_VERSIONS)
]


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
