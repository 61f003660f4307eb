"""Names and types of index parameters, for editors and type checkers.

Which of them a kind has is decided, with its defaults, by the kind itself.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

ScalarKind: TypeAlias = Literal[
    "BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED", "FTS"
]
VectorKind: TypeAlias = Literal[
    "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"
]
Metric: TypeAlias = Literal[
    "L2", "l2", "euclidean", "cosine", "Cosine", "dot", "Dot", "hamming", "Hamming"
]


class ScalarParameters(TypedDict, total=False):
    """Parameters of BTREE, ZONEMAP, BLOOMFILTER and INVERTED indices."""

    zone_size: int
    rows_per_zone: int
    number_of_items: int
    probability: float
    base_tokenizer: Literal["simple", "whitespace", "raw", "ngram", "code", "icu"] | str
    language: str
    with_position: bool
    max_token_length: int | None
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    custom_stop_words: list[str] | None
    ascii_folding: bool
    min_ngram_length: int
    max_ngram_length: int
    prefix_only: bool
    split_identifiers: bool
    split_on_numerics: bool
    preserve_original: bool
    memory_limit: int
    worker_memory_limit_mb: int
    num_workers: int
    skip_merge: bool


class VectorParameters(TypedDict, total=False):
    """Parameters of vector indices that are not arguments of `create_index`."""

    num_bits: int
    sample_rate: int
    max_iters: int
    m: int
    ef_construction: int
    max_level: int
    index_file_version: str


class IndexParameters(ScalarParameters, VectorParameters, total=False):
    """Parameters of indices of any kind."""


class TableIndexParameters(IndexParameters, total=False):
    """Parameters of indices of any kind, those of vector indices in full."""

    metric_type: Metric | str
    num_partitions: int
    num_sub_vectors: int
    target_partition_size: int
    accelerator: str
    skip_transpose: bool
