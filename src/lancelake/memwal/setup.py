"""Beginning and end of a MemWAL."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    AlreadyExistsError,
    ContentionError,
    CorruptTableError,
    InvalidRequestError,
    WriterFencedError,
)
from lancelake.format import ids, index_meta, operations, primary_key
from lancelake.format.arrow_schema import storage_field
from lancelake.format.frozen import FrozenMap
from lancelake.format.memwal import details, wal_keys
from lancelake.format.memwal.details import Bucketed, ByValue, MemWalDetails, RegionSpec, Unsharded
from lancelake.format.memwal.region_manifest import FIRST_GENERATION, RegionManifest
from lancelake.format.schema import Field
from lancelake.memwal.region import (
    RegionFiles,
    claim,
    details_of,
    ensure_ended,
    fence,
    has_mem_wal,
    region_files,
    update_manifest,
    was_replaced,
)
from lancelake.memwal.shape import RowShape
from lancelake.memwal.status import wal_status
from lancelake.memwal.writer import RegionWriter, WriterOptions
from lancelake.storage.store import ObjectStore
from lancelake.table.config import declare_primary_key
from lancelake.table.publish import (
    DEFAULT_CHOICES,
    CommitChoices,
    Committed,
    publish,
)

_ATTEMPTS = 5


def retire_regions(base: Snapshot, store: ObjectStore | None = None) -> tuple[uuid.UUID, ...]:
    """Replace the writers of all regions and discard rows that are not merged.

    The numbers of epochs, generations and WAL entries go on, so that neither a replaced writer nor
    a late merge brings anything back. The files are left to garbage collection. If the newest
    version has a MemWAL, AlreadyExistsError is raised and its rows stay.
    """
    retired = tuple(region_files(base.location, store=store))
    for files in retired:
        _retire(files, lambda: ensure_ended(base))
    return tuple(files.region for files in retired)


def _retire(files: RegionFiles, ensure_unused: Callable[[], None]) -> None:
    """Empty a region.

    A writer of a new MemWAL claims the region after the version that begins the MemWAL. Each claim
    here is of a state that was read before a look at the newest version, and so cannot replace it.
    """
    for _ in range(_ATTEMPTS):
        try:
            _empty(files, ensure_unused)
        except WriterFencedError:
            # Another process retires the region, or a writer that does not know of the end.
            continue
        return
    msg = f"region {files.region} could not be retired in {_ATTEMPTS} attempts"
    raise ContentionError(msg, region=str(files.region))


def _empty(files: RegionFiles, ensure_unused: Callable[[], None]) -> None:
    current = files.latest() or RegionManifest(region_id=files.region)
    ensure_unused()
    if not current.is_active:
        current = update_manifest(
            files,
            current.writer_epoch,
            RegionManifest.unsealed,
            is_done=lambda manifest: manifest.is_active,
        )
    claimed = claim(files, current, ensure_allowed=ensure_unused)
    last = fence(files, claimed)
    tags = [
        entry.generation + 1
        for entry in map(files.entry, range(claimed.replay_after + 1, last + 1))
        if entry.generation is not None
    ]
    following = max(tags, default=FIRST_GENERATION)
    update_manifest(
        files,
        claimed.writer_epoch,
        lambda manifest: manifest.emptied(covers=last, current_generation=following),
        is_done=lambda manifest: not manifest.generations and manifest.replay_after >= last,
    )


def retire_if_replaced(committed: Committed) -> None:
    """Retire the regions of a table whose MemWAL a commit has removed."""
    version = committed.snapshot
    match committed.operation:
        case operations.Overwrite() | operations.Restore():
            may_have_removed = True
        case operations.CreateIndex(removed_indices=removed):
            may_have_removed = any(index.name == index_meta.MEM_WAL for index in removed)
        case _:
            may_have_removed = False
    if may_have_removed and not has_mem_wal(version):
        # A MemWAL that was added since has retired the regions itself.
        with suppress(AlreadyExistsError):
            retire_regions(version)


def carried(base: Snapshot) -> tuple[index_meta.MergedGeneration, ...]:
    """Retire the regions of an earlier MemWAL; return the progress with which a new one starts.

    A writer from before, or rows of a table that was overwritten since, are in regions whose
    retirement did not end. Raise if the rows may be wanted.
    """
    ensure_replaced(base)
    marks = []
    for region in retire_regions(base):
        manifest = RegionFiles.at(base.location, region).latest()
        if manifest is not None and manifest.current_generation > 1:
            mark = index_meta.MergedGeneration(
                region_id=region, generation=manifest.current_generation - 1
            )
            marks.append(mark)
    return tuple(marks)


def ensure_replaced(base: Snapshot) -> None:
    """Raise if regions of a table without a MemWAL have rows that no overwrite has replaced."""
    left = next(filter(_has_rows, region_files(base.location)), None)
    if left is not None and not was_replaced(base):
        raise InvalidRequestError(
            f"{base.location.uri} has rows in region {left.region} of an earlier MemWAL",
            action="Drop the earlier MemWAL with `discard` if the rows are not needed.",
        )


def _has_rows(files: RegionFiles) -> bool:
    manifest = files.latest()
    if manifest is None:
        return True
    return bool(manifest.generations) or files.last_position() > manifest.replay_after


_NS_PER_MS = 1_000_000


def bucketed(base: Snapshot, column: str, buckets: int) -> Bucketed:
    """Return the spec of rows by the hash of a key column."""
    field = _key_column(base, column)
    wal_keys.hashes(pa.array([], storage_field(field).type))
    return Bucketed(column=field.id, buckets=buckets)


def by_value(base: Snapshot, column: str) -> ByValue:
    """Return the spec of rows by the value of a key column."""
    field = _key_column(base, column)
    kind = storage_field(field).type
    if wal_keys.is_binary(kind):
        raise InvalidRequestError(f"column {column} of type {kind} cannot choose a region")
    return ByValue(column=field.id, result_type=_arrow_name(kind))


def initialize(
    base: Snapshot,
    spec: RegionSpec | None,
    choices: CommitChoices = DEFAULT_CHOICES,
    *,
    writer_defaults: Mapping[str, str] | None = None,
    maintain_all_indexes: bool = False,
) -> Snapshot:
    """Add a MemWAL to a table; without a spec, writers choose regions themselves.

    `maintain_all_indexes` asks writers of official releases to index the rows of generations.
    """
    if any(index.name == index_meta.MEM_WAL for index in base.indices):
        raise AlreadyExistsError("the table already has a MemWAL")
    RowShape.of(base)
    merged = carried(base)
    session = base.location.session
    entry = index_meta.IndexMetadata(
        uuid=session.ids.uuid4(),
        name=index_meta.MEM_WAL,
        fields=(),
        dataset_version=ids.Version(base.version),
        details=details.encode(
            replace(
                _details(spec),
                merged=merged,
                maintain_all_indexes=maintain_all_indexes,
                writer_defaults=FrozenMap(dict(writer_defaults or {})),
            )
        ),
        index_version=0,
        created_at_ms=session.clock.now_ns() // _NS_PER_MS,
    )
    operation = operations.CreateIndex(new_indices=(entry,))
    return publish(base, operation, choices.named("ADD MEMWAL", base.location))


def _details(spec: RegionSpec | None) -> MemWalDetails:
    match spec:
        case None:
            return MemWalDetails()
        case Unsharded():
            regions = 1
        case Bucketed():
            regions = spec.buckets
        case ByValue():
            regions = 0
        case _:
            assert_never(spec)
    return MemWalDetails(num_regions=regions, specs=(details.encode_spec(spec),))


def _key_column(base: Snapshot, column: str) -> Field:
    """Find a column that chooses the region; rows of one key must be in one region."""
    field = next((f for f in base.manifest.schema.primary_key() if f.name == column), None)
    if field is None:
        raise InvalidRequestError(
            f"column {column} cannot choose the region of a row: it is not part of the primary key",
            table=base.location.uri,
            column=column,
        )
    return field


def _arrow_name(kind: pa.DataType) -> str:
    return {"string": "utf8", "large_string": "large_utf8", "bool": "boolean"}.get(
        str(kind), str(kind)
    )


_DEFAULTS = WriterOptions()
# All settings that official releases record, with their defaults. Those without an option here
# tune official Lance; writes are always durable.
RECORDED: Mapping[str, str] = {
    "backpressure_log_interval_ms": "30000",
    "durable_write": "true",
    "enable_memtable": "true",
    "manifest_scan_batch_size": "2",
    "max_memtable_batches": str(_DEFAULTS.max_memtable_batches),
    "max_memtable_rows": str(_DEFAULTS.max_memtable_rows),
    "max_memtable_size": str(_DEFAULTS.max_memtable_bytes),
    "max_unflushed_memtable_bytes": str(_DEFAULTS.max_unflushed_bytes),
    "max_wal_buffer_size": "10485760",
    "max_wal_flush_interval_ms": "100",
    "max_wal_persist_retries": "3",
    "stats_log_interval_ms": "60000",
    "wal_persist_retry_base_delay_ms": "50",
}
_OPTIONS = {
    "max_memtable_batches": "max_memtable_batches",
    "max_memtable_rows": "max_memtable_rows",
    "max_memtable_size": "max_memtable_bytes",
    "max_unflushed_memtable_bytes": "max_unflushed_bytes",
}


def recorded(given: Mapping[str, int | bool]) -> dict[str, str]:
    """Return the settings to record for a table: all of them as soon as one is given."""
    if not given:
        return {}
    writer_options({}, given)
    return {**RECORDED, **{name: str(value).lower() for name, value in given.items()}}


def writer_options(stored: Mapping[str, str], given: Mapping[str, int | bool]) -> WriterOptions:
    """Return the options of a writer: its own settings, then those of the table."""
    unknown = [name for name in given if name not in RECORDED]
    if unknown:
        raise InvalidRequestError(f"a writer has no setting {unknown[0]}", setting=unknown[0])
    options: dict[str, Any] = {}
    for name, option in _OPTIONS.items():
        if name in given:
            options[option] = int(given[name])
        elif name in stored:
            options[option] = _number(name, stored[name])
    return WriterOptions(**options)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise CorruptTableError(f"the MemWAL has the invalid setting {name}={text!r}", setting=name)
    return int(text)


_BUCKETS = 8


def set_up(
    base: Snapshot,
    *,
    buckets: int | None = None,
    key: str | Sequence[str] | None = None,
    value_column: str | None = None,
    unsharded: bool = False,
    settings: Mapping[str, int | bool] | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add a MemWAL to a table; a key is declared if the table has none.

    Rows are divided by the hash of the first key column, by default into 8 buckets; by the values
    of a key column; or not at all.
    """
    undeclared = _undeclared(base, key)
    planned = _with_key(base, undeclared)
    names = primary_key.key_names(planned.manifest.schema)
    if not names:
        raise InvalidRequestError(
            "a MemWAL needs a table with a primary key", action="Name its columns with key."
        )
    # All checks come before the key is declared, which is a commit of its own.
    RowShape.of(planned)
    spec = _spec(planned, names[0], buckets, value_column, unsharded=unsharded)
    writer_defaults = recorded(settings or {})
    keyed = declare_primary_key(base, undeclared, choices=choices) if undeclared else base
    return initialize(keyed, spec, choices, writer_defaults=writer_defaults)


