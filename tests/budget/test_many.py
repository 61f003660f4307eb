"""Store calls do not grow with the number of versions or fragments."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.describe.summary import describe
from lancelake.maintenance.check.run import check
from lancelake.maintenance.optimize import OptimizeSettings, optimize
from lancelake.maintenance.repair import plan
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from tests.cli.conftest import run as run  # noqa: PLC0414  # a fixture
from tests.support.counting_store import CountingStore

FEW, MANY = 80, 240
ROWS = pa.table({"a": [1, 2]})

Calls = Counter[str]
Count = Callable[[Callable[[], object]], Calls]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return tables of one fragment and as many versions."""
    return {count: _versions(tmp_path_factory.mktemp("v"), count) for count in (FEW, MANY)}


@pytest.fixture(scope="module")
def fragments(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return tables of one version and as many fragments."""
    return {count: _fragments(tmp_path_factory.mktemp("f"), count) for count in (FEW, MANY)}


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Return a function that counts the calls to stores by their kind."""
    stores: list[CountingStore] = []

    def counted(uri: str) -> CountingStore:
        stores.append(CountingStore(LocalStore(uri)))
        return stores[-1]

    monkeypatch.setattr(location, "LocalStore", counted)

    def of(operation: Callable[[], object]) -> Calls:
        stores.clear()
        operation()
        return Counter(call for store in stores for call, _ in store.paths)

    return of


def head(root: Path) -> Snapshot:
    """Open the newest version."""
    return open_snapshot(Location.parse(root), Latest())


def _append(root: Path, copies: Path) -> Callable[[], object]:
    copy = Path(shutil.copytree(root, copies / root.parent.name))
    return lambda: lance.write_dataset(ROWS, copy, mode="append")


LOOKS: dict[str, Callable[[Path], object]] = {
    "open": lance.dataset,
    "count": lambda root: lance.dataset(root).count_rows(),
    "plan of a scan": lambda root: lance.dataset(root).scanner(filter="a = 1"),
    "info": lambda root: describe(head(root)),
    "check": lambda root: list(check(Location.parse(root))),
    "repair": lambda root: plan(Location.parse(root)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_more_versions_cost_no_more_calls(
    look: str, count: Count, versions: dict[int, Path]
) -> None:
    few, many = (count(partial(LOOKS[look], versions[size])) for size in (FEW, MANY))
    assert many == few


@pytest.mark.parametrize("look", LOOKS)
def test_more_fragments_cost_no_more_calls(
    look: str, count: Count, fragments: dict[int, Path]
) -> None:
    few, many = (count(partial(LOOKS[look], fragments[size])) for size in (FEW, MANY))
    assert many == few


def test_an_append_costs_the_same_after_many_versions(
    count: Count, versions: dict[int, Path], tmp_path: Path
) -> None:
    few, many = (count(_append(versions[size], tmp_path)) for size in (FEW, MANY))
    assert many == few


def test_an_append_costs_the_same_beside_many_fragments(
    count: Count, fragments: dict[int, Path], tmp_path: Path
) -> None:
    few, many = (count(_append(fragments[size], tmp_path)) for size in (FEW, MANY))
    assert many == few


def test_a_short_log_reads_few_manifests(
    count: Count, versions: dict[int, Path], run: Callable[..., object]
) -> None:
    calls = count(lambda: run("log", versions[MANY], "-n", "10"))
    assert calls["get"] <= 30


def test_versions_are_read_once_each(count: Count, versions: dict[int, Path]) -> None:
    table = lance.dataset(versions[MANY])
    assert count(table.versions).total() == MANY + 1


def test_nothing_to_optimize_costs_one_list(count: Count, versions: dict[int, Path]) -> None:
    at = head(versions[MANY])
    settings = OptimizeSettings(min_versions=MANY + 1)
    assert count(lambda: optimize(at, settings)) == Counter(list_names=1)


def _versions(folder: Path, count: int) -> Path:
    with disk_sync.waiting(waits=False):
        table = lance.write_dataset(ROWS, folder / "table.lance")
        for number in range(count - 1):
            table.update_config({"number": str(number)})
    return folder / "table.lance"


def _fragments(folder: Path, count: int) -> Path:
    with disk_sync.waiting(waits=False):
        rows = pa.table({"a": range(count)})
        lance.write_dataset(rows, folder / "table.lance", max_rows_per_file=1)
    return folder / "table.lance"
