"""Scanner: rows of a request in each form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from lancelake import events
from lancelake.core.table import Table
from lancelake.core.values import reads
from lancelake.core.values.metadata import Field, FrozenMap, Snapshot, join_path, public_schema
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments import BlobModeName, PandasOptions
from lancelake.pylance._dataset.arrow_classes import ArrowScanner
from lancelake.pylance._values.opened import chosen, version_text
from lancelake.pylance.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelake.pylance.log import LOGGER
from lancelake.threads import gathered


@dataclass(frozen=True, kw_only=True)
class ScanStatistics:
    """Statistics of a scan, including the index search of its filter."""

    iops: int = 0
    requests: int = 0
    """Store calls, and reads that the codec was asked for."""
    bytes_read: int = 0
    """Stored bytes of the objects and pages read. Of pages of which only some rows were read,
    the codec may have read less; then `all_counts["bytes_read_is_limit"]` is 1."""
    indices_loaded: int = 0
    """Index segments of which files were read."""
    parts_loaded: int = 0
    """Pages, posting lists, sets of rows and vector partitions of indices that were read, as
    official releases count them: those in the cache do not count."""
    index_comparisons: int | None = 0
    """None if an index was searched: comparisons are not counted."""
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: dict[str, int] = field(default_factory=dict)
    all_times: dict[str, int] = field(default_factory=dict)
    """Nanoseconds of the steps."""


_INDICES = "/_indices/"

StatisticsCallback: TypeAlias = Callable[[ScanStatistics], None]


def statistics_of(plan: reads.PreparedScan, measure: reads.ScanMeasure) -> ScanStatistics:
    """Return the statistics of a finished scan."""
    planning, scan = measure.planning_io.account, measure.scan_io.account
    size = measure.planning_io.size + measure.scan_io.size
    requests = planning.requests + scan.requests
    counts = planning.counts + scan.counts
    index_files = [place for account in (planning, scan) for place in _index_files(account)]
    is_searched = bool(index_files or counts["index_cache_hits"] or counts["index_cache_misses"])
    return ScanStatistics(
        iops=requests,
        requests=requests,
        bytes_read=size.size_bytes,
        indices_loaded=len({uri.rpartition("/")[0] for uri in index_files}),
        parts_loaded=counts["index_parts_loaded"],
        index_comparisons=None if is_searched else 0,
        index_cache_hits=counts["index_cache_hits"],
        index_cache_misses=counts["index_cache_misses"],
        all_counts={
            "fragments_scanned": plan.num_fragments,
            "rows_scanned": scan.rows_read,
            "output_rows": measure.output.rows,
            "output_batches": measure.output.batches,
            "store_requests": planning.store_requests + scan.store_requests,
            "bytes_read_is_limit": int(not size.is_exact),
            "partitions_searched": counts["partitions_searched"],
        },
        all_times={
            "planning": _ns(measure.planning.elapsed_s),
            "scan": _ns(measure.scan.elapsed_s),
            "output": _ns(measure.output.elapsed_s),
        },
    )


def report(
    plan: reads.PreparedScan, measure: reads.ScanMeasure, callback: StatisticsCallback
) -> None:
    """Call the callback with the statistics of a finished scan; its errors are logged."""
    try:
        callback(statistics_of(plan, measure))
    except Exception:  # noqa: BLE001  # whatever the user's function raises
        LOGGER.exception("the callback for scan statistics failed")


def with_event(callback: StatisticsCallback | None) -> StatisticsCallback | None:
    """Return a callback that reports the scan as an event too, if anyone listens."""
    if not events.are_heard():
        return callback

    def tell(found: ScanStatistics) -> None:
        events.emit(
            events.EXECUTION,
            type="plan_run",
            output_rows=found.all_counts["output_rows"],
            iops=found.iops,
            requests=found.requests,
            bytes_read=found.bytes_read,
            indices_loaded=found.indices_loaded,
            parts_loaded=found.parts_loaded,
            index_cache_hits=found.index_cache_hits,
            index_cache_misses=found.index_cache_misses,
        )
        if callback is not None:
            callback(found)

    return tell


def report_after(
    rows: pa.RecordBatchReader,
    plan: reads.PreparedScan,
    measure: reads.ScanMeasure,
    callback: StatisticsCallback,
) -> pa.RecordBatchReader:
    """Stream the rows, and call the callback after the last one."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows
        report(plan, measure, callback)

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _index_files(account: reads.IoAccount) -> list[str]:
    """Return the index file of each read of one."""
    places = [read.place.uri for read in account.reads]
    places += [read.place.uri for read in account.buffers]
    return [place for place in places if _INDICES in place]


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


_ADDRESS = reads.MetaColumn.ROW_ADDRESS.value
DEFAULTS = reads.SearchRequest(prefilter=False)
"""Request of a scan without options."""


