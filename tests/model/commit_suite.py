"""Runs of writers on a schedule, and the invariants after any race of commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lancelake.commit.candidate import CommitRequest, CommitResult, Landed
from lancelake.commit.loop import commit
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CommitError, UncertainCommitError
from lancelake.format import layout
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import encode_manifest
from lancelake.format.operations import Restore
from lancelake.storage.store import ObjectStore
from lancelake.txn.build import next_state
from lancelake.txn.options import TableState
from tests.support.scheduled_store import (
    EVERY,
    RACING,
    DictStore,
    Outcomes,
    Schedule,
    Scheduler,
)
from tests.support.table_builder import OPTIONS, line_on, log, means, seed


@dataclass(frozen=True, kw_only=True)
class Race:
    """Writers who commit at once to one table.

    `base` is what they all read; without it each finds it out. `refusals` are the errors by which
    an operation may refuse a table that changed.
    """

    objects: Mapping[str, bytes]
    requests: Mapping[str, CommitRequest]
    base: Snapshot | None = None
    refusals: tuple[type[Exception], ...] = (CommitError,)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A race after its end."""

    race: Race
    store: DictStore
    outcomes: Outcomes[CommitResult]
    schedule: Schedule


def two_fragment_table(
    indices: tuple[IndexMetadata, ...] = (),
) -> tuple[dict[str, bytes], Snapshot]:
    """Return the objects of a table with two fragments, and its only version."""
    store = DictStore()
    base = seed(store, indices=indices)
    return store.objects, base


def run(
    race: Race, choices: Sequence[int], *, points: frozenset[str] = EVERY, losses: int = 0
) -> Run:
    """Run a race once."""
    store = DictStore(dict(race.objects))
    schedule = Schedule(choices)
    writers = {
        name: _writer(race, request, number)
        for number, (name, request) in enumerate(race.requests.items())
    }
    outcomes = Scheduler(schedule, points=points, losses=losses).run(writers, store)
    return Run(race=race, store=store, outcomes=outcomes, schedule=schedule)


def every_run(race: Race, *, losses: int = 0) -> Iterator[Run]:
    """Run a race in every order of the calls that can see each other."""
    choices: list[int] | None = []
    while choices is not None:
        done = run(race, choices, points=RACING, losses=losses)
        yield done
        choices = done.schedule.next_choices()


def ensure_sound(done: Run) -> None:
    """Fail unless every invariant holds; the schedule that broke it is in the message."""
    commits = log(line_on(done.store))
    where = f"schedule {[choice for choice, _ in done.schedule.taken]}"
    versions = [c.snapshot.version for c in commits]
    assert versions == list(range(1, len(commits) + 1)), f"holes: {versions}, {where}"
    uuids = [c.transaction.uuid for c in commits if c.transaction is not None]
    assert len(set(uuids)) == len(uuids) == len(commits), f"landed twice: {uuids}, {where}"
    for name, request in done.race.requests.items():
        _ensure_told_right(done, name, request, dict(zip(uuids, commits, strict=True)), where)
    _ensure_replays(done, commits, where)
    _ensure_recorded(done, commits, where)


def _writer(
    race: Race, request: CommitRequest, number: int
) -> Callable[[ObjectStore], CommitResult]:
    def work(store: ObjectStore) -> CommitResult:
        tools = means(store, seed=number)
        return commit(line_on(store), request, tools, base=race.base)

    return work


def _ensure_told_right(
    done: Run, name: str, request: CommitRequest, landed: Mapping[str, Landed], where: str
) -> None:
    found = landed.get(request.transaction.uuid)
    result, error = done.outcomes.returned.get(name), done.outcomes.raised.get(name)
    if result is not None:
        assert found is not None, f"{name} was told it landed, and did not: {where}"
        assert found.snapshot.version == result.version, f"{name}: wrong version, {where}"
        assert found.snapshot.file == result.snapshot.file, f"{name}: wrong state, {where}"
        return
    assert isinstance(error, done.race.refusals), f"{name}: {error!r}, {where}"
    if not isinstance(error, UncertainCommitError):
        assert found is None, f"{name} landed, and was told {error!r}: {where}"


def _ensure_replays(done: Run, commits: Sequence[Landed], where: str) -> None:
    """The log applied from the start gives every manifest."""
    states: dict[int, TableState] = {1: commits[0].snapshot.state}
    for landed in commits[1:]:
        mine, after = landed.transaction, landed.snapshot.state
        assert mine is not None
        version = landed.snapshot.version
        options = replace(OPTIONS, timestamp_ns=after.manifest.timestamp_ns or 0)
        op = mine.operation
        restored = states[op.version] if isinstance(op, Restore) else None
        built = next_state(mine, states[version - 1], options, restored=restored)
        assert _bytes(built) == _bytes(after), f"version {version} is not its log's: {where}"
        states[version] = after


def _bytes(state: TableState) -> tuple[bytes, object]:
    return encode_manifest(state.manifest), state.indices


def _ensure_recorded(done: Run, commits: Sequence[Landed], where: str) -> None:
    """Every transaction lies beside its version, the same as inline."""
    for landed in commits:
        path = layout.transaction(landed.snapshot.state.manifest.transaction_file)
        inline = landed.snapshot.file.inline_transaction
        assert done.store.objects.get(path) == inline, f"{path}: {where}"
