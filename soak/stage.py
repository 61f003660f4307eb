"""Run a round: start the processes, kill and restart some, and stop them all."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import lancelake.pylance as lance
from soak.actor import OURS as OUR_LIBRARY
from soak.actor import Part
from soak.drawing import DECK
from soak.endpoint import BUCKET, endpoint, options_of
from soak.plan import OURS, SPARK, RoundPlan
from soak.players import ForOneRound, Player, SparkHost
from soak.table import first_rows

_PATIENCE_S = 120.0
_PATIENCE_WITH_SPARK_S = 400.0
_TICK_S = 0.2
_LONGER = 5
"""How many times as long a round may take until everything was done often enough."""
# Official writers are so quick that on few cores ours would hardly get a turn.
_PAUSE_S = 0.6
_PAUSE_BESIDE_SPARK_S = 4.0
WRITER = "writer"
OBSERVER = "observer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Location of the table of a round, for the checker and for the processes."""

    uri: str
    calm: dict[str, str] | None
    options: dict[str, str] | None


@dataclass
class Tally:
    """What is known about a round while it goes on."""

    plan: RoundPlan
    elapsed_s: float = 0.0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a member of the crew had an outcome."""
    done: Counter[str] = field(default_factory=Counter)
    """How often an operation of a kind was acknowledged."""
    kills: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    version: int = 0
    crashes: list[str] = field(default_factory=list)


@contextmanager
def place_of(plan: RoundPlan, folder: Path) -> Iterator[Place]:
    """Make the place for a round's table."""
    if plan.store == "disk":
        yield Place(uri=str(folder / "table.lance"), calm=None, options=None)
        return
    with endpoint(plan.seed, folder / "endpoint.jsonl", plan.endpoint_faults) as (calm, faulty):
        yield Place(
            uri=f"s3://{BUCKET}/table.lance", calm=options_of(calm), options=options_of(faulty)
        )


