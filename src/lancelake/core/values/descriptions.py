"""Values of descriptions: documents for JSON, cells, summaries, history."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.describe.cells import FirstRows, is_bytes, is_number, text_of, to_json, unwrap
    from lancelake.describe.column_profile import ColumnProfile
    from lancelake.describe.column_profile import profile as profile_columns
    from lancelake.describe.documents import (
        Json,
        branch_document,
        details,
        document,
        flag_names,
        optimize_document,
        tag_document,
        transaction_document,
        writer_text,
    )
    from lancelake.describe.log import GrowthPoint, LogEntry, SizeClass, log_document, size_label
    from lancelake.describe.metadata_tables import facts, facts_schema, file_format
    from lancelake.describe.rows import CellPlace, PageRequest, rows_document
    from lancelake.describe.summary import (
        IndexSummary,
        TableSummary,
        summary_document,
        table_command,
    )
    from lancelake.describe.version_graph import MAIN, VersionGraph
else:
    __getattr__ = load_on_use(__name__)
