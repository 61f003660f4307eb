"""Check of a table with its MemWAL: regions, generations and WAL entries, reported as findings."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from lancelake.commit.snapshot import Latest, OnBranch, Snapshot, list_branches, open_snapshot
from lancelake.engine.port import Engine
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.maintenance.check.finding import Finding, OnProgress, Severity
from lancelake.maintenance.check.run import Versions, check
from lancelake.memwal.generations import key_values, open_generation, read_generation, replayed
from lancelake.memwal.region import RegionFiles, details_of, has_mem_wal, region_files
from lancelake.memwal.shape import RowShape
from lancelake.memwal.view import unmerged_generations
from lancelake.storage.location import Location


def check_table(
    location: Location,
    *,
    data: bool = False,
    versions: Versions = "latest",
    on_progress: OnProgress | None = None,
    engine: Engine | None = None,
) -> Iterator[Finding]:
    """Yield findings about a table and its branches, and then about the regions of each.

    The arguments are those of `table.check`.
    """
    findings = check(location, data=data, versions=versions, on_progress=on_progress, engine=engine)
    return _with_regions(findings, location, data=data)


def _with_regions(
    findings: Iterator[Finding], location: Location, *, data: bool
) -> Iterator[Finding]:
    yield from findings
    for branch in (None, *_branches(location)):
        try:
            reference = Latest() if branch is None else OnBranch(branch)
            base = open_snapshot(location, reference)
        except StorageUnavailableError:
            raise
        except LanceTableError:
            continue  # reported above
        yield from check_regions(base, data=data)


def _branches(location: Location) -> tuple[str, ...]:
    try:
        return tuple(list_branches(location))
    except StorageUnavailableError:
        raise
    except LanceTableError:
        return ()


def check_regions(base: Snapshot, *, data: bool = False) -> Iterator[Finding]:
    """Yield findings about the regions of a version; with `data`, all their rows are read."""
    has_wal = has_mem_wal(base)
    for files in tuple(region_files(base.location)):
        try:
            yield from _region(base, files, data=data) if has_wal else _left(base, files)
        except StorageUnavailableError:
            raise
        except LanceTableError as error:
            yield _finding(base, files.region, "mem-wal-region", error.problem)


def _left(base: Snapshot, files: RegionFiles) -> Iterator[Finding]:
    manifest, last = files.latest(), files.last_position()
    if manifest is None or manifest.generations or last > manifest.replay_after:
        yield _finding(
            base,
            files.region,
            "mem-wal-left",
            f"region {files.region} has rows, but the table has no MemWAL",
            severity=Severity.WARNING,
            hint="No reader uses them. After an overwrite, `lancelake wal gc` retires the region.",
        )


def _region(base: Snapshot, files: RegionFiles, *, data: bool) -> Iterator[Finding]:
    shape, region = RowShape.of(base), files.region
    manifest = files.latest()
    if manifest is None:
        yield _finding(base, region, "mem-wal-region", f"region {region} has no manifest")
        return
    merged = details_of(base).progress().get(region, 0)
    for generation in unmerged_generations(manifest, merged):
        try:
            yield from _generation(base, shape, region, generation, data=data)
        except StorageUnavailableError:
            raise
        except LanceTableError as error:
            yield _finding(base, region, "mem-wal-generation", error.problem, generation.path)
    yield from _tail(base, shape, files, manifest)


def _generation(
    base: Snapshot, shape: RowShape, region: uuid.UUID, generation: Generation, *, data: bool
) -> Iterator[Finding]:
    opened = open_generation(base.location, region, generation)
    store = opened.location.store
    for path in (wal_files.BLOOM_FILE, f"{wal_files.KEY_INDEX}/page_lookup.lance"):
        if not store.exists(path):
            yield _finding(
                base,
                region,
                "mem-wal-sidecar",
                f"generation {generation.generation} of region {region} has no {path}",
                f"{generation.path}/{path}",
                severity=Severity.WARNING,
                hint="Official releases of Lance 14 cannot scan it; a merge is not affected.",
            )
    if data:
        keys = [key for batch in read_generation(opened, shape) for key in key_values(shape, batch)]
        if len(keys) != len(set(keys)):
            message = f"generation {generation.generation} of region {region} repeats keys"
            yield _finding(base, region, "mem-wal-generation", message, generation.path)


def _tail(
    base: Snapshot, shape: RowShape, files: RegionFiles, manifest: RegionManifest
) -> Iterator[Finding]:
    positions = [p for p in files.positions() if p > manifest.replay_after]
    expected = range(manifest.replay_after + 1, max(positions, default=0) + 1)
    missing = sorted({*expected} - {*positions})
    if missing:
        message = (
            f"the WAL of region {files.region} has entries up to position {positions[-1]}, "
            f"but none at {missing[0]}"
        )
        yield _finding(base, files.region, "mem-wal-hole", message)
        return
    if positions:
        for _ in replayed(files, manifest, shape, last=positions[-1]):
            pass


def _finding(
    base: Snapshot,
    region: uuid.UUID,
    code: str,
    message: str,
    path: str = "",
    *,
    severity: Severity = Severity.ERROR,
    hint: str | None = None,
) -> Finding:
    folder = wal_files.region_dir(region)
    return Finding(
        severity=severity,
        code=code,
        message=message,
        version=base.version,
        branch=base.branch,
        path=f"{folder}/{path}" if path else folder,
        hint=hint,
    )
