"""Values of indices: requests, kinds, models of vectors, statistics."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
    from lancelake.engine.port import JobProgress, LocalEngine, Progress
    from lancelake.index import cache as index_cache
    from lancelake.index.kind import DROPPED, BuildInput, BuiltSegment, Parameters
    from lancelake.index.kinds import kind_named
    from lancelake.index.moved_rows import RowMoves, with_inline_moves
    from lancelake.index.order import key_array, keys_of, values_of
    from lancelake.index.scalar.btree.build import WrittenPages
    from lancelake.index.scalar.btree.kind import BTREE
    from lancelake.index.sort import row_schema
    from lancelake.index.stored_segment import StoredIndices
    from lancelake.index.vector.build import PartitionCodes, indexed_vectors
    from lancelake.index.vector.clustering import clustered
    from lancelake.index.vector.coded_rows import (
        GROUPS,
        PARTITION,
        RowPartitions,
        group,
        grouped_batch,
        grouped_rows,
        grouped_rows_of,
        grouped_schema,
    )
    from lancelake.index.vector.codes import ProductCodes
    from lancelake.index.vector.rotated_codes import ROTATED_BITS, new_settings
    from lancelake.index.vector.segment import VectorSegment
    from lancelake.table.index.build import (
        IndexCoverage,
        IndexParameters,
        IndexRun,
        Metric,
        ScalarKind,
        ScalarParameters,
        SegmentBuild,
        TableIndexParameters,
        VectorKind,
        built_here,
    )
    from lancelake.table.index.parallel import (
        BuildRecord,
        BuiltByTasks,
        IndexFragments,
        build_name,
        fragment_groups,
    )
    from lancelake.table.index.refresh import RefreshOptions
    from lancelake.table.index.request import IndexRequest, column_rows
else:
    __getattr__ = load_on_use(__name__)
