"""Cleanup removes unneeded files and keeps the others."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.clock import SystemClock
from lancelake.engine.port import Job, JobProgress, LocalEngine
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.maintenance.cleanup import run
from lancelake.maintenance.cleanup.plan import CleanupPolicy, Reason
from lancelake.maintenance.cleanup.run import CleanupReport, clean_up
from lancelake.maintenance.reachable import FileKind, KnownRefs
from lancelake.storage import disk_sync
from lancelake.storage.location import Location, Session
from tests.support.full_disk import full_disk
from tests.support.open_files import open_files, open_removed_files
from tests.support.set_clock import ManualClock
from tests.support.table_surgery import edit_manifest, manifest_path

NEWEST = CleanupPolicy(retain_versions=1, error_if_tagged_old_versions=False)
WEEK_S = 7 * 86_400


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a table of four versions without common files."""
    uri = tmp_path / "t.lance"
    for number in range(4):
        lance.write_dataset(pa.table({"a": [number]}), uri, mode="overwrite")
    return uri


def clean(root: Path, policy: CleanupPolicy = NEWEST, **options: object) -> CleanupReport:
    return clean_up(Location.parse(root), policy, **options)  # type: ignore[arg-type]  # by name


def versions(root: Path) -> list[int]:
    return [version["version"] for version in lance.dataset(root).versions()]


def reasons(report: CleanupReport) -> dict[str, Reason]:
    return {file.path: file.reason for file in (*report.plan.going, *report.plan.staying)}


def test_versions_before_the_newest_go(root: Path) -> None:
    report = clean(root)
    assert report.versions == (1, 2, 3)
    assert versions(root) == [4]
    assert len(list((root / "data").iterdir())) == 1


def test_versions_from_the_open_one_on_stay(root: Path) -> None:
    lance.dataset(root, version=3).cleanup_old_versions(timedelta(0))
    assert versions(root) == [3, 4]


def test_a_tagged_version_is_an_error_on_request(root: Path) -> None:
    lance.dataset(root).tags.create("t", 2)
    with pytest.raises(InvalidRequestError, match=r'1 tagged version\(s\) .* \{"t": 2\}'):
        clean(root, CleanupPolicy(retain_versions=1, error_if_tagged_old_versions=True))
    assert versions(root) == [1, 2, 3, 4]
    clean(root)
    assert versions(root) == [2, 4]


def test_a_tag_on_a_branch_keeps_no_version_of_the_main_line(root: Path) -> None:
    branch = lance.dataset(root, version=1).create_branch("b")
    branch.tags.create("t", ("b", 1))
    lance.dataset(root).branches.list()
    clean(root)
    assert versions(root) == [1, 4]
    lance.write_dataset(pa.table({"a": [9]}), root / "tree/b", mode="overwrite")
    clean(root / "tree/b")
    assert versions(root / "tree/b") == [1, 2]


def test_files_of_a_branch_that_is_being_made_stay(root: Path) -> None:
    """Its versions are there before its document is."""
    lance.dataset(root, version=1).create_branch("b")
    (root / "_refs/branches/b.json").unlink()
    clean(root, CleanupPolicy(retain_versions=1, delete_unverified=True))
    assert lance.dataset(root / "tree/b").to_table() == pa.table({"a": [0]})


def test_a_detached_version_goes_when_it_is_named(root: Path) -> None:
    detached = lance.LanceDataset.commit(
        root, lance.LanceOperation.Append([]), read_version=2, detached=True
    )
    clean(root)
    assert lance.dataset(root, version=detached.version).to_table() == pa.table({"a": [1]})
    clean(root, CleanupPolicy(versions=frozenset({detached.version})))
    assert list((root / "_versions").glob("d*")) == []
    assert len(list((root / "data").iterdir())) == 1


@pytest.mark.parametrize("name", ["stray.lance", ".tmpyXrnb7"])
def test_files_of_no_version_stay_for_a_week(root: Path, name: str) -> None:
    stray = root / "data" / name
    stray.touch()
    assert reasons(clean(root))[f"data/{name}"] is Reason.YOUNG
    os.utime(stray, (0, SystemClock().now_ns() / 1e9 - WEEK_S - 1))
    assert reasons(clean(root))[f"data/{name}"] is Reason.ABANDONED
    assert not stray.exists()


