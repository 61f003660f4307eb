"""Publishing a change: transaction, commit, hooks, retries."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TypeVar

from lancelake import errors, events, log
from lancelake.clock import Ids
from lancelake.commit import candidate
from lancelake.commit.handler import CommitLock, LockedHandler
from lancelake.commit.loop import clone_table, commit, commit_detached, create_table
from lancelake.commit.snapshot import (
    Latest,
    Snapshot,
    VersionLine,
    has_table,
    open_line,
    open_snapshot,
)
from lancelake.data.column_file import discard
from lancelake.data.commit_ports import AddedRowKeys, DeletionPort, FilesFactsPort
from lancelake.events import CommitStep
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.layout import ManifestNaming
from lancelake.format.manifest import WriterVersion
from lancelake.format.operations import COMMIT_MESSAGE, Operation, Transaction
from lancelake.format.words import duration_text
from lancelake.interrupts import pass_on
from lancelake.storage import disk_sync
from lancelake.storage.location import Location, default_session
from lancelake.storage.table_files import TableFiles
from lancelake.table.history import history
from lancelake.table.operation_record import NO_WORK, Work, record_of, recorded
from lancelake.txn.options import TableState
from lancelake.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A version that was just committed, its change, and what a further commit has to use."""

    snapshot: Snapshot
    operation: Operation
    lock: CommitLock | None


def run_after(hooks: tuple[CommitStep, ...] | None, made: Committed) -> None:
    """Run hooks in order, by default the session's; a failing hook emits a warning."""
    if hooks is None:
        hooks = made.snapshot.location.session.after
    for hook in events.commit_steps() if hooks is None else hooks:
        try:
            hook(made)
        except Exception as error:  # noqa: BLE001  # the commit has succeeded, whatever fails now
            pass_on(error)
            at = made.snapshot
            warnings.warn(
                f"version {at.version} of {at.location.uri} was committed, but a step "
                f"after the commit failed: {error}",
                RuntimeWarning,
                stacklevel=3,
            )


