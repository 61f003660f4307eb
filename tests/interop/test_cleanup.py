"""Cleanup compared with official cleanups, and its result read by official releases."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.storage import disk_sync
from tests.support.official import Official
from tests.support.random_lives import STEPS, Life, branch, clone_inside, detached, stray

SEEDS = range(8)
PLAIN = [step for step in STEPS if step not in {branch, clone_inside, detached, stray}]
POLICIES: list[dict[str, object]] = [
    {"retain_versions": 1},
    {"retain_versions": 3, "delete_unverified": True},
    {"versions": [1, 3, 4]},
]
CLEAN = """
result = None
dataset = lance.dataset(uri)
stats = dataset.cleanup_old_versions(error_if_tagged_old_versions=False, **options)
result = {name: getattr(stats, name) for name in dir(stats) if not name.startswith("_")}
"""


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


def files(uri: Path) -> set[str]:
    found = {path.relative_to(uri).as_posix() for path in uri.rglob("*") if path.is_file()}
    return {path for path in found if not path.endswith("latest_version_hint.json")}


def ours(uri: Path, options: dict[str, object]) -> dict[str, int]:
    stats = lance.dataset(uri).cleanup_old_versions(error_if_tagged_old_versions=False, **options)  # type: ignore[arg-type]  # options by name
    return {name: getattr(stats, name) for name in dir(stats) if not name.startswith("_")}


@pytest.mark.parametrize("options", POLICIES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_newest_release_leaves_the_same_files(
    official_14: Official, seed: int, options: dict[str, object], tmp_path: Path
) -> None:
    life = Life(tmp_path / "table.lance", seed)
    life.live(14, PLAIN)
    other = Path(shutil.copytree(life.top, tmp_path / "other.lance"))
    counted = ours(life.top, options)
    assert counted == official_14.run(other, CLEAN, options=options)
    assert files(life.top) == files(other)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_older_release_leaves_at_least_the_same_files(
    official_4: Official, seed: int, tmp_path: Path
) -> None:
    """It leaves files that are younger than the oldest version that stays."""
    life = Life(tmp_path / "table.lance", seed)
    life.live(14, PLAIN)
    other = Path(shutil.copytree(life.top, tmp_path / "other.lance"))
    ours(life.top, {"retain_versions": 2})
    official_4.run(other, CLEAN, options={"retain_versions": 2})
    assert files(life.top) <= files(other)
    assert not any(path.endswith(".manifest") for path in files(other) - files(life.top))


@pytest.mark.parametrize("seed", SEEDS)
def test_official_releases_read_every_version_that_is_left(
    official: Official, seed: int, tmp_path: Path
) -> None:
    life = Life(tmp_path / "table.lance", seed)
    life.live(14)
    for name in life.branches:
        ours(life.root(name), {"retain_versions": 2, "delete_unverified": True})
    for (root, version), rows in life.rows().items():
        assert official.read(root, version=version) == rows


def forked(uri: Path) -> None:
    """Make a table of five versions, with a branch that begins at the second."""
    for number in range(5):
        lance.write_dataset(pa.table({"a": [number]}), uri, mode="overwrite")
    lance.dataset(uri, version=2).create_branch("b")


def test_a_version_where_a_branch_begins_keeps_its_transaction(
    official: Official, tmp_path: Path
) -> None:
    """Official releases remove the transaction of a version that they keep for a branch."""
    mine, other = tmp_path / "mine.lance", tmp_path / "other.lance"
    forked(mine)
    forked(other)
    mine_transaction = lance.dataset(mine, version=2)._snapshot.manifest.transaction_file
    ours(mine, {"retain_versions": 1})
    official.run(other, CLEAN, options={"retain_versions": 1})
    assert f"_transactions/{mine_transaction}" in files(mine)
    assert len(files(mine)) == len(files(other)) + 1
    assert official.read(mine, version=2) == pa.table({"a": [1]})
    assert official.read(mine / "tree" / "b") == pa.table({"a": [1]})


def test_what_a_detached_version_needs_stays(official: Official, tmp_path: Path) -> None:
    """Official releases do not look at detached versions when they clean up."""
    uri = tmp_path / "table.lance"
    for number in range(3):
        lance.write_dataset(pa.table({"a": [number]}), uri, mode="overwrite")
    old = [fragment.metadata for fragment in lance.dataset(uri, version=1).get_fragments()]
    made = lance.LanceDataset.commit(
        uri, lance.LanceOperation.Append(old), read_version=3, detached=True
    )
    ours(uri, {"retain_versions": 1, "delete_unverified": True})
    expected = pa.table({"a": [2, 0]})
    assert lance.dataset(uri, version=made.version).to_table() == expected
    assert official.read(uri, version=made.version) == expected


def test_the_newest_release_finishes_beside_our_record(
    official_14: Official, tmp_path: Path
) -> None:
    """The record of an interrupted cleanup means nothing to official releases."""
    uri = tmp_path / "table.lance"
    for number in range(3):
        lance.write_dataset(pa.table({"a": [number]}), uri, mode="overwrite")
    (uri / "_cleanup").mkdir()
    (uri / "_cleanup" / "x.json").write_text('{"paths": []}')
    official_14.run(uri, CLEAN, options={"retain_versions": 1})
    assert official_14.append(uri, pa.table({"a": [9]})) == 4
    assert lance.dataset(uri).to_table() == pa.table({"a": [2, 9]})
