"""Training of the models of a vector index, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.index.vector.vectors import VectorType
from lancelake.pylance._dataset.indices.vector_arguments import floats
from lancelake.pylance._values.vector_models import IvfModel, PqModel, vector_lists
from lancelake.table.index.request import IndexRequest
from lancelake.table.index.training import trained_parameters

_METRICS = ("l2", "cosine", "euclidean", "dot", "hamming")
_LEAST_RATE = 2


class IndicesBuilder:
    """Trains the models of an index of one column.

    A build with `ivf_centroids` and `pq_codebook` uses them, so that segments that several
    processes build can be merged.
    """

    def __init__(self, dataset: Any, column: str) -> None:
        """Take a dataset and the name of a vector column."""
        if column not in dataset.schema.names:
            raise KeyError(f"{column} not found in schema")
        found = VectorType.of(dataset.schema.field(column).type)
        if found is None:
            shown = dataset.schema.field(column).type
            raise TypeError(f"Vector column {column} must have vectors, got {shown}")
        self.dataset = dataset
        self.column = [column]
        self.dimension = found.dimension

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
        trained = self._trained("IVF_FLAT", parameters, fragment_ids)
        return IvfModel(vector_lists(trained["ivf_centroids"]), metric)

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
        book = np.asarray(self._trained("IVF_PQ", parameters, fragment_ids)["pq_codebook"])
        shaped = vector_lists(book.reshape(1 << num_bits, self.dimension))
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
        ivf = self.train_ivf(
            num_partitions,
            distance_type=distance_type,
            accelerator=accelerator,
            sample_rate=sample_rate,
            max_iters=max_iters,
            fragment_ids=fragment_ids,
        )
        pq = self.train_pq(
            ivf,
            num_subvectors,
            sample_rate=sample_rate,
            max_iters=max_iters,
            num_bits=num_bits,
            fragment_ids=fragment_ids,
        )
        return {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}

    def _trained(
        self, kind: str, parameters: Mapping[str, Any], fragment_ids: list[int] | None
    ) -> Mapping[str, Any]:
        request = IndexRequest(
            column=self.column[0],
            kind=kind,
            fragment_ids=None if fragment_ids is None else tuple(fragment_ids),
            parameters={key: value for key, value in parameters.items() if value is not None},
        )
        return trained_parameters(self.dataset._snapshot, request)

    def _count_rows(self, fragment_ids: list[int] | None) -> int:
        if fragment_ids is None:
            return int(self.dataset.count_rows())
        found = {fragment.fragment_id: fragment for fragment in self.dataset.get_fragments()}
        missing = [number for number in fragment_ids if number not in found]
        if missing:
            raise InvalidRequestError(f"Fragment id does not exist: {missing[0]}")
        return sum(found[number].count_rows() for number in fragment_ids)

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
            problem = f"num_subvectors must be a number from 1 to {self.dimension}"
            raise InvalidRequestError(problem)
        return count


def _ensure_rate(rate: int) -> None:
    if not isinstance(rate, int) or rate < _LEAST_RATE:
        raise InvalidRequestError(f"The sample_rate must be an int greater than 1, got {rate}")


def _metric(name: object) -> str:
    if not isinstance(name, str) or name.lower() not in _METRICS:
        raise InvalidRequestError(f"Distance type {name} not supported.")
    return name.lower()
