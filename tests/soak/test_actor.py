"""The logs of a process record the operations of its library."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lancelake.pylance
from soak.actor import Actor, Observer, Part, deck_of
from soak.checker import Verdict, judge
from soak.checks.finding import Wrong
from soak.drawing import DECK
from soak.history import Final, load
from soak.journal import Journal
from soak.moves import Place
from soak.table import ACCOUNTS, first_rows


class Honest:
    """A library that does what it says."""

    def dataset(self, uri: str, **options: Any) -> Any:
        return lancelake.pylance.dataset(uri, **options)

    def write_dataset(self, rows: Any, uri: str, **options: Any) -> Any:
        return lancelake.pylance.write_dataset(rows, uri, **options)


class Forgetful(Honest):
    """Says that rows are written, and forgets them."""

    def write_dataset(self, rows: Any, uri: str, **options: Any) -> Any:
        ds = self.dataset(uri)
        ds.update_config({"note": "nothing"})
        return ds


class Eager(Honest):
    """Writes rows twice."""

    def write_dataset(self, rows: Any, uri: str, **options: Any) -> Any:
        super().write_dataset(rows, uri, **options)
        return super().write_dataset(rows, uri, **options)


class Gloomy(Honest):
    """Says that rows were not written, when they were."""

    def write_dataset(self, rows: Any, uri: str, **options: Any) -> Any:
        super().write_dataset(rows, uri, **options)
        raise OSError("it did not work")


class Careless(Honest):
    """Loses a row with every append."""

    def write_dataset(self, rows: Any, uri: str, **options: Any) -> Any:
        return super().write_dataset(rows.slice(1), uri, **options)


def part_in(folder: Path) -> Part:
    """Return what a writer of our own is told."""
    return Part(
        role="writer",
        library="lancelake.pylance",
        release="ours",
        process="0.0",
        slot=0,
        incarnation=0,
        seed="1",
        uri=str(folder / "table.lance"),
        options=None,
        log=str(folder / "0.0.jsonl"),
        go=str(folder / "go"),
        over=str(folder / "over"),
        is_keyed=True,
        is_stable=True,
        retention_s=3600.0,
        pause_s=0.0,
    )


def played(library: Any, folder: Path, steps: int) -> Verdict:
    """Let one process work with a library, and judge what it logs."""
    part = part_in(folder)
    uri, log = part.uri, part.log
    lancelake.pylance.write_dataset(
        first_rows(is_keyed=True), uri, enable_stable_row_ids=True, data_storage_version="2.1"
    )
    place = Place(lance=library, uri=uri, options=None, journal=Journal(log, "0.0", "ours"))
    actor = Actor(part, place)
    for _ in range(steps):
        actor.step()
    Path(part.over).touch()
    Observer(actor).run()
    tags = lancelake.pylance.dataset(uri).tags.list()
    final = Final(tags={name: tag["version"] for name, tag in tags.items()})
    return judge(load([Path(log)], final=final, accounts=ACCOUNTS))


@pytest.mark.parametrize(
    ("release", "is_stable", "expected"),
    [("4.0.2", True, 0), ("4.0.2", False, 1), ("14.0.2", True, 1), ("ours", True, 1)],
)
def test_a_release_that_gives_row_ids_out_again_restores_nothing_with_stable_ones(
    release: str, is_stable: bool, expected: int, tmp_path: Path
) -> None:
    part = replace(part_in(tmp_path), release=release, is_stable=is_stable)
    assert deck_of(DECK, part)["restore"] == expected


def test_a_process_alone_does_everything_and_nothing_is_wrong(tmp_path: Path) -> None:
    verdict = played(Honest(), tmp_path, 2 * DECK.total())
    assert verdict.findings == ()
    done = Counter(kind for kind, _, outcome in verdict.outcomes if outcome == "ok")
    assert set(DECK) <= set(done)


@pytest.mark.parametrize(
    ("library", "wrong"),
    [
        (Forgetful(), Wrong.LOST_UPDATE),
        (Eager(), Wrong.DUPLICATE_KEY),
        (Gloomy(), Wrong.FAILED_BUT_APPLIED),
        (Careless(), Wrong.LOST_UPDATE),
    ],
    ids=["forgetful", "eager", "gloomy", "careless"],
)
def test_a_wrong_library_is_detected(library: Any, wrong: Wrong, tmp_path: Path) -> None:
    verdict = played(library, tmp_path, 15)
    assert wrong in {finding.wrong for finding in verdict.findings}
