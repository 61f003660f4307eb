"""Check the transaction recorded for a version."""

from __future__ import annotations

from collections.abc import Iterator

from lancelake.errors import LanceTableError
from lancelake.format import layout, transaction
from lancelake.format.operations import Clone, UnknownOperation
from lancelake.format.transaction import Transaction
from lancelake.storage.confined import confined_path
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.subject import Subject

_STUCK = "Writers that started before this version cannot commit; writers that start now can."


def check_transaction(subject: Subject) -> Iterator[Finding]:
    """Check the transaction in the manifest, or else the transaction file."""
    inline = subject.snapshot.file.inline_transaction
    path = layout.transaction(subject.snapshot.manifest.transaction_file)
    try:
        found = transaction.decode(inline) if inline is not None else _load(subject)
    except LanceTableError as error:
        where = None if inline is not None else path
        yield subject.error("transaction-damaged", error.problem, path=where, hint=_STUCK)
        return
    if found is None:
        severity = Severity.INFO if subject.is_historic else Severity.WARNING
        named = bool(subject.snapshot.manifest.transaction_file)
        yield subject.finding(
            severity,
            "transaction-missing",
            "the transaction that created this version is not recorded",
            path=path if named else None,
            hint=_STUCK,
        )
        return
    if inline is not None:
        yield from _copy(subject)
    yield from _content(subject, found)


def _copy(subject: Subject) -> Iterator[Finding]:
    """Check the transaction file that a manifest with an inline transaction may refer to."""
    name = subject.snapshot.manifest.transaction_file
    if not name:
        return
    path = layout.transaction(confined_path(name))
    if subject.sizes.of(FileAt(root=subject.snapshot.location, path=path)) is None:
        message = "the transaction file no longer exists; the manifest contains a copy"
        yield subject.info("transaction-file-missing", message, path=path)


def _content(subject: Subject, found: Transaction) -> Iterator[Finding]:
    if isinstance(found.operation, UnknownOperation):
        yield subject.info(
            "operation-unknown",
            "the version was created by an operation that this release does not support "
            f"(number {found.operation.tag})",
        )
    # A clone keeps the number of the version it was cloned from.
    newest = subject.snapshot.version - (0 if isinstance(found.operation, Clone) else 1)
    if found.read_version > newest:
        yield subject.error(
            "transaction-order",
            f"the transaction has read version {found.read_version}, which is newer than "
            "this version",
        )


def _load(subject: Subject) -> Transaction | None:
    name = subject.snapshot.manifest.transaction_file
    if not name:
        return None
    place = FileAt(root=subject.snapshot.location, path=layout.transaction(confined_path(name)))
    size = subject.sizes.of(place)
    if isinstance(size, LanceTableError):
        raise size
    return None if size is None else transaction.decode(open_store(place.root).get(place.path))
