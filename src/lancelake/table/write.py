"""Writing rows in three steps, plan, run and commit; dropping tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import pyarrow as pa

from lancelake import errors, events
from lancelake.commit.snapshot import Latest, Snapshot, list_versions, open_snapshot
from lancelake.data import column_file
from lancelake.data.arrays.batches import InvalidText
from lancelake.data.codec.readers import forget_readers_below
from lancelake.data.schema_check import ensure_same_limits, ensure_writable, suitable
from lancelake.engine.port import Engine, LocalEngine
from lancelake.expr.predicate import Filter, Predicate, predicate
from lancelake.format import layout
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import BasePath, FileVersion, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.layout import ManifestName, ManifestNaming
from lancelake.format.manifest import Manifest, ManifestFile
from lancelake.format.operations import Append, Operation, Overwrite, Transaction
from lancelake.format.schema import Schema
from lancelake.scan.request import expression_schema
from lancelake.scan.row_lookup import close_fragments
from lancelake.storage import disk_sync
from lancelake.storage.local import remove_leftovers
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import TableFiles
from lancelake.table import publish, row_steps
from lancelake.table.columns.alter import widened
from lancelake.table.operation_record import NO_WORK


class WriteMode(Enum):
    """How existing rows are handled."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"


class SchemaMode(Enum):
    """How columns that the table does not have are handled."""

    STRICT = "strict"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBases:
    """Requested bases: by name or path, or all of them, with or without the table's root."""

    names: tuple[str, ...] = ()
    with_root: bool | None = None
    """True for the root and every base, False for every base; None selects by name."""

    def among(self, bases: tuple[BasePath, ...]) -> tuple[BasePath | None, ...]:
        """Return the locations that files are written to in turn; None is the root."""
        if self.with_root is None:
            return tuple(_named(name, bases) for name in self.names) or (None,)
        if self.names:
            raise errors.InvalidRequestError(
                "Cannot specify target_all_bases together with target_bases", bases=self.names
            )
        every = tuple(sorted(bases, key=lambda base: base.id))
        if self.with_root:
            return (None, *every)
        if not every:
            raise errors.InvalidRequestError(
                "target_all_bases found no registered bases, and the table's root is excluded",
                action="Register bases, or write to the root as well.",
            )
        return every


TO_ROOT = TargetBases()


def _named(name: str, bases: tuple[BasePath, ...]) -> BasePath:
    match = next((base for base in bases if name in (base.name, base.path)), None)
    if match is None:
        advice = errors.suggestion(name, [base.name or base.path for base in bases], "bases")
        problem = f"Base reference {name!r} not found in available bases"
        raise errors.InvalidRequestError(problem, base=name, action=advice)
    return match


