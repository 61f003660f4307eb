"""Check of one version."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import stored_rows
from lancelake.engine.port import Engine
from lancelake.errors import CorruptTableError, LanceTableError, StorageUnavailableError
from lancelake.format import layout, primary_key
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.manifest import FeatureFlags, unknown_writer_flags
from lancelake.format.operations import Clone, Transaction, UnknownOperation, decode_transaction
from lancelake.format.schema import Field
from lancelake.interrupts import pass_on
from lancelake.maintenance.check.data_files import check_data_files, check_footers
from lancelake.maintenance.check.finding import (
    FileSizes,
    Finding,
    Severity,
    Subject,
    encode,
    guarded,
    run_tasks,
)
from lancelake.maintenance.check.index_files import check_indices
from lancelake.maintenance.check.row_ids import Deletions, check_deletions, check_row_ids
from lancelake.storage.store import confined_path
from lancelake.storage.table_files import FileAt, TableFiles, place_named_by

_RECOMPUTED = "Flags are recomputed by every commit; any commit corrects them."
# These flags must be set for readers as well as for writers.
_IN_BOTH_WORDS = (
    FeatureFlags.DELETION_FILES
    | FeatureFlags.STABLE_ROW_IDS
    | FeatureFlags.BASE_PATHS
    | FeatureFlags.MIXED_FILE_VERSIONS
    | FeatureFlags.TAGGED_FRAGMENT_REUSE
)


def check_features(subject: Subject) -> Iterator[Finding]:
    """Compare feature flags with the contents."""
    manifest = subject.snapshot.manifest
    reader, writer = manifest.reader_feature_flags, manifest.writer_feature_flags
    if unknown := unknown_writer_flags(writer):
        yield subject.warning(
            "unknown-writer-flags",
            "the version requires writer features that this release does not support "
            f"(flags {unknown:#x})",
            hint="Reading is safe. Write with the release that created the table.",
        )
    if lopsided := (reader ^ writer) & _IN_BOTH_WORDS:
        yield subject.warning(
            "flag-words-differ",
            f"{_flag_names(lopsided)} must be set for both readers and writers, but is set for "
            "only one of them",
            hint=_RECOMPUTED,
        )
    for flag, content, is_there in _contents(subject):
        is_set = bool((reader | writer) & flag)
        if is_there and not is_set:
            yield subject.warning(
                "flag-missing",
                f"there are {content}, but {_flag_names(flag)} is not set",
                hint=_RECOMPUTED,
            )
        if is_set and not is_there and flag is not FeatureFlags.STABLE_ROW_IDS:
            yield subject.info(
                "flag-idle", f"{_flag_names(flag)} is set, but there are no {content}"
            )


def check_bases(subject: Subject) -> Iterator[Finding]:
    """Check that base paths have unique ids and can be resolved."""
    bases = subject.snapshot.manifest.base_paths
    for base_id, count in Counter(base.id for base in bases).items():
        if count > 1:
            yield subject.error(
                "base-id-twice", f"{count} base paths have the id {base_id}; readers take the first"
            )
    for base in bases:
        try:
            place_named_by(subject.snapshot.location, base.path)
        except LanceTableError as error:
            yield subject.error(
                "base-path-unusable",
                f"base path {base.id} cannot be resolved: {error.problem}",
                path=base.path,
            )


def _contents(subject: Subject) -> Iterator[tuple[FeatureFlags, str, bool]]:
    manifest = subject.snapshot.manifest
    fragments = subject.fragments
    has_deletions = any(f.deletion_file is not None for f in fragments)
    yield FeatureFlags.DELETION_FILES, "deletion files", has_deletions
    has_row_ids = any(f.row_ids is not None for f in fragments)
    yield FeatureFlags.STABLE_ROW_IDS, "row ids", has_row_ids
    yield FeatureFlags.TABLE_CONFIG, "config entries", bool(manifest.config)
    yield FeatureFlags.BASE_PATHS, "base paths", bool(manifest.base_paths)


def _flag_names(flags: int) -> str:
    names = [(flag.name or "").lower() for flag in FeatureFlags if flag & flags]
    return f"flag {' and '.join(names)}"


_RENAME = "Rename the column."


def check_schema(subject: Subject) -> Iterator[Finding]:
    """Check the ids, names and types of all fields."""
    yield from _check_field_ids(subject)
    yield from _check_names(subject)
    yield from _types(subject)
    try:
        primary_key.ensure_valid(subject.schema)
    except LanceTableError as error:
        yield subject.warning("primary-key", error.problem, hint="Choose other key columns.")


def _check_field_ids(subject: Subject) -> Iterator[Finding]:
    counts = Counter(field.id for field in subject.schema.walk())
    for field_id, count in counts.items():
        if count > 1:
            yield subject.finding(
                subject.strict,
                "field-id-twice",
                f"{count} fields have the id {field_id}; readers cannot distinguish their columns",
            )
        if field_id < 0:
            path = subject.schema.path_of(field_id)
            yield subject.error("field-id-negative", f"field {path} has the id {field_id}")


def _check_names(subject: Subject) -> Iterator[Finding]:
    for field in subject.schema.fields:
        if "." in field.name:
            yield subject.error(
                "column-name-dot", f"the name of column {field.name!r} contains a dot", hint=_RENAME
            )
    for name in _repeated(subject.schema.fields):
        yield subject.error("column-name-twice", f"two columns are named {name!r}", hint=_RENAME)
    for field in subject.schema.walk():
        for name in _repeated(field.children):
            yield subject.warning(
                "field-name-twice", f"two fields of {field.name!r} are named {name!r}"
            )
        if not field.name:
            yield subject.warning(
                "field-name-empty", f"field {field.id} has no name, so it cannot be selected"
            )


def _repeated(fields: tuple[Field, ...]) -> list[str]:
    counts = Counter(field.name for field in fields)
    return [name for name, count in counts.items() if count > 1]


def _types(subject: Subject) -> Iterator[Finding]:
    for field in subject.schema.fields:
        try:
            storage_field(field)
        except LanceTableError as error:
            yield subject.error(
                "type-unknown",
                f"column {field.name!r} cannot be read: {error.problem}",
                hint="Read the other columns, or use a newer release.",
            )


_STUCK = "Writers that started before this version cannot commit; writers that start now can."


def check_transaction(subject: Subject) -> Iterator[Finding]:
    """Check the transaction in the manifest, or else the transaction file."""
    inline = subject.snapshot.file.inline_transaction
    path = layout.transaction(subject.snapshot.manifest.transaction_file)
    try:
        found = decode_transaction(inline) if inline is not None else _load(subject)
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
    return None if size is None else decode_transaction(place.store.get(place.path))


def check_fragments(subject: Subject) -> Iterator[Finding]:
    """Check the ids, order and row counts of the fragments."""
    for position, fragment in enumerate(subject.decoded):
        if isinstance(fragment, LanceTableError):
            yield subject.error(
                "fragment-damaged",
                f"entry {position} of the fragment list cannot be decoded: {fragment.problem}",
            )
    yield from _check_fragment_ids(subject)
    yield from _check_row_counts(subject)


def _check_fragment_ids(subject: Subject) -> Iterator[Finding]:
    ids = [fragment.id for fragment in subject.fragments]
    for fragment_id, count in Counter(ids).items():
        if count > 1:
            yield subject.finding(
                subject.strict,
                "fragment-id-twice",
                f"{count} fragments have the id {fragment_id}; row addresses are ambiguous",
                hint="Restore the last consistent version, and write the rows again.",
            )
    highest = subject.snapshot.manifest.max_fragment_id
    too_high = [i for i in ids if highest is None or i > highest]
    if too_high:
        yield subject.error(
            "fragment-id-range",
            f"fragment {max(too_high)} is above the highest assigned fragment id, {highest}; "
            "the next write may assign its id again",
        )
    if any(after < before for before, after in itertools.pairwise(ids)):
        yield subject.info(
            "fragment-order", "fragments are not sorted by id; rows are read in list order"
        )


def _check_row_counts(subject: Subject) -> Iterator[Finding]:
    unknown = [f.id for f in subject.fragments if f.physical_rows is None and f.files]
    if unknown:
        severity = Severity.INFO if subject.is_historic else Severity.WARNING
        yield subject.finding(
            severity,
            "row-count-missing",
            f"the number of rows is not recorded for {_listed(unknown)}; counting rows "
            "has to open files",
            hint="Any commit by an official release records it.",
        )


def _listed(ids: Sequence[int]) -> str:
    if len(ids) == 1:
        return f"fragment {ids[0]}"
    return f"{len(ids)} fragments, the first of them {ids[0]}"


Group = Callable[[], Iterator[Finding]]


class VersionChecks:
    """Checks of the versions of one line, which share most of their files."""

    def __init__(
        self, *, data: bool, deletions: Deletions | None = None, engine: Engine | None = None
    ) -> None:
        """With `data`, the engine reads every value; `deletions` are those already known."""
        self._data = data
        self._engine = engine
        self._deletions = deletions or Deletions()
        self._seen_columns: set[tuple[Field, tuple[str, ...]]] = set()
        self._seen_segments: set[UUID] = set()

    def __call__(self, subject: Subject) -> Iterator[Finding]:
        """Run all checks on a version."""
        yield from _run(subject, self._groups(subject))

    def of_fragments(self, subject: Subject) -> Iterator[Finding]:
        """Run the checks of fragments and their files."""
        yield from _run(subject, self._fragment_groups(subject))

    def _fragment_groups(self, subject: Subject) -> dict[str, Group]:
        return {
            "fragments": lambda: check_fragments(subject),
            "data files": lambda: check_data_files(subject),
            "deletion files": lambda: check_deletions(subject, self._deletions),
        }

    def _groups(self, subject: Subject) -> dict[str, Group]:
        groups: dict[str, Group] = {
            "feature flags": lambda: check_features(subject),
            "base paths": lambda: check_bases(subject),
            "the schema": lambda: check_schema(subject),
            **self._fragment_groups(subject),
            "row ids": lambda: check_row_ids(subject, self._deletions),
            "indices": lambda: check_indices(subject),
            "the transaction": lambda: check_transaction(subject),
        }
        if self._data:
            groups["data file footers"] = lambda: check_footers(subject, self._engine)
            groups["values"] = lambda: self._values(subject)
            groups["index files"] = lambda: self._index_files(subject)
        return groups

    def _index_files(self, subject: Subject) -> Iterator[Finding]:
        from lancelake.maintenance.check.index_files import check_index_files  # noqa: PLC0415  # loads the codec and SQL

        return check_index_files(subject, self._seen_segments, self._engine)

    def _values(self, subject: Subject) -> Iterator[Finding]:
        from lancelake.maintenance.check.data_files import check_rows  # noqa: PLC0415  # loads the codec and SQL

        return check_rows(subject, self._seen_columns, self._engine)


def _run(subject: Subject, groups: dict[str, Group]) -> Iterator[Finding]:
    version, branch = subject.snapshot.version, subject.snapshot.branch
    for what, group in groups.items():
        yield from guarded(what, group, version=version, branch=branch)


_FRAGMENTS_PER_TASK = 16
_TASK_BYTES = 16 << 20


def ensure_in_order(snapshot: Snapshot, *, fragment: FragmentId | None = None) -> None:
    """Raise the first error found, in one fragment or in all of the version.

    Data files are opened, but no values are read.
    """
    subject = Subject(snapshot, FileSizes(), only=fragment)
    checks = VersionChecks(data=False)
    found = checks(subject) if fragment is None else checks.of_fragments(subject)
    for finding in chain(found, _compare_row_counts(subject)):
        if finding.severity is Severity.ERROR:
            raise CorruptTableError(
                finding.message,
                table=snapshot.location.uri,
                version=snapshot.version,
                path=finding.path,
                action="Run `lancelake check` to list all findings, then `lancelake repair`.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCounts:
    """Fragments whose data files are opened."""

    files: TableFiles
    fragments: tuple[Fragment, ...]

    @property
    def memory_bytes(self) -> int:
        """Memory of a few open files."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Open the files and return the findings."""
        return encode(found for fragment in self.fragments for found in self._fragment(fragment))

    def _fragment(self, fragment: Fragment) -> Iterator[Finding]:
        for file in fragment.files:
            try:
                rows = stored_rows(self.files, file)
            except StorageUnavailableError:
                raise
            except (KeyboardInterrupt, SystemExit, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001  # the codec panics on some damage
                pass_on(error)
                reason = error.problem if isinstance(error, LanceTableError) else str(error)
                yield Finding(Severity.ERROR, "file-unreadable", reason, path=file.path)
                continue
            if fragment.physical_rows not in (None, rows):
                message = (
                    f"the file holds {rows} rows of fragment {fragment.id}, "
                    f"the manifest records {fragment.physical_rows}"
                )
                yield Finding(Severity.ERROR, "row-count", message, path=file.path)


def _compare_row_counts(subject: Subject) -> Iterator[Finding]:
    """Compare the row count of every data file with that of its fragment."""
    fragments, files = subject.fragments, subject.snapshot.files
    steps = range(0, len(fragments), _FRAGMENTS_PER_TASK)
    tasks = tuple(
        CheckCounts(files=files, fragments=fragments[n : n + _FRAGMENTS_PER_TASK]) for n in steps
    )
    yield from run_tasks(subject, "row counts", tasks, None)
