"""Laws of repair, for any damage."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.repair import RepairOptions, plan, repair
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.sound_tables import build_sound, findings
from tests.unit.maintenance.check.test_version_damage import DAMAGE

Step = Callable[[lance.LanceDataset], object]

STEPS: dict[str, Step] = {
    "append": lambda ds: ds.insert(pa.table({"a": [7, 8, 9]})),
    "delete": lambda ds: ds.delete("a % 3 = 0"),
    "update": lambda ds: ds.update({"a": "a + 1"}, where="a % 2 = 0"),
    "compact": lambda ds: ds.optimize.compact_files(),
    "config": lambda ds: ds.update_config({"key": "value"}),
    "restore": lambda ds: lance.dataset(ds.uri, 1).restore(),
    "overwrite": lambda ds: lance.write_dataset(pa.table({"a": [1, 2]}), ds.uri, mode="overwrite"),
}
BY_NAME = {name: damage for name, damage, _, _ in DAMAGE}
WISHES = st.builds(
    RepairOptions,
    data=st.booleans(),
    notes=st.booleans(),
    drop_lost=st.booleans(),
    replace_invalid_utf8=st.booleans(),
    new_row_ids=st.booleans(),
    remove_refs=st.booleans(),
)


@pytest.fixture(scope="session")
def whole(official_14: Official, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table that is in order, and must stay so."""
    return build_sound(official_14, tmp_path_factory.mktemp("whole") / "whole.lance")


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=6),
    stable=st.booleans(),
    options=WISHES,
)
def test_a_table_in_order_needs_no_repair(
    steps: list[str], stable: bool, options: RepairOptions
) -> None:
    with tempfile.TemporaryDirectory() as folder, disk_sync.waiting(waits=False):
        uri = str(Path(folder) / "table.lance")
        rows = pa.table({"a": range(20)})
        lance.write_dataset(rows, uri, max_rows_per_file=5, enable_stable_row_ids=stable)
        for step in steps:
            STEPS[step](lance.dataset(uri))
        asked = RepairOptions(
            data=options.data, drop_lost=options.drop_lost, new_row_ids=options.new_row_ids
        )
        planned = plan(Location.parse(uri), asked)
        assert (planned.has_work, planned.left) == (False, ())


@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(BY_NAME)), min_size=2, max_size=3, unique=True),
    options=WISHES,
)
def test_damage_of_several_kinds_never_gets_worse(
    names: list[str], options: RepairOptions, whole: Path
) -> None:
    with tempfile.TemporaryDirectory() as folder, disk_sync.waiting(waits=False):
        table = Path(shutil.copytree(whole, Path(folder) / "table.lance"))
        for name in names:
            try:
                BY_NAME[name](table)
            except (LanceTableError, ValueError, IndexError, OSError, StopIteration):
                # What it would damage is damaged too much already.
                continue
        before = _problems(table)
        done = repair(Location.parse(table), options)
        after = _problems(table)
        assert after <= before
        assert done.done.has_work or after == before


def _problems(root: Path) -> Counter[str]:
    return Counter(f.code for f in findings(root) if f.severity is not Severity.INFO)