class RowsToReplace(Protocol):
    """Rows of a table that an overwrite replaces."""

    @property
    def text(self) -> str:
        """The condition that selects them."""

    def ensure_possible(self, schema: Schema) -> None:
        """Refuse a condition that columns do not allow, if that is known before it is evaluated."""

    def find(self, at: Snapshot) -> row_steps.RowsByFragment:
        """Return the rows of a version."""

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByFilter:
    """Rows to replace, by a condition."""

    condition: Filter | None
    engine: Engine | None = None
    """Runs the search for rows; by default that of the session."""

    @property
    def text(self) -> str:
        """The condition in SQL."""
        return row_steps.condition_text(self.condition)

    def ensure_possible(self, schema: Schema) -> None:
        """Refuse a condition that columns do not allow."""
        if self.condition is not None and not isinstance(self.condition, Predicate):
            predicate(self.condition, schema, expression_schema(schema), ())

    def find(self, at: Snapshot) -> row_steps.RowsByFragment:
        """Return the rows of a version."""
        engine = self.engine or at.location.session.engine or LocalEngine()
        return row_steps.find_rows(at, self.condition, engine)

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        rows = sum(fragment.physical_rows or 0 for fragment in written.manifest.fragments)
        return row_steps.count_rows(self.find(written)) < rows


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNames:
    """How a face spells options, for errors."""

    stable_row_ids: str = "enable_stable_row_ids"
    replaces: str = "replace_where"
    overwrite: str = 'mode="overwrite"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of writing and committing rows."""

    mode: WriteMode = WriteMode.CREATE
    schema_mode: SchemaMode = SchemaMode.STRICT
    keeps_schema: bool = False
    """Whether an overwrite of all rows keeps the table's columns; else it takes the data's."""

    replaces: RowsToReplace | None = None
    """The rows that an overwrite replaces, whose columns it keeps; None for all rows."""

    casts: bool = False
    """Whether values of another type are converted without loss; otherwise they are refused."""

    max_rows_per_file: int = column_file.MAX_ROWS_PER_FILE
    max_bytes_per_file: int = column_file.MAX_BYTES_PER_FILE
    pages: column_file.PageSizes = column_file.DEFAULT_PAGES
    data_version: FileVersion | None = None
    """File version of rows that are all new; None for what the columns need."""

    schema: Schema | None = None
    """Columns of a new table that exist elsewhere, with their ids; None for those of the data."""

    initial_bases: tuple[BasePath, ...] = ()
    targets: TargetBases = TO_ROOT
    allow_external_blobs: bool = False
    text: InvalidText = InvalidText.REFUSE
    config: FrozenMap[str, str] = field(default_factory=FrozenMap)
    """Config and metadata of a new table."""

    progress: column_file.Progress | None = None
    watch: column_file.FileWatch | None = None
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES
    once: publish.OnceOnly | None = None
    """Identity of a write that is committed at most once."""

    commits_nothing: bool = True
    """Whether an append without rows makes a version."""

    patience: publish.Retries = publish.DEFAULT
    """How often the rows to replace are searched again after a conflict."""

    engine: Engine | None = None
    """Runs the tasks that add fields to existing columns; by default that of the session."""

    names: OptionNames = OptionNames()  # frozen

    @property
    def makes_all_rows(self) -> bool:
        """Whether an existing table has no other rows afterwards."""
        return self.mode is WriteMode.OVERWRITE and self.replaces is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """A write that can begin: what it changes, and how its rows are stored.

    Another process that writes rows needs only `task`.
    """

    base: Snapshot | None
    """The version that is changed; None for a new table."""

    task: column_file.WriteTask
    options: WriteOptions
    columns: Schema | None = None
    """Fields of the task that the planned data has, which were checked."""

    made_before: Snapshot | None = None
    """The version that an earlier attempt of this write committed, so that nothing is left to do.
    """

    def adapt(self, **options: Any) -> WritePlan:
        """Return the plan with other options, which must not change how rows are stored."""
        return replace(self, options=replace(self.options, **options))

    def named(self, name: str) -> WritePlan:
        """Return the write as an operation of another name."""
        choices = self.options.choices
        return self.adapt(choices=replace(choices, work=replace(choices.work, name=name)))

    def operation(self, fragments: tuple[Fragment, ...]) -> Append | Overwrite:
        """Return the change of the table, unless only some rows are replaced."""
        if self.base is not None and self.options.mode is WriteMode.APPEND:
            return Append(fragments=fragments)
        return Overwrite(
            fragments=fragments,
            schema=self.task.schema,
            config_upsert_values=self.options.config,
            initial_bases=self.options.initial_bases,
        )


def write(
    base: Snapshot | None, location: Location, reader: pa.RecordBatchReader, options: WriteOptions
) -> Snapshot:
    """Write rows to a version, or to a new table, and commit them: all three steps.

    If there is no table, every mode creates it. Files are removed if the commit is refused, unless
    a watch was told of them.
    """
    mode = WriteMode.CREATE if base is None else options.mode
    events.emit(events.DATASET, event="writing", uri=location.uri, mode=mode.value.capitalize())

    def work() -> Snapshot:
        planned = plan(base, location, reader.schema, options)
        if planned.made_before is not None:
            return planned.made_before
        fragments = run(planned, reader)
        bases = options.initial_bases if base is None else base.manifest.base_paths
        files = TableFiles(root=planned.task.root, bases=bases)
        with publish.removed_if_refused(files, fragments if options.watch is None else ()):
            return commit(planned, fragments)

    return disk_sync.until_named(work)


def write_onto(base: Snapshot, reader: pa.RecordBatchReader, options: WriteOptions) -> Snapshot:
    """Write rows to a version of an existing table and commit them."""
    return write(base, base.location, reader, options)


