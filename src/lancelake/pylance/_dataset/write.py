"""`write_dataset`, its options, and blobs stored elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values import metadata, writes
from lancelake.errors import (
    InvalidRequestError,
    InvalidRequestOSError,
    SchemaMismatchError,
    UnsupportedError,
    naming,
    suggestion,
)
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.state import Session, commit_lock_of, ensure_own, locate
from lancelake.pylance._dataset.transactions import Transaction, from_transaction
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance._values.opened import given
from lancelake.pylance.blob import BlobType
from lancelake.pylance.progress import watching

_MODES = ("reference", "ingest")


def ensure_blob_mode(mode: str, *, allows_outside: bool) -> None:
    """Refuse an unknown mode, and permission for references where none are stored."""
    if mode not in _MODES:
        problem = f"Invalid external blob mode: {mode}"
        raise InvalidRequestError(problem, found=mode, action=f"Known modes: {', '.join(_MODES)}.")
    if mode == "ingest" and allows_outside:
        raise InvalidRequestOSError(
            'allow_external_blob_outside_bases only applies when external_blob_mode="reference"'
        )


def rows_with_blobs(
    data: Any, schema: pa.Schema | None, mode: str, options: Mapping[str, str] | None = None
) -> Any:
    """Return data to write; with mode `ingest`, blobs given by URI have their bytes."""
    if mode != "ingest":
        return data
    rows = writes.objects.to_reader(data, schema)
    return pa.RecordBatchReader.from_batches(rows.schema, _loaded(rows, options))


def _loaded(
    rows: pa.RecordBatchReader, options: Mapping[str, str] | None
) -> Iterator[pa.RecordBatch]:
    blobs = [isinstance(field.type, BlobType) for field in rows.schema]
    for batch in rows:
        columns = [
            _with_bytes(column, options) if is_blob else column
            for column, is_blob in zip(batch.columns, blobs, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _with_bytes(column: pa.ExtensionArray, options: Mapping[str, str] | None) -> pa.Array:
    values = column.storage.to_pylist()
    stored = [
        value
        if value is None or value["uri"] is None
        else {**dict.fromkeys(value), "data": _bytes(value, options)}
        for value in values
    ]
    return pa.ExtensionArray.from_storage(column.type, pa.array(stored, column.storage.type))


def _bytes(value: Mapping[str, Any], options: Mapping[str, str] | None) -> bytes:
    parent, _, name = value["uri"].rpartition("/")
    place = metadata.Location.parse(parent, options if "://" in parent else None)
    store = place.store
    position, size = value.get("position"), value.get("size")
    if position is None and size is None:
        return store.get(name)
    whole = size if size is not None else store.head(name).size_bytes - (position or 0)
    return store.get_range(name, start=position or 0, length=whole)


_UNLIMITED = 1 << 62

_NOT_FILE_OPTIONS = (
    "data",
    "dataset_uri",
    "schema",
    "return_transaction",
    "mode",
    "storage_options",
    "namespace_client",
    "table_id",
    "session",
)


class AutoCleanupConfig(TypedDict, total=False):
    """Interval of automatic cleanups, and the minimum age of versions."""

    interval: int
    older_than_seconds: int


def write_rows(
    data_obj: Any,
    target: metadata.Snapshot | metadata.Location,
    *,
    schema: pa.Schema | None,
    options: writes.WriteOptions,
) -> metadata.Snapshot:
    """Write rows to an open table, or to a location."""
    location = target.location if isinstance(target, metadata.Snapshot) else target
    with naming(location.uri):
        reader = writes.objects.to_reader(data_obj, schema)
    with arguments.os_errors():
        if isinstance(target, metadata.Snapshot):
            return Table(target).write(reader, options)
        return TablePlace(target).write(reader, options)


def write_options(
    mode: str,
    *,
    max_rows_per_file: int = writes.MAX_ROWS_PER_FILE,
    max_bytes_per_file: int = writes.MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: writes.CommitLock | None = None,
    progress: Any = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    initial_bases: list[arguments.DatasetBasePath] | None = None,
    target_bases: list[str] | None = None,
    target_all_bases: bool | None = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    schema_mode: str | None = None,
    invalid_utf8: str = "error",
    replace_where: arguments.Filter = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    **rest: Any,
) -> writes.WriteOptions:
    """Parse the options of a write; `rows_with_blobs` must have applied the blob mode."""
    arguments.ensure_offered(rest)
    ensure_blob_mode(external_blob_mode, allows_outside=allow_external_blob_outside_bases)
    watch = watching(progress)
    choices = writes.CommitChoices(
        message=commit_message,
        properties=metadata.FrozenMap(dict(transaction_properties or {})),
        naming=writes.ManifestNaming.V2 if enable_v2_manifest_paths else writes.ManifestNaming.V1,
        enable_stable_row_ids=enable_stable_row_ids or None,
        lock=commit_lock_of(commit_lock),
    )
    return writes.WriteOptions(
        mode=_mode(mode),
        schema_mode=writes.SchemaMode("strict" if schema_mode is None else schema_mode),
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        pages=writes.PageSizes(max_page_bytes=max_page_bytes, data_cache_bytes=data_cache_bytes),
        data_version=_data_version(data_storage_version, use_legacy_format),
        initial_bases=_numbered(initial_bases or ()),
        targets=_targets(target_bases, target_all_bases),
        allow_external_blobs=allow_external_blob_outside_bases,
        text=writes.chosen_text(invalid_utf8, "invalid_utf8"),
        config=cleanup_config(auto_cleanup_options),
        progress=None if watch is not None else progress,
        watch=watch,
        choices=choices,
        once=writes.OnceOnly.of(txn_app_id, txn_version),
        replaces=None if replace_where is None else writes.RowsByFilter(condition=replace_where),
    )


def write_fragments(
    data: Any,
    dataset_uri: str | Path | Any,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: Literal["create", "append", "overwrite"] = "append",
    max_rows_per_file: int = writes.MAX_ROWS_PER_FILE,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = writes.MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: Any = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: dict[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: list[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: list[arguments.DatasetBasePath] | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: Any = None,
    table_id: list[str] | None = None,
    session: Session | None = None,
    **kwargs: Unpack[arguments.UncommittedOptions],
) -> list[FragmentMetadata] | Transaction:
    """Write uncommitted data files, to be committed later.

    The options are those of `write_dataset`.
    """
    chosen = write_options(mode, **given(locals(), without=_NOT_FILE_OPTIONS))
    snapshot = getattr(dataset_uri, "_snapshot", None)
    if snapshot is not None:
        ensure_own(session, dataset_uri)
        location = snapshot.location
    else:
        uri = dataset_uri if table_id is None else None
        table = arguments.find_table(uri, namespace_client, table_id, storage_options)
        location = locate(table.uri, table.storage_options, session=session)
    place = TablePlace(location)
    base = snapshot or _newest(place)
    with arguments.os_errors(), naming(location.uri):
        rows = rows_with_blobs(data, schema, external_blob_mode, storage_options)
        reader = writes.objects.to_reader(rows, schema)
        plan = place.plan_write(base, reader.schema, chosen)
        fragments = place.run_write(plan, reader)
    if not return_transaction:
        return [from_fragment(fragment) for fragment in fragments]
    version = 0 if base is None else base.version
    return from_transaction(
        writes.new_transaction(plan.operation(fragments), version, chosen.choices)
    )


def _newest(place: TablePlace) -> metadata.Snapshot | None:
    table = place.open_existing()
    return None if table is None else table.snapshot


def write_fragment(
    data: Any,
    location: metadata.Location,
    schema: pa.Schema | None,
    *,
    fragment_id: int | None,
    options: writes.WriteOptions,
) -> metadata.Fragment:
    """Write all rows to one data file; rows to append must have every column of the table."""
    place = TablePlace(location)
    base = _newest(place) if options.mode is writes.WriteMode.APPEND else None
    with arguments.os_errors():
        reader = writes.objects.to_reader(data, schema)
    missing = set(() if base is None else base.manifest.schema.names) - set(reader.schema.names)
    if missing:
        problem = f"fields did not match, missing=[{', '.join(sorted(missing))}]"
        raise SchemaMismatchError(f"Append with different schema: {problem}", table=location.uri)
    number = metadata.FragmentId(fragment_id or 0)
    whole = replace(
        options,
        max_rows_per_file=_UNLIMITED,
        max_bytes_per_file=_UNLIMITED,
        watch=None if options.watch is None else _Numbered(options.watch, number),
    )
    fragments = place.run_write(place.plan_write(base, reader.schema, whole), reader)
    if not fragments:
        raise InvalidRequestOSError("Input data was empty", table=location.uri)
    return replace(fragments[0], id=number)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Reports a data file as that of the fragment with this id."""

    inner: writes.FileWatch
    number: metadata.FragmentId

    def begun(self, fragment: metadata.Fragment) -> None:
        """Report a file that is about to be written."""
        self.inner.begun(replace(fragment, id=self.number))

    def completed(self, fragment: metadata.Fragment) -> None:
        """Report a file that was written."""
        self.inner.completed(replace(fragment, id=self.number))


