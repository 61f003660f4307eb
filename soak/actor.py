"""Process of a round: draws operations, executes them, and logs the results.

Runs with any library that is shaped like pylance, in the environment of that library. Its argument
is a JSON object, the fields of `Part`.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.drawing import DECK, Drawing
from soak.journal import Journal, now
from soak.moves import MOVES, Move, Place, feed

OURS = "lancelake.pylance"
LEFT_OUT_WITH_STABLE_ROW_IDS = {"4.0.2": ("restore", "refresh_index", "filtered")}
"""Operations of releases that go wrong: a restore of 4.0.2 sets the next row id back, so that ids
are given to other rows once more; its indices lose rows when they are refreshed after rows were
updated and compacted, and its searches fail."""
INSERTS_BLINDLY = "4.0.2"
"""Its merge that only inserts adds keys that others have added since it began."""
_LOOK_S = 0.02
_FOLLOW_S = 0.1
_MOST_TEXT = 3_000
_CONFLICT_WORDS = ("conflict", "concurrent", "preempted", "incompatible transaction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The arguments of a process."""

    role: str
    library: str
    release: str
    process: str
    slot: int
    incarnation: int
    seed: str
    uri: str
    options: dict[str, str] | None
    log: str
    go: str
    """A file: when it is there, everybody begins."""
    over: str
    """A file: when it is there, everybody ends after the operation at hand."""
    is_keyed: bool
    is_stable: bool
    retention_s: float
    pause_s: float
    """At most this long is waited between operations."""
    has_faults: bool = False
    faults: dict[str, float] = field(default_factory=dict)


class Actor:
    """One process."""

    moves: Mapping[str, Move] = MOVES
    deck: Counter[str] = DECK

    def __init__(self, part: Part, place: Place) -> None:
        """Get ready."""
        self.part = part
        self.journal = place.journal
        self.place = place
        self.drawing = Drawing(
            random.Random(part.seed),
            slot=part.slot,
            incarnation=part.incarnation,
            is_official=part.library == "lance",
            is_keyed=part.is_keyed,
            has_feed=part.is_stable and part.library != "lance",
            retention_s=part.retention_s,
            is_blind=part.release == INSERTS_BLINDLY,
            is_stable=part.is_stable,
            deck=deck_of(self.deck, part),
        )
        self.pauses = random.Random(f"{part.seed}/pauses")

    @property
    def is_over(self) -> bool:
        """True when nothing more is to be begun."""
        return Path(self.part.over).exists()

    def run(self) -> None:
        """Work until asked to stop."""
        if self.part.role == "observer":
            Observer(self).run()
            return
        self.journal.write("ready", process=self.part.process)
        while not self.is_over and not Path(self.part.go).exists():
            time.sleep(_LOOK_S)
        while not self.is_over:
            self.step()
            time.sleep(self.part.pause_s * self.pauses.random())

    def newest(self) -> Any:
        """Open the newest version; None when the store does not answer."""
        asked = now()
        try:
            ds = self.place.open()
        except Exception as error:
            if not self.part.has_faults:
                raise
            self.journal.write("trouble", error=text_of(error), process=self.part.process)
            return None
        self.journal.seen(ds.version, asked)
        return ds

    def step(self) -> None:
        """Do one operation."""
        ds = self.newest()
        if ds is None:
            return
        try:
            kind, args = self.drawing.draw(ds)
        except Exception as error:
            if not self.part.has_faults:
                raise
            self.journal.write("trouble", error=text_of(error), process=self.part.process)
            return
        op = f"{self.part.process}.{self.drawing.number}"
        self.journal.invoke(op, kind, args, ds.version)
        try:
            version, result = self.moves[kind](self.place, ds, op, args)
        except Exception as error:  # noqa: BLE001  # a refusal is an outcome too
            self.journal.end(op, self.verdict(kind, error), error=text_of(error))
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            self.journal.end(op, "unknown", error=text_of(error))
        else:
            self.journal.end(op, "ok", version=version, result=result)

    def verdict(self, kind: str, error: Exception) -> str:  # noqa: ARG002
        """Tell whether an operation that failed can have happened all the same."""
        if self.part.library == OURS:
            return "unknown" if "UncertainCommit" in text_of(error) else "fail"
        is_conflict = any(word in str(error).lower() for word in _CONFLICT_WORDS)
        return "unknown" if self.part.has_faults and not is_conflict else "fail"


class Observer:
    """Follows a table version by version, as a stream does, and reads each in full."""

    def __init__(self, actor: Actor) -> None:
        """Begin before the first version."""
        self.actor = actor
        self.reached = 0

    def run(self) -> None:
        """Follow until there is nothing new and no more to come."""
        while True:
            was_over = self.actor.is_over
            newest = self.actor.newest()
            for version in range(self.reached + 1, newest.version + 1):
                self._read(newest, version)
                self.reached = version
            if was_over:
                return
            time.sleep(_FOLLOW_S)

    def _read(self, newest: Any, version: int) -> None:
        actor = self.actor
        try:
            ds = actor.place.open(version)
            actor.place.read(ds, "follow")
            made = ds.read_transaction(version)
            if made is not None:
                kind = type(made.operation).__name__
                restored = made.operation.version if kind == "Restore" else None
                actor.journal.commit(version, kind, made.read_version, restored)
            if actor.part.is_stable and version > 1:
                feed(actor.place, newest, version - 1, version)
        except Exception as error:  # noqa: BLE001  # cleaned up, or the judge will see
            actor.journal.write(
                "missed", version=version, error=text_of(error), process=actor.part.process
            )


def deck_of(deck: Counter[str], part: Part) -> Counter[str]:
    """Return a deck without what a release does other than the format asks."""
    left_out = LEFT_OUT_WITH_STABLE_ROW_IDS.get(part.release, ()) if part.is_stable else ()
    return Counter({kind: count for kind, count in deck.items() if kind not in left_out})


def text_of(error: BaseException) -> str:
    """Return an error; what Java adds to it is long."""
    return f"{type(error).__name__}: {error}"[:_MOST_TEXT]


def prepared() -> tuple[Part, Journal]:
    """Return the part that the argument names, and its log; inject faults if requested."""
    part = Part(**json.loads(sys.argv[1]))
    journal = Journal(part.log, part.process, part.release)
    if part.faults:
        faulty = importlib.import_module("soak.faulty_store")
        faulty.install(faulty.Faults(**part.faults), part.seed, journal)
    return part, journal


def main() -> None:
    """Play the part that the argument names."""
    part, journal = prepared()
    lance = importlib.import_module(part.library)
    place = Place(lance=lance, uri=part.uri, options=part.options, journal=journal)
    Actor(part, place).run()


if __name__ == "__main__":
    main()