WRITER = WriterVersion(library="lancelake", version=__version__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChoices(candidate.RequestChoices):
    """Options of a commit besides the change itself."""

    message: str | None = None
    properties: FrozenMap[str, str] = field(default_factory=FrozenMap)
    is_detached: bool = False
    naming: ManifestNaming = ManifestNaming.V2
    lock: CommitLock | None = None
    after: tuple[CommitStep, ...] | None = None
    """Hooks instead of those of the session."""

    work: Work = NO_WORK
    """What is recorded about the operation."""

    def named(self, name: str, table: Location) -> CommitChoices:
        """Return choices for an operation of this name that begins now, unless it has begun."""
        work = self.work.called(name).begun(table.session.clock.monotonic_s())
        return replace(self, work=work)

    def within(self, retries: Retries) -> CommitChoices:
        """Return choices that keep retrying the commit of finished work while there is time.

        Retrying a commit is cheap compared with repeating the work.
        """
        return replace(self, max_retries=_MOST_COMMIT_RETRIES, timeout_s=retries.timeout_s)


DEFAULT_CHOICES = CommitChoices()


def new_transaction(
    operation: Operation,
    read_version: int,
    choices: CommitChoices = DEFAULT_CHOICES,
    *,
    ids: Ids | None = None,
) -> Transaction:
    """Return a transaction with a new uuid, from the default session unless given."""
    return Transaction(
        read_version=Version(read_version),
        uuid=str((ids or default_session().ids).uuid4()),
        operation=operation,
        properties=with_message(choices.properties, choices.message),
    )


def with_message(properties: Mapping[str, str], message: str | None) -> FrozenMap[str, str]:
    """Return properties with a commit message added."""
    if message is None:
        return FrozenMap(dict(properties))
    return FrozenMap({**properties, COMMIT_MESSAGE: message})


def ensure_free(location: Location) -> None:
    """Refuse a location that already has a table, before any work is done."""
    if has_table(location):
        uri = location.uri
        raise errors.AlreadyExistsError(f"Dataset already exists: {uri}", table=uri)


def ensure_row_ids_stay(
    base: Snapshot, choices: CommitChoices, *, option: str = "enable_stable_row_ids"
) -> None:
    """Refuse other row ids than the table was created with."""
    has = base.manifest.has_stable_row_ids
    if choices.enable_stable_row_ids not in (None, has):
        raise errors.InvalidRequestError(
            f"this table has {'' if has else 'no '}stable row ids, which is fixed at its creation",
            table=base.location.uri,
            option=option,
            action=f"Omit {option}, or create a new table.",
        )


def publish(
    base: Snapshot, change: Operation | Transaction, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Commit a change of an existing table and return the new version."""
    line = _line(base.location, choices)
    services = _services(base.files)
    transaction = _recorded(base.location, change, base, choices)
    request = candidate.CommitRequest(transaction=transaction, choices=choices)
    kind = commit_detached if choices.is_detached else commit
    make = partial(kind, line, request, services, base=base)
    made = _reported(base.location, transaction, choices, make)
    if not choices.is_detached:
        run_after(choices.after, _committed(made, transaction, choices))
    return made


def publish_first(
    location: Location, change: Operation | Transaction, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Commit the first version of a table."""
    transaction = _recorded(location, change, None, choices)
    line = _line(location, choices)
    services = _services(TableFiles(root=location))
    request = candidate.CommitRequest(transaction=transaction, choices=choices)
    make = partial(create_table, line, request, services, naming=choices.naming)
    with errors.naming(location.uri):
        made = _reported(location, transaction, choices, make)
    run_after(choices.after, _committed(made, transaction, choices))
    return made


def publish_clone(
    location: Location,
    transaction: Transaction,
    source: Snapshot,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Commit the first version of a clone of another table's version."""
    transaction = _recorded(location, transaction, None, choices)
    make = partial(
        clone_table,
        _line(location, choices),
        candidate.CommitRequest(transaction=transaction, choices=choices),
        _services(TableFiles(root=location)),
        source=TableState(manifest=source.manifest, indices=source.indices),
        source_uri=source.location.uri,
        naming=choices.naming,
    )
    return _reported(location, transaction, choices, make)


def _recorded(
    location: Location,
    change: Operation | Transaction,
    base: Snapshot | None,
    choices: CommitChoices,
) -> Transaction:
    """Return the transaction of a change, with a record of the operation."""
    clock, ids = location.session.clock, location.session.ids
    transaction = (
        change
        if isinstance(change, Transaction)
        else new_transaction(change, 0 if base is None else base.version, choices, ids=ids)
    )
    return recorded(transaction, base, choices.work, clock.monotonic_s())


_SENTENCE = "committed {operation} as version {version} of {table}"


def _reported(
    location: Location,
    transaction: Transaction,
    choices: CommitChoices,
    make: Callable[[], candidate.CommitResult],
) -> Snapshot:
    """Make a commit, and report it: to the log, to listeners, and in the version returned."""
    clock, started_s = location.session.clock, choices.work.begun_s
    with log.Operation(
        log.COMMIT, _SENTENCE, location.uri, clock=clock, started_s=started_s
    ) as operation:
        result = make()
        if operation.is_heard:
            operation.facts |= _facts(result)
    events.emit(
        events.DATASET,
        event="committed",
        uri=location.uri,
        read_version=transaction.read_version,
        committed_version=result.version,
        detached=str(choices.is_detached).lower(),
        operation=type(transaction.operation).__name__,
    )
    return result.snapshot.after(result.metrics)


def _facts(result: candidate.CommitResult) -> log.Facts:
    """Return what a commit did, as its transaction records it, and what it took."""
    record, took = record_of(result.transaction), asdict(result.metrics)
    took["commit_milliseconds"] = took.pop("milliseconds")
    return {"version": result.version, "operation": record.name, **record.metrics, **took}


def _committed(made: Snapshot, transaction: Transaction, choices: CommitChoices) -> Committed:
    return Committed(snapshot=made, operation=transaction.operation, lock=choices.lock)


def _line(location: Location, choices: CommitChoices) -> VersionLine:
    line = open_line(location)
    if choices.lock is None:
        return line
    return replace(line, handler=LockedHandler(inner=line.handler, lock=choices.lock))


def _services(files: TableFiles) -> candidate.CommitServices:
    around = files.root.session
    return candidate.CommitServices(
        port=DeletionPort(root=files.root, bases=files),
        facts=FilesFactsPort(root=files.root),
        clock=around.clock,
        ids=around.ids,
        keys=AddedRowKeys(root=files.root),
        writer=WRITER,
    )


INTERVAL = "lance.auto_cleanup.interval"
OLDER_THAN = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS = "lance.auto_cleanup.retain_versions"
REFERENCED_BRANCHES = "lance.auto_cleanup.referenced_branch"
RATE_LIMIT = "lance.auto_cleanup.delete_rate_limit"

DEFAULT_INTERVAL = 20
DEFAULT_OLDER_THAN_S = 14 * 86_400


def auto_cleanup_config(
    *, interval: int = DEFAULT_INTERVAL, older_than_s: int = DEFAULT_OLDER_THAN_S
) -> FrozenMap[str, str]:
    """Return the config entries for a cleanup every `interval` versions of versions of that age."""
    for name, value in (("interval", interval), ("older_than_seconds", older_than_s)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            problem = f"{name} of auto_cleanup_options must be a non-negative number, not {value!r}"
            raise errors.InvalidRequestError(problem, found=value)
    return FrozenMap({INTERVAL: str(interval), OLDER_THAN: duration_text(older_than_s)})


DEFAULT_RETRIES = 10
DEFAULT_TIMEOUT_S = 30.0
_MOST_COMMIT_RETRIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Limits of retries: their number, their total time, and the longest delay between them."""

    most: int = DEFAULT_RETRIES
    timeout_s: float = DEFAULT_TIMEOUT_S
    longest_wait_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        """Refuse negative limits."""
        if self.most < 0 or self.timeout_s < 0:
            raise errors.InvalidRequestError("retries and their timeout must not be negative")


DEFAULT = Retries()

Result = TypeVar("Result")


def retry_on_newest(
    base: Snapshot, attempt: Callable[[Snapshot], Result], retries: Retries
) -> Result:
    """Attempt work on a version; after a conflict retry it on the newest, within the limits."""
    clock, ids = base.location.session.clock, base.location.session.ids
    started_s = clock.monotonic_s()
    for number in range(retries.most + 1):
        begun_s = clock.monotonic_s()
        try:
            return disk_sync.until_named(partial(attempt, base))
        except errors.RetryableConflictError as conflict:
            now_s, table = clock.monotonic_s(), base.location.uri
            spent_s = now_s - started_s
            if number == retries.most or spent_s >= retries.timeout_s:
                raise _given_up(base, number + 1, spent_s) from conflict
            most_s = min(retries.longest_wait_s, retries.timeout_s - spent_s)
            delay_s = candidate.redo_delay_s(now_s - begun_s, ids.random(), most_s=most_s)
            log.report_retry(log.COMMIT, conflict.at(table), delay_s, table=table)
        clock.sleep(delay_s)
        base = open_snapshot(base.location, Latest(), main=base.main_location)
    raise AssertionError


def _given_up(base: Snapshot, attempts: int, spent_s: float) -> errors.ContentionError:
    problem = (
        f"Too many concurrent writers: the work was attempted {attempts} times in "
        f"{spent_s:.1f} s, and each time conflicted with another commit"
    )
    return errors.ContentionError(problem, table=base.location.uri, attempts=attempts)


APP_ID = "lancelake.txn.appId"
APP_VERSION = "lancelake.txn.version"

_NAMESPACE = uuid.UUID("5b9d6f0e-6f2c-5d0e-9f53-6b1f6f2f6c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceOnly:
    """A write that is committed at most once, however often it is attempted.

    The uuid of its transaction is derived from the two, so that it can be found by name.
    """

    app_id: str
    version: int

    @staticmethod
    def of(
        app_id: str | None,
        version: int | None,
        *,
        names: tuple[str, str] = ("txn_app_id", "txn_version"),
    ) -> OnceOnly | None:
        """Parse the pair of options with these names, which must be set together."""
        if app_id is None and version is None:
            return None
        if not app_id or version is None:
            raise errors.InvalidRequestError(
                f"options {names[0]} and {names[1]} must be set together",
                action="Set both, or neither.",
            )
        return OnceOnly(app_id=app_id, version=version)

    @property
    def uuid(self) -> str:
        """The uuid of the transaction."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.app_id}\n{self.version}"))

    def stamped(self, transaction: Transaction) -> Transaction:
        """Return a transaction with this identity."""
        marks = {APP_ID: self.app_id, APP_VERSION: str(self.version)}
        properties = FrozenMap({**transaction.properties, **marks})
        return replace(transaction, uuid=self.uuid, properties=properties)


def landed(head: Snapshot, once: OnceOnly) -> Snapshot | None:
    """Return the version that an earlier attempt committed; None if there is none.

    A transaction file is written before its version, and records the version it has read: without a
    file nothing was committed, and with one only the versions since have to be checked.
    """
    read_versions = _tried_from(head, once)
    if not read_versions:
        return None
    for snapshot in history(head.location, newest_first=True):
        if snapshot.version <= min(read_versions):
            return None
        if _is_by(snapshot, once):
            return snapshot
    return None


def _tried_from(head: Snapshot, once: OnceOnly) -> list[int]:
    suffix = f"-{once.uuid}.txn"
    entries = head.location.store.list(layout.TRANSACTIONS)
    names = [entry.path.rpartition("/")[2] for entry in entries if entry.path.endswith(suffix)]
    return [int(name.removesuffix(suffix)) for name in names]


def _is_by(snapshot: Snapshot, once: OnceOnly) -> bool:
    try:
        made_by = snapshot.transaction
    except errors.VersionNotFoundError:
        return False
    return made_by is not None and made_by.uuid == once.uuid


@contextmanager
def removed_if_refused(files: TableFiles, fragments: Sequence[Fragment]) -> Iterator[None]:
    """Remove the files of new fragments, which only this process knows, if a commit is refused.

    After any other error, an interrupt too, the commit may be published now or later. The same
    holds if a reply was lost on the way: the version may even have been cleaned up since.
    """
    lost = candidate.tally.lost
    try:
        yield
    except (errors.AlreadyExistsError, errors.ConflictError, errors.InvalidRequestError):
        if candidate.tally.lost == lost:
            discard(files, fragments)
        raise
