"""Plan the rounds from the seed: table, store, processes, faults and kills."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

OURS = "ours"
SPARK = "spark"
RELEASES = ("4.0.2", "14.0.2")
CREW = (OURS, OURS, *RELEASES)
_KILL_AFTER = (10, 45)
_MOST_KILLS = 100
_SPARK_KILL_AFTER = (5, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """One table, those who work on it, and what befalls them."""

    number: int
    seed: str
    seconds: float
    store: str
    is_keyed: bool
    is_stable: bool
    crew: tuple[str, ...]
    kills: tuple[tuple[int, ...], ...]
    """For each member of the crew, after how many operations it is killed, again and again."""
    faults: dict[str, float] = field(default_factory=dict)
    """What the stores of our own processes do."""
    endpoint_faults: dict[str, float] = field(default_factory=dict)
    """What the S3 endpoint does to everyone."""
    retention_s: float = 20.0
    least: int = 0
    """How often each kind of operation must be done before the round ends."""
    is_wal: bool = False
    """Whether writers, mergers and collectors of a MemWAL work on the table."""

    def __str__(self) -> str:
        if self.is_wal:
            return f"{self.store}, MemWAL{', store faults' if self.faults else ''}"
        key = "declared key" if self.is_keyed else "no declared key"
        ids = "stable row ids" if self.is_stable else "row addresses"
        faults = ", store faults" if self.faults or self.endpoint_faults else ""
        spark = ", Spark" if SPARK in self.crew else ""
        return f"{self.store}, {key}, {ids}{faults}{spark}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOptions:
    """Options of a run."""

    seed: int
    seconds: float
    round_seconds: float
    crew: tuple[str, ...] = CREW
    stores: tuple[str, ...] = ("disk", "s3")
    has_kills: bool = True
    has_faults: bool = True
    retention_s: float = 20.0
    least: int = 0
    has_wal: bool = True
    """Whether rounds on tables with a MemWAL follow."""


# Whether a key is declared, whether row ids are stable.
_KINDS = ((True, True), (False, False), (False, True), (True, False))
_SLOW = {"slow": 0.02, "slow_s": 0.2}
_FAULTS = {**_SLOW, "fail": 0.004, "lost": 0.004, "lost_create": 0.1}
_ENDPOINT = {**_SLOW, "fail": 0.01, "conflict": 0.05}


def plans(options: SoakOptions) -> Iterator[RoundPlan]:
    """Yield the rounds of a run: every kind of table before any is repeated."""
    count = max(1, round(options.seconds / options.round_seconds))
    for number in range(count):
        chance = random.Random(f"{options.seed}/{number}")
        # Beside a Spark application the others wait for it; so it rests in every third round.
        crew = tuple(who for who in options.crew if who != SPARK or number % 3 < 2)
        store = options.stores[number % len(options.stores)]
        is_keyed, is_stable = _KINDS[number // len(options.stores) % len(_KINDS)]
        has_faults = options.has_faults and (number + number // 2) % 2 == 1
        yield RoundPlan(
            number=number,
            seed=f"{options.seed}/{number}",
            seconds=options.seconds / count,
            store=store,
            is_keyed=is_keyed,
            is_stable=is_stable,
            crew=crew,
            kills=tuple(_kills(chance, who, number) if options.has_kills else () for who in crew),
            faults=dict(_FAULTS) if has_faults else {},
            endpoint_faults=dict(_ENDPOINT) if has_faults and store == "s3" else {},
            retention_s=options.retention_s,
            least=options.least,
        )


def wal_plans(options: SoakOptions, first: int) -> Iterator[RoundPlan]:
    """Yield rounds on a table with a MemWAL, one for each store."""
    for place, store in enumerate(options.stores):
        yield RoundPlan(
            number=first + place,
            seed=f"{options.seed}/wal/{place}",
            seconds=options.round_seconds,
            store=store,
            is_keyed=True,
            is_stable=False,
            crew=(OURS,) * 5,
            kills=(),
            faults=dict(_FAULTS) if options.has_faults else {},
            endpoint_faults=dict(_ENDPOINT) if options.has_faults and store == "s3" else {},
            is_wal=True,
        )


def _kills(chance: random.Random, who: str, number: int) -> tuple[int, ...]:
    if who == SPARK:
        # It takes long to start again: best while it would rest.
        return (chance.randint(*_SPARK_KILL_AFTER),) if number % 3 == 1 else ()
    return tuple(chance.randint(*_KILL_AFTER) for _ in range(_MOST_KILLS))


def as_json(plan: RoundPlan) -> dict[str, object]:
    """Return a plan for the records."""
    return asdict(plan)
