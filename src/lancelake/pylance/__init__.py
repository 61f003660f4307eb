"""pylance-compatible API: the same names, arguments and results."""

from __future__ import annotations

from lancelake.data.codec.official import blob_member
from lancelake.pylance._dataset.arguments import DatasetBasePath
from lancelake.pylance._dataset.description import DataStatistics, FieldStatistics
from lancelake.pylance._dataset.index_values import Index, IndexFile
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._dataset.maintenance import (
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupReferencedBranch,
    CleanupStats,
)
from lancelake.pylance._dataset.merge import MergeInsertBuilder
from lancelake.pylance._dataset.scanner import LanceScanner, ScanStatistics
from lancelake.pylance._dataset.state import Session
from lancelake.pylance._dataset.transactions import Transaction
from lancelake.pylance._open import convert, dataset
from lancelake.pylance._values.opened import ColumnOrdering, bytes_read_counter, iops_counter
from lancelake.pylance._values.tokens import FtsToken, tokenize
from lancelake.pylance.blob import (
    Blob,
    BlobArray,
    BlobColumn,
    BlobFile,
    BlobType,
    blob_array,
    blob_field,
)
from lancelake.pylance.dataset import LanceDataset, write_dataset
from lancelake.pylance.fragment import FragmentMetadata, LanceFragment
from lancelake.pylance.log import set_logger
from lancelake.pylance.mem_wal import (
    CompactedSsTable,
    ExecutionPlan,
    LsmPointLookupPlanner,
    LsmScanner,
    LsmVectorSearchPlanner,
    ShardingField,
    ShardingSpec,
    ShardSnapshot,
    ShardWriter,
    evaluate_sharding_spec,
)
from lancelake.pylance.progress import IndexProgress
from lancelake.pylance.schema import json_to_schema, schema_to_json
from lancelake.pylance.udf import batch_udf
from lancelake.pylance.util import sanitize_ts
from lancelake.version import __version__

__all__ = [
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "ColumnOrdering",
    "CompactedSsTable",
    "DataStatistics",
    "DatasetBasePath",
    "ExecutionPlan",
    "FieldStatistics",
    "FragmentMetadata",
    "FtsToken",
    "Index",
    "IndexFile",
    "IndexProgress",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LsmPointLookupPlanner",
    "LsmScanner",
    "LsmVectorSearchPlanner",
    "MergeInsertBuilder",
    "ScanStatistics",
    "Session",
    "ShardSnapshot",
    "ShardWriter",
    "ShardingField",
    "ShardingSpec",
    "Transaction",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "bytes_read_counter",
    "convert",
    "dataset",
    "evaluate_sharding_spec",
    "iops_counter",
    "json_to_schema",
    "sanitize_ts",
    "schema_to_json",
    "set_logger",
    "tokenize",
    "write_dataset",
]


def __getattr__(name: str) -> object:
    if name != "BlobDescriptorArrayBuilder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return blob_member(name)
