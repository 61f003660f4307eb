"""The public API file shows changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import public_api


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return list(public_api.lines())


@pytest.fixture
def root(lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(public_api, "lines", lambda: iter(lines))
    assert public_api.main(tmp_path, update=True) == 0
    return tmp_path


def test_file_that_was_just_written_passes(root: Path) -> None:
    assert public_api.main(root) == 0


def test_missing_name_is_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / public_api.FILE
    kept = [line for line in path.read_text().splitlines() if "lancelake.dataset(" not in line]
    path.write_text("".join(f"{line}\n" for line in kept))
    assert public_api.main(root) == 1
    assert "+lancelake.dataset(uri" in capsys.readouterr().out


def test_missing_file_is_a_difference(root: Path) -> None:
    (root / public_api.FILE).unlink()
    assert public_api.main(root) == 1


@pytest.mark.parametrize(
    "beginning",
    [
        "lancelake.LanceDataset(uri, ",
        "lancelake.LanceDataset.count_rows(self, ",
        "lancelake.pylance.write_dataset(",
        "lancelake.spark.LanceTable.",
        "$ lancelake count ",
        "$ lancelake tag ",
    ],
)
def test_every_face_is_listed(lines: list[str], beginning: str) -> None:
    assert any(line.startswith(beginning) for line in lines)


def test_lines_hold_no_addresses(lines: list[str]) -> None:
    assert not [line for line in lines if " at 0x" in line]


def test_lines_are_in_the_same_order_each_time(lines: list[str]) -> None:
    assert lines == list(public_api.lines())
