"""Values of writes and merges: options, clauses, rows of a caller."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.commit.candidate import tally
    from lancelake.commit.handler import CommitLock
    from lancelake.data.arrays.batches import InvalidText, chosen_text
    from lancelake.data.column_file import (
        MAX_BYTES_PER_FILE,
        MAX_ROWS_PER_FILE,
        FileWatch,
        PageSizes,
        Progress,
        WriteCounts,
    )
    from lancelake.format.fragment import DEFAULT_VERSION, FileVersion, version_from_name
    from lancelake.format.layout import ManifestNaming
    from lancelake.table.columns.add import BatchFunction, Checkpoint, as_batch, source_key
    from lancelake.table.columns.alter import ColumnChange
    from lancelake.table.columns.join import JoinKey
    from lancelake.table.ingest import objects
    from lancelake.table.ingest.files import (
        FOLDER_SUFFIXES,
        SUFFIXES,
        SourceFormat,
        Sources,
        partition_columns,
        sources_of,
    )
    from lancelake.table.ingest.objects import to_reader
    from lancelake.table.ingest.places import DELTA_LOG, find_sources
    from lancelake.table.merge.clauses import (
        Clauses,
        DeleteRow,
        Duplicates,
        Fail,
        InsertAll,
        InsertValues,
        Matched,
        MergeSpec,
        NotMatched,
        NotMatchedBySource,
        UpdateAll,
        UpdateSet,
    )
    from lancelake.table.merge.source import key_fields, read_source
    from lancelake.table.operation_record import RowCounts, declare_engine
    from lancelake.table.publish import (
        DEFAULT,
        DEFAULT_CHOICES,
        DEFAULT_INTERVAL,
        DEFAULT_OLDER_THAN_S,
        INTERVAL,
        OLDER_THAN,
        CommitChoices,
        OnceOnly,
        Retries,
        auto_cleanup_config,
        ensure_row_ids_stay,
        landed,
        new_transaction,
        retry_on_newest,
        with_message,
    )
    from lancelake.table.row_steps import RowsByFragment, RowsChanged, staged
    from lancelake.table.rows import Rewriting
    from lancelake.table.write import (
        OptionNames,
        RowsByFilter,
        RowsToReplace,
        SchemaMode,
        TargetBases,
        WriteMode,
        WriteOptions,
        WritePlan,
    )
    from lancelake.txn.conflict_matrix import Cell, PairOutcome, matrix
else:
    __getattr__ = load_on_use(__name__)