def test_old_files_of_a_transaction_about_to_be_committed_stay(root: Path) -> None:
    written = lance.fragment.write_fragments(pa.table({"a": [7]}), root)
    assert isinstance(written, list)
    names = [file.path for fragment in written for file in fragment.files]
    for name in names:
        os.utime(root / "data" / name, (0, 0))
    lance.LanceDataset.commit(root, lance.LanceOperation.Append(written), read_version=4)
    manifest = manifest_path(root, 5)
    manifest.rename(root / "kept")
    assert {reasons(clean(root))[f"data/{name}"] for name in names} == {Reason.IN_FLIGHT}
    (root / "kept").rename(manifest)
    assert lance.dataset(root).count_rows() == 2


def test_what_others_put_there_stays(root: Path) -> None:
    strange = [root / "data" / "notes.txt", root / "_versions" / "readme", root / "other.lance"]
    for path in strange:
        path.touch()
        os.utime(path, (0, 0))
    clean(root, CleanupPolicy(retain_versions=1, delete_unverified=True))
    assert all(path.exists() for path in strange)


def test_a_version_that_cannot_be_read_stops_the_cleanup(root: Path) -> None:
    manifest_path(root, 2).write_bytes(b"damaged")
    with pytest.raises(CorruptTableError, match=str(root)):
        clean(root)
    assert len(list((root / "data").iterdir())) == 4


def test_a_feature_that_is_not_known_stops_the_cleanup(root: Path) -> None:
    edit_manifest(root, lambda m: setattr(m, "writer_feature_flags", 1 << 40), version=2)
    with pytest.raises(UnsupportedError, match="the files they need are unknown"):
        clean(root)
    assert len(list((root / "data").iterdir())) == 4


def happen_meanwhile(patch: pytest.MonkeyPatch, what: Callable[[], object]) -> None:
    """Let something happen right before tags and branches are read for the second time."""
    load = KnownRefs.load
    calls = itertools.count(1)

    def loaded(main: Location) -> KnownRefs:
        if next(calls) == 2:
            what()
        return load(main)

    patch.setattr(KnownRefs, "load", staticmethod(loaded))


