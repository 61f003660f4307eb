"""Options for building a version that a transaction does not record."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.file_version import FileVersion
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import WriterVersion
from lancelake.txn.facts import NOTHING_KNOWN, Facts
from lancelake.txn.mending import NOTHING_TO_MEND, Mending


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Time, writer and settings that a transaction does not record.

    `enable_stable_row_ids` applies to a new table; an existing table keeps its setting.
    `data_version` is the file version of a new table, or of one that is overwritten.
    `fragment_reuse` is the entry added by a compaction that does not remap indices; it is not
    part of the transaction. `facts` were read from files for versions of old writers, `mending`
    are the corrections of a repair. `version` is set only for a detached version.
    """

    timestamp_ns: int
    writer: WriterVersion
    enable_stable_row_ids: bool = False
    data_version: FileVersion | None = None
    has_transaction_file: bool = True
    fragment_reuse: IndexMetadata | None = None
    facts: Facts = NOTHING_KNOWN
    mending: Mending = NOTHING_TO_MEND
    version: Version | None = None
