"""Writer of a region: puts, flushes, fencing."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Self

import pyarrow as pa

from lancelake import errors
from lancelake.clock import Clock
from lancelake.commit.snapshot import Snapshot
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal import region
from lancelake.memwal.generations import MemTable, replayed, write_generation
from lancelake.memwal.shape import RowShape
from lancelake.storage.store import ObjectStore
from lancelake.threads import Pool, driven_to_end

Convert = Callable[[pa.Table | pa.RecordBatch], Sequence[pa.RecordBatch]]


@dataclass(slots=True, kw_only=True)
class WriterCounts:
    """Totals since the writer was opened."""

    puts: int = 0
    put_s: float = 0.0
    entries: int = 0
    entry_bytes: int = 0
    entry_s: float = 0.0
    flushes: int = 0
    flushed_rows: int = 0
    flush_s: float = 0.0


class WriterMeter:
    """Counts of a writer that several threads share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = WriterCounts()

    def counts(self) -> WriterCounts:
        """Return the totals so far."""
        with self._lock:
            return WriterCounts(
                **{f.name: getattr(self._counts, f.name) for f in fields(self._counts)}
            )

    @contextmanager
    def put(self) -> Iterator[None]:
        """Count a call that succeeds, and its time."""
        start = self._clock.monotonic_s()
        yield
        with self._lock:
            self._counts.puts += 1
            self._counts.put_s += self._clock.monotonic_s() - start

    @contextmanager
    def entry(self, nbytes: int) -> Iterator[None]:
        """Count a WAL entry that is written, and its time."""
        start = self._clock.monotonic_s()
        yield
        with self._lock:
            self._counts.entries += 1
            self._counts.entry_bytes += nbytes
            self._counts.entry_s += self._clock.monotonic_s() - start

    @contextmanager
    def flush(self, rows: int) -> Iterator[None]:
        """Count a flush that succeeds, and its time."""
        start = self._clock.monotonic_s()
        yield
        with self._lock:
            self._counts.flushes += 1
            self._counts.flushed_rows += rows
            self._counts.flush_s += self._clock.monotonic_s() - start


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """Limits of a memtable, which other writers must be able to replay, and of memory."""

    max_memtable_rows: int = 100_000
    max_memtable_batches: int = 8_000
    max_memtable_bytes: int = 256 << 20
    max_unflushed_bytes: int = 1 << 30
    """Above this size of all memtables, writes wait for flushes."""
    flushes_in_background: bool = True

    def __post_init__(self) -> None:
        """Refuse limits that no row fits."""
        for name in ("max_memtable_rows", "max_memtable_batches", "max_memtable_bytes"):
            if getattr(self, name) < 1:
                raise errors.InvalidRequestError(
                    f"{name} must be at least 1", found=getattr(self, name)
                )


