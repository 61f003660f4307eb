"""Benchmarks of opening, scanning, filtering and sampling tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import lance
import numpy as np
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case

_SELECTIVE = "c0 > 1099400000000"
_BROAD = "c0 > 1000000000000"


def cases(gigabytes: float) -> Iterator[Case]:
    """Yield the comparisons of the read path."""
    yield from _opening("5,000 versions", tables.many_versions(5000))
    yield from _opening("10,000 fragments", tables.many_fragments(10_000))
    uri = tables.wide(gigabytes)
    ours, official = lancelake.dataset(uri), lance.dataset(uri)
    two = ["c3", "s"]
    yield Case(
        name=f"full scan of {gigabytes:g} GB",
        target=1.1,
        ours=lambda: _rows(ours.to_batches()),
        official=lambda: _rows(official.to_batches()),
        rounds=7,
    )
    yield Case(
        name=f"2 of 20 columns of {gigabytes:g} GB",
        target=1.1,
        ours=lambda: _rows(ours.to_batches(columns=two)),
        official=lambda: _rows(official.to_batches(columns=two)),
    )
    rows = np.random.default_rng(7).choice(ours.count_rows(), 1000, replace=False).tolist()
    yield Case(
        name="take 1,000 random rows, all columns",
        target=1.2,
        ours=lambda: ours.take(rows).num_rows,
        official=lambda: official.take(rows).num_rows,
    )
    yield Case(
        name="take 1,000 random rows, 2 columns",
        target=1.2,
        ours=lambda: ours.take(rows, columns=two).num_rows,
        official=lambda: official.take(rows, columns=two).num_rows,
    )
    for label, condition in (("0.01 %", _SELECTIVE), ("9 %", _BROAD)):
        for columns in (two, None):
            yield Case(
                name=f"filter keeps {label}, {'all' if columns is None else '2'} columns",
                target=1.2,
                ours=lambda f=condition, c=columns: _rows(ours.to_batches(columns=c, filter=f)),
                official=lambda f=condition, c=columns: _rows(
                    official.to_batches(columns=c, filter=f)
                ),
                rounds=7,
            )
    yield Case(
        name="count rows by a filter",
        target=1.2,
        ours=lambda: ours.count_rows(_BROAD),
        official=lambda: official.count_rows(_BROAD),
    )


def _opening(label: str, uri: str) -> Iterator[Case]:
    yield Case(
        name=f"open latest, {label}",
        target=1.0,
        ours=lambda: lancelake.dataset(uri).version,
        official=lambda: lance.dataset(uri).version,
        rounds=31,
    )
    yield Case(
        name=f"open version 1, {label}",
        target=1.0,
        ours=lambda: lancelake.dataset(uri, version=1).version,
        official=lambda: lance.dataset(uri, version=1).version,
        rounds=31,
    )


def _rows(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)