def plan(
    base: Snapshot | None, location: Location, data: pa.Schema, options: WriteOptions
) -> WritePlan:
    """Plan a write of rows with these columns to a version, or to a new table at a location.

    With `SchemaMode.MERGE`, columns that only the data has are added in versions of their own.
    """
    options = replace(options, choices=options.choices.named("WRITE", location))
    if base is not None:
        before = None if options.once is None else publish.landed(base, options.once)
        if before is not None:
            task = column_file.WriteTask(root=base.location, schema=base.manifest.schema)
            return WritePlan(base=base, task=task, options=options, made_before=before)
    _ensure_possible(base, location, options)
    has_own_columns = base is None or (options.makes_all_rows and not options.keeps_schema)
    if base is not None and not has_own_columns:
        base = _prepare(base, data, options)
    if base is None or has_own_columns:
        schema = from_arrow(data) if options.schema is None else options.schema
    else:
        schema = base.manifest.schema
    bases = options.initial_bases if base is None else base.manifest.base_paths
    task = column_file.WriteTask(
        root=location if base is None else base.location,
        schema=schema,
        file_version=_file_version(base, schema, options),
        max_rows_per_file=options.max_rows_per_file,
        max_bytes_per_file=options.max_bytes_per_file,
        pages=options.pages,
        bases=options.targets.among(bases),
        casts=options.casts,
        allow_external_blobs=options.allow_external_blobs,
        declared_bases=tuple(bases),
        text=options.text,
        # Columns that exist already are no reason to refuse rows of theirs.
        newest_readers_only=not has_own_columns or options.schema is not None,
    )
    columns = column_file.fit_columns(task, data)
    if options.replaces is not None:
        options.replaces.ensure_possible(schema)
    return WritePlan(base=base, task=task, options=options, columns=columns)


def run(plan: WritePlan, reader: pa.RecordBatchReader) -> tuple[Fragment, ...]:
    """Write rows with the planned columns to data files, and return their fragments."""
    options = plan.options
    return column_file.write_fragments(
        plan.task,
        reader,
        progress=options.progress,
        watch=options.watch,
        columns=plan.columns,
    )


def commit(plan: WritePlan, fragments: tuple[Fragment, ...]) -> Snapshot:
    """Commit written rows, unless an earlier attempt of the same write did."""
    base, options = plan.base, plan.options
    is_all_new = base is None or options.makes_all_rows
    choices = replace(
        options.choices,
        data_version=plan.task.file_version if is_all_new else None,
        may_have_landed=options.once is not None,
    )
    if base is None:
        location = plan.task.root
        _ensure_matching(options.replaces, fragments, lambda: _only(plan.task, fragments))
        return publish.publish_first(location, _change(plan, fragments, choices), choices)
    newest = base
    if options.once is not None or options.replaces is not None:
        newest = open_snapshot(base.location, Latest(), main=base.main_location)
    before = None if options.once is None else publish.landed(newest, options.once)
    if before is not None:
        return before
    if options.replaces is not None:
        _ensure_matching(options.replaces, fragments, lambda: row_steps.staged(base, fragments))
        return _replace_rows(base, newest, options.replaces, fragments, options, choices)
    is_nothing = not fragments and options.mode is WriteMode.APPEND and options.once is None
    if is_nothing and not options.commits_nothing:
        return base
    return publish.publish(base, _change(plan, fragments, choices), choices)


def _change(
    plan: WritePlan, fragments: tuple[Fragment, ...], choices: publish.CommitChoices
) -> Operation | Transaction:
    operation, once = plan.operation(fragments), plan.options.once
    if once is None:
        return operation
    read_version = 0 if plan.base is None else plan.base.version
    return once.stamped(publish.new_transaction(operation, read_version, choices))


def _ensure_matching(
    rows: RowsToReplace | None, fragments: tuple[Fragment, ...], written: Callable[[], Snapshot]
) -> None:
    """Refuse rows that the same write would not replace if it were repeated."""
    if rows is not None and fragments and rows.has_others(written()):
        raise errors.InvalidRequestError(
            f"the data has rows that do not match the condition of the overwrite: {rows.text}",
            action="Write only rows that match the condition, or change the condition.",
        )


def _only(task: column_file.WriteTask, fragments: tuple[Fragment, ...]) -> Snapshot:
    """Return the rows of a new table as a version that is never committed."""
    version = Version(1)
    name = layout.manifest_name(version, ManifestNaming.V2)
    manifest = Manifest(
        schema=task.schema,
        fragments=(),
        version=version,
        data_version=task.file_version,
        base_paths=task.declared_bases,
    )
    named = ManifestName(name=name, version=version, naming=ManifestNaming.V2)
    return row_steps.staged(
        Snapshot(task.root, named, ManifestFile(manifest=manifest), 0), fragments
    )


def _replace_rows(
    base: Snapshot,
    newest: Snapshot,
    rows: RowsToReplace,
    fragments: tuple[Fragment, ...],
    options: WriteOptions,
    choices: publish.CommitChoices,
) -> Snapshot:
    def attempt(newest: Snapshot) -> Snapshot:
        # Rows that came since the plan are replaced too. Rows that have other columns by now were
        # written for the planned version, from which the commit finds the conflict.
        version = newest if newest.manifest.schema == base.manifest.schema else base
        gone = rows.find(version)
        if not gone and not fragments and options.once is None:
            return version
        # A retry commits the same files, so that they stay when a commit is refused.
        change = row_steps.RowChange(gone=gone, fragments=fragments, fields=(), once=options.once)
        return row_steps.commit_rows(version, change, choices).snapshot

    return publish.retry_on_newest(newest, attempt, options.patience)


