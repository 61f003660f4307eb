"""A version as scans take it."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.data.table_files import FileAt, TableFiles
from lancelake.format.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSource:
    """The version to read, and where its files lie."""

    files: TableFiles
    manifest_at: FileAt
    manifest: Manifest
