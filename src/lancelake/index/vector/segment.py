"""Segments of vector indices: their files, and searches of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format.frozen import parse
from lancelake.index import cache
from lancelake.index.kind import ROW_ID, OpenSegment, Parameters, SegmentFacts
from lancelake.index.row_sets import BoolArray, U64Array, has_repeats
from lancelake.index.vector import vectors
from lancelake.index.vector.codes import CodeMatrix, Codes, FlatCodes, ProductCodes, ScalarCodes
from lancelake.index.vector.rotated_codes import RotatedCodes, rotated_codes
from lancelake.index.vector.settings import read_settings
from lancelake.proto import index_pb2
from lancelake.storage.instrumented import current_account
from lancelake.threads import Pool, usable_cores

CENTERS_FILE = "index.idx"
ROWS_FILE = "auxiliary.idx"
INDEX_KEY = "lance:index"
IVF_KEY = "lance:ivf"
FLAT_KEY = "lance:flat"
GRAPH_KEY = "lance:hnsw"
METRIC_KEY = "distance_type"
CODES_KEY = "storage_metadata"

_BITS = (4, 8)
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentModel:
    """What a segment was trained to: partitions and codes; and where its rows are."""

    type: str
    partitions: vectors.Partitions
    codes: Codes
    rows: vectors.PartitionRows
    turned_centers: vectors.Matrix
    """Centers of the partitions in the coordinates of the codes."""
    graphs: tuple[dict[str, Any], ...]
    """Settings of the graphs of partitions that have rows; none without graphs."""

    @property
    def metric(self) -> vectors.Metric:
        """Metric of the index."""
        return self.partitions.metric

    @property
    def size_bytes(self) -> int:
        """Estimate of the memory of the model."""
        book = self.codes.codebook.nbytes if isinstance(self.codes, ProductCodes) else 0
        return int(self.partitions.centers.nbytes) + book + 64 * len(self.partitions)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Rows of a partition: their ids, and their codes in the layout of distances."""

    ids: U64Array
    loaded: CodeMatrix

    @property
    def size_bytes(self) -> int:
        """Memory of the rows."""
        return int(self.ids.nbytes + self.loaded.nbytes)


# Numbers and nesting beyond what Python reads.
_BEYOND = (ArithmeticError, RecursionError)