def _ensure_possible(base: Snapshot | None, location: Location, options: WriteOptions) -> None:
    """Refuse options that the table, or its absence, does not allow."""
    names = options.names
    if options.replaces is not None and options.mode is not WriteMode.OVERWRITE:
        problem = f"option {names.replaces} needs {names.overwrite}"
        raise errors.InvalidRequestError(problem, table=location.uri, option=names.replaces)
    if base is None:
        return
    table = base.location.uri
    if options.mode is WriteMode.CREATE:
        raise errors.AlreadyExistsError(f"Dataset already exists: {table}", table=table)
    if options.initial_bases:
        mode = options.mode.value.capitalize()
        problem = (
            f"Cannot register new bases in {mode} mode. Only CREATE mode can register new ones"
        )
        raise errors.InvalidRequestError(problem, table=table)
    if options.config:
        problem = "options of a new table cannot be set for an existing one"
        raise errors.InvalidRequestError(problem, table=table, action="Change its config instead.")
    publish.ensure_row_ids_stay(base, options.choices, option=names.stable_row_ids)


def _prepare(base: Snapshot, data: pa.Schema, options: WriteOptions) -> Snapshot:
    """Return a version to which rows with these columns can be added."""
    if options.schema_mode is SchemaMode.MERGE:
        choices = replace(options.choices, work=NO_WORK)
        base = widened(base, data, choices, engine=options.engine, casts=options.casts)
    ensure_same_limits(base.manifest.schema, data)
    return base


def _file_version(base: Snapshot | None, schema: Schema, options: WriteOptions) -> FileVersion:
    """Return the version of new data files.

    Rows next to others have that of the table. If all rows are new it is that of the table too, or
    a newer one that the columns need, unless another is asked for.
    """
    asked = options.data_version
    if base is None or options.makes_all_rows:
        if asked is None:
            asked = (
                suitable(schema) if base is None else suitable(schema, base.manifest.data_version)
            )
        return ensure_writable(asked)
    own = ensure_writable(base.manifest.data_version)
    if asked not in (None, own):
        problem = f"data files of this table have format version {own.value}"
        action = "Omit the data storage version, or overwrite the table with another one."
        raise errors.InvalidRequestError(problem, table=base.location.uri, action=action)
    return own


def drop_table(location: Location, *, ignore_not_found: bool = False) -> None:
    """Delete every file of a table, and its folder; a location without a table is unchanged.

    So is one without a version that can be decoded: its files may be those of someone else.

    Versions are deleted first, the newest before the others: whenever this is interrupted, every
    version that can be opened is complete. The next call deletes what an interrupted one left.
    """
    store = location.store
    versions = list_versions(location)
    if not versions and not _is_left_behind(store):
        if ignore_not_found:
            return
        uri = location.uri
        problem = f"Dataset at path {uri} was not found: there is no readable Lance manifest"
        raise errors.TableNotFoundError(problem, table=uri)
    if versions and not any(_is_readable(location, name) for name in reversed(versions)):
        raise errors.InvalidRequestError(
            f"Refusing to drop {location.uri}: no readable Lance manifest was found under "
            f"{layout.VERSIONS}, so that this may not be a table",
            table=location.uri,
            action="Remove the files by other means if they are those of a damaged table.",
        )
    for name in reversed(versions):
        store.delete(layout.manifest(name.name))
    paths = [info.path for info in store.list()]
    # Transactions identify the table until everything else is deleted.
    store.delete_many(path for path in paths if not _is_transaction(path))
    store.delete_many(path for path in paths if _is_transaction(path))
    remove_leftovers(location)
    close_fragments(location)
    forget_readers_below(location)


def _is_readable(location: Location, name: ManifestName) -> bool:
    """Whether a file is a manifest, also one that only newer releases support."""
    try:
        Snapshot.load(location, name)
    except (errors.CorruptTableError, errors.NotFoundError):
        return False
    except errors.UnsupportedError:
        return True
    return True


def _is_left_behind(store: ObjectStore) -> bool:
    names = store.list_names(layout.TRANSACTIONS)
    return bool(names) and all(name.endswith(".txn") for name in names)


def _is_transaction(path: str) -> bool:
    return path.startswith(f"{layout.TRANSACTIONS}/")
