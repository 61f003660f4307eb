"""Conflict verdicts match official releases for every pair, except for listed differences."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from tests.interop.verdicts.golden import Verdicts, load_scenes, load_verdicts
from tests.interop.verdicts.our_verdicts import judge
from tests.support.official import RELEASES

DIFFERENCES = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Pairs that we judge otherwise on purpose."""

    release: str
    mine: tuple[str, ...]
    theirs: tuple[str, ...]
    ours: str
    official: str
    pairs: int
    reason: str

    def covers(self, pair: tuple[str, str], ours: str, official: str) -> bool:
        """Tell whether this is the reason why a pair is judged otherwise."""
        mine, theirs = pair
        return (
            any(fnmatchcase(mine, pattern) for pattern in self.mine)
            and any(fnmatchcase(theirs, pattern) for pattern in self.theirs)
            and _kind(ours) == self.ours
            and _kind(official) == self.official
        )


@cache
def _listed(release: str) -> tuple[Difference, ...]:
    body = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))
    entries = (
        Difference(**{**e, "mine": tuple(e["mine"]), "theirs": tuple(e["theirs"])})
        for e in body["difference"]
    )
    return tuple(e for e in entries if e.release == release)


@cache
def _ours() -> dict[str, Verdicts]:
    return {name: judge(scene) for name, scene in load_scenes().items()}


def _kind(verdict: str) -> str:
    return verdict.partition(":")[0].partition(",")[0]


def _same(ours: str, official: str) -> bool:
    """Reasons are worded freely; rows are counted."""
    return ours == official or _kind(ours) == _kind(official) == "invalid"


@pytest.mark.parametrize("release", RELEASES)
def test_every_difference_from_a_release_is_listed_with_its_reason(release: str) -> None:
    unlisted = {}
    found: Counter[Difference] = Counter()
    for scene, verdicts in load_verdicts(release).items():
        for pair, official in verdicts.items():
            ours = _ours()[scene][pair]
            if _same(ours, official):
                continue
            entry = next((d for d in _listed(release) if d.covers(pair, ours, official)), None)
            if entry is None:
                unlisted[scene, *pair] = (ours, official)
            else:
                found[entry] += 1
    assert unlisted == {}
    assert [(d, found[d]) for d in _listed(release) if found[d] != d.pairs] == []