def _mode(mode: str) -> writes.WriteMode:
    try:
        return writes.WriteMode(mode.lower())
    except ValueError as error:
        advice = suggestion(mode, [each.value for each in writes.WriteMode], "modes")
        raise InvalidRequestError(f"Invalid mode {mode}", mode=mode, action=advice) from error


def _data_version(name: str | None, use_legacy_format: bool | None) -> writes.FileVersion | None:
    if use_legacy_format is not None:
        warnings.warn(
            "use_legacy_format is deprecated, use data_storage_version instead",
            DeprecationWarning,
            stacklevel=4,
        )
        if use_legacy_format:
            raise UnsupportedError("legacy data files can be read, but not written")
    return None if name is None else writes.version_from_name(name)


def _numbered(given: Iterable[arguments.DatasetBasePath]) -> tuple[metadata.BasePath, ...]:
    """Assign ids to bases without one, starting at 1."""
    bases = tuple(arguments.to_base_path(base) for base in given)
    taken = {base.id for base in bases}
    free = (i for i in range(1, len(bases) + len(taken) + 1) if i not in taken)
    return tuple(
        base if base.id else replace(base, id=metadata.BaseId(next(free))) for base in bases
    )


def _targets(names: list[str] | None, with_root: bool | None) -> writes.TargetBases:
    if with_root is not None and not isinstance(with_root, bool):
        raise TypeError(f"target_all_bases must be a bool, got {type(with_root)}")
    return writes.TargetBases(names=tuple(names or ()), with_root=with_root)


def cleanup_config(options: AutoCleanupConfig | None) -> metadata.FrozenMap[str, str]:
    """Return the config entries of automatic cleanups."""
    if options is None:
        return metadata.FrozenMap()
    unknown = sorted(options.keys() - AutoCleanupConfig.__annotations__.keys())
    if unknown:
        problem = f"auto_cleanup_options has no option {unknown[0]!r}"
        advice = suggestion(unknown[0], AutoCleanupConfig.__annotations__, "options")
        raise InvalidRequestError(problem, option=unknown[0], action=advice)
    return writes.auto_cleanup_config(
        interval=options.get("interval", writes.DEFAULT_INTERVAL),
        older_than_s=options.get("older_than_seconds", writes.DEFAULT_OLDER_THAN_S),
    )
