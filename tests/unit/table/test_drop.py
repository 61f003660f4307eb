"""Interrupted removal of a table is completed by the next."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import TableNotFoundError
from lancelake.storage import location
from lancelake.storage.local import LocalStore
from tests.support.failing_store import Crash, FailingCalls, Stop


@pytest.fixture
def uri(tmp_path: Path) -> str:
    table = lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "table.lance"))
    table.insert(pa.table({"a": [2]}))
    return str(tmp_path / "table.lance")


def files(uri: str) -> list[Path]:
    return [path for path in Path(uri).rglob("*") if path.is_file()]


def test_nothing_is_left_of_a_table(uri: str) -> None:
    lance.LanceDataset.drop(uri)
    assert not Path(uri).exists()


@pytest.mark.parametrize("name", ["_versions/1.manifest", "_versions/README", "data/0.lance"])
def test_files_of_someone_else_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / "folder" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"irreplaceable")
    with pytest.raises(ValueError, match="no readable Lance manifest"):
        lance.LanceDataset.drop(tmp_path / "folder")
    assert path.read_bytes() == b"irreplaceable"


def test_a_table_with_a_damaged_version_can_be_dropped(uri: str) -> None:
    max(Path(uri, "_versions").glob("*.manifest")).write_bytes(b"damaged")
    lance.LanceDataset.drop(uri)
    assert not Path(uri).exists()


def test_unfinished_files_go_with_a_table(uri: str) -> None:
    Path(uri, "_versions", "17.manifest#1").write_bytes(b"half")
    lance.LanceDataset.drop(uri)
    assert not Path(uri).exists()


def test_a_link_in_a_table_goes_and_what_it_leads_to_stays(uri: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    for name in ("data/sub", "_indices", "tree"):
        Path(uri, name).symlink_to(victim)
    Path(uri, "data", "loop").symlink_to(Path(uri, "data", "loop"))
    lance.LanceDataset.drop(uri)
    assert not Path(uri).exists()
    assert (victim / "precious").read_text() == "mine"


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize("number", range(1, 6))
def test_what_can_be_opened_after_a_stop_is_whole(uri: str, number: int, stop: Stop) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        calls = FailingCalls([number], stop=stop, error=Crash)
        patch.setattr(location, "LocalStore", lambda root: calls.on(LocalStore(root)))
        lance.LanceDataset.drop(uri)
    try:
        rows = lance.dataset(uri).to_table()["a"].to_pylist()
    except TableNotFoundError:
        rows = []
    assert rows in ([1, 2], [1], [])
    lance.LanceDataset.drop(uri, ignore_not_found=True)
    assert files(uri) == []


def test_other_files_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").write_text("mine")
    with pytest.raises(TableNotFoundError):
        lance.LanceDataset.drop(str(tmp_path))
    assert files(str(tmp_path))


def test_a_missing_table_can_be_ignored(tmp_path: Path) -> None:
    lance.LanceDataset.drop(str(tmp_path / "none"), ignore_not_found=True)