class BlobMode(Enum):
    """Form of blobs in a data frame."""

    LAZY = "lazy"
    BYTES = "bytes"
    DESCRIPTIONS = "descriptions"


def parse_blob_mode(name: str) -> BlobMode:
    """Parse the name of a form."""
    try:
        return BlobMode(name)
    except ValueError as error:
        problem = "blob_mode must be one of: 'lazy', 'bytes', 'descriptions'"
        raise InvalidRequestError(problem, found=name) from error


def with_blob_files(
    snapshot: Snapshot,
    request: reads.ScanRequest,
    changed: Callable[..., LanceScanner],
    kwargs: dict[str, Any],
) -> Any:
    """Read a data frame whose blobs, in structs too, are files, or None for nulls."""
    columns = _blob_columns(snapshot, request)
    if not columns:
        return changed().to_table().to_pandas(**kwargs)
    table = changed(with_row_address=True).to_table()
    addresses = np.asarray(table.column(_ADDRESS), dtype=np.uint64)
    shown = table if request.with_row_address else table.drop_columns([_ADDRESS])
    frame = shown.to_pandas(**kwargs)
    for (output, inner), column in columns.items():
        blobs = Table(snapshot).find_blobs(column, addresses, reads.RowsBy.ADDRESSES)
        files = np.empty(len(blobs), dtype=object)
        for i, row in enumerate(blobs):
            files[i] = None if row.blob is None else BlobFile(row.blob, DEFAULT_BLOB_BUFFER_SIZE)
        if inner:
            frame[output] = _with_member(frame[output], inner, files)
        else:
            frame[output] = files
    return frame


def _with_member(structs: Sequence[Any], path: tuple[str, ...], files: np.ndarray) -> np.ndarray:
    """Put files at a path below structs that are dictionaries; other values stay."""
    changed = np.empty(len(files), dtype=object)
    name, *rest = path
    for i, (struct, file) in enumerate(zip(structs, files, strict=True)):
        changed[i] = struct
        if isinstance(struct, dict):
            inner = _with_member([struct[name]], tuple(rest), files[i : i + 1])[0] if rest else file
            changed[i] = {**struct, name: inner}
    return changed


def _blob_columns(
    snapshot: Snapshot, request: reads.ScanRequest
) -> dict[tuple[str, tuple[str, ...]], str]:
    """Return the stored path of each output with blobs, and the path below the output."""
    paths: dict[tuple[str, tuple[str, ...]], str] = {}
    schema = snapshot.manifest.schema
    match request.columns:
        case None:
            outputs = {name: name for name in schema.names}
        case FrozenMap() as computed:
            outputs = dict(computed.items())
        case names:
            outputs = {name: name for name in names}
    for path in _blob_paths(schema.fields):
        for depth in range(1, len(path) + 1):
            texts = {".".join(path[:depth]), join_path(path[:depth])}
            for output in (output for output, text in outputs.items() if text in texts):
                paths[output, path[depth:]] = join_path(path)
    return paths


def _blob_paths(fields: Sequence[Field]) -> Iterator[tuple[str, ...]]:
    for column in fields:
        if column.is_blob_v1 or column.is_blob_v2:
            yield (column.name,)
        elif column.logical_type == "struct":
            for below in _blob_paths(column.children):
                yield (column.name, *below)


def in_bytes(rows: pa.RecordBatchReader, most: int) -> pa.RecordBatchReader:
    """Split batches that have more bytes; a row is never split."""
    return pa.RecordBatchReader.from_batches(rows.schema, _parts(rows, most))