def test_a_version_that_gets_a_tag_meanwhile_stays_whole(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happen_meanwhile(monkeypatch, lambda: lance.dataset(root).tags.create("t", 2))
    report = clean(root)
    assert report.versions == (1, 3)
    assert lance.dataset(root, version=2).to_table() == pa.table({"a": [1]})


def test_files_of_a_version_that_is_restored_meanwhile_stay(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happen_meanwhile(monkeypatch, lambda: lance.dataset(root, version=1).restore())
    clean(root)
    assert versions(root) == [4, 5]
    assert lance.dataset(root).to_table() == pa.table({"a": [0]})


def test_files_of_a_version_that_is_restored_right_before_it_goes_stay(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = lance.dataset(root, version=1)
    monkeypatch.setattr(run, "update_hint", lambda *_: old.restore())
    clean(root)
    assert lance.dataset(root).to_table() == pa.table({"a": [0]})


def test_nothing_is_written_down_when_all_is_done(root: Path) -> None:
    clean(root)
    assert list((root / "_cleanup").iterdir()) == []


def test_nothing_to_do_writes_nothing(root: Path) -> None:
    clean(root, CleanupPolicy())
    assert not (root / "_cleanup").exists()


def test_a_broken_record_is_left_alone(root: Path) -> None:
    (root / "_cleanup").mkdir()
    (root / "_cleanup" / "x.json").write_text("{")
    clean(root)
    assert versions(root) == [4]


def test_progress_is_reported(root: Path) -> None:
    told: list[JobProgress] = []
    clean(root, progress=told.append)
    assert {step.description.split()[0] for step in told} == {"list", "read", "remove"}


def test_branches_are_cleaned_first_when_asked(root: Path) -> None:
    lance.dataset(root, version=2).create_branch("b")
    lance.write_dataset(pa.table({"a": [9]}), root / "tree/b", mode="overwrite")
    policy = CleanupPolicy(retain_versions=1, clean_referenced_branches=True)
    report = clean(root, policy)
    assert [(each.plan.branch, each.versions) for each in report.branches] == [("b", (2,))]


def test_work_is_cut_into_tasks_for_an_engine(root: Path) -> None:
    kinds: list[str] = []

    class Watching:
        parallelism = 2

        def run(self, job: Job) -> Iterator[bytes]:
            kinds.extend(type(task).__name__ for task in job.tasks)
            # Another process would get copies.
            copies = replace(job, tasks=pickle.loads(pickle.dumps(job.tasks)))
            return LocalEngine(parallelism=1).run(copies)

    clean(root, engine=Watching())
    assert kinds == ["ListFolder"] * 4 + ["ReadVersions", "RemoveFiles"]


def test_age_is_measured_by_the_clock_that_is_given(root: Path) -> None:
    later = ManualClock(ns=SystemClock().now_ns() + 15 * 86_400 * 10**9)
    clean_up(Location.parse(root, session=Session(clock=later)), CleanupPolicy())
    assert versions(root) == [4]


def test_a_disk_is_asked_by_one_thread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[int] = []

    def noted(*, parallelism: int) -> LocalEngine:
        engines.append(parallelism)
        return LocalEngine(parallelism=parallelism)

    monkeypatch.setattr(run, "LocalEngine", noted)
    clean(root)
    assert engines == [1]


def test_a_full_disk_does_not_keep_a_cleanup_from_making_room(root: Path) -> None:
    with full_disk():
        report = clean(root)
    assert report.versions == (1, 2, 3)
    assert not report.failed
    assert len(list((root / "data").iterdir())) == 1
    assert lance.dataset(root).to_table()["a"].to_pylist() == [3]


@pytest.mark.parametrize("act", [clean, lance.LanceDataset.drop])
def test_no_removed_file_stays_open(tmp_path: Path, act: Callable[[Path], object]) -> None:
    root = tmp_path / "t.lance"
    for number in range(3):
        # A smaller file would be read at once and closed.
        rows = pa.table({"a": [f"{number}-{row}" * 20 for row in range(5_000)]})
        written = lance.write_dataset(rows, root, mode="overwrite")
        written.to_table()
        written.take([number])
    gc.collect()
    assert any(path.startswith(str(root)) for path in open_files())
    act(root)
    gc.collect()
    assert open_removed_files(root) == []


@pytest.mark.parametrize(
    "path",
    [
        "_versions/18446744073709551600.manifest#1",
        "_versions/9.manifest#2",
        "_transactions/3-a0eebc99.txn#1",
        "_deletions/0-1-5.arrow#11",
        "data/abc.lance#1",
    ],
)
def test_what_a_killed_writer_left_goes_when_it_is_old(root: Path, path: str) -> None:
    left = root / path
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    assert reasons(clean(root))[path] is Reason.YOUNG
    assert left.exists()
    os.utime(left, (0, 0))
    report = clean(root)
    assert reasons(report)[path] is Reason.ABANDONED
    assert report.totals[FileKind.TEMPORARY].files == 1
    assert not left.exists()


def test_a_file_of_no_known_kind_stays_though_its_name_looks_unfinished(root: Path) -> None:
    mine = root / "data" / "notes about c#2"
    mine.write_text("mine")
    os.utime(mine, (0, 0))
    assert reasons(clean(root))["data/notes about c#2"] is Reason.UNKNOWN
    assert mine.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"paths": ' + "[" * 200_000,
        '{"paths": 3}',
        '{"paths": {}}',
        "[]",
        "",
        "\xff",
    ],
)
def test_a_record_that_is_none_does_not_block_a_cleanup(root: Path, text: str) -> None:
    (root / "_cleanup").mkdir()
    (root / "_cleanup" / "x.json").write_text(text, encoding="latin-1")
    assert clean(root).versions == (1, 2, 3)


@pytest.mark.parametrize("target", ["x.json", "/dev/zero", "nowhere"])
def test_a_record_that_is_a_link_does_not_block_a_cleanup(root: Path, target: str) -> None:
    (root / "_cleanup").mkdir()
    (root / "_cleanup" / "x.json").symlink_to(target)
    assert clean(root).versions == (1, 2, 3)


def test_links_to_folders_are_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "tree").mkdir(exist_ok=True)
    (root / "tree" / "sub").symlink_to(elsewhere)
    listed = []
    scandir = os.scandir

    def watched(path: Any) -> Any:
        listed.append(str(Path(path).resolve()))
        return scandir(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", watched)
        clean(root)
    assert str(elsewhere) not in listed
