"""How vector indices are built: parameters, and the details of entries that record them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import IndexDetails, IndexFile, describe
from lancelake.index.kind import BuiltSegment, Parameters, ensure_known
from lancelake.index.vector.clustering import ROUNDS, accelerator_named
from lancelake.index.vector.rotated_codes import arbitrary_signs
from lancelake.index.vector.vectors import Metric, VectorType, metric_named
from lancelake.proto import index_pb2

TYPES = (
    "IVF_FLAT",
    "IVF_SQ",
    "IVF_PQ",
    "IVF_RQ",
    "IVF_HNSW_FLAT",
    "IVF_HNSW_SQ",
    "IVF_HNSW_PQ",
)
"""Types of vector indices that are built."""

_TARGET_ROWS = {"FLAT": 4096, "SQ": 8192, "PQ": 8192, "RQ": 4096}
# Release 4 reads one bit for each value only.
_DEFAULT_BITS = {"RQ": 1}
_GRAPH_TARGET_ROWS = 1 << 20
_MOST_PARTITIONS = 4096
_KNOWN = (
    "index_type",
    "metric_type",
    "num_partitions",
    "target_partition_size",
    "num_sub_vectors",
    "num_bits",
    "sample_rate",
    "max_iters",
    "m",
    "ef_construction",
    "max_level",
    "ivf_centroids",
    "pq_codebook",
    "sq_bounds",
    "accelerator",
    "skip_transpose",
    "rabitq_model",
)
_CODE_BITS = (4, 8)
_ROTATED_BITS = range(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuildSettings:
    """How a vector index is built."""

    type: str
    metric: Metric
    num_partitions: int | None
    target_rows: int
    parts: int
    bits: int
    sample_rate: int
    max_iters: int
    neighbours: int
    construction_ef: int
    max_level: int
    centers: npt.NDArray[np.float32] | None
    codebook: npt.NDArray[np.float32] | None
    bounds: tuple[float, float] | None
    skip_transpose: bool
    """Whether PQ and RQ codes are stored row by row."""
    rotation_model: Mapping[str, Any] | None
    """Settings of RQ codes that the segments of an index share."""
    accelerator: str | None
    """Device of PyTorch on which vectors are clustered and assigned; None for the CPU."""

    @staticmethod
    def of(parameters: Parameters, kind: str, dtype: VectorType) -> BuildSettings:
        """Check parameters, and fill in defaults; `kind` is the type if none is named."""
        name = str(parameters.get("index_type", kind)).upper()
        ensure_known(name, parameters, _KNOWN)
        if name not in TYPES:
            raise InvalidRequestError(f"{name} indices are not built; the types are: {TYPES}")
        metric = metric_named(str(parameters.get("metric_type", dtype.default_metric.value)))
        code = name.rsplit("_", 1)[-1]
        default = _GRAPH_TARGET_ROWS if "HNSW" in name else _TARGET_ROWS[code]
        settings = BuildSettings(
            type=name,
            metric=metric,
            num_partitions=_count(name, parameters, "num_partitions", None),
            target_rows=_count(name, parameters, "target_partition_size", default) or default,
            parts=_count(name, parameters, "num_sub_vectors", None) or _parts(dtype.dimension),
            bits=_count(name, parameters, "num_bits", None) or _DEFAULT_BITS.get(code, 8),
            sample_rate=_count(name, parameters, "sample_rate", 256) or 256,
            max_iters=_count(name, parameters, "max_iters", ROUNDS) or ROUNDS,
            neighbours=_count(name, parameters, "m", 20) or 20,
            construction_ef=_count(name, parameters, "ef_construction", 150) or 150,
            max_level=_count(name, parameters, "max_level", 7) or 7,
            centers=_floats(parameters.get("ivf_centroids")),
            codebook=_floats(parameters.get("pq_codebook")),
            bounds=parameters.get("sq_bounds"),
            skip_transpose=bool(parameters.get("skip_transpose")),
            rotation_model=_rotation_model(parameters.get("rabitq_model"), dtype),
            accelerator=_device(parameters.get("accelerator")),
        )
        settings.ensure_fits(dtype)
        return settings

    @property
    def code(self) -> str:
        """FLAT, SQ, PQ or RQ."""
        return self.type.rsplit("_", 1)[-1]

    @property
    def is_trained(self) -> bool:
        """Whether the model is given, so that no rows are needed to train it."""
        if self.centers is None:
            return False
        given = {"SQ": self.bounds, "PQ": self.codebook}
        return self.code not in given or given[self.code] is not None

    @property
    def has_graph(self) -> bool:
        """Whether each partition has a graph."""
        return "HNSW" in self.type

    def partitions_for(self, rows: int) -> int:
        """Return the number of partitions for a number of rows."""
        if self.centers is not None:
            return len(self.centers)
        wanted = self.num_partitions or partition_count(rows, self.target_rows)
        return max(1, min(wanted, rows))

    def ensure_fits(self, dtype: VectorType) -> None:
        """Refuse settings that do not fit a column."""
        if not dtype.supports(self.metric):
            problem = f"{self.metric.value} distances of {dtype.element.value} vectors"
            raise InvalidRequestError(f"{problem} are not indexed")
        if dtype.is_multi and self.metric is not Metric.COSINE:
            raise InvalidRequestError("multivector columns are indexed by cosine distance only")
        if self.metric is Metric.HAMMING and self.type != "IVF_FLAT":
            raise InvalidRequestError(f"{self.type} does not index hamming distances")
        self._ensure_codes(dtype.dimension)
        if self.centers is not None and self.centers.shape[-1] != dtype.dimension:
            problem = f"ivf_centroids have {self.centers.shape[-1]} values, not {dtype.dimension}"
            raise InvalidRequestError(problem)
        size = (1 << self.bits) * dtype.dimension
        if self.codebook is not None and self.codebook.size != size:
            shape = self.codebook.shape
            raise InvalidRequestError(
                f"PQ codebook must be 3D array: (sub_vectors, {1 << self.bits}, dim) for "
                f"num_bits={self.bits}, got {shape}: {self.codebook.size} values, not {size}"
            )

    def _ensure_codes(self, dimension: int) -> None:
        if self.code == "PQ":
            if self.bits not in _CODE_BITS:
                raise InvalidRequestError(f"num_bits must be 4 or 8, not {self.bits}")
            if dimension % self.parts:
                raise InvalidRequestError(
                    f"dimension ({dimension}) must be divisible by num_sub_vectors ({self.parts})"
                )
            if self.parts * self.bits % 8:
                raise InvalidRequestError("num_sub_vectors must be even with num_bits=4")
        if self.code == "RQ":
            if self.bits not in _ROTATED_BITS:
                raise InvalidRequestError(f"num_bits of IVF_RQ must be 1 to 9, not {self.bits}")
            model = self.rotation_model
            if model is not None and model["num_bits"] != self.bits:
                bits = model["num_bits"]
                raise InvalidRequestError(f"rabitq_model has {bits} bits, not {self.bits}")
            if dimension % 8:
                raise InvalidRequestError("vector dimension must be divisible by 8 for IVF_RQ")


def partition_count(rows: int, target_rows: int | None = None) -> int:
    """Return the number of partitions of rows by the wanted rows of each, as for IVF_PQ."""
    return max(1, min(_MOST_PARTITIONS, rows // (target_rows or _TARGET_ROWS["PQ"])))


def _parts(dimension: int) -> int:
    """Return a number of sub-vectors that divides a dimension: 16 values each, or 8, or all."""
    return next((dimension // size for size in (16, 8) if dimension % size == 0), 1)


def _count(kind: str, parameters: Parameters, name: str, default: int | None) -> int | None:
    value = parameters.get(name, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidRequestError(f"{name} of {kind} must be a positive integer, not {value!r}")
    return value


def _device(name: object) -> str | None:
    return None if name is None else accelerator_named(name).device


def _floats(value: Any) -> npt.NDArray[np.float32] | None:
    return None if value is None else np.asarray(value, dtype=np.float32)


def _rotation_model(text: object, dtype: VectorType) -> Mapping[str, Any] | None:
    """Return the model of RQ codes that a text states."""
    if text is None:
        return None
    try:
        model = json.loads(str(text))
        size, bits = int(model["code_dim"]), int(model["num_bits"])
        signs = bytes(model["fast_rotation_signs"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidRequestError(f"rabitq_model is not a model of RQ codes: {error}") from error
    if size != dtype.dimension or len(signs) != len(arbitrary_signs(size)):
        problem = f"rabitq_model is for vectors of {size} values, not {dtype.dimension}"
        raise InvalidRequestError(problem)
    return {**model, "num_bits": bits}


_TYPE_URL = "/lance.index.pb.VectorIndexDetails"
_INDEX_VERSION = 1
# Releases that do not read RQ codes accept version 1 at most.
_ROTATED_VERSION = 2
_METRICS = {
    Metric.L2: index_pb2.L2,
    Metric.COSINE: index_pb2.Cosine,
    Metric.DOT: index_pb2.Dot,
    Metric.HAMMING: index_pb2.Hamming,
}
# Parameters that releases record as texts.
_HINTS = {"sample_rate": "lance.ivf.sample_rate", "max_iters": "lance.ivf.max_iters"}


def segment_with(settings: BuildSettings, files: tuple[IndexFile, ...]) -> BuiltSegment:
    """Return a segment with these files; without any it is not trained yet."""
    details = IndexDetails(type_url=_TYPE_URL, value=_encode(settings))
    version = _ROTATED_VERSION if settings.code == "RQ" else _INDEX_VERSION
    return BuiltSegment(details=details, index_version=version, files=files)


def read_settings(details: IndexDetails) -> Parameters | None:
    """Return the parameters of a build that an entry records; None if it does not state a type."""
    kind, shown = describe(details)
    if kind not in TYPES:
        return None
    parameters: dict[str, Any] = {
        "index_type": kind,
        "metric_type": str(shown["metric_type"]).lower(),
    }
    if "target_partition_size" in shown:
        parameters["target_partition_size"] = shown["target_partition_size"]
    compression = shown.get("compression", {})
    parameters |= {
        key: compression[key] for key in ("num_sub_vectors", "num_bits") if key in compression
    }
    if "hnsw" in shown:
        parameters["m"] = shown["hnsw"]["max_connections"]
        parameters["ef_construction"] = shown["hnsw"]["construction_ef"]
        parameters["max_level"] = shown["hnsw"]["max_level"]
    hints = shown.get("runtime_hints", {})
    for name, key in _HINTS.items():
        if str(hints.get(key, "")).isdecimal():
            parameters[name] = int(hints[key])
    return {name: value for name, value in parameters.items() if value}


def _encode(settings: BuildSettings) -> bytes:
    message = index_pb2.VectorIndexDetails(metric_type=_METRICS[settings.metric])
    if settings.has_graph:
        message.hnsw_index_config.max_connections = settings.neighbours
        message.hnsw_index_config.construction_ef = settings.construction_ef
        message.hnsw_index_config.max_level = settings.max_level
    match settings.code:
        case "PQ":
            message.pq.num_bits = settings.bits
            message.pq.num_sub_vectors = settings.parts
        case "RQ":
            message.rq.num_bits = settings.bits
        case "SQ":
            message.sq.num_bits = 8
        case _:
            message.flat.SetInParent()
    trained = ["ivf", *(code for code in ("pq", "sq") if code == settings.code.lower())]
    for part in trained:
        message.runtime_hints[f"lance.{part}.sample_rate"] = str(settings.sample_rate)
        if part != "sq":
            message.runtime_hints[f"lance.{part}.max_iters"] = str(settings.max_iters)
    return message.SerializeToString(deterministic=True)
