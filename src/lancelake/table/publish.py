"""Commit transactions as new versions of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lancelake import events
from lancelake.clock import Clock, Ids, SystemClock, SystemIds
from lancelake.commit.detached import commit_detached
from lancelake.commit.locked import CommitLock, LockedHandler
from lancelake.commit.loop import commit
from lancelake.commit.new_table import clone_table, create_table
from lancelake.commit.request import CommitRequest, RequestChoices
from lancelake.commit.services import CommitServices
from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.commit.version_line import VersionLine, open_line
from lancelake.commit.versions import has_table
from lancelake.data.added_row_keys import AddedRowKeys
from lancelake.data.commit_ports import DeletionPort, FilesFactsPort
from lancelake.errors import AlreadyExistsError, InvalidRequestError, naming
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.manifest import WriterVersion
from lancelake.format.names import ManifestNaming
from lancelake.format.operations import Operation
from lancelake.format.transaction import COMMIT_MESSAGE, Transaction
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles
from lancelake.table.commit_hooks import AfterCommit, Committed, run_after
from lancelake.txn.state import TableState
from lancelake.version import __version__

WRITER = WriterVersion(library="lancelake", version=__version__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Sources of time and randomness; tests inject their own."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)


SYSTEM = Surroundings()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChoices(RequestChoices):
    """Options of a commit besides the change itself."""

    message: str | None = None
    properties: FrozenMap[str, str] = field(default_factory=FrozenMap)
    is_detached: bool = False
    naming: ManifestNaming = ManifestNaming.V2
    lock: CommitLock | None = None
    after: tuple[AfterCommit, ...] | None = None
    """Hooks instead of the installed ones."""

    surroundings: Surroundings = SYSTEM


DEFAULT_CHOICES = CommitChoices()


def new_transaction(
    operation: Operation, read_version: int, choices: CommitChoices = DEFAULT_CHOICES
) -> Transaction:
    """Return a transaction with a new uuid."""
    return Transaction(
        read_version=Version(read_version),
        uuid=str(choices.surroundings.ids.uuid4()),
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
        raise AlreadyExistsError(f"Dataset already exists: {uri}", table=uri)


def ensure_row_ids_stay(base: Snapshot, choices: CommitChoices) -> None:
    """Refuse stable row ids for a table that was created without them."""
    if choices.enable_stable_row_ids and not base.manifest.has_stable_row_ids:
        raise InvalidRequestError(
            "this table has no stable row ids, and they cannot be enabled for an existing table",
            table=base.location.uri,
            action="Omit enable_stable_row_ids, or create a new table.",
        )


@names_table
def publish(
    base: Snapshot, transaction: Transaction, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Commit a change of an existing table and return the new version."""
    line = _line(base.location, choices)
    services = _services(base.files, choices)
    request = CommitRequest(transaction=transaction, choices=choices)
    if choices.is_detached:
        made = commit_detached(line, request, services, base=base).snapshot
        _report(made, transaction, is_detached=True)
        return made
    made = commit(line, request, services, base=base).snapshot
    _report(made, transaction)
    run_after(choices.after, _committed(made, transaction, choices))
    return made


def publish_first(
    location: Location, transaction: Transaction, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Commit the first version of a table."""
    line = _line(location, choices)
    services = _services(TableFiles(root=location), choices)
    with naming(location.uri):
        result = create_table(
            line,
            CommitRequest(transaction=transaction, choices=choices),
            services,
            naming=choices.naming,
        )
    made = result.snapshot
    _report(made, transaction)
    run_after(choices.after, _committed(made, transaction, choices))
    return made


def publish_clone(
    location: Location,
    transaction: Transaction,
    source: Snapshot,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Commit the first version of a clone of another table's version."""
    line = _line(location, choices)
    services = _services(TableFiles(root=location), choices)
    result = clone_table(
        line,
        CommitRequest(transaction=transaction, choices=choices),
        services,
        source=TableState(manifest=source.manifest, indices=source.indices),
        source_uri=source.location.uri,
        naming=choices.naming,
    )
    _report(result.snapshot, transaction)
    return result.snapshot


def _report(made: Snapshot, transaction: Transaction, *, is_detached: bool = False) -> None:
    events.emit(
        events.DATASET,
        event="committed",
        uri=made.location.uri,
        read_version=transaction.read_version,
        committed_version=made.version,
        detached=str(is_detached).lower(),
        operation=type(transaction.operation).__name__,
    )


def _committed(made: Snapshot, transaction: Transaction, choices: CommitChoices) -> Committed:
    around = choices.surroundings
    return Committed(
        snapshot=made,
        operation=transaction.operation,
        lock=choices.lock,
        clock=around.clock,
        ids=around.ids,
    )


def _line(location: Location, choices: CommitChoices) -> VersionLine:
    line = open_line(location)
    if choices.lock is None:
        return line
    return replace(line, handler=LockedHandler(inner=line.handler, lock=choices.lock))


def _services(files: TableFiles, choices: CommitChoices) -> CommitServices:
    around = choices.surroundings
    return CommitServices(
        port=DeletionPort(root=files.root, bases=files, ids=around.ids),
        facts=FilesFactsPort(root=files.root),
        clock=around.clock,
        ids=around.ids,
        keys=AddedRowKeys(root=files.root),
        writer=WRITER,
    )