def _undeclared(base: Snapshot, key: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the key columns that must be declared; none if the table has this key."""
    own = primary_key.key_names(base.manifest.schema)
    if key is None:
        return ()
    wanted = (key,) if isinstance(key, str) else tuple(key)
    if not own:
        unknown = [name for name in wanted if name not in base.manifest.schema.names]
        if unknown:
            raise InvalidRequestError(f"the table has no column {unknown[0]}", column=unknown[0])
        return wanted
    if own != wanted:
        raise InvalidRequestError(
            f"the table's primary key is {', '.join(own)}, not {', '.join(wanted)}"
        )
    return ()


def _with_key(base: Snapshot, columns: Sequence[str]) -> Snapshot:
    """Return the version as it will be when more key columns are declared."""
    schema = base.manifest.schema
    position = {name: number for number, name in enumerate(columns, start=1)}
    fields = tuple(
        replace(
            field,
            unenforced_primary_key=True,
            unenforced_primary_key_position=position[field.name],
        )
        if field.name in position
        else field
        for field in schema.fields
    )
    return base.with_schema(replace(schema, fields=fields))


def _spec(
    base: Snapshot,
    first_key: str,
    buckets: int | None,
    value_column: str | None,
    *,
    unsharded: bool,
) -> RegionSpec:
    if (buckets is not None) + (value_column is not None) + unsharded > 1:
        raise InvalidRequestError("regions are chosen by buckets, by value, or not at all")
    if unsharded:
        return Unsharded()
    if value_column is not None:
        return by_value(base, value_column)
    return bucketed(base, first_key, _BUCKETS if buckets is None else buckets)


def drop_mem_wal(
    base: Snapshot, *, discard: bool = False, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Remove the MemWAL from a table, and retire its regions.

    Rows that are not merged are refused unless they are to be discarded, and so are those of
    regions that another program has left on a table without a MemWAL.
    """
    gone = tuple(index for index in base.indices if index.name == index_meta.MEM_WAL)
    if not gone:
        if not discard:
            ensure_replaced(base)
        retire_regions(base)
        return base
    status = wal_status(base)
    left = [r for r in status.regions if r.unmerged or r.tail_entries]
    if left and not discard:
        raise InvalidRequestError(
            f"{len(left)} regions of the MemWAL have rows that are not merged",
            action="Merge them first, or discard them.",
        )
    operation = operations.CreateIndex(new_indices=(), removed_indices=gone)
    return publish(base, operation, choices.named("DROP MEMWAL", base.location))


_INLINE = WriterOptions(flushes_in_background=False)


def flush_tails(
    base: Snapshot,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    options: WriterOptions = _INLINE,
) -> tuple[uuid.UUID, ...]:
    """Flush the WAL tails of regions, by default of all; return those that had one.

    This replaces the writers of these regions: they are fenced.
    """
    flushed: list[uuid.UUID] = []
    for status in wal_status(base).regions:
        if status.tail_entries and (regions is None or status.region in regions):
            with RegionWriter(base, status.manifest, options=options):
                flushed.append(status.region)
    return tuple(flushed)


def seal_regions(
    base: Snapshot,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    options: WriterOptions = _INLINE,
) -> tuple[uuid.UUID, ...]:
    """Flush and seal regions; return those that were not sealed before."""
    details_of(base)
    sealed: list[uuid.UUID] = []
    for manifest in _manifests(base, regions):
        if manifest.is_active:
            RegionWriter(base, manifest, options=options).seal()
            sealed.append(manifest.region_id)
    return tuple(sealed)


def _manifests(base: Snapshot, regions: Sequence[uuid.UUID] | None) -> Iterator[RegionManifest]:
    for files in region_files(base.location, regions):
        manifest = files.latest()
        if manifest is None:
            region = str(files.region)
            raise InvalidRequestError(f"the table has no region {region}", region=region)
        yield manifest
