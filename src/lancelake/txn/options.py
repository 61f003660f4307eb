"""Options for building a version that a transaction does not record."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.file_version import FileVersion
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import WriterVersion
from lancelake.txn.corrections import NO_CORRECTIONS, Corrections
from lancelake.txn.facts import NOTHING_KNOWN, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChoices:
    """Choices for a version that its transaction does not record."""

    enable_stable_row_ids: bool = False
    """For a new table; an existing one keeps what it has."""

    data_version: FileVersion | None = None
    """File version of a new table, or of one that is overwritten."""

    fragment_reuse: IndexMetadata | None = None
    """Where a compaction that defers the remapping of indices records the moved rows."""

    corrections: Corrections = NO_CORRECTIONS
    """Changes that a repair makes to the version before the transaction is applied."""


NO_CHOICES = VersionChoices()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Time, author, and choices that a transaction does not record.

    `facts` is what was read from files to complete versions of old writers. `version` is given
    only for a version outside the main line.
    """

    timestamp_ns: int
    writer: WriterVersion
    choices: VersionChoices = NO_CHOICES
    has_transaction_file: bool = True
    facts: Facts = NOTHING_KNOWN
    version: Version | None = None
