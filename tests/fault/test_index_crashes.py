"""A table is valid, with complete indices, wherever work on an index stops."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.official import RELEASES, OfficialPool, is_installed
from tests.support.scalar_index_tables import rows

JUDGED = 5
ASK = """
ds = lance.dataset(uri)
result = [
    sorted(ds.to_table(filter="i < 0", columns=["n"], use_scalar_index=use)["n"].to_pylist())
    for use in (True, False)
]
"""


def _segments(ds: lance.LanceDataset) -> None:
    built = [ds.create_index_uncommitted("k", "BITMAP", fragment_ids=[n]) for n in (0, 1)]
    merged = ds.merge_existing_index_segments(built)
    ds.commit_existing_index_segments("k_idx", "k", [merged])


WORKS: dict[str, Callable[[lance.LanceDataset], Any]] = {
    "create": lambda ds: ds.create_scalar_index("s", "BTREE"),
    "create zones": lambda ds: ds.create_scalar_index("d", "ZONEMAP"),
    "replace": lambda ds: ds.create_scalar_index("i", "BITMAP"),
    "refresh": lambda ds: ds.optimize.optimize_indices(),
    "add a segment": lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
    "rebuild": lambda ds: ds.optimize.optimize_indices(retrain=True),
    "drop": lambda ds: ds.drop_index("i_idx"),
    "commit segments": _segments,
    "compact": lambda ds: ds.optimize.compact_files(num_threads=1),
    "compact and defer": lambda ds: ds.optimize.compact_files(
        num_threads=1, defer_index_remap=True
    ),
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table to be copied: an index, and rows that came after it."""
    uri = tmp_path_factory.mktemp("indices") / "kept.lance"
    ds = lance.write_dataset(rows(60), uri, max_rows_per_file=20)
    ds.create_scalar_index("i", "BTREE")
    ds.insert(rows(20, seed=1))
    ds.delete("n % 7 = 3")
    return uri


@contextmanager
def stores(calls: FailingCalls) -> Iterator[None]:
    """Let every store of local files be hit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", lambda uri: calls.on(LocalStore(uri)))
        yield


def seen(uri: Path) -> Any:
    ds = lance.dataset(uri)
    indices = [
        (i.name, i.index_type, sorted(map(sorted, (s.fragment_ids for s in i.segments))))
        for i in ds.describe_indices()
        if i.index_type != "FragmentReuse"
    ]
    return indices, len(ds.get_fragments())


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize("name", WORKS)
def test_work_that_stops_at_any_store_call_leaves_complete_indices(
    name: str, stop: Stop, kept: Path, tmp_path: Path, officials: OfficialPool
) -> None:
    work = WORKS[name]
    counted = Path(shutil.copytree(kept, tmp_path / "counted.lance"))
    calls = FailingCalls()
    before = seen(counted)
    with stores(calls):
        work(lance.dataset(counted))
    after = seen(counted)
    for number in range(len(calls.calls)):
        uri = Path(shutil.copytree(kept, tmp_path / f"{number}.lance"))
        with stores(FailingCalls([number], stop=stop, error=Crash)), pytest.raises(Crash):
            work(lance.dataset(uri))
        assert seen(uri) in (before, after), f"stopped {stop.value} call {number}"
        found = check(Location.parse(uri), data=True, versions="all")
        assert [f for f in found if f.severity is Severity.ERROR] == []
        release = RELEASES[number // JUDGED % len(RELEASES)]
        if number % JUDGED == 0 and is_installed(release):
            by_index, by_scan = officials(release).run(uri, ASK)
            assert by_index == by_scan
        if seen(uri) == before:
            work(lance.dataset(uri))
            assert seen(uri)[0] == after[0] or name.startswith("compact")
        shutil.rmtree(uri)