class SegmentFiles:
    """Reads a segment; the model and partitions are cached."""

    def __init__(self, folder: SegmentFolder, dtype: vectors.VectorType) -> None:
        self._folder = folder
        self._dtype = dtype
        self._uri = cache.of(folder.place)

    @property
    def model(self) -> SegmentModel:
        """The partitions and codes."""
        return cache.kept(self._uri, "model", self._checked_model, lambda model: model.size_bytes)

    def partition(self, number: int) -> Partition:
        """Return the rows of a partition."""

        def read() -> Partition:
            cache.count_loaded(1)
            return self.read_partition(number)

        return cache.kept(self._uri, ("partition", number), read, lambda value: value.size_bytes)

    def read_partitions(self) -> Iterator[tuple[int, Partition]]:
        """Read all partitions, one after the other, without keeping them."""
        for number in range(len(self.model.partitions)):
            yield number, self.read_partition(number)

    def has_repeats(self) -> bool:
        """Whether a row id is there twice."""

        def repeats() -> bool:
            parts = range(len(self.model.partitions))
            rows = (self.partition_rows(number, with_codes=False) for number in parts)
            return has_repeats([table.column(0).to_numpy() for table in rows])

        return cache.kept(self._uri, "repeats", repeats, lambda _: 0)

    def read_partition(self, number: int) -> Partition:
        """Read the rows of a partition, without keeping them."""
        model = self.model
        count = model.rows.counts[number]
        table = self.partition_rows(number, with_codes=True)
        if len(table) != count:
            raise CorruptTableError(f"partition {number} has {len(table)} rows of {count}")
        ids = np.ascontiguousarray(table.column(0).to_numpy())
        try:
            values = [_values(column) for column in table.columns[1:]]
            return Partition(ids, model.codes.loaded(values, count))
        except ValueError as error:
            problem = f"codes of partition {number} have an invalid size: {error}"
            raise CorruptTableError(problem, path=ROWS_FILE) from error

    def partition_rows(self, number: int, *, with_codes: bool) -> pa.Table:
        """Read the row ids of a partition as they are stored, with the codes if asked for."""
        model = self.model
        start, count = model.rows.starts[number], model.rows.counts[number]
        names = [field.name for field in model.codes.fields()] if with_codes else []
        return self._rows_reader().read(start, start + count, columns=[ROW_ID, *names])

    def _rows_reader(self) -> IndexFileReader:
        reader: IndexFileReader = cache.kept(
            self._uri, "rows reader", lambda: self._folder.open(ROWS_FILE), lambda _: 1 << 12
        )
        return reader

    def _checked_model(self) -> SegmentModel:
        try:
            return self._read_model()
        except (LookupError, TypeError, ValueError, AttributeError, *_BEYOND) as error:
            if isinstance(error, CorruptTableError | UnsupportedError):
                raise
            problem = f"the settings of a vector index cannot be read: {error}"
            raise CorruptTableError(problem, path=f"{self._folder.place.path}") from error

    def _read_model(self) -> SegmentModel:
        centers, rows = self._folder.open(CENTERS_FILE), self._rows_reader()
        rows.require(ROW_ID)
        described = _json(centers.metadata.get(INDEX_KEY), "the type of the index")
        metric = vectors.metric_named(str(described.get(METRIC_KEY)))
        partitions, _ = vectors.decode_centers(_buffer(centers, IVF_KEY), metric)
        if partitions.dimension != self._dtype.dimension:
            raise CorruptTableError(
                f"centers of partitions have {partitions.dimension} values, vectors have "
                f"{self._dtype.dimension}"
            )
        places = vectors.decode_rows(_buffer(rows, IVF_KEY), rows.num_rows)
        if len(places.counts) != len(partitions):
            raise CorruptTableError(
                f"{len(partitions)} partitions have centers, {len(places.counts)} have rows"
            )
        graphs = json.loads(centers.metadata.get(GRAPH_KEY) or "[]")
        codes = self._codes(str(described.get("type")), metric, rows)
        return SegmentModel(
            type=str(described.get("type")),
            partitions=partitions,
            codes=codes,
            rows=places,
            turned_centers=codes.turned(partitions.centers),
            # Official releases write no settings for a partition without rows.
            graphs=tuple(json.loads(text) for text in graphs if text),
        )

    def _codes(self, kind: str, metric: vectors.Metric, rows: IndexFileReader) -> Codes:
        listed = json.loads(rows.metadata.get(CODES_KEY) or "[]")
        settings = _json(listed[0] if listed else None, "the settings of its codes")
        match kind.rsplit("_", 1)[-1]:
            case "FLAT":
                return FlatCodes(
                    dimension=self._dtype.dimension, element=self._dtype.element, metric=metric
                )
            case "SQ":
                return self._scalar_codes(metric, settings)
            case "PQ":
                return self._product_codes(metric, settings, rows)
            case "RQ":
                return self._rotated_codes(metric, settings, rows)
            case other:
                raise UnsupportedError(f"vector indices with {other} codes are not supported")

    def _rotated_codes(
        self, metric: vectors.Metric, settings: dict[str, Any], rows: IndexFileReader
    ) -> Codes:
        place = settings.get("rotate_mat_position")
        matrix = None if place is None else _tensor(rows.buffer_at(int(place)), "rotation")
        return rotated_codes(metric, self._dtype.dimension, settings, matrix)

    def _scalar_codes(self, metric: vectors.Metric, settings: dict[str, Any]) -> ScalarCodes:
        bounds = settings["bounds"]
        if settings["dim"] != self._dtype.dimension:
            problem = f"codes of {settings['dim']} values, vectors have {self._dtype.dimension}"
            raise CorruptTableError(problem, path=ROWS_FILE)
        lower, upper = float(bounds["start"]), float(bounds["end"])
        # Distances are squares of differences in single precision.
        if not (abs(lower) <= _LARGEST and abs(upper) <= _LARGEST):
            raise CorruptTableError(
                f"codes have the invalid bounds {lower} and {upper}", path=ROWS_FILE
            )
        return ScalarCodes(dimension=self._dtype.dimension, metric=metric, lower=lower, upper=upper)

    def _product_codes(
        self, metric: vectors.Metric, settings: dict[str, Any], rows: IndexFileReader
    ) -> ProductCodes:
        # Early releases have codes of one byte only, and do not record it.
        bits, parts = int(settings.get("nbits", 8)), int(settings["num_sub_vectors"])
        if bits not in _BITS:
            raise UnsupportedError(f"PQ codes of {bits} bits are not supported")
        # Early releases have the codebook among the settings.
        inline = settings.get("codebook_tensor")
        data = bytes(inline) if inline else rows.buffer_at(int(settings["codebook_position"]))
        book = _tensor(data, "codebook")
        if book.size != (1 << bits) * self._dtype.dimension:
            raise CorruptTableError("the codebook of a vector index has another size")
        return ProductCodes(
            metric=metric,
            element=self._dtype.element,
            bits=bits,
            codebook=book.reshape(parts, 1 << bits, -1),
            is_transposed=bool(settings.get("transposed")),
        )


