"""Fragments of a version and their files."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import DataFile, Fragment
from lancelake.table.describe.documents import Json
from lancelake.table.history import summarize
from lancelake.table.version_delta import live_rows


def file_format(file: DataFile) -> str:
    """Return the format version that a data file states, known or not."""
    return f"{file.file_major_version}.{file.file_minor_version}"


def deletion_path(snapshot: Snapshot, fragment: Fragment) -> str | None:
    """Return the path of a fragment's deletion file below the root it is stored in."""
    deletion = fragment.deletion_file
    return None if deletion is None else snapshot.files.deletion_file(fragment.id, deletion).path


def files_document(snapshot: Snapshot) -> Json:
    """Return the fragments of a version with their files, and totals."""
    counts = summarize(snapshot)
    return {
        "uri": snapshot.location.uri,
        "version": snapshot.version,
        "base_paths": {str(b.id): b.path for b in snapshot.manifest.base_paths},
        "fragments": [fragment_document(snapshot, f) for f in snapshot.manifest.fragments],
        "totals": {
            "fragments": counts.total_fragments,
            "data_files": counts.total_data_files,
            "deletion_files": counts.total_deletion_files,
            "data_bytes": counts.total_files_size,
            "rows": live_rows(snapshot),
            "deleted_rows": counts.total_deletion_file_rows,
        },
    }


def fragment_document(snapshot: Snapshot, fragment: Fragment) -> Json:
    """Return a fragment with its files."""
    deletion = fragment.deletion_file
    return {
        "id": fragment.id,
        "physical_rows": fragment.physical_rows,
        "rows": fragment.live_rows,
        "data_files": [
            {
                "path": file.path,
                "size_bytes": file.file_size_bytes,
                "file_version": file_format(file),
                "fields": list(file.fields),
                "column_indices": list(file.column_indices),
                "base_id": file.base_id,
            }
            for file in fragment.files
        ],
        "deletion_file": deletion
        and {
            "path": deletion_path(snapshot, fragment),
            "deleted_rows": deletion.num_deleted_rows,
            "base_id": deletion.base_id,
        },
    }