@dataclass(slots=True, kw_only=True)
class _Write:
    """Rows of one call, until they are durable."""

    batches: Sequence[pa.RecordBatch]
    units: Mapping[str, int] = field(default_factory=dict)
    is_done: bool = False
    error: BaseException | None = None
    rows: int = field(init=False)
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = sum(batch.num_rows for batch in self.batches)
        self.nbytes = sum(batch.nbytes for batch in self.batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unflushed:
    """State of a region as its writer sees it: the manifest, and memtables in order."""

    manifest: RegionManifest
    memtables: tuple[MemTable, ...]


class RegionWriter:
    """The only writer of a region; threads may share it.

    When `put` or `delete` returns, the rows are durable. Calls that arrive while another one
    writes are written together, as one WAL entry.
    """

    def __init__(
        self,
        base: Snapshot,
        new: RegionManifest,
        *,
        options: WriterOptions,
        store: ObjectStore | None = None,
    ) -> None:
        """Claim the region, stop its earlier writer, and replay what is not flushed.

        `new` is the state of the region if it does not exist yet. The manifests and the WAL are
        in the table's own store unless another is given.
        """
        self.region = new.region_id
        self._base = base
        self._location = base.location
        self._version = base.version
        self._options = options
        self.files = region.RegionFiles(store=store or base.location.store, region=new.region_id)
        self._queue: deque[_Write] = deque()
        self._log_lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._state_lock = threading.RLock()
        self._state = threading.Condition(self._state_lock)  # noqa: TID251  # not used by callers
        self._failure: BaseException | None = None
        self._is_closed = False
        self._frozen: deque[MemTable] = deque()
        self._flusher: Pool | None = None
        self._clock = base.location.session.clock
        self._meter = WriterMeter(self._clock)
        self._watch = region.EndWatch(base)
        self._shape = RowShape.of(base)
        self._checked = region.Elapsed(self._clock)
        self._manifest = region.claim(self.files, _after_merged(base, new), clock=self._clock)
        self._epoch = self._manifest.writer_epoch
        self._position = region.fence(self.files, self._manifest)
        # Only after the claim: a process that ends the MemWAL from now on replaces this writer.
        region.ensure_writable(base, self._shape)
        self._memtable = MemTable(self._shape, self._manifest.current_generation)
        self._replay()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(flush=kind is None)

    @property
    def epoch(self) -> int:
        """Epoch of this writer."""
        return self._epoch

    def counts(self) -> WriterCounts:
        """Return how much was written since the writer was opened."""
        return self._meter.counts()

    @property
    def tail_rows(self) -> int:
        """Number of rows that are in no generation."""
        with self._state_lock:
            return self._memtable.num_rows + sum(table.num_rows for table in self._frozen)

    def put(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Insert rows, or replace those of the same key; durable when this returns."""
        self._put(self._shape.upserts, rows)

    def delete(self, keys: pa.Table | pa.RecordBatch) -> None:
        """Delete the rows of keys, given by the key columns; durable when this returns."""
        self._put(self._shape.tombstones, keys)

    def _put(self, convert: Convert, rows: pa.Table | pa.RecordBatch) -> None:
        with errors.naming(self._location.uri, self._version):
            self.write(convert(rows))

    @driven_to_end
    def write(
        self, batches: Sequence[pa.RecordBatch], units: Mapping[str, int] | None = None
    ) -> None:
        """Write changes of `RowShape` at once; `units` are the last batches of streams."""
        if not batches:
            self._ensure_usable()
            return
        mine = _Write(batches=batches, units=units or {})
        with self._state:
            self._queue.append(mine)
        with self._meter.put():
            with self._log_lock:
                while not mine.is_done:
                    self._write_group()
            if mine.error is not None:
                raise mine.error

    @driven_to_end
    def flush(self) -> None:
        """Write all rows in memory as generations."""
        with errors.naming(self._location.uri, self._version):
            with self._log_lock:
                self._ensure_usable()
                self._freeze()
            self._flush_frozen()

    @driven_to_end
    def seal(self) -> None:
        """Flush, and seal the region: it accepts no more writers."""
        with errors.naming(self._location.uri, self._version), self._log_lock:
            self._ensure_usable()
            self._freeze()
            self._flush_frozen()
            self._manifest = region.update_manifest(
                self.files,
                self._epoch,
                RegionManifest.sealed,
                is_done=lambda manifest: not manifest.is_active,
                clock=self._clock,
            )
            self._is_closed = True

    @driven_to_end
    def close(self, *, flush: bool = True) -> None:
        """Flush and stop; rows that are not flushed stay in the WAL."""
        try:
            if flush and not self._is_closed:
                self.flush()
        finally:
            self._is_closed = True
            self._watch.close()
            if self._flusher is not None:
                self._flusher.close()

    def in_memory(self) -> tuple[MemTable, ...]:
        """Return the tables of rows in memory, the current one last; also of a closed writer."""
        with self._log_lock, self._state_lock:
            return (*self._frozen, self._memtable.copy())

    def unflushed(self) -> Unflushed:
        """Return the rows that are durable but in no generation, for reads in this process."""
        with self._log_lock, self._state_lock:
            self._ensure_usable()
            tables = (*self._frozen, self._memtable.copy())
            return Unflushed(manifest=self._manifest, memtables=tables)

    def _replay(self) -> None:
        tables = replayed(
            self.files, self._manifest, self._shape, last=self._position, epoch=self._epoch
        )
        try:
            for table in tables:
                self._freeze()
                self._memtable = table
        except errors.CorruptTableError:
            # A later writer may have flushed entries, which were collected since.
            region.ensure_epoch(self.files, self._epoch)
            raise
        self._flush_frozen()

    def _write_group(self) -> None:
        """Write the first calls of the queue as one WAL entry."""
        group = self._next_group()
        try:
            self._ensure_usable()
            self._make_room(group)
            units = {query: last for write in group for query, last in write.units.items()}
            self._append([batch for write in group for batch in write.batches], units)
        except BaseException as error:
            for write in group:
                write.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for write in group:
                write.is_done = True

    def _next_group(self) -> list[_Write]:
        limits = self._options
        with self._state:
            group = [self._queue.popleft()]
            rows, nbytes, batches = group[0].rows, group[0].nbytes, len(group[0].batches)
            while self._queue:
                following = self._queue[0]
                rows, nbytes = rows + following.rows, nbytes + following.nbytes
                batches += len(following.batches)
                if rows > limits.max_memtable_rows or batches > limits.max_memtable_batches:
                    break
                if nbytes > limits.max_memtable_bytes:
                    break
                group.append(self._queue.popleft())
        return group

    def _make_room(self, group: Sequence[_Write]) -> None:
        """Freeze a memtable that would become too large, and wait while memory is short."""
        limits, table = self._options, self._memtable
        rows = table.num_rows + sum(write.rows for write in group)
        batches = table.num_batches + sum(len(write.batches) for write in group)
        nbytes = table.nbytes + sum(write.nbytes for write in group)
        if (
            rows > limits.max_memtable_rows
            or batches > limits.max_memtable_batches
            or nbytes > limits.max_memtable_bytes
        ):
            self._freeze()
            self._start_flush()
        with self._state:
            while self._frozen and self._unflushed_bytes() > limits.max_unflushed_bytes:
                self._ensure_usable()
                self._state.wait()
        self._ensure_usable()

    def _unflushed_bytes(self) -> int:
        return self._memtable.nbytes + sum(table.nbytes for table in self._frozen)

    def _append(self, batches: Sequence[pa.RecordBatch], units: Mapping[str, int]) -> None:
        position = self._position + 1
        data = wal_files.encode(
            self._shape.arrow,
            batches,
            writer_epoch=self._epoch,
            generation=self._memtable.generation,
            units=units,
        )
        try:
            with self._watch.during(), self._meter.entry(len(data)):
                if not self.files.create_entry(position, data):
                    raise region.fenced(self.files)
            if self._checked.is_long():
                # What stops a replaced writer may have been collected.
                checked = region.Elapsed(self._clock)
                region.ensure_epoch(self.files, self._epoch)
                self._checked = checked
        except BaseException as error:
            # Whether the rows are durable is unknown; a new writer finds out by its replay.
            self._fail(error)
            raise
        self._position = position
        with self._state:
            self._memtable.add(batches, position)

    def _freeze(self) -> None:
        """Start a new memtable if the current one has rows."""
        with self._state:
            if self._memtable.num_rows:
                self._frozen.append(self._memtable)
                self._memtable = MemTable(self._shape, self._memtable.generation + 1)

    def _start_flush(self) -> None:
        if not self._options.flushes_in_background:
            self._flush_frozen()
            return
        if self._flusher is None:
            self._flusher = Pool(1)
        self._flusher.submit(self._flush_frozen)

    def _flush_frozen(self) -> None:
        """Write frozen memtables as generations, in order."""
        with self._flush_lock:
            while self._frozen:
                self._ensure_usable()
                table = self._frozen[0]
                try:
                    with self._meter.flush(table.num_rows):
                        self._flush(table)
                except BaseException as error:
                    self._fail(error)
                    raise

    def _flush(self, table: MemTable) -> None:
        region.ensure_epoch(self.files, self._epoch)
        # A process that ended the MemWAL may have stopped before it replaced this writer.
        region.ensure_not_ended(self._base)
        written = self._written(table)
        manifest = region.update_manifest(
            self.files,
            self._epoch,
            lambda current: current.with_generation(written, covers=table.last_position),
            is_done=lambda current: written in current.generations,
            clock=self._clock,
        )
        with self._state:
            self._frozen.popleft()
            self._manifest = manifest
            self._state.notify_all()

    def _written(self, table: MemTable) -> Generation:
        """Write a generation; again if it took so long that it may be collected as abandoned."""
        while True:
            began = region.Elapsed(self._clock)
            generation = write_generation(self._location, self.region, self._shape, table)
            if not began.is_long():
                return generation

    def _fail(self, error: BaseException) -> None:
        with self._state:
            self._failure = self._failure or error
            self._state.notify_all()

    def _ensure_usable(self) -> None:
        if self._failure is not None:
            if isinstance(self._failure, errors.WriterFencedError):
                raise errors.WriterFencedError(
                    self._failure.problem, region=str(self.region), action=self._failure.next_step
                ) from self._failure
            raise errors.StorageError(
                f"the writer of region {self.region} has failed: {self._failure}",
                region=str(self.region),
                action="Open a new writer, which replays the rows that are durable.",
            ) from self._failure
        if self._is_closed:
            raise errors.InvalidRequestError(f"the writer of region {self.region} is closed")


def _after_merged(base: Snapshot, new: RegionManifest) -> RegionManifest:
    """Return the state of a new region, whose generations follow those that count as merged.

    A clone has the progress of its source, but not the regions.
    """
    merged = region.details_of(base).progress().get(new.region_id, 0)
    return replace(new, current_generation=max(new.current_generation, merged + 1))
