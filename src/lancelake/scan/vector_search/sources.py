"""Vector indices of a column: which of them answers a search, and what it covers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.expr.condition import Column
from lancelake.format.column_path import split_path
from lancelake.format.ids import FieldId
from lancelake.index.coverage import Coverage
from lancelake.index.stored_segment import indexed_type
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.segment import Probes, VectorSegment
from lancelake.scan.index_search.sources import IndexSources, named_failures
from lancelake.scan.nearest import Nearest
from lancelake.scan.vector_search.target import VectorTarget

# Partitions that are searched at first if a search does not say how many.
_FIRST_PROBES = 20

WITHOUT_INDEX = (
    "Search without it (use_index=False in Python, useIndex=False in Spark, --no-index at the "
    "command line), and drop the index or build it again."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorSource:
    """A segment of an index, and the fragments of the version that it answers for."""

    segment: VectorSegment
    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchedIndex:
    """The index that answers a search."""

    name: str
    type: str
    metric: Metric
    sources: tuple[VectorSource, ...]

    @property
    def covered(self) -> BitMap:
        """Fragments that the index covers."""
        return BitMap.union(BitMap(), *(source.coverage.fragments for source in self.sources))


def searched_index(
    snapshot: Snapshot, target: VectorTarget, nearest: Nearest, *, only_indexed: bool
) -> SearchedIndex | None:
    """Return the first index of a column with the metric of a search; None to scan all rows.

    If only indexed rows are wanted, an index of another metric is an error.
    """
    found = vector_indices(snapshot, target.path, target.field_id) if nearest.use_index else []
    for index in found:
        if nearest.metric in (None, index.metric):
            return index
    if found and only_indexed:
        metrics = ", ".join(dict.fromkeys(index.metric.value for index in found))
        asked = "" if nearest.metric is None else nearest.metric.value
        raise InvalidRequestError(
            f"index {found[0].name!r} of column {target.path!r} has the metric {metrics}, "
            f"not {asked}",
            action="Search with its metric, or without fast_search.",
        )
    return None


def probes_of(nearest: Nearest, partitions: int) -> Probes:
    """Return how many of the partitions of a segment are searched."""
    most = max(1, min(partitions, nearest.maximum_nprobes or partitions))
    first = max(1, nearest.minimum_nprobes or 1)
    if nearest.effort is not None:
        first = ceil(first * (max(first, partitions) / first) ** nearest.effort)
    elif nearest.minimum_nprobes is None:
        first = max(_FIRST_PROBES, ceil(sqrt(partitions)))
    return Probes(first=min(first, most), most=most)


def vector_indices(snapshot: Snapshot, path: str, field_id: FieldId) -> list[SearchedIndex]:
    """Return the vector indices of a column that cover fragments of the version."""
    if not snapshot.indices:
        return []
    field = snapshot.manifest.schema.by_id()[field_id]
    column = Column(path=split_path(path), dtype=indexed_type(field))
    by_name: dict[str, list[VectorSource]] = {}
    for source in IndexSources(snapshot).of(column):
        if isinstance(source.segment, VectorSegment):
            opened = VectorSource(segment=source.segment, coverage=source.coverage)
            by_name.setdefault(source.index, []).append(opened)
    return [_index(name, tuple(sources)) for name, sources in by_name.items()]


def _index(name: str, sources: tuple[VectorSource, ...]) -> SearchedIndex:
    with named_failures(name, WITHOUT_INDEX):
        model = sources[0].segment.model
    return SearchedIndex(name=name, type=model.type, metric=model.metric, sources=sources)
