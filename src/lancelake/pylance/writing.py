"""Writing tables and fragments, shaped like pylance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE
from lancelake.errors import InvalidRequestError, TableNotFoundError, UnsupportedError
from lancelake.format import file_version
from lancelake.format.bases import BasePath
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId
from lancelake.format.names import ManifestNaming
from lancelake.format.operations import Append, Overwrite
from lancelake.pylance.base_path import DatasetBasePath, to_base_path
from lancelake.pylance.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance.transaction import Transaction, from_transaction
from lancelake.storage.location import Location
from lancelake.table import ingest
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import CommitChoices, new_transaction
from lancelake.table.snapshot import Snapshot
from lancelake.table.write import (
    SchemaMode,
    WriteMode,
    WriteOptions,
    fragments_for,
    write,
    write_onto,
)

_CLEANUP_KEY = "lance.auto_cleanup"


class AutoCleanupConfig(TypedDict):
    """How often old versions are removed, and how old they must be."""

    interval: int
    older_than_seconds: int


def write_rows(
    data_obj: Any,
    target: Snapshot | Location,
    *,
    schema: pa.Schema | None,
    options: WriteOptions,
) -> Snapshot:
    """Write rows to a table that is open, or that lies somewhere."""
    reader = ingest.to_reader(data_obj, schema)
    if isinstance(target, Snapshot):
        return write_onto(target, reader, options)
    return write(reader, target, options)


def write_options(
    mode: str,
    *,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    initial_bases: list[DatasetBasePath] | None = None,
    target_bases: list[str] | None = None,
    schema_mode: str | None = None,
    progress: Any = None,
    known_bases: tuple[BasePath, ...] = (),
) -> WriteOptions:
    """Understand the options of a write as users give them."""
    if use_legacy_format:
        raise UnsupportedError("legacy data files can be read, but not written")
    version = None if data_storage_version is None else file_version.from_name(data_storage_version)
    bases = _numbered(tuple(to_base_path(base) for base in initial_bases or ()))
    choices = CommitChoices(
        message=commit_message,
        properties=FrozenMap(dict(transaction_properties or {})),
        naming=ManifestNaming.V2 if enable_v2_manifest_paths else ManifestNaming.V1,
        enable_stable_row_ids=enable_stable_row_ids,
    )
    return WriteOptions(
        mode=_mode(mode),
        schema_mode=SchemaMode.STRICT if schema_mode is None else SchemaMode(schema_mode),
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_version=version,
        initial_bases=bases,
        target_base=_target(target_bases, bases + known_bases),
        config=_cleanup_config(auto_cleanup_options),
        progress=None if progress is None else progress,
        choices=choices,
    )


def write_fragments(
    data: Any,
    dataset_uri: str | Path | Any,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    storage_options: dict[str, str] | None = None,
    max_rows_per_group: int | None = 1024,
    **kwargs: Any,
) -> list[FragmentMetadata] | Transaction:
    """Write data files that no version refers to yet, to be committed later."""
    snapshot = getattr(dataset_uri, "_snapshot", None)
    location = snapshot.location if snapshot else Location.parse(dataset_uri, storage_options)
    base = snapshot or _existing(location)
    options = write_options(mode, **kwargs)
    reader = ingest.to_reader(data, schema)
    written, fragments = fragments_for(base, location, reader, options)
    if not return_transaction:
        return [from_fragment(fragment) for fragment in fragments]
    version = 0 if base is None else base.version
    appends = options.mode is WriteMode.APPEND and base is not None
    operation: Append | Overwrite = (
        Append(fragments=fragments) if appends else Overwrite(fragments=fragments, schema=written)
    )
    return from_transaction(new_transaction(operation, version, options.choices))


def _existing(location: Location) -> Snapshot | None:
    try:
        return open_snapshot(location, Latest())
    except TableNotFoundError:
        return None


def _mode(mode: str) -> WriteMode:
    try:
        return WriteMode(mode.lower())
    except ValueError as error:
        raise InvalidRequestError(f"Invalid mode {mode}", mode=mode) from error


def _numbered(bases: tuple[BasePath, ...]) -> tuple[BasePath, ...]:
    """Give bases without an id the next free ones, from 1."""
    taken = {base.id for base in bases}
    free = (i for i in range(1, len(bases) + len(taken) + 1) if i not in taken)
    return tuple(base if base.id else replace(base, id=BaseId(next(free))) for base in bases)


def _target(names: list[str] | None, bases: tuple[BasePath, ...]) -> BasePath | None:
    if not names:
        return None
    if len(names) > 1:
        raise UnsupportedError("rows can be written to one target base at a time")
    found = next((b for b in bases if names[0] in (b.name, b.path)), None)
    if found is None:
        raise InvalidRequestError(f"target base {names[0]!r} is not declared", base=names[0])
    return found


def _cleanup_config(options: AutoCleanupConfig | None) -> FrozenMap[str, str]:
    if options is None:
        return FrozenMap()
    return FrozenMap(
        {
            f"{_CLEANUP_KEY}.interval": str(options["interval"]),
            f"{_CLEANUP_KEY}.older_than": f"{options['older_than_seconds']}s",
        }
    )
