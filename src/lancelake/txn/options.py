"""What must be told from outside to build a version?"""

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
    """Time, author, and choices that a transaction does not record.

    `enable_stable_row_ids` matters for a new table; one that exists keeps what it has.
    `data_version` is the file version of a new table, or of one that is overwritten.
    `fragment_reuse` is the entry that a compaction which leaves indices alone adds; it is no part
    of the transaction. `facts` is what was read to mend versions of old writers, `mending` what a
    repair sets right. `version` is given only for a version outside the main line.
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