def _tensor(data: bytes, what: str) -> vectors.Matrix:
    message = index_pb2.Tensor()
    parse(message, data, what=f"{what} of a vector index")
    return vectors.decode_tensor(message, what=f"values of a {what}")


def _values(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        array = array.flatten()
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values)


def _buffer(reader: IndexFileReader, key: str) -> bytes:
    buffer = reader.buffer(key)
    if buffer is None:
        raise CorruptTableError(f"a file of a vector index has no buffer {key}")
    return buffer


def _json(text: str | None, what: str) -> dict[str, Any]:
    try:
        document = json.loads(text or "")
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(f"a vector index does not record {what}") from error
    if not isinstance(document, dict):
        raise CorruptTableError(f"a vector index does not record {what}")
    return document


_FILE_VERSION = "V3"
# From so many pairs of query and partition on, partitions are searched by several threads.
_MANY_SCORES = 256

PartitionQueries = tuple[int, npt.NDArray[np.int64]]
"""Number of a partition, and the places of the queries that search it."""
_Scored = tuple[int, U64Array, vectors.Distances]

Gate = Callable[[int, U64Array], BoolArray | None]
"""Returns which rows of a partition are wanted, given its number and ids; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """How many partitions are searched: `first` at once, and up to `most` to find enough rows."""

    first: int
    most: int


class VectorSegment(OpenSegment):
    """A vector index that can be searched; its files are opened by the first search."""

    def __init__(self, facts: SegmentFacts) -> None:
        dtype = vectors.VectorType.of(facts.dtype)
        if dtype is None:
            raise CorruptTableError(f"a vector index is on a column of type {facts.dtype}")
        self._folder = facts.folder
        self.dtype = dtype
        self.files = SegmentFiles(facts.folder, dtype)
        self._requested: Parameters | None = None
        if not facts.is_trained and facts.details is not None:
            self._requested = read_settings(facts.details)

    @property
    def uuid(self) -> str:
        """Name of the folder of the segment."""
        return self._folder.place.path.rsplit("/", 1)[-1]

    @property
    def model(self) -> SegmentModel:
        """The partitions and codes."""
        if self._requested is not None:
            raise InvalidRequestError(
                "the index was created without training on rows",
                action="Run optimize_indices, which trains it when the column has rows.",
            )
        return self.files.model

    def represented(self, number: int, mask: BoolArray | None) -> vectors.Matrix:
        """Return the vectors that the codes of a partition stand for, or of some of its rows."""
        model, loaded = self.model, self.files.partition(number).loaded
        codes = model.codes.rows(loaded if mask is None else loaded[mask])
        decoded = model.codes.decode(codes)
        return (
            decoded + model.partitions.centers[number] if model.codes.encodes_residuals else decoded
        )

    def search(
        self,
        queries: npt.NDArray[np.float32],
        probes: Probes,
        nearest: vectors.NearestRows,
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
        nearest: vectors.NearestRows,
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
        self,
        pairs: Sequence[PartitionQueries],
        queries: vectors.Matrix,
        nearest: vectors.NearestRows,
        gate: Gate,
    ) -> None:
        few: dict[int, list[tuple[U64Array, vectors.Distances]]] = {}
        for place, ids, distances in self._score(pairs, queries, nearest, gate):
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
        parts: list[U64Array] = []
        count = 0
        for row in order:
            for place, number in enumerate(row[: probes.most].tolist()):
                if place >= probes.first and count >= k:
                    break
                _count_searched(1)
                ids = self.files.partition(number).ids
                mask = gate(number, ids)
                parts.append(ids if mask is None else ids[mask])
                count += len(parts[-1])
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.uint64)

    def prepared(self, queries: npt.NDArray[np.float32]) -> vectors.Matrix:
        """Return queries as the codes expect them."""
        wanted = self.dtype.query_matrix(queries)
        if wanted.dtype != np.uint8:
            wanted = wanted.astype(np.float32, copy=False)
        return vectors.normalized(wanted) if self.model.metric is vectors.Metric.COSINE else wanted

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Read all rows of all partitions."""
        if self._requested is not None:
            return
        for _, partition in self.files.read_partitions():
            yield pa.RecordBatch.from_arrays([pa.array(partition.ids)], names=[ROW_ID])

    def has_rows_twice(self) -> bool:
        """Whether a row has two vectors, in a column of which rows have one."""
        return not self.dtype.is_multi and self.files.has_repeats()

    def statistics(self) -> Mapping[str, Any]:
        """Return the partitions and the settings of the codes."""
        if self._requested is not None:
            return {}
        model = self.model
        metric = model.metric.value
        is_normalized = (
            isinstance(model.codes, ProductCodes) and model.metric is vectors.Metric.COSINE
        )
        code_metric = vectors.Metric.L2.value if is_normalized else metric
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
        if self._requested is not None:
            return self._requested
        model = self.model
        parameters: dict[str, Any] = {
            "index_type": model.type,
            "metric_type": model.metric.value,
            "num_partitions": len(model.partitions),
        }
        if isinstance(model.codes, ProductCodes):
            parameters["num_sub_vectors"], parameters["num_bits"] = (
                model.codes.parts,
                model.codes.bits,
            )
            parameters["skip_transpose"] = not model.codes.is_transposed
        elif isinstance(model.codes, RotatedCodes):
            parameters["num_bits"] = model.codes.bits
        if model.graphs and "params" in model.graphs[0]:
            settings = model.graphs[0]["params"]
            parameters["m"], parameters["ef_construction"] = (
                settings["m"],
                settings["ef_construction"],
            )
        return parameters

    def prewarm(self) -> None:
        """Read all partitions, as many as are kept."""
        for number in range(len(self.model.partitions)):
            self.files.partition(number)

    def _rounds(
        self, order: npt.NDArray[np.int64], probes: Probes, nearest: vectors.NearestRows
    ) -> Iterator[list[PartitionQueries]]:
        """Yield partitions with the queries that search them, until there are enough rows."""
        active = np.arange(len(order))
        start, stop = 0, min(probes.first, order.shape[1])
        while len(active) and start < stop:
            numbers_of = order[active, start:stop]
            flat, owners = numbers_of.reshape(-1), np.repeat(active, stop - start)
            by_partition = np.argsort(flat, kind="stable")
            numbers, starts = np.unique(flat[by_partition], return_index=True)
            groups = np.split(owners[by_partition], starts[1:])
            _count_searched(len(flat))
            yield list(zip(numbers.tolist(), groups, strict=True))
            active = active[[nearest.count(i) < nearest.k for i in active.tolist()]]
            start, stop = stop, min(2 * stop, probes.most, order.shape[1])

    def _score(
        self,
        pairs: Sequence[PartitionQueries],
        queries: vectors.Matrix,
        nearest: vectors.NearestRows,
        gate: Gate,
    ) -> Iterator[_Scored]:
        """Yield the distances of the rows of partitions, computed at once for many queries."""

        def score(pair: PartitionQueries) -> list[_Scored]:
            return list(self._partition(*pair, queries, nearest, gate))

        if sum(len(places) for _, places in pairs) < _MANY_SCORES:
            with vectors.one_thread():
                scored = [score(pair) for pair in pairs]
            yield from itertools.chain.from_iterable(scored)
            return
        with Pool(usable_cores(), within=vectors.one_thread) as pool:
            yield from itertools.chain.from_iterable(pool.map(score, pairs))

    def _partition(
        self,
        number: int,
        places: npt.NDArray[np.int64],
        queries: vectors.Matrix,
        nearest: vectors.NearestRows,
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
        asked, center = queries[places], self.model.turned_centers[number]
        k = min(nearest.k, len(ids))
        top = codes.top(asked, loaded, k, center) if nearest.is_unbounded else None
        if top is None:
            every = codes.distances(asked, loaded, center)
            for place, row in zip(places.tolist(), every, strict=True):
                yield place, ids, row
            return
        for place, row, rows in zip(places.tolist(), *top, strict=True):
            yield place, ids[rows], np.where(rows < 0, np.float32(np.nan), row)


def _count_searched(partitions: int) -> None:
    account = current_account()
    if account is not None:
        account.count("partitions_searched", partitions)
