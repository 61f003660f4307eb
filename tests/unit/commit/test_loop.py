from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyroaring import BitMap

from lancelake.clock import SystemIds
from lancelake.commit.candidate import CommitRequest, CommitResult
from lancelake.commit.loop import commit
from lancelake.commit.snapshot import VersionLine
from lancelake.errors import (
    ContentionError,
    CorruptTableError,
    IncompatibleConflictError,
    InvalidRequestError,
    ObjectNotFoundError,
    RetryableConflictError,
    StorageUnavailableError,
    TableNotFoundError,
    UncertainCommitError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.format import layout
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId, Version
from lancelake.format.layout import DETACHED_BIT, ManifestNaming, manifest_name
from lancelake.format.manifest import decode_manifest, encode_manifest
from lancelake.format.operations import Append, Delete, Operation, Overwrite, Restore
from lancelake.storage.store import ObjectStore
from lancelake.txn import build
from lancelake.txn.rules import Context, Retryable, Verdict
from tests.support.failing_store import InterceptedStore
from tests.support.scheduled_store import DictStore
from tests.support.set_clock import ManualClock
from tests.support.table_builder import (
    SCHEMA,
    StoredDeletions,
    fragment,
    line_on,
    log,
    means,
    request,
    seed,
    set_config,
)

APPEND = Append(fragments=(fragment(7),))


@pytest.fixture
def store() -> DictStore:
    made = DictStore()
    seed(made)
    return made


def _commit(
    store: ObjectStore, asked: CommitRequest, *, clock: ManualClock | None = None
) -> CommitResult:
    return commit(line_on(store), asked, means(store, clock=clock))


def _race(store: DictStore, rivals: int) -> ObjectStore:
    """Return a store where another writer takes the version before each of the first creates."""
    left = list(range(rivals))

    def around(call: str, path: str, carry_out: Callable[[], object]) -> object:
        if call == "create" and left:
            unique = 100 + left.pop()
            _commit(store, request(set_config(f"rival {unique}", "x"), unique=unique))
        return carry_out()

    return InterceptedStore(store, around)


def test_a_commit_becomes_the_next_version(store: DictStore) -> None:
    result = _commit(store, request(APPEND, unique=1))
    assert (result.version, result.attempts) == (2, 1)
    assert [f.id for f in result.state.manifest.fragments] == [0, 1, 2]


def test_the_result_is_what_a_reader_loads(store: DictStore) -> None:
    result = _commit(store, request(APPEND, unique=1))
    landed = log(line_on(store))[-1]
    assert (landed.snapshot.file, landed.snapshot.manifest_size) == (
        result.snapshot.file,
        result.snapshot.manifest_size,
    )
    assert landed.transaction == result.transaction


def test_the_transaction_is_kept_in_the_manifest_and_beside_it(store: DictStore) -> None:
    result = _commit(store, request(APPEND, unique=1))
    name = result.state.manifest.transaction_file
    assert store.objects[layout.transaction(name)] == result.snapshot.file.inline_transaction


def test_a_table_with_old_names_keeps_them() -> None:
    store = DictStore()
    seed(store, naming=ManifestNaming.V1)
    _commit(store, request(APPEND, unique=1))
    assert store.exists("_versions/2.manifest")


def test_a_compatible_commit_follows_what_came_between(store: DictStore) -> None:
    _commit(store, request(set_config("a", "1"), unique=1))
    result = _commit(store, request(set_config("b", "2"), unique=2))
    assert dict(result.state.manifest.config) == {"a": "1", "b": "2"}
    assert (result.version, result.metrics.concurrent_commits) == (3, 1)


def test_a_retryable_conflict_names_both_and_the_version(store: DictStore) -> None:
    _commit(store, request(_delete(0), unique=1))
    with pytest.raises(RetryableConflictError) as caught:
        _commit(store, request(_delete(0), unique=2))
    assert (
        "Retryable commit conflict for version 2: This Delete transaction was preempted by "
        "concurrent transaction Delete at version 2"
    ) in str(caught.value)
    assert isinstance(caught.value, OSError)


def test_an_incompatible_conflict_names_both_and_the_version(store: DictStore) -> None:
    _commit(store, request(Overwrite(fragments=(), schema=SCHEMA), unique=1))
    with pytest.raises(IncompatibleConflictError) as caught:
        _commit(store, request(APPEND, unique=2))
    assert (
        "Incompatible transaction: This Append transaction is incompatible with concurrent "
        "transaction Overwrite at version 2"
    ) in str(caught.value)


def test_a_conflict_leaves_nothing_behind(store: DictStore) -> None:
    _commit(store, request(_delete(0), unique=1))
    before = dict(store.objects)
    with pytest.raises(RetryableConflictError):
        _commit(store, request(_delete(0), unique=2))
    assert store.objects == before


def _delete(number: int) -> Delete:
    gone = (FragmentId(number),)
    return Delete(updated_fragments=(), deleted_fragment_ids=gone, predicate="")


def _delete_row(store: DictStore, row: int, *, unique: int) -> CommitRequest:
    """Return a request to delete a row of the first fragment."""
    old = fragment(0)
    deletions = StoredDeletions(store, SystemIds(unique))
    file = deletions.store_deletions(old.id, BitMap([row]), Version(1))
    change = replace(old, deletion_file=file)
    operation = Delete(updated_fragments=(change,), deleted_fragment_ids=(), predicate="")
    asked = request(operation, unique=unique)
    choices = replace(asked.choices, affected_rows=FrozenMap({old.id: (row,)}))
    return replace(asked, choices=choices)


def test_a_rebased_transaction_is_recorded_as_rebased(store: DictStore) -> None:
    _commit(store, _delete_row(store, 0, unique=1))
    result = _commit(store, _delete_row(store, 1, unique=2))
    assert (result.transaction.read_version, result.metrics.rebases) == (2, 1)
    assert result.state.manifest.transaction_file.startswith("2-")


def test_a_conflict_found_by_the_rebase_is_retryable(store: DictStore) -> None:
    _commit(store, _delete_row(store, 0, unique=1))
    with pytest.raises(RetryableConflictError, match="same row"):
        _commit(store, _delete_row(store, 0, unique=2))


def test_a_transaction_that_landed_before_is_not_published_again(store: DictStore) -> None:
    asked = request(APPEND, unique=1)
    first = _commit(store, asked)
    _commit(store, request(set_config("a", "1"), unique=2))
    again = _commit(store, asked)
    assert (again.version, again.attempts, len(log(line_on(store)))) == (first.version, 0, 3)


def test_a_transaction_that_landed_is_found_behind_what_it_now_conflicts_with(
    store: DictStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(mine: Operation, theirs: Operation, context: Context) -> Verdict:
        return Retryable("the rows are no longer known")

    _commit(store, request(set_config("a", "1"), unique=1))
    asked = request(APPEND, unique=2)
    _commit(store, asked)
    monkeypatch.setattr(build, "conflicts", forgetful)
    again = _commit(store, asked)
    assert again.version == 3


def test_each_lost_race_is_a_warning_with_its_reason(
    store: DictStore, caplog: pytest.LogCaptureFixture
) -> None:
    result = _commit(_race(store, 2), request(APPEND, unique=1), clock=ManualClock())
    warnings = [(record.name, vars(record)["reason"]) for record in caplog.records]
    table = vars(caplog.records[0])["table"]
    assert warnings == [
        ("lancelake.commit", f"another writer committed version {version} of {table} first")
        for version in (2, 3)
    ]
    assert result.attempts == 3


def test_a_lost_race_is_run_again_after_a_wait(store: DictStore) -> None:
    clock = ManualClock()
    result = _commit(_race(store, 2), request(APPEND, unique=1), clock=clock)
    assert (result.version, result.attempts, len(clock.slept)) == (4, 3, 2)


def test_the_quickest_attempt_sets_the_pace(store: DictStore) -> None:
    clock = ManualClock()
    durations_s = [8.0, 1.0]

    def slow(call: str, path: str, carry_out: Callable[[], object]) -> object:
        if call == "create" and durations_s:
            clock.ns += int(durations_s.pop(0) * 1e9)
        return carry_out()

    racing = InterceptedStore(_race(store, 2), slow)
    _commit(racing, request(APPEND, unique=1), clock=clock)
    slots = [seconds / 1.1 for seconds in clock.slept]
    assert slots[0] % 8 == pytest.approx(0)
    assert slots[1] <= 8


def test_commits_that_land_while_many_are_read_are_read_before_the_attempt(
    store: DictStore,
) -> None:
    base = log(line_on(store))[0].snapshot
    for unique in range(100, 104):
        _commit(store, request(set_config(f"rival {unique}", "x"), unique=unique))
    late = [200]

    def around(call: str, path: str, carry_out: Callable[[], object]) -> object:
        if call == "get" and path.endswith(".manifest") and late:
            unique = late.pop()
            _commit(store, request(set_config(f"rival {unique}", "x"), unique=unique))
        return carry_out()

    line = line_on(InterceptedStore(store, around))
    asked = request(APPEND, unique=1, max_retries=0)
    result = commit(line, asked, means(store), base=base)
    assert (result.version, result.attempts) == (base.version + 6, 1)


def test_after_the_last_lost_race_nothing_is_visible(store: DictStore) -> None:
    with pytest.raises(ContentionError) as caught:
        _commit(_race(store, 5), request(APPEND, unique=1, max_retries=3))
    assert (
        "Commit conflict for version 4: Failed to commit the transaction after 3 retries."
        in str(caught.value)
    )
    assert len(log(line_on(store))) == 4


def test_a_transaction_file_is_written_once(store: DictStore) -> None:
    puts: list[str] = []

    def around(call: str, path: str, carry_out: Callable[[], object]) -> object:
        if call == "put":
            puts.append(path)
        return carry_out()

    _commit(InterceptedStore(_race(store, 2), around), request(APPEND, unique=1))
    assert len(puts) == 1


def test_restoring_builds_on_the_version_that_was_named(store: DictStore) -> None:
    _commit(store, request(set_config("a", "1"), unique=1))
    restore = request(Restore(version=Version(1)), unique=2, read_version=2)
    result = _commit(store, restore)
    assert (result.version, dict(result.state.manifest.config)) == (3, {})


def test_a_version_that_cannot_be_restored_is_an_error(store: DictStore) -> None:
    with pytest.raises(VersionNotFoundError, match="version 9 to restore"):
        _commit(store, request(Restore(version=Version(9)), unique=1))


def test_read_version_0_means_the_newest(store: DictStore) -> None:
    _commit(store, request(set_config("a", "1"), unique=1))
    result = _commit(store, request(set_config("a", "2"), unique=2, read_version=0))
    assert (result.version, result.transaction.read_version) == (3, 0)


@pytest.mark.parametrize(
    ("read_version", "error"), [(9, VersionNotFoundError), (DETACHED_BIT | 1, InvalidRequestError)]
)
def test_a_read_version_that_is_no_version_of_the_line_is_refused(
    store: DictStore, read_version: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        _commit(store, request(APPEND, unique=1, read_version=read_version))


def test_an_absent_table_is_an_error() -> None:
    with pytest.raises(TableNotFoundError):
        _commit(DictStore(), request(APPEND, unique=1))


def _without_transaction(store: DictStore, version: int) -> None:
    path = layout.manifest(manifest_name(version, ManifestNaming.V2))
    manifest = decode_manifest(store.objects[path]).manifest
    store.objects[path] = encode_manifest(manifest)
    del store.objects[layout.transaction(manifest.transaction_file)]


def test_a_version_without_a_transaction_is_named(store: DictStore) -> None:
    _commit(store, request(set_config("a", "1"), unique=1))
    _without_transaction(store, 2)
    with pytest.raises(RetryableConflictError, match="Dataset version 2 does not have a transact"):
        _commit(store, request(_delete(0), unique=2))


def _cleaned_up(store: DictStore) -> None:
    """Commit versions 2 and 3, and remove version 2."""
    for number in (1, 2):
        asked = request(set_config(f"k{number}", "1"), unique=number, read_version=number)
        _commit(store, asked)
    del store.objects[layout.manifest(manifest_name(2, ManifestNaming.V2))]


def test_a_version_that_was_cleaned_up_in_between_is_named(store: DictStore) -> None:
    _cleaned_up(store)
    with pytest.raises(RetryableConflictError, match="version 2 no longer exists: its changes"):
        _commit(store, request(_delete(0), unique=3))


def test_a_change_that_is_still_valid_follows_versions_that_were_cleaned_up(
    store: DictStore,
) -> None:
    _cleaned_up(store)
    result = _commit(store, request(APPEND, unique=3))
    assert result.version == 4
    assert [f.id for f in result.state.manifest.fragments] == [0, 1, 2]
    assert result.state.manifest.config["k2"] == "1"


def test_a_setting_that_another_writer_changed_in_a_version_that_was_cleaned_up(
    store: DictStore,
) -> None:
    _cleaned_up(store)
    with pytest.raises(IncompatibleConflictError, match="version 2 no longer exists: both set k1"):
        _commit(store, request(set_config("k1", "2"), unique=3))
    assert _commit(store, request(set_config("k3", "2"), unique=4)).version == 4


def test_a_transaction_that_may_have_landed_does_not_follow_versions_that_were_cleaned_up(
    store: DictStore,
) -> None:
    _cleaned_up(store)
    asked = request(APPEND, unique=1)
    choices = replace(asked.choices, may_have_landed=True)
    with pytest.raises(RetryableConflictError, match="version 2 no longer exists"):
        _commit(store, replace(asked, choices=choices))


def test_a_commit_in_doubt_does_not_follow_versions_that_were_cleaned_up(store: DictStore) -> None:
    lost: list[str] = []

    def around(call: str, path: str, carry_out: Callable[[], object]) -> object:
        if call == "create" and not lost:
            lost.append(path)
            _cleaned_up(store)
            raise StorageUnavailableError("no reply")
        return carry_out()

    with pytest.raises(UncertainCommitError):
        _commit(InterceptedStore(store, around), request(APPEND, unique=9))


def test_a_table_with_unknown_writer_features_is_left_alone(store: DictStore) -> None:
    path = layout.manifest(manifest_name(1, ManifestNaming.V2))
    file = decode_manifest(store.objects[path])
    flagged = replace(file.manifest, writer_feature_flags=1 << 20)
    store.objects[path] = encode_manifest(flagged, transaction=file.inline_transaction)
    with pytest.raises(UnsupportedError, match="writer features"):
        _commit(store, request(APPEND, unique=1))


def test_the_version_of_a_table_is_what_its_manifest_says(store: DictStore) -> None:
    path = layout.manifest(manifest_name(1, ManifestNaming.V2))
    file = decode_manifest(store.objects[path])
    renumbered = replace(file.manifest, version=Version(7))
    store.objects[path] = encode_manifest(renumbered, transaction=file.inline_transaction)
    result = _commit(store, request(APPEND, unique=1, read_version=7))
    assert result.snapshot.name.version == result.version == 8


def test_a_manifest_below_its_name_is_damage_and_not_waited_for(store: DictStore) -> None:
    for unique in (1, 2):
        _commit(store, request(APPEND, unique=unique, read_version=unique))
    path = layout.manifest(manifest_name(3, ManifestNaming.V2))
    file = decode_manifest(store.objects[path])
    renumbered = replace(file.manifest, version=Version(1))
    store.objects[path] = encode_manifest(renumbered, transaction=file.inline_transaction)
    with pytest.raises(CorruptTableError, match="version 3 states version 1"):
        _commit(store, request(APPEND, unique=3, read_version=1))


@pytest.mark.parametrize("operation", [APPEND, set_config("a", "1")])
def test_without_retries_one_attempt_is_made(store: DictStore, operation: Operation) -> None:
    with pytest.raises(ContentionError, match="after 0 retries"):
        _commit(_race(store, 1), request(operation, unique=1, max_retries=0))


def test_a_known_base_saves_reading_it(store: DictStore) -> None:
    base = log(line_on(store))[0].snapshot
    gets: list[str] = []

    def around(call: str, path: str, carry_out: Callable[[], object]) -> object:
        if call == "get" and path != layout.VERSION_HINT:
            gets.append(path)
        return carry_out()

    line: VersionLine = line_on(InterceptedStore(store, around))
    commit(line, request(APPEND, unique=1), means(store), base=base)
    assert gets == []


def test_a_missing_hint_is_no_failure(store: DictStore) -> None:
    _commit(store, request(APPEND, unique=1))
    with pytest.raises(ObjectNotFoundError):
        store.get(layout.VERSION_HINT)


def test_no_attempt_begins_when_the_time_is_up(store: DictStore) -> None:
    asked = request(APPEND, unique=1, timeout_s=0.0)
    with pytest.raises(ContentionError, match="timed out after 0 seconds"):
        _commit(_race(store, 1), asked, clock=ManualClock())
    assert len(log(line_on(store))) == 2


def test_the_first_attempt_needs_no_time(store: DictStore) -> None:
    asked = request(APPEND, unique=1, timeout_s=0.0)
    assert _commit(store, asked, clock=ManualClock()).version == 2
