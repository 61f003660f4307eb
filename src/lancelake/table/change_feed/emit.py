"""Build feed batches from changed rows: filter, projection and change columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelake.format.rowids.segment import U64Array
from lancelake.scan.live_rows import to_mask
from lancelake.scan.output_builder import Finisher
from lancelake.scan.request import DEFAULT_BATCH_ROWS
from lancelake.table.change_feed.request import FEED_FIELDS, FEED_NAMES, ChangeKind
from lancelake.table.change_feed.tasks import Commit, FeedSpec

_CHANGE_TYPE, _VERSION, _TIMESTAMP = (field.type for field in FEED_FIELDS[1:])


class Emitter:
    """Builds the batches of the feed for one commit."""

    def __init__(self, spec: FeedSpec, commit: Commit) -> None:
        self._spec = spec
        self._commit = commit
        shown = pa.schema(list(spec.schema)[: len(spec.outputs)])
        self._finish = Finisher(spec.outputs, shown, {})
        self._filter = spec.predicate

    def __call__(
        self, batch: pa.RecordBatch, ids: U64Array, kind: ChangeKind
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows that share one kind of change."""
        kinds = pa.array([kind.value], _CHANGE_TYPE).take(pa.array(np.zeros(len(ids), np.int64)))
        yield from self._emitted(batch, self._feed_columns(ids, kinds))

    def pairs(
        self, before: pa.RecordBatch, after: pa.RecordBatch, ids: U64Array
    ) -> Iterator[pa.RecordBatch]:
        """Yield updated rows: the preimage followed by the postimage of each."""
        images = [(ChangeKind.UPDATE_BEFORE, before), (ChangeKind.UPDATE_AFTER, after)]
        wanted = [(kind, rows) for kind, rows in images if kind in self._spec.kinds]
        if len(wanted) == 1:
            kind, rows = wanted[0]
            yield from self(rows, ids, kind)
            return
        count = len(ids)
        order = pa.array(np.arange(2 * count).reshape(2, count).T.ravel())
        columns = [
            pa.concat_arrays([old, new]).take(order)
            for old, new in zip(before.columns, after.columns, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(columns, names=before.schema.names)
        kinds = pa.array([kind.value for kind, _ in images], _CHANGE_TYPE)
        repeated = kinds.take(pa.array(np.tile([0, 1], count)))
        yield from self._emitted(rows, self._feed_columns(np.repeat(ids, 2), repeated))

    def _feed_columns(self, ids: U64Array, kinds: pa.Array) -> list[pa.Array]:
        ns = self._commit.timestamp_ns
        when = pa.scalar(None if ns is None else ns // 1000, _TIMESTAMP)
        version = pa.scalar(self._commit.version, _VERSION)
        return [pa.array(ids), kinds, pa.repeat(version, len(ids)), pa.repeat(when, len(ids))]

    def _emitted(self, rows: pa.RecordBatch, feed: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        if self._filter is not None:
            looked_at = rows
            for name, column in zip(FEED_NAMES, feed, strict=True):
                looked_at = looked_at.append_column(name, column)
            mask = pa.array(to_mask(self._filter(looked_at)))
            rows, feed = rows.filter(mask), [column.filter(mask) for column in feed]
        if not len(feed[0]):
            return
        shown = self._finish(rows, _no_meta).columns if self._spec.outputs else []
        batch = pa.RecordBatch.from_arrays([*shown, *feed], schema=self._spec.schema)
        step = self._spec.batch_rows or DEFAULT_BATCH_ROWS
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _no_meta(meta: object) -> pa.Array:
    raise LookupError(f"{meta} is not a column of the feed")
