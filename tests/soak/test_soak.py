"""A short soak with many writers, readers, kills and store failures.

`make soak` is the long one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from soak.drawing import DECK
from soak.plan import CREW, RELEASES, SoakOptions
from soak.run import run
from tests.support.official import is_installed

SECONDS = 60.0
ROUNDS = 2
LEAST = 3
"""How often every kind of operation is done in each round."""


def test_a_minute_of_everything_leaves_nothing_wrong(tmp_path: Path) -> None:
    missing = [release for release in RELEASES if not is_installed(release)]
    if missing:
        pytest.skip(f"official releases {missing} are not installed under .interop/")
    options = SoakOptions(
        seed=1,
        seconds=SECONDS,
        round_seconds=SECONDS / ROUNDS,
        crew=CREW,
        stores=("disk",),
        retention_s=8.0,
        least=LEAST,
        has_wal=False,
    )
    results = run(options, tmp_path, Console(quiet=True))
    assert [str(f) for result in results for f in result.verdict.findings] == []
    done = Counter[str]()
    for result in results:
        for (kind, _, outcome), count in result.verdict.outcomes.items():
            done[kind] += count if outcome == "ok" else 0
    assert [kind for kind in DECK if done[kind] < LEAST] == []
    assert len(results) == ROUNDS
    assert all(result.kills for result in results)
    assert sum(result.faults.total() for result in results)
