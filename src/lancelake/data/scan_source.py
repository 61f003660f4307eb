"""Source of a scan: one version of a table."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.data.table_files import FileAt, TableFiles
from lancelake.format.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSource:
    """The version to read, and the location of its files."""

    files: TableFiles
    manifest_at: FileAt
    manifest: Manifest
