"""Training of the models of a vector index, and its build in steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.core.table import Table
from lancelake.core.values import indices as core_indices
from lancelake.core.values.metadata import Snapshot, Version
from lancelake.core.values.reads import VectorType
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.index_arguments import floats
from lancelake.pylance._dataset.index_values import IndexConfig
from lancelake.pylance._values import vector_models
from lancelake.pylance._values.opened import call_text
from lancelake.pylance._values.vector_models import IvfModel, PqModel
from lancelake.pylance.torch.assignment import compute_partitions, fixed_clusters

if TYPE_CHECKING:
    from lancelake.pylance.fragment import LanceFragment

__all__ = ["IndexConfig", "IndicesBuilder", "IvfModel", "PqModel"]

# Metadata that files of official releases do not have.
_FRAGMENTS, _VERSION = "lancelake:fragments", "lancelake:version"
_ADDRESS_BITS = np.uint64(32)


def write_encoded(
    base: Snapshot,
    request: core_indices.IndexRequest,
    uri: str,
    partitions: core_indices.RowPartitions | None = None,
) -> None:
    """Write the partition and the code of each row to a file."""
    indices = Table(base).indices
    fragments = indices.chosen_fragments(request.fragment_ids)
    schema, batches = indices.encode_rows(request, partitions)
    folder, name = vector_models.file_folder(uri, dict(base.location.options))
    file = folder.create(name, schema)
    for batch in batches:
        file.write(batch)
    file.finish({_FRAGMENTS: json.dumps(list(fragments)), _VERSION: str(base.version)})


def write_grouped(
    sources: Sequence[str], target: str, partitions: int, options: Mapping[str, str] | None
) -> None:
    """Write the rows of files with encoded rows to one file, a row for each partition."""
    files = [vector_models.open_file(uri, options) for uri in sources]
    coded = files[0].schema.remove_metadata()
    for file in files:
        file.require(*coded.names)
    folder, name = vector_models.file_folder(target, options)
    with core_indices.grouped_rows(partitions) as groups:
        core_indices.group(_all_rows(files), groups)
        out = folder.create(name, core_indices.grouped_schema(coded))
        for number in range(partitions):
            out.write(core_indices.grouped_batch(coded, number, groups.partition(number)))
        out.finish(_join_metadata(files))


def commit_grouped(
    base: Snapshot,
    request: core_indices.IndexRequest,
    sources: Sequence[str],
    run: core_indices.IndexRun,
) -> Snapshot:
    """Commit an index of the rows of files that are grouped by partition."""
    files = _GroupedFiles(
        [vector_models.open_file(uri, dict(base.location.options)) for uri in sources]
    )
    covered = files.covered(base)
    part = core_indices.IndexRequest(
        column=request.column,
        kind=request.kind,
        name=request.name,
        fragment_ids=tuple(covered),
        parameters=request.parameters,
    )
    indices = Table(base).indices
    entry = indices.write_segment(part, files.partition, version=files.version(base), run=run)
    return indices.commit_segments(entry.name, request.column, [entry], run)


def read_partitions(table: pa.Table) -> core_indices.RowPartitions:
    """Return the partitions of a table of assignments: columns `row_id` and `partition`."""
    missing = {"row_id", "partition"} - set(table.column_names)
    if missing:
        raise InvalidRequestError(f"a table of assigned partitions has no column {min(missing)!r}")
    return core_indices.RowPartitions.of(table["row_id"].to_numpy(), table["partition"].to_numpy())


@dataclass(frozen=True, slots=True)
class _GroupedFiles:
    """Files in which each row has the rows of a partition."""

    files: Sequence[core_indices.IndexFileReader]

    def partition(self, number: int) -> core_indices.PartitionCodes | None:
        parts = [part for file in self.files if (part := _partition(file, number)) is not None]
        if not parts:
            return None
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def version(self, base: Snapshot) -> Version:
        """Return the oldest version of which the files have rows."""
        versions = [int(file.metadata.get(_VERSION, base.version)) for file in self.files]
        return Version(min([*versions, base.version]))

    def covered(self, base: Snapshot) -> BitMap:
        """Return the fragments of which the files have rows.

        Files of official releases do not record them: there the addresses of rows tell.
        """
        fragments: BitMap = BitMap()
        for file in self.files:
            recorded = file.metadata.get(_FRAGMENTS)
            if recorded is not None:
                fragments |= BitMap(json.loads(recorded))
            elif base.manifest.has_stable_row_ids:
                problem = "the files do not record which fragments of the table they cover"
                action = "Write them by transform_vectors again."
                raise InvalidRequestError(problem, table=base.location.uri, action=action)
            else:
                fragments |= _fragments_of_rows(file)
        return fragments


def _partition(
    file: core_indices.IndexFileReader, number: int
) -> core_indices.PartitionCodes | None:
    rows = file.read(number, number + 1, columns=[core_indices.GROUPS]).combine_chunks()
    return next((core_indices.grouped_rows_of(batch) for batch in rows.to_batches()), None)


def _fragments_of_rows(file: core_indices.IndexFileReader) -> BitMap:
    fragments: BitMap = BitMap()
    for number in range(file.num_rows):
        part = _partition(file, number)
        if part is not None:
            fragments |= BitMap(np.unique(part[0] >> _ADDRESS_BITS).tolist())
    return fragments


def _all_rows(files: Sequence[core_indices.IndexFileReader]) -> Iterator[pa.RecordBatch]:
    for file in files:
        file.require(core_indices.PARTITION)
        yield from file.batches()


def _join_metadata(files: Sequence[core_indices.IndexFileReader]) -> dict[str, str]:
    """Return what the files record, if each of them does."""
    metadata: list[dict[str, Any]] = [file.metadata for file in files]
    if any(_FRAGMENTS not in each for each in metadata):
        return {}
    fragments = sorted({number for each in metadata for number in json.loads(each[_FRAGMENTS])})
    oldest = min(int(each[_VERSION]) for each in metadata)
    return {_FRAGMENTS: json.dumps(fragments), _VERSION: str(oldest)}


_METRICS = ("l2", "cosine", "euclidean", "dot", "hamming")
_LEAST_RATE = 2


class IndicesBuilder:
    """Trains the models of an index of one column, and builds an IVF_PQ index in steps.

    A build with `ivf_centroids` and `pq_codebook` uses them, so that segments that several
    processes build can be merged. Alternatively, `transform_vectors` encodes rows in several
    processes, `shuffle_transformed_vectors` groups them, and `load_shuffled_vectors` commits
    the index.
    """

    def __init__(self, dataset: Any, column: str) -> None:
        """Take a dataset and the name of a vector column."""
        if column not in dataset.schema.names:
            raise KeyError(f"{column} not found in schema")
        vectors = VectorType.of(dataset.schema.field(column).type)
        if vectors is None:
            shown = dataset.schema.field(column).type
            raise TypeError(f"Vector column {column} must have vectors, got {shown}")
        self.dataset = dataset
        self.column = [column]
        self.dimension = vectors.dimension

    def __repr__(self) -> str:
        return call_text(self, self.dataset, self.column[0], dimension=self.dimension)

    def train_ivf(
        self,
        num_partitions: int | None = None,
        *,
        distance_type: str = "l2",
        accelerator: Any = None,
        sample_rate: int = 256,
        max_iters: int = 50,
        fragment_ids: list[int] | None = None,
    ) -> IvfModel:
        """Cluster a sample of the vectors; by default into as many as the root of the rows."""
        rows = self._count_rows(fragment_ids)
        count = round(sqrt(rows)) if num_partitions is None else int(num_partitions)
        _ensure_rate(sample_rate)
        if count * sample_rate > rows:
            raise InvalidRequestError(
                "There are not enough rows in the dataset to create IVF centroids with "
                f"{count} partitions and a sample rate of {sample_rate}. {sample_rate * count} "
                f"rows needed and there are {rows}"
            )
        metric = _metric(distance_type)
        parameters = {
            "metric_type": metric,
            "num_partitions": count,
            "sample_rate": sample_rate,
            "max_iters": max_iters,
            "accelerator": None if accelerator is None else str(accelerator),
        }
        trained = self._train("IVF_FLAT", parameters, fragment_ids)
        return IvfModel(vector_models.vector_lists(trained["ivf_centroids"]), metric)

    def train_pq(
        self,
        ivf_model: IvfModel,
        num_subvectors: int | None = None,
        *,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: list[int] | None = None,
    ) -> PqModel:
        """Train a codebook for the partitions of a model."""
        rows = self._count_rows(fragment_ids)
        parts = self._parts(num_subvectors)
        _ensure_rate(sample_rate)
        needed = sample_rate << num_bits
        if needed > rows:
            raise InvalidRequestError(
                f"There are not enough rows in the dataset to create PQ codebook with a sample "
                f"rate of {sample_rate} and num_bits of {num_bits}. {needed} rows needed and there "
                f"are {rows}"
            )
        parameters = {
            "metric_type": ivf_model.distance_type,
            "ivf_centroids": floats(ivf_model.centroids),
            "num_sub_vectors": parts,
            "num_bits": num_bits,
            "sample_rate": sample_rate,
            "max_iters": max_iters,
        }
        book = np.asarray(self._train("IVF_PQ", parameters, fragment_ids)["pq_codebook"])
        shaped = vector_models.vector_lists(book.reshape(1 << num_bits, self.dimension))
        return PqModel(parts, shaped, num_bits=num_bits)

    def prepare_global_ivf_pq(
        self,
        num_partitions: int | None,
        num_subvectors: int | None,
        *,
        distance_type: str = "l2",
        accelerator: Any = None,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: list[int] | None = None,
    ) -> dict[str, pa.FixedSizeListArray]:
        """Train both models, and return them as the arguments of a build."""
        shared: dict[str, Any] = {
            "sample_rate": sample_rate,
            "max_iters": max_iters,
            "fragment_ids": fragment_ids,
        }
        ivf = self.train_ivf(
            num_partitions, distance_type=distance_type, accelerator=accelerator, **shared
        )
        pq = self.train_pq(ivf, num_subvectors, num_bits=num_bits, **shared)
        return {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}

    def assign_ivf_partitions(
        self, ivf_model: IvfModel, accelerator: Any = None, output_uri: str | None = None
    ) -> str:
        """Assign each vector to a partition with PyTorch, and write the assignments to a table.

        Args:
            ivf_model: The partitions.
            accelerator: A device of PyTorch; by default a GPU if there is one, else the CPU.
            output_uri: The table to write; by default one in a new temporary folder.

        Returns:
            The URI of the table, which has the columns `row_id` and `partition`.

        Raises:
            MissingPackageError: PyTorch is not installed.
        """
        clusters = fixed_clusters(floats(ivf_model.centroids), ivf_model.distance_type, accelerator)
        return compute_partitions(
            self.dataset, self.column[0], clusters, dst_dataset_uri=output_uri
        )

    def transform_vectors(
        self,
        ivf: IvfModel,
        pq: PqModel,
        dest_uri: str,
        fragments: list[LanceFragment] | None = None,
        partition_ds_uri: str | None = None,
    ) -> None:
        """Write the partition and the PQ code of each row to a Lance file.

        Args:
            ivf: The partitions.
            pq: The codebook.
            dest_uri: The file to write.
            fragments: The fragments whose rows are encoded; by default all.
            partition_ds_uri: A table of assigned partitions, as `assign_ivf_partitions` writes
                it; rows that it does not have are left out.

        Raises:
            InvalidRequestError: The list of fragments is empty, or a fragment is unknown.
        """
        if fragments is not None and not fragments:
            raise InvalidRequestError("fragments must be a non-empty list or None")
        fragment_ids = None if fragments is None else tuple(each.fragment_id for each in fragments)
        partitions = None
        if partition_ds_uri is not None:
            assigned = type(self.dataset)(partition_ds_uri)
            partitions = read_partitions(assigned.to_table(["row_id", "partition"]))
        request = self._request(ivf, pq, fragment_ids=fragment_ids)
        write_encoded(self.dataset._snapshot, request, dest_uri, partitions)

    def shuffle_transformed_vectors(
        self,
        unsorted_filenames: list[str],
        dir_path: str,
        ivf: IvfModel,
        shuffle_output_root_filename: str | None = "sorted",
    ) -> list[str]:
        """Group the rows of files of `transform_vectors` by partition.

        Args:
            unsorted_filenames: Names of the files.
            dir_path: The folder of the files, and of the new file.
            ivf: The partitions.
            shuffle_output_root_filename: How the name of the new file begins.

        Returns:
            The names of new files: one, or none without files to read.

        Raises:
            InvalidRequestError: The names are not a list.
        """
        if not isinstance(unsorted_filenames, list):
            raise InvalidRequestError("filenames must be a list of strings")
        if not unsorted_filenames:
            return []
        name = f"{shuffle_output_root_filename or 'sorted'}_0.lance"
        options = dict(self.dataset._snapshot.location.options)
        sources = [_join(dir_path, each) for each in unsorted_filenames]
        write_grouped(sources, _join(dir_path, name), ivf.num_partitions, options)
        return [name]

    def load_shuffled_vectors(
        self,
        filenames: list[str],
        dir_path: str,
        ivf: IvfModel,
        pq: PqModel,
        index_name: str | None = None,
    ) -> None:
        """Commit an index of the rows of files of `shuffle_transformed_vectors`.

        The index covers the fragments that were encoded; an index of this name is replaced.

        Args:
            filenames: Names of the files.
            dir_path: The folder of the files.
            ivf: The partitions with which the rows were encoded.
            pq: The codebook with which the rows were encoded.
            index_name: By default the name of the column and `_idx`.

        Raises:
            InvalidRequestError: The names are not a list, or an encoded fragment is no longer
                part of the table.
        """
        if not isinstance(filenames, list):
            raise InvalidRequestError("filenames must be a list of strings")
        request = self._request(ivf, pq, name=index_name)
        sources = [_join(dir_path, each) for each in filenames]
        run = core_indices.IndexRun(choices=self.dataset._choices)
        commit_grouped(self.dataset._snapshot, request, sources, run)

    def _request(
        self,
        ivf: IvfModel,
        pq: PqModel,
        *,
        name: str | None = None,
        fragment_ids: tuple[int, ...] | None = None,
    ) -> core_indices.IndexRequest:
        parameters = {
            "metric_type": _metric(ivf.distance_type),
            "ivf_centroids": floats(ivf.centroids),
            "num_sub_vectors": pq.num_subvectors,
            "num_bits": pq.num_bits,
            "pq_codebook": floats(pq.codebook),
        }
        return core_indices.IndexRequest(
            column=self.column[0],
            kind="IVF_PQ",
            name=name,
            fragment_ids=fragment_ids,
            parameters=parameters,
        )

    def _train(
        self, kind: str, parameters: Mapping[str, Any], fragment_ids: list[int] | None
    ) -> Mapping[str, Any]:
        request = core_indices.IndexRequest(
            column=self.column[0],
            kind=kind,
            fragment_ids=None if fragment_ids is None else tuple(fragment_ids),
            parameters={key: value for key, value in parameters.items() if value is not None},
        )
        table: Table = self.dataset._table
        return table.indices.train(request)

    def _count_rows(self, fragment_ids: list[int] | None) -> int:
        if fragment_ids is None:
            return int(self.dataset.count_rows())
        fragments = {fragment.fragment_id: fragment for fragment in self.dataset.get_fragments()}
        missing = [number for number in fragment_ids if number not in fragments]
        if missing:
            raise InvalidRequestError(f"Fragment id does not exist: {missing[0]}")
        return sum(fragments[number].count_rows() for number in fragment_ids)

    def _parts(self, count: int | None) -> int:
        if count is None:
            size = next((each for each in (16, 8) if self.dimension % each == 0), None)
            if size is None:
                raise InvalidRequestError(
                    f"vector dimension {self.dimension} is not divisible by 16 or 8; specify "
                    "num_subvectors"
                )
            return self.dimension // size
        if not isinstance(count, int) or not 0 < count <= self.dimension:
            raise InvalidRequestError(f"num_subvectors must be a number from 1 to {self.dimension}")
        return count


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def _ensure_rate(rate: int) -> None:
    if not isinstance(rate, int) or rate < _LEAST_RATE:
        raise InvalidRequestError(f"The sample_rate must be an int greater than 1, got {rate}")


def _metric(name: object) -> str:
    if not isinstance(name, str) or name.lower() not in _METRICS:
        raise InvalidRequestError(f"Distance type {name} not supported.")
    return name.lower()
