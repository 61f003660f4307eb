"""A search whose rows are returned by rank, with the columns that it computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.scan.explain import sort_step
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.order import sorted_batches
from lancelake.scan.request import DEFAULT_BATCH_ROWS, ScanRequest
from lancelake.scan.scored_rows import SearchedRows, SearchOutput


class RankedRowsFinder(Protocol):
    """What distinguishes one kind of search from another."""

    @property
    def num_fragments(self) -> int:
        """Number of fragments that are scanned."""
        ...

    def found(self) -> SearchedRows:
        """Search, and return the rows of the result by rank."""
        ...

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe the steps of the search, the last one first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSearch:
    """A search of one version, ready to run."""

    request: ScanRequest
    finder: RankedRowsFinder
    output: SearchOutput
    schema: pa.Schema

    @staticmethod
    def of(
        snapshot: Snapshot,
        request: ScanRequest,
        finder: RankedRowsFinder,
        computed: Mapping[str, pa.DataType],
    ) -> RankedSearch:
        """Prepare a search with these computed columns, of which the last is the score."""
        *first, score = computed
        output = SearchOutput.of(snapshot, request, tuple(first), score)
        schema = output.schema(snapshot, computed)
        return RankedSearch(request=request, finder=finder, output=output, schema=schema)

    @property
    def num_fragments(self) -> int:
        """Number of fragments to scan."""
        return self.finder.num_fragments

    def run(self, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
        """Search, and stream the rows found, the best first unless another order is asked for."""
        find = self.finder.found
        found = find() if measure is None else measure.searched(find)
        keys = self.request.order_by
        rows = self.request.batch_size or DEFAULT_BATCH_ROWS
        table = self.output.table(found, tuple(key.column for key in keys))
        batches = table.to_batches(max_chunksize=rows)
        if keys and len(table):
            ordered = sorted_batches(table.schema, iter(batches), keys, batch_rows=rows)
            batches = [batch.select(self.schema.names) for batch in ordered]
        returned: Iterator[pa.RecordBatch] = (batch.cast(self.schema) for batch in batches)
        if measure is not None:
            returned = measure.returned(returned)
        return pa.RecordBatchReader.from_batches(self.schema, returned)

    def count(self) -> int:
        """Search, and count the rows found."""
        return len(self.finder.found())

    def explain(self, *, verbose: bool = False, measure: ScanMeasure | None = None) -> str:
        """Describe the steps, the last one first."""
        request = self.request
        steps = [f"Output: {', '.join(self.schema.names) or '(no columns)'}"]
        if request.order_by:
            steps.append(sort_step(request.order_by))
        if request.limit is not None or request.offset:
            steps.append(f"Limit: skip={request.offset or 0}, fetch={request.limit}")
        if request.filter is not None and not request.prefilter:
            steps.append("Filter: after the search")
        steps += self.finder.steps(verbose=verbose, measure=measure)
        return "\n".join("  " * depth + step for depth, step in enumerate(steps)) + "\n"
