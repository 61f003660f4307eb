"""Write rows: create, append to or overwrite a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import assert_never

import pyarrow as pa

from lancelake import events
from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.arrays.text import InvalidText
from lancelake.data.blobs.files import ensure_same_limits
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.schema_check import match_schema
from lancelake.data.storable import ensure_storable, is_for_newest_readers
from lancelake.data.write_task import (
    DEFAULT_PAGES,
    MAX_BYTES_PER_FILE,
    MAX_ROWS_PER_FILE,
    FileWatch,
    PageSizes,
    Progress,
    WriteTask,
)
from lancelake.errors import AlreadyExistsError, InvalidRequestError, naming
from lancelake.format import file_version
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import Append, Merge, Overwrite
from lancelake.format.schema import Schema
from lancelake.storage.location import Location
from lancelake.table.open import open_existing
from lancelake.table.publish import (
    DEFAULT_CHOICES,
    CommitChoices,
    ensure_row_ids_stay,
    new_transaction,
    publish,
    publish_first,
)
from lancelake.table.target_bases import TO_ROOT, TargetBases


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
class WriteOptions:
    """Options of writing and committing rows."""

    mode: WriteMode = WriteMode.CREATE
    schema_mode: SchemaMode = SchemaMode.STRICT
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    pages: PageSizes = DEFAULT_PAGES
    data_version: FileVersion | None = None
    initial_bases: tuple[BasePath, ...] = ()
    targets: TargetBases = TO_ROOT
    allow_external_blobs: bool = False
    text: InvalidText = InvalidText.REFUSE
    config: FrozenMap[str, str] = field(default_factory=FrozenMap)
    """Config and metadata of a new table."""

    progress: Progress | None = None
    watch: FileWatch | None = None
    choices: CommitChoices = DEFAULT_CHOICES


def write(reader: pa.RecordBatchReader, location: Location, options: WriteOptions) -> Snapshot:
    """Write rows and commit them; if the table does not exist, every mode creates it."""
    base = open_existing(location)
    if base is None:
        _report(location, WriteMode.CREATE)
        with naming(location.uri):
            return _create(reader, location, options)
    return write_onto(base, reader, options)


@names_table
def write_onto(base: Snapshot, reader: pa.RecordBatchReader, options: WriteOptions) -> Snapshot:
    """Write rows to a version of an existing table and commit them."""
    _report(base.location, options.mode)
    match options.mode:
        case WriteMode.CREATE:
            raise AlreadyExistsError(
                f"Dataset already exists: {base.location.uri}", table=base.location.uri
            )
        case WriteMode.APPEND:
            return _append(base, reader, options)
        case WriteMode.OVERWRITE:
            return _overwrite(base, reader, options)
        case _:
            assert_never(options.mode)


def _report(location: Location, mode: WriteMode) -> None:
    events.emit(events.DATASET, event="writing", uri=location.uri, mode=mode.value.capitalize())


def fragments_for(
    base: Snapshot | None, location: Location, reader: pa.RecordBatchReader, options: WriteOptions
) -> tuple[Schema, tuple[Fragment, ...]]:
    """Write data files without committing them; return their schema and fragments."""
    _ensure_possible(base, options)
    if base is not None and options.mode is WriteMode.APPEND:
        schema, version = base.manifest.schema, appended_version(base, options.data_version)
        ensure_same_limits(schema, reader.schema)
        is_for_newest = is_for_newest_readers(schema, version)
    else:
        schema, version = from_arrow(reader.schema), _new_version(base, options)
        is_for_newest = False
    bases = options.initial_bases if base is None else base.manifest.base_paths
    task = WriteTask(
        root=location,
        schema=schema,
        file_version=version,
        max_rows_per_file=options.max_rows_per_file,
        max_bytes_per_file=options.max_bytes_per_file,
        pages=options.pages,
        bases=options.targets.among(bases),
        allow_external_blobs=options.allow_external_blobs,
        declared_bases=tuple(bases),
        text=options.text,
        newest_readers_only=is_for_newest,
    )
    ids = options.choices.surroundings.ids
    return schema, write_fragments(
        task, reader, ids=ids, progress=options.progress, watch=options.watch
    )


def _create(reader: pa.RecordBatchReader, location: Location, options: WriteOptions) -> Snapshot:
    schema, fragments = fragments_for(None, location, reader, options)
    operation = Overwrite(
        fragments=fragments,
        schema=schema,
        config_upsert_values=options.config,
        initial_bases=options.initial_bases,
    )
    choices = replace(options.choices, data_version=_new_version(None, options))
    return publish_first(location, new_transaction(operation, 0, choices), choices)


def _append(base: Snapshot, reader: pa.RecordBatchReader, options: WriteOptions) -> Snapshot:
    if options.schema_mode is SchemaMode.MERGE:
        base = widened(base, reader.schema, options.choices)
    _, fragments = fragments_for(base, base.location, reader, options)
    transaction = new_transaction(Append(fragments=fragments), base.version, options.choices)
    return publish(base, transaction, options.choices)


def _overwrite(base: Snapshot, reader: pa.RecordBatchReader, options: WriteOptions) -> Snapshot:
    schema, fragments = fragments_for(base, base.location, reader, options)
    operation = Overwrite(fragments=fragments, schema=schema)
    choices = replace(options.choices, data_version=_new_version(base, options))
    return publish(base, new_transaction(operation, base.version, choices), choices)


def _ensure_possible(base: Snapshot | None, options: WriteOptions) -> None:
    """Refuse options that only apply to a new table."""
    if base is None:
        return
    if options.initial_bases:
        mode = options.mode.value.capitalize()
        problem = (
            f"Cannot register new bases in {mode} mode. Only CREATE mode can register new ones"
        )
        raise InvalidRequestError(problem, table=base.location.uri)
    if options.config:
        problem = "options of a new table cannot be set for an existing one"
        action = "Change its config instead."
        raise InvalidRequestError(problem, table=base.location.uri, action=action)
    ensure_row_ids_stay(base, options.choices)


def _new_version(base: Snapshot | None, options: WriteOptions) -> FileVersion:
    """Return the file version of a created or overwritten table."""
    chosen = options.data_version or (
        file_version.DEFAULT if base is None else base.manifest.data_version
    )
    if chosen is FileVersion.LEGACY:
        raise InvalidRequestError("tables with legacy data files can be read, but not written")
    return chosen


def appended_version(base: Snapshot, asked: FileVersion | None) -> FileVersion:
    """Return the file version of rows to append, which is that of the table; refuse another."""
    own = base.manifest.data_version
    if asked not in (None, own):
        problem = f"data files of this table have format version {own.value}"
        action = "Omit the data storage version, or overwrite the table with another one."
        raise InvalidRequestError(problem, table=base.location.uri, action=action)
    return own


def widened(base: Snapshot, data: pa.Schema, choices: CommitChoices) -> Snapshot:
    """Add the columns that only the data has, null in all existing rows."""
    schema = widened_schema(base, data)
    if schema == base.manifest.schema:
        return base
    version = base.manifest.data_version
    is_for_newest = is_for_newest_readers(base.manifest.schema, version)
    # Nothing could be appended to a table with a column that its files cannot store.
    ensure_storable(schema, version, newest_readers_only=is_for_newest)
    operation = Merge(
        fragments=tuple(base.manifest.fragments), schema=schema, preserves_nullability=True
    )
    return publish(base, new_transaction(operation, base.version, choices), choices)


def widened_schema(base: Snapshot, data: pa.Schema) -> Schema:
    """Return a version's schema with the columns that only the data has."""
    extra = match_schema(base.manifest.schema, data).extra
    if not extra:
        return base.manifest.schema
    used = [i for fragment in base.manifest.fragments for f in fragment.files for i in f.fields]
    first = max(base.manifest.schema.max_field_id, max(used, default=-1)) + 1
    nullable = pa.schema([field.with_nullable(True) for field in extra])
    added = from_arrow(nullable, first_id=first)
    return replace(base.manifest.schema, fields=base.manifest.schema.fields + added.fields)
