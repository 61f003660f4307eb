"""Search of vector index segments."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.expr.condition import Leaf
from lancelake.index.answer import Answer
from lancelake.index.kind import ROW_ID, Parameters, SegmentFacts
from lancelake.index.row_ids import BoolArray, U64Array
from lancelake.index.vector.faiss_library import one_thread, use_one_thread
from lancelake.index.vector.files import CENTERS_FILE, SegmentFiles, SegmentModel
from lancelake.index.vector.metric import Distances, Matrix, Metric, normalized
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.rotated_codes import RotatedCodes
from lancelake.index.vector.top_rows import NearestRows
from lancelake.index.vector.vectors import VectorType
from lancelake.storage.io_account import current_account

_FILE_VERSION = "V3"
# From so many pairs of query and partition on, partitions are searched by several threads.
_MANY_SCORES = 256

PartitionQueries = tuple[int, npt.NDArray[np.int64]]
"""Number of a partition, and the places of the queries that search it."""
_Scored = tuple[int, U64Array, Distances]

Gate = Callable[[int, U64Array], BoolArray | None]
"""Returns which rows of a partition are wanted, given its number and ids; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """How many partitions are searched: `first` at once, and up to `most` to find enough rows."""

    first: int
    most: int


class VectorSegment:
    """A vector index that can be searched; its files are opened by the first search."""

    def __init__(self, facts: SegmentFacts) -> None:
        dtype = VectorType.of(facts.dtype)
        if dtype is None:
            raise CorruptTableError(f"a vector index is on a column of type {facts.dtype}")
        self._folder = facts.folder
        self.dtype = dtype
        self.files = SegmentFiles(facts.folder, dtype)

    @property
    def uuid(self) -> str:
        """Name of the folder of the segment."""
        return self._folder.place.path.rsplit("/", 1)[-1]

    @property
    def model(self) -> SegmentModel:
        """The partitions and codes."""
        return self.files.model

    def represented(self, number: int, mask: BoolArray | None) -> Matrix:
        """Return the vectors that the codes of a partition stand for, or of some of its rows."""
        model, loaded = self.model, self.files.partition(number).loaded
        codes = model.codes.rows(loaded if mask is None else loaded[mask])
        found = model.codes.decode(codes)
        return found + model.partitions.centers[number] if model.codes.encodes_residuals else found

    def search(
        self,
        queries: npt.NDArray[np.float32],
        probes: Probes,
        nearest: NearestRows,
        gate: Gate,
    ) -> None:
        """Add the rows of the partitions near each query; ids are those that the index stores."""
        wanted = self.prepared(queries)
        order = self.model.partitions.by_distance(wanted)
        wanted = self.model.codes.turned(wanted)
        for each in self._rounds(order, probes, nearest):
            self._add(each, wanted, nearest, gate)

    def search_partitions(
        self,
        queries: npt.NDArray[np.float32],
        pairs: Sequence[PartitionQueries],
        nearest: NearestRows,
        gate: Gate,
    ) -> None:
        """Add the rows of given partitions."""
        wanted = self.model.codes.turned(self.prepared(queries))
        self._add(pairs, wanted, nearest, gate)

    def nearest_partitions(
        self, queries: npt.NDArray[np.float32], count: int
    ) -> npt.NDArray[np.int64]:
        """Return the partitions that `search` begins with, a row for each query."""
        return self.model.partitions.by_distance(self.prepared(queries))[:, :count]

    def _add(
        self, pairs: Sequence[PartitionQueries], queries: Matrix, nearest: NearestRows, gate: Gate
    ) -> None:
        few: dict[int, list[tuple[U64Array, Distances]]] = {}
        for place, ids, distances in self._scored(pairs, queries, nearest, gate):
            if len(ids) > nearest.k:
                nearest.add(place, ids, distances)
            else:
                few.setdefault(place, []).append((ids, distances))
        for place, parts in few.items():
            ids, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
            nearest.add(place, ids, distances)

    def candidates(
        self, queries: npt.NDArray[np.float32], probes: Probes, gate: Gate, k: int
    ) -> U64Array:
        """Return all wanted rows of the partitions near a query, at least `k` if there are."""
        order = self.model.partitions.by_distance(self.prepared(queries))
        found: list[U64Array] = []
        count = 0
        for row in order:
            for place, number in enumerate(row[: probes.most].tolist()):
                if place >= probes.first and count >= k:
                    break
                _count_searched(1)
                ids = self.files.partition(number).ids
                mask = gate(number, ids)
                found.append(ids if mask is None else ids[mask])
                count += len(found[-1])
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.uint64)

    def prepared(self, queries: npt.NDArray[np.float32]) -> Matrix:
        """Return queries as the codes expect them."""
        wanted = self.dtype.query_matrix(queries)
        if wanted.dtype != np.uint8:
            wanted = wanted.astype(np.float32, copy=False)
        return normalized(wanted) if self.model.metric is Metric.COSINE else wanted

    def answer(self, leaf: Leaf) -> Answer | None:
        """Return None: conditions are not about nearness."""
        return None

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Read all rows of all partitions."""
        for _, partition in self.files.read_partitions():
            yield pa.RecordBatch.from_arrays([pa.array(partition.ids)], names=[ROW_ID])

    def statistics(self) -> Mapping[str, Any]:
        """Return the partitions and the settings of the codes."""
        model = self.model
        metric = model.metric.value
        is_normalized = isinstance(model.codes, ProductCodes) and model.metric is Metric.COSINE
        code_metric = Metric.L2.value if is_normalized else metric
        place = self._folder.place
        codes = {k: v for k, v in model.codes.metadata().items() if not k.startswith("codebook")}
        graph = model.graphs[0] if model.graphs else {}
        return {
            "index_type": model.type,
            "uuid": self.uuid,
            "uri": f"{place.uri}/{CENTERS_FILE}",
            "metric_type": metric,
            "num_partitions": len(model.partitions),
            "sub_index": {
                **graph,
                **codes,
                "index_type": "HNSW" if "HNSW" in model.type else model.codes.name,
                # Codes of products of normalized vectors are compared by l2, as official shows.
                "metric_type": code_metric,
            },
            "partitions": [{"size": count} for count in model.rows.counts],
            "centroids": model.partitions.centers.tolist(),
            "loss": model.partitions.loss,
            "index_file_version": _FILE_VERSION,
        }

    def parameters(self) -> Parameters:
        """Return the parameters of a build like this one."""
        model = self.model
        found: dict[str, Any] = {
            "index_type": model.type,
            "metric_type": model.metric.value,
            "num_partitions": len(model.partitions),
        }
        if isinstance(model.codes, ProductCodes):
            found["num_sub_vectors"], found["num_bits"] = model.codes.parts, model.codes.bits
            found["skip_transpose"] = not model.codes.is_transposed
        elif isinstance(model.codes, RotatedCodes):
            found["num_bits"] = model.codes.bits
        if model.graphs and "params" in model.graphs[0]:
            settings = model.graphs[0]["params"]
            found["m"], found["ef_construction"] = settings["m"], settings["ef_construction"]
        return found

    def prewarm(self) -> None:
        """Read all partitions, as many as are kept."""
        for number in range(len(self.model.partitions)):
            self.files.partition(number)

    def _rounds(
        self, order: npt.NDArray[np.int64], probes: Probes, nearest: NearestRows
    ) -> Iterator[list[PartitionQueries]]:
        """Yield partitions with the queries that search them, until there are enough rows."""
        active = np.arange(len(order))
        start, stop = 0, min(probes.first, order.shape[1])
        while len(active) and start < stop:
            chosen = order[active, start:stop]
            flat, owners = chosen.reshape(-1), np.repeat(active, stop - start)
            by_partition = np.argsort(flat, kind="stable")
            numbers, starts = np.unique(flat[by_partition], return_index=True)
            groups = np.split(owners[by_partition], starts[1:])
            _count_searched(len(flat))
            yield list(zip(numbers.tolist(), groups, strict=True))
            active = active[[nearest.count(i) < nearest.k for i in active.tolist()]]
            start, stop = stop, min(2 * stop, probes.most, order.shape[1])

    def _scored(
        self, pairs: Sequence[PartitionQueries], queries: Matrix, nearest: NearestRows, gate: Gate
    ) -> Iterator[_Scored]:
        """Yield the distances of the rows of partitions, computed at once for many queries."""

        def score(pair: PartitionQueries) -> list[_Scored]:
            return list(self._partition(*pair, queries, nearest, gate))

        if sum(len(places) for _, places in pairs) < _MANY_SCORES:
            with one_thread():
                found = [score(pair) for pair in pairs]
            yield from itertools.chain.from_iterable(found)
            return
        with ThreadPoolExecutor(os.cpu_count() or 1, initializer=use_one_thread) as pool:
            yield from itertools.chain.from_iterable(pool.map(score, pairs))

    def _partition(
        self,
        number: int,
        places: npt.NDArray[np.int64],
        queries: Matrix,
        nearest: NearestRows,
        gate: Gate,
    ) -> Iterator[_Scored]:
        codes = self.model.codes
        partition = self.files.partition(number)
        mask = gate(number, partition.ids)
        ids, loaded = partition.ids, partition.loaded
        if mask is not None:
            ids, loaded = ids[mask], loaded[mask]
        if not len(ids):
            return
        chosen, center = queries[places], self.model.turned_centers[number]
        k = min(nearest.k, len(ids))
        top = codes.top(chosen, loaded, k, center) if nearest.is_unbounded else None
        if top is None:
            every = codes.distances(chosen, loaded, center)
            for place, row in zip(places.tolist(), every, strict=True):
                yield place, ids, row
            return
        for place, row, rows in zip(places.tolist(), *top, strict=True):
            yield place, ids[rows], np.where(rows < 0, np.float32(np.nan), row)


def _count_searched(partitions: int) -> None:
    account = current_account()
    if account is not None:
        account.count("partitions_searched", partitions)
