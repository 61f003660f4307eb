"""Files of a vector index segment: `index.idx` with centers, `auxiliary.idx` with the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.unknown import parse
from lancelake.index import cache
from lancelake.index.kind import ROW_ID
from lancelake.index.row_ids import U64Array
from lancelake.index.vector.codes import CodeMatrix, Codes
from lancelake.index.vector.flat_codes import FlatCodes
from lancelake.index.vector.metric import Matrix, Metric, metric_named
from lancelake.index.vector.partitions import (
    PartitionRows,
    Partitions,
    decode_centers,
    decode_rows,
)
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.rotated_codes import rotated_codes
from lancelake.index.vector.scalar_codes import ScalarCodes
from lancelake.index.vector.tensors import decode_tensor
from lancelake.index.vector.vectors import VectorType
from lancelake.proto import index_pb2

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
    partitions: Partitions
    codes: Codes
    rows: PartitionRows
    turned_centers: Matrix
    """Centers of the partitions in the coordinates of the codes."""
    graphs: tuple[dict[str, Any], ...]
    """Settings of the graphs of partitions that have rows; none without graphs."""

    @property
    def metric(self) -> Metric:
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

    def __init__(self, folder: SegmentFolder, dtype: VectorType) -> None:
        self._folder = folder
        self._dtype = dtype
        self._uri = folder.place.uri

    @property
    def model(self) -> SegmentModel:
        """The partitions and codes."""
        return cache.kept(self._uri, "model", self._checked_model, lambda model: model.size_bytes)

    def partition(self, number: int) -> Partition:
        """Return the rows of a partition."""
        return cache.kept(
            self._uri,
            ("partition", number),
            lambda: self.read_partition(number),
            lambda found: found.size_bytes,
        )

    def read_partitions(self) -> Iterator[tuple[int, Partition]]:
        """Read all partitions, one after the other, without keeping them."""
        for number in range(len(self.model.partitions)):
            yield number, self.read_partition(number)

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
        metric = metric_named(str(described.get(METRIC_KEY)))
        partitions, _ = decode_centers(_buffer(centers, IVF_KEY), metric)
        if partitions.dimension != self._dtype.dimension:
            raise CorruptTableError(
                f"centers of partitions have {partitions.dimension} values, vectors have "
                f"{self._dtype.dimension}"
            )
        places = decode_rows(_buffer(rows, IVF_KEY), rows.num_rows)
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

    def _codes(self, kind: str, metric: Metric, rows: IndexFileReader) -> Codes:
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
        self, metric: Metric, settings: dict[str, Any], rows: IndexFileReader
    ) -> Codes:
        place = settings.get("rotate_mat_position")
        matrix = None if place is None else _tensor(rows.buffer_at(int(place)), "rotation")
        return rotated_codes(metric, self._dtype.dimension, settings, matrix)

    def _scalar_codes(self, metric: Metric, settings: dict[str, Any]) -> ScalarCodes:
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
        self, metric: Metric, settings: dict[str, Any], rows: IndexFileReader
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


def _tensor(data: bytes, what: str) -> Matrix:
    message = index_pb2.Tensor()
    parse(message, data, what=f"{what} of a vector index")
    return decode_tensor(message, what=f"values of a {what}")


def _values(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        array = array.flatten()
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values)


def _buffer(reader: IndexFileReader, key: str) -> bytes:
    found = reader.buffer(key)
    if found is None:
        raise CorruptTableError(f"a file of a vector index has no buffer {key}")
    return found


def _json(text: str | None, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(f"a vector index does not record {what}") from error
    if not isinstance(found, dict):
        raise CorruptTableError(f"a vector index does not record {what}")
    return found
