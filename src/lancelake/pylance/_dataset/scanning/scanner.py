"""`LanceScanner`: a scan of one version, ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.dataset as pads

from lancelake.commit.snapshot import Snapshot
from lancelake.format.arrow_schema import public_schema
from lancelake.pylance._dataset.arguments.options import BlobModeName, PandasOptions
from lancelake.pylance._dataset.scanning.arrow_classes import ArrowScanner
from lancelake.pylance._dataset.scanning.batch_bytes import in_bytes
from lancelake.pylance._dataset.scanning.pandas_blobs import (
    BlobMode,
    blob_mode_named,
    with_blob_files,
)
from lancelake.pylance._dataset.scanning.scan_statistics import (
    StatisticsCallback,
    report,
    reported,
    traced,
)
from lancelake.pylance._values.reprs import chosen, version_text
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.prepared import PreparedScan, prepare
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows


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
        request: ScanRequest,
        *,
        batch_bytes: int | None = None,
        mask: AllowedRows | None = None,
        on_statistics: StatisticsCallback | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._batch_bytes = batch_bytes
        self._mask = mask
        self._callback = on_statistics
        self._on_statistics = traced(on_statistics)
        self._measure = None if self._on_statistics is None else ScanMeasure()
        self._plan: PreparedScan = (
            self._planned() if self._measure is None else self._measure.planned(self._planned)
        )

    def __repr__(self) -> str:
        return version_text(self, self._snapshot, **chosen(self._request))

    def _planned(self) -> PreparedScan:
        return prepare(self._snapshot, self._request, self._mask)

    def _changed(self, **changes: Any) -> LanceScanner:
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
        return reported(self._plan.run(measure), self._plan, measure, self._on_statistics)

    def to_table(self) -> pa.Table:
        """Read everything into memory.

        Returns:
            The rows.

        Examples:
            >>> ds.scanner(["id"]).to_table().to_pydict()
            {'id': [1, 2, 3]}
        """
        return self._rows().read_all()

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

        Returns:
            The batches.

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

        Returns:
            The rows as a `pandas.DataFrame`.

        Examples:
            >>> list(ds.scanner(["name"]).to_pandas()["name"])
            ['ada', 'bob', 'cy']
        """
        mode = blob_mode_named(blob_mode)
        if mode is BlobMode.BYTES:
            return self._changed(blob_values=True).to_table().to_pandas(**kwargs)
        if mode is BlobMode.DESCRIPTIONS or self._request.blob_values:
            return self.to_table().to_pandas(**kwargs)
        return with_blob_files(self._snapshot, self._request, self._changed, {**kwargs})

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

        Returns:
            The rows.

        Examples:
            >>> ds.scanner(["id"]).head(1).to_pydict()
            {'id': [1]}
        """
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        return self._changed(limit=limit).to_table()

    def count_rows(self) -> int:
        """Count the rows of the result.

        Returns:
            The number of rows.

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

        Returns:
            The plan as text.

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

        Returns:
            The plan with its counts.

        Examples:
            >>> "output_rows=2" in ds.scanner(filter="id > 1").analyze_plan()
            True
        """
        measure = ScanMeasure()
        planned = measure.planned(self._planned)
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
