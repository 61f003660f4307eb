"""Models of vector indices: values that can be saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.data.codec.readers import forget_readers
from lancelake.pylance._values.reprs import call_text
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

_METRIC, _PARTS, _BITS = "distance_type", "num_subvectors", "num_bits"


class IvfModel:
    """Centers of the partitions of a vector index, and the metric that they were trained for."""

    def __init__(self, centroids: pa.Array, distance_type: str) -> None:
        self.centroids = centroids
        self.distance_type = distance_type

    def __repr__(self) -> str:
        return call_text(self, num_partitions=self.num_partitions, distance_type=self.distance_type)

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return len(self.centroids)

    def save(self, uri: str, *, storage_options: dict[str, str] | None = None) -> None:
        """Write the model to a Lance file."""
        metadata = {_METRIC: self.distance_type}
        _write(uri, "centroids", self.centroids, metadata, storage_options)

    @classmethod
    def load(cls, uri: str, *, storage_options: dict[str, str] | None = None) -> Self:
        """Read a model from a Lance file."""
        values, metadata = _read(uri, "centroids", storage_options)
        return cls(values, metadata[_METRIC])


class PqModel:
    """Codebook of a vector index with PQ codes."""

    def __init__(
        self, num_subvectors: int, codebook: pa.FixedSizeListArray, *, num_bits: int = 8
    ) -> None:
        self.num_subvectors = num_subvectors
        self.num_bits = num_bits
        self.codebook = codebook

    def __repr__(self) -> str:
        sizes = {"num_subvectors": self.num_subvectors, "num_bits": self.num_bits}
        return call_text(self, dimension=self.dimension, **sizes)

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        return int(self.codebook.type.list_size)

    def save(self, uri: str, *, storage_options: dict[str, str] | None = None) -> None:
        """Write the model to a Lance file."""
        metadata = {_PARTS: str(self.num_subvectors), _BITS: str(self.num_bits)}
        _write(uri, "codebook", self.codebook, metadata, storage_options)

    @classmethod
    def load(cls, uri: str, *, storage_options: dict[str, str] | None = None) -> Self:
        """Read a model from a Lance file."""
        values, metadata = _read(uri, "codebook", storage_options)
        return cls(int(metadata[_PARTS]), values, num_bits=int(metadata.get(_BITS, "8")))


def vector_lists(matrix: npt.NDArray[np.float32]) -> pa.FixedSizeListArray:
    """Return a matrix as an array of vectors."""
    flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[-1])


def file_folder(uri: str, options: Mapping[str, str] | None) -> tuple[SegmentFolder, str]:
    """Return the folder of a file, and its name."""
    whole = Location.parse(uri, options)
    parent, _, name = str(whole.uri).rpartition("/")
    root, _, folder = parent.rpartition("/")
    return SegmentFolder(place=FileAt(root=Location.parse(root, options), path=folder)), name


def opened_file(uri: str, options: Mapping[str, str] | None) -> IndexFileReader:
    """Open a file that may have been written again since it was read, unlike files of a table."""
    folder, name = file_folder(uri, options)
    forget_readers([folder.file(name).uri])
    return folder.open(name)


def _write(
    uri: str,
    column: str,
    values: pa.Array,
    metadata: Mapping[str, str],
    options: Mapping[str, str] | None,
) -> None:
    folder, name = file_folder(uri, options)
    schema = pa.schema([pa.field(column, values.type)])
    file = folder.create(name, schema)
    file.write(pa.RecordBatch.from_arrays([values], schema=schema))
    file.finish(metadata)


def _read(
    uri: str, column: str, options: Mapping[str, str] | None
) -> tuple[pa.FixedSizeListArray, dict[str, str]]:
    file = opened_file(uri, options)
    file.require(column)
    found = file.read(columns=[column]).column(0).combine_chunks()
    values = pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
    return values, file.metadata
