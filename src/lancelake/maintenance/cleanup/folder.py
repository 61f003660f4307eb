"""Cleanup of a folder that never became a table: files of first writes that were not committed."""

from __future__ import annotations

from lancelake.commit.versions import has_table
from lancelake.engine.port import LocalEngine
from lancelake.errors import InvalidRequestError
from lancelake.format import layout
from lancelake.maintenance.cleanup.plan import (
    CleanupPlan,
    CleanupPolicy,
    Reason,
    count,
    planned,
    unfinished,
)
from lancelake.maintenance.cleanup.run import CleanupReport, from_bytes, removal
from lancelake.maintenance.reachable import FileKind, ListedFile, list_files
from lancelake.storage.local import remove_empty_folders
from lancelake.storage.location import Location


def is_abandoned(location: Location) -> bool:
    """Whether a folder has files of a table, but no version, tag or branch that needs them."""
    return not _has_versions(location) and any(
        file.kind is not FileKind.UNKNOWN for file in _listed(location)
    )


def clean_up_folder(
    location: Location, policy: CleanupPolicy, *, dry_run: bool = False
) -> CleanupReport:
    """Remove the files of a folder that never became a table.

    Only with `delete_unverified`, whatever their age: the folder may be a base path of a table at
    another location, or its first write may be running.
    """
    going_reason = Reason.ABANDONED if policy.delete_unverified else Reason.YOUNG
    judged = [
        planned(file, Reason.UNKNOWN if file.kind is FileKind.UNKNOWN else going_reason)
        for file in _listed(location)
    ]
    going = tuple(file for file in judged if file.reason is Reason.ABANDONED)
    staying = tuple(file for file in judged if file.reason is not Reason.ABANDONED)
    failed: frozenset[str] = frozenset()
    if going and not dry_run:
        # The first write may have been committed since the files were listed.
        if _has_versions(location):
            raise InvalidRequestError("the folder became a table", table=location.uri)
        engine = LocalEngine(parallelism=1)
        paths = [file.path for file in going]
        rate = policy.delete_rate_limit
        job = removal(location, paths, engine, per_second=rate, progress=None)
        failed = from_bytes(engine.run(job))
        remove_empty_folders(location)
    return CleanupReport(
        plan=CleanupPlan(
            location=location, branch=None, read_version=0, going=going, staying=staying
        ),
        totals=count(file for file in going if file.path not in failed),
        failed=failed,
        is_dry_run=dry_run,
    )


def _has_versions(location: Location) -> bool:
    """Whether a version of the main line or a branch may need files of a folder."""
    store = location.store
    folders = (layout.TREE, layout.TAGS, layout.BRANCHES)
    return has_table(location) or any(
        next(iter(store.list(folder)), None) is not None for folder in folders
    )


def _listed(location: Location) -> list[ListedFile]:
    return [*list_files(location, LocalEngine(parallelism=1)), *unfinished(location)]
