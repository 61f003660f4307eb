"""Values of reads and searches: requests, their parts, and what they return."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.data.blobs import read_all
    from lancelake.data.codec import file_ends
    from lancelake.data.column_reader import RowOffsets
    from lancelake.data.fragment_reader import MetaColumn
    from lancelake.expr.literals import quoted
    from lancelake.index.text import text_query
    from lancelake.index.text.analyzer import Analyzer
    from lancelake.index.text.parameters import TextParameters
    from lancelake.index.vector.settings import partition_count
    from lancelake.index.vector.vectors import DistanceRange, VectorType, metric_named, normalized
    from lancelake.scan.plan import ScanMeasure
    from lancelake.scan.reduce import (
        Function,
        Kind,
        PartialAggregation,
        TopRows,
        can_sort,
        can_sum,
        sum_type,
    )
    from lancelake.scan.request import (
        DEFAULT_K,
        DISTANCE,
        QUERY_INDEX,
        Nearest,
        Ordering,
        ScanRequest,
        SearchRequest,
        fusion_of,
    )
    from lancelake.scan.row_lookup import MISSING, AllowedRows
    from lancelake.scan.search.batch import (
        ADDRESS,
        FOUND,
        SEGMENT,
        STORED_ID,
        BatchSearch,
        batch_tasks,
        ensure_batch,
        merged_in_order,
    )
    from lancelake.scan.search.prepared import RELEVANCE, PreparedScan, other_rows, words_query
    from lancelake.scan.search.ranked import rows_at
    from lancelake.scan.search.recall import (
        DEFAULT_NPROBES,
        DEFAULT_SAMPLE,
        Recall,
        RecallPoint,
        RecallRequest,
    )
    from lancelake.scan.search.recall import clusters as cluster_hashes
    from lancelake.scan.search.text import SCORE
    from lancelake.scan.stream import run as run_plan
    from lancelake.storage.instrumented import IoAccount, IoCounts, meter_of
    from lancelake.table.blob_lookup import RowBlob, RowsBy
    from lancelake.table.merge.match import KeyLookup
    from lancelake.table.sql_query import Query, SqlRequest
else:
    __getattr__ = load_on_use(__name__)
