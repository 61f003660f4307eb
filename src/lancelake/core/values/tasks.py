"""Values of tasks, which an engine runs on its workers, and what they call."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.data.arrays.batches import struct_of
    from lancelake.data.codec import official
    from lancelake.data.codec.official import preload_codec
    from lancelake.data.column_file import ColumnFile
    from lancelake.data.column_reader import columns_of, prune
    from lancelake.data.fragment_reader import META_TYPE, load_deletions, physical_rows
    from lancelake.engine import port
    from lancelake.engine.port import Engine, Job, JobProgress
    from lancelake.feed.changed_rows import execute as execute_changes
    from lancelake.feed.request import ChangeTask, RowsTask
    from lancelake.scan.execute import count as count_scanned
    from lancelake.scan.execute import execute as execute_scan
    from lancelake.scan.live_rows import live_rows
    from lancelake.scan.plan import ScanPlan, ScanTask, column_widths
    from lancelake.scan.split import SplitLimits, batch_rows, pack, plan_size, split
    from lancelake.scan.task_rows import LiveRows, ScanColumns
    from lancelake.table.columns.backfill import (
        PATIENCE,
        Syncing,
        column_file,
        written,
        written_file,
    )
else:
    __getattr__ = load_on_use(__name__)
