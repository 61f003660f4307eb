"""A Spark application receives one part after the other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from soak.drawing import Drawing
from soak.players import OFFERED, PLAYING, SparkPlayer
from soak.spark_actor import SparkActor


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Run something that ends when its input does."""
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as found:
        yield found
        found.kill()


def test_a_part_that_was_not_begun_is_taken_back(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (tmp_path / OFFERED).touch()
    assert SparkPlayer(process, tmp_path).has_ended(patience_s=0.0)
    assert not (tmp_path / OFFERED).exists()


def test_a_part_that_is_played_is_waited_for(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (tmp_path / PLAYING).touch()
    assert not SparkPlayer(process, tmp_path).has_ended(patience_s=0.0)


def test_a_part_has_ended_when_its_application_has(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (tmp_path / PLAYING).touch()
    process.kill()
    process.wait()
    assert SparkPlayer(process, tmp_path).has_ended(patience_s=0.0)


def test_an_application_outlives_a_part_that_is_over(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    player = SparkPlayer(process, tmp_path)
    player.kill()
    assert player.poll() is None
    (tmp_path / PLAYING).touch()
    player.kill()
    assert player.poll() is not None


def test_spark_can_do_and_draw_everything_in_its_deck() -> None:
    kinds = set(SparkActor.deck)
    assert kinds <= set(SparkActor.moves)
    assert all(hasattr(Drawing, f"_{kind}") for kind in kinds)