class Stage:
    """The processes of one round."""

    def __init__(
        self,
        plan: RoundPlan,
        place: Place,
        folder: Path,
        report: Callable[[Tally], None],
        spark: SparkHost | None = None,
    ) -> None:
        """Make the table; start nothing yet."""
        self.plan = plan
        self.tally = Tally(plan)
        self._place = place
        self._folder = folder
        self._report = report
        self._incarnations = [0] * len(plan.crew)
        self._spark = spark
        self._players: list[Player] = []
        self._read: Counter[Path] = Counter()
        self._ready = 0
        self._kinds: dict[str, str] = {}
        self._begun: Counter[str] = Counter()
        self._go = folder / "go"
        self._over = {role: folder / f"{role}s-end" for role in (WRITER, OBSERVER)}
        lance.write_dataset(
            first_rows(is_keyed=plan.is_keyed),
            place.uri,
            enable_stable_row_ids=plan.is_stable,
            max_rows_per_file=40,
            data_storage_version="2.1",
            storage_options=place.calm,
        )

    @property
    def logs(self) -> list[Path]:
        """The logs of all processes so far."""
        return sorted(self._folder.glob("*.jsonl"))

    def run(self) -> None:
        """Let all work for as long as the plan says, then let them come to an end."""
        observer = self._start(OURS, len(self.plan.crew), 0, role=OBSERVER)
        self._players = [self._start(who, n, 0) for n, who in enumerate(self.plan.crew)]
        try:
            self._wait()
            self._work()
            self._over[WRITER].touch()
            for slot, player in enumerate(self._players):
                self._ended(player, self._name(slot))
            self._over[OBSERVER].touch()
            self._ended(observer, OBSERVER)
        finally:
            for player in [observer, *self._players]:
                player.kill()
        self._look()

    def _wait(self) -> None:
        """Let all begin at the same time."""
        begun = time.monotonic()
        patience_s = _PATIENCE_WITH_SPARK_S if SPARK in self.plan.crew else _PATIENCE_S
        while self._ready < len(self.plan.crew) and time.monotonic() - begun < patience_s:
            if any(player.poll() is not None for player in self._players):
                break
            self._look()
            time.sleep(_TICK_S)
        self._go.touch()

    def _work(self) -> None:
        begun = time.monotonic()
        while not self._is_enough():
            self.tally.elapsed_s = time.monotonic() - begun
            self._look()
            for slot, player in enumerate(self._players):
                if player.poll() is not None:
                    self._crashed(self._name(slot), player)
                    self._restart(slot)
                elif self._is_due(slot):
                    self._kill(slot)
            time.sleep(_TICK_S)

    def _is_enough(self) -> bool:
        """True when the time is over, and nothing was left out; or when it takes too long."""
        plan, done = self.plan, self.tally.done
        kinds = DECK.keys() - (set() if plan.is_stable else {"changes"})
        has_all = all(done[kind] >= plan.least for kind in kinds)
        longest_s = plan.seconds * (1 if has_all else _LONGER)
        return self.tally.elapsed_s >= longest_s

    def _is_due(self, slot: int) -> bool:
        """True when a process has done what it may do before it is killed."""
        kills = self.plan.kills[slot][self._incarnations[slot] :]
        return bool(kills) and self._begun[self._name(slot)] >= kills[0]

    def _kill(self, slot: int) -> None:
        self._players[slot].kill()
        self.tally.kills += 1
        self._restart(slot)

    def _restart(self, slot: int) -> None:
        self._incarnations[slot] += 1
        self._players[slot] = self._start(self.plan.crew[slot], slot, self._incarnations[slot])

    def _ended(self, player: Player, name: str) -> None:
        if not player.has_ended(_PATIENCE_S):
            self.tally.crashes.append(f"{name} did not end within {_PATIENCE_S:g} s")
        elif player.poll():
            self._crashed(name, player)

    def _crashed(self, name: str, player: Player) -> None:
        tail = player.errors.read_text(errors="replace")[-600:]
        self.tally.crashes.append(f"{name} ended with {player.poll()}: {tail}")

    def _name(self, slot: int) -> str:
        return f"{slot}.{self._incarnations[slot]}"

    def _start(self, who: str, slot: int, incarnation: int, *, role: str = WRITER) -> Player:
        plan = self.plan
        is_watching = role == OBSERVER
        name = OBSERVER if is_watching else f"{slot}.{incarnation}"
        is_ours = who in (OURS, SPARK)
        part = Part(
            role=role,
            library=OUR_LIBRARY if who == OURS else who if who == SPARK else "lance",
            release=who,
            process=name,
            slot=slot,
            incarnation=incarnation,
            seed=f"{plan.seed}/{slot}/{incarnation}",
            uri=self._place.uri,
            options=self._place.calm if is_watching else self._place.options,
            log=str(self._folder / f"{name}.jsonl"),
            go=str(self._go),
            over=str(self._over[role]),
            is_keyed=plan.is_keyed,
            is_stable=plan.is_stable,
            retention_s=plan.retention_s,
            pause_s=self._pause_s(who),
            has_faults=not is_watching and bool(plan.faults if is_ours else plan.endpoint_faults),
            faults=plan.faults if is_ours and not is_watching else {},
        )
        if who == SPARK:
            assert self._spark is not None, "a plan with Spark needs a host"
            return self._spark.play(part)
        is_humble = SPARK in plan.crew and not is_watching
        return ForOneRound(part, who, self._folder / f"{name}.err", is_humble=is_humble)

    def _pause_s(self, who: str) -> float:
        if who == SPARK:
            return 0.0
        if SPARK in self.plan.crew:
            return _PAUSE_BESIDE_SPARK_S
        return 0.0 if who == OURS else _PAUSE_S

    def _look(self) -> None:
        """Count what the logs have got since the last look."""
        for path in self.logs:
            with path.open("rb") as file:
                file.seek(self._read[path])
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[path] += len(whole)
            for line in whole.splitlines():
                self._count(line)
        self._report(self.tally)

    def _count(self, line: bytes) -> None:
        # Rows are long, and are not needed here.
        what = line[6 : line.index(b'"', 6)].decode()
        if what == "ready":
            self._ready += 1
        elif what in ("ok", "fail", "unknown"):
            op = json.loads(line)["op"]
            slot = int(op.split(".")[0])
            self.tally.outcomes[self.plan.crew[slot], what] += 1
            self.tally.done[self._kinds.pop(op)] += what == "ok"
        elif what == "fault":
            self.tally.faults[json.loads(line)["what"]] += 1
        elif what == "invoke":
            call = json.loads(line)
            self._kinds[call["op"]] = call["kind"]
            self._begun[call["process"]] += 1
        elif what == "seen":
            self.tally.version = max(self.tally.version, json.loads(line)["version"])
