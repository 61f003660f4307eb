"""The examples in the docstrings of the public API run, and every public method has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.pylance import query
from lancelake.pylance._dataset.maintenance import DatasetOptimizer
from lancelake.pylance._dataset.refs import Branches, Tags
from lancelake.pylance._dataset.scan_methods import serialize_row_addrs
from lancelake.pylance._dataset.searching import SqlQuery, SqlQueryBuilder
from lancelake.pylance._dataset.wal import TableWal, WalWriter
from tests.docs.examples import (
    arguments_of,
    embedded_names,
    public_members,
    run_examples,
    text_of,
)

CLASSES = (
    lance.LanceDataset,
    lance.LanceFragment,
    lance.LanceScanner,
    lance.MergeInsertBuilder,
    lance.Transaction,
    DatasetOptimizer,
    Tags,
    Branches,
    TableWal,
    WalWriter,
    SqlQuery,
    SqlQueryBuilder,
)
FUNCTIONS = (
    lance.dataset,
    lance.write_dataset,
    lance.convert,
    lance.batch_udf,
    lance.tokenize,
    serialize_row_addrs,
)
VALUES = (
    lance.Session,
    lance.LanceOperation,
    lance.LanceOperation.Append,
    lance.LanceOperation.Delete,
    lance.LanceOperation.Merge,
    lance.LanceOperation.Overwrite,
    lance.LanceOperation.Restore,
    lance.LanceOperation.Update,
    query.BooleanQuery,
    query.BoostQuery,
    query.MatchQuery,
    query.MultiMatchQuery,
    query.PhraseQuery,
)
EVERY: dict[str, Any] = {
    **{value.__name__: value for value in VALUES},
    **dict(public_members(CLASSES)),
    **{call.__name__: call for call in FUNCTIONS},
}
WITH_EXAMPLE = {name: value for name, value in EVERY.items() if ">>>" in text_of(value)}


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(name, WITH_EXAMPLE[name], embedded_names())


NOT_SUPPORTED = {
    "LanceDataset.children",
    "LanceDataset.filter",
    "LanceDataset.partition_expression",
    "LanceDataset.replace_schema",
    "LanceFragment.partition_expression",
    "LanceScanner.from_batches",
    "LanceScanner.from_dataset",
    "LanceScanner.from_fragment",
    "LanceScanner.scan_batches",
    "LanceScanner.take",
    "MergeInsertBuilder.target_all_bases",
    "MergeInsertBuilder.target_bases",
}


def test_every_name_but_the_unsupported_ones_has_an_example() -> None:
    missing = {name for name in EVERY if "." in name} - WITH_EXAMPLE.keys()
    assert missing == NOT_SUPPORTED


# Arguments that only tune official Lance, or that are there for older releases.
NOT_DESCRIBED = {
    "backpressure_log_interval_ms",
    "base_store_params",
    "blob_pack_file_size_threshold",
    "block_size",
    "data_cache_bytes",
    "durable_write",
    "filter_nan",
    "hnsw_params",
    "index_cache_size",
    "index_cache_size_bytes",
    "manifest_scan_batch_size",
    "max_page_bytes",
    "max_rows_per_group",
    "max_wal_buffer_size",
    "max_wal_flush_interval_ms",
    "metadata_cache_size_bytes",
    "namespace_client_managed_versioning",
    "precomputed_partition_dataset",
    "read_params",
    "shuffle_partition_batches",
    "shuffle_partition_concurrency",
    "skip_transpose",
    "stats_log_interval_ms",
    "storage_options",
    "storage_options_provider",
    "streaming_coreset_rate",
    "streaming_refine_passes",
    "streaming_sample_rate",
    "use_legacy_format",
}


def test_every_argument_is_described() -> None:
    missing = {
        (name, argument)
        for name, value in WITH_EXAMPLE.items()
        for argument in arguments_of(value)
        if argument not in NOT_DESCRIBED and f"{argument}: " not in text_of(value)
    }
    assert missing == set()
