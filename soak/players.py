"""Participants of a round: processes for this round, or a long-running Spark application.

A Spark application takes long to start and longer to become quick; so it plays in many rounds. What
it is to play is a file in its folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from soak.actor import Part
from soak.plan import OURS, SPARK
from tests.support.official import interpreter

OFFERED = "part.json"
PLAYING = "playing.json"
_REPO = Path(__file__).resolve().parents[1]
_TICK_S = 0.1


class Player(Protocol):
    """Someone who plays a part."""

    errors: Path
    """What it said when something went wrong."""

    def poll(self) -> int | None:
        """Return how its process ended; None while it is there."""

    def kill(self) -> None:
        """End its process now."""

    def has_ended(self, patience_s: float) -> bool:
        """Wait until the part is over; False when it takes longer."""


class ForOneRound:
    """A process that plays one part."""

    def __init__(self, part: Part, who: str, errors: Path, *, is_humble: bool) -> None:
        """Start it."""
        self.errors = errors
        self._process = run_module(
            "soak.actor", json.dumps(asdict(part)), who, errors, is_humble=is_humble
        )

    def poll(self) -> int | None:
        """Return how the process ended; None while it is there."""
        return self._process.poll()

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()
        self._process.wait()

    def has_ended(self, patience_s: float) -> bool:
        """Wait until the process ends."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True


class SparkHost:
    """Keeps a Spark application between rounds; starts another when it is gone."""

    def __init__(self, folder: Path) -> None:
        """Start the first application."""
        self._root = folder
        self._count = 0
        self._begin()

    def play(self, part: Part) -> SparkPlayer:
        """Offer a part to the application."""
        if self._process.poll() is not None:
            self._begin()
        draft = self.folder / "draft.json"
        draft.write_text(json.dumps(asdict(part)))
        draft.rename(self.folder / OFFERED)
        return SparkPlayer(self._process, self.folder)

    def close(self) -> None:
        """End the application."""
        self._process.kill()
        self._process.wait()

    def _begin(self) -> None:
        self.folder = self._root / f"spark-{self._count}"
        self.folder.mkdir(parents=True)
        self._count += 1
        errors = self.folder / "spark.err"
        self._process = run_module("soak.spark_actor", str(self.folder), SPARK, errors)


class SparkPlayer:
    """A part in the hands of a Spark application."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        """Watch a part in the folder."""
        self.errors = folder / "spark.err"
        self._process = process
        self._folder = folder

    def poll(self) -> int | None:
        """Return how the application ended; None while it is there."""
        return self._process.poll()

    def kill(self) -> None:
        """End the application now, unless the part is over."""
        if not self._is_over():
            self._process.kill()
            self._process.wait()

    def has_ended(self, patience_s: float) -> bool:
        """Wait until the part is over; one that was not begun is withdrawn."""
        (self._folder / OFFERED).unlink(missing_ok=True)
        begun = time.monotonic()
        while not self._is_over() and self.poll() is None:
            if time.monotonic() - begun > patience_s:
                return False
            time.sleep(_TICK_S)
        return True

    def _is_over(self) -> bool:
        return not any((self._folder / name).exists() for name in (OFFERED, PLAYING))


def run_module(
    module: str,
    given: str,
    who: str,
    errors: Path,
    *,
    answers: bool = False,
    is_humble: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a module of this package in the environment of a release, or in ours.

    One that is humble lets others go first when there are few cores.
    """
    python = sys.executable if who in (OURS, SPARK) else str(interpreter(who))
    with errors.open("ab") as stderr:
        return subprocess.Popen(
            [*(("nice",) if is_humble else ()), python, "-m", module, given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if answers else stderr,
            stderr=stderr,
            cwd=_REPO,
            env={**os.environ, "PYTHONPATH": f"{_REPO / 'src'}:{_REPO}"},
        )