def _parts(rows: pa.RecordBatchReader, most: int) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        pieces = -(-batch.nbytes // most) if batch.num_rows else 1
        step = max(1, batch.num_rows // pieces)
        for start in range(0, max(batch.num_rows, 1), step):
            yield batch.slice(start, step)


class LanceScanner(ArrowScanner):
    """A scan of one version, ready to run.

    Examples:
        >>> scan = ds.scanner(columns=["id"], limit=2)
        >>> scan.to_table().to_pydict()
        {'id': [1, 2]}
    """

    def __init__(
        self,
        snapshot: Snapshot,
        request: reads.ScanRequest,
        *,
        batch_bytes: int | None = None,
        mask: reads.AllowedRows | None = None,
        on_statistics: StatisticsCallback | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._batch_bytes = batch_bytes
        self._mask = mask
        self._callback = on_statistics
        self._on_statistics = with_event(on_statistics)
        self._measure = None if self._on_statistics is None else reads.ScanMeasure()
        self._plan: reads.PreparedScan = (
            self._prepare() if self._measure is None else self._measure.planned(self._prepare)
        )

    def __repr__(self) -> str:
        return version_text(self, self._snapshot, **chosen(self._request, DEFAULTS))

    def _prepare(self) -> reads.PreparedScan:
        return Table(self._snapshot).scan(self._request, self._mask)

    def _with(self, **changes: Any) -> LanceScanner:
        """Return the scan with another request."""
        return LanceScanner(
            self._snapshot,
            replace(self._request, **changes),
            batch_bytes=self._batch_bytes,
            mask=self._mask,
            on_statistics=self._callback,
        )

    def _rows(self) -> pa.RecordBatchReader:
        if self._measure is None or self._on_statistics is None:
            return self._plan.run()
        measure = self._measure.another_run()
        return report_after(self._plan.run(measure), self._plan, measure, self._on_statistics)

    def to_table(self) -> pa.Table:
        """Read everything into memory.

        Examples:
            >>> ds.scanner(["id"]).to_table().to_pydict()
            {'id': [1, 2, 3]}
        """
        rows = self._rows()
        if self._on_statistics is not None:
            return rows.read_all()
        return pa.Table.from_batches(gathered(lambda: rows), schema=rows.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """Read as a stream.

        Returns:
            A reader; memory does not grow with the number of rows.

        Examples:
            >>> ds.scanner(["id"]).to_reader().read_next_batch().num_rows
            3
        """
        rows = self._rows()
        return rows if self._batch_bytes is None else in_bytes(rows, self._batch_bytes)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch.

        Examples:
            >>> [batch.num_rows for batch in ds.scanner(batch_size=2).to_batches()]
            [2, 1]
        """
        yield from self.to_reader()

    def to_pandas(
        self, *, blob_mode: BlobModeName = "lazy", **kwargs: Unpack[PandasOptions]
    ) -> Any:
        """Read everything into a pandas data frame.

        Args:
            blob_mode: Blobs become files (`lazy`), bytes (`bytes`) or descriptors (`descriptions`).
            **kwargs: Arguments of `pyarrow.Table.to_pandas`.

        Examples:
            >>> list(ds.scanner(["name"]).to_pandas()["name"])
            ['ada', 'bob', 'cy']
        """
        mode = parse_blob_mode(blob_mode)
        if mode is BlobMode.BYTES:
            return self._with(blob_values=True).to_table().to_pandas(**kwargs)
        if mode is BlobMode.DESCRIPTIONS or self._request.blob_values:
            return self.to_table().to_pandas(**kwargs)
        return with_blob_files(self._snapshot, self._request, self._with, {**kwargs})

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the result.

        Examples:
            >>> ds.scanner({"double": "score * 2"}).projected_schema.names
            ['double']
        """
        return self._plan.schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the table.

        Examples:
            >>> ds.scanner(["id"]).dataset_schema.names
            ['id', 'name', 'score']
        """
        return public_schema(self._snapshot.manifest.schema)

    def scan_batches(self) -> Iterator[pads.TaggedRecordBatch]:
        """Not supported, as in pylance."""
        raise NotImplementedError("scan batches")

    def take(self, indices: Iterable[int] | pa.Array) -> pa.Table:
        """Not supported, as in pylance: `LanceDataset.take` returns rows by position."""
        raise NotImplementedError("take")

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows of the result.

        Args:
            num_rows: Rows to return, at most.

        Examples:
            >>> ds.scanner(["id"]).head(1).to_pydict()
            {'id': [1]}
        """
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        return self._with(limit=limit).to_table()

    def count_rows(self) -> int:
        """Count the rows of the result.

        Examples:
            >>> ds.scanner(filter="id > 1").count_rows()
            2
        """
        if self._measure is None or self._on_statistics is None:
            return self._plan.count()
        measure = self._measure.another_run()
        rows = measure.counted(self._plan.count)
        report(self._plan, measure, self._on_statistics)
        return rows

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the plan of the scan.

        Args:
            verbose: Describe more of it.

        Examples:
            >>> "id > 1" in ds.scanner(filter="id > 1").explain_plan()
            True
        """
        return self._plan.explain(verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Plan and run the scan, and describe its steps with their counts.

        `bytes_read` is the stored size of what was read, or an upper bound of it if the
        codec reads only some rows of a page.

        Args:
            count_rows: Count the rows instead of reading them.

        Examples:
            >>> "output_rows=2" in ds.scanner(filter="id > 1").analyze_plan()
            True
        """
        measure = reads.ScanMeasure()
        planned = measure.planned(self._prepare)
        if count_rows:
            measure.counted(planned.count)
        else:
            for _ in planned.run(measure):
                pass
        return f"AnalyzeExec: {measure.output}\n{planned.explain(verbose=True, measure=measure)}"

    @staticmethod
    def from_dataset(*args: Any, **kwargs: Any) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("from dataset")

    @staticmethod
    def from_fragment(*args: Any, **kwargs: Any) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("from fragment")

    @staticmethod
    def from_batches(*args: Any, **kwargs: Any) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("from batches")
