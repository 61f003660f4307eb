"""Files that a cleanup must keep, derived from the bytes of manifests and refs alone."""

from __future__ import annotations

import json
import re
import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from lancelake.proto import table_pb2

DETACHED = 1 << 63
LARGEST = (1 << 64) - 1
WEEK_NS = 7 * 86_400 * 10**9
SUFFIXES = {0: "arrow", 1: "bin"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A policy in plain numbers."""

    before_ns: int | None = None
    retain: int | None = None
    versions: frozenset[int] | None = None
    unverified: bool = False
    now_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A manifest: where it lies, its number and time, and the files it names."""

    path: Path
    number: int
    time_ns: int
    files: frozenset[Path]
    folders: frozenset[Path]

    def needs(self, path: Path) -> bool:
        """Whether a file is named, or lies in a folder that is."""
        return path in self.files or not self.folders.isdisjoint(path.parents)


def versions_below(top: Path) -> list[Version]:
    """Read every manifest in a folder and below."""
    return [_version(path) for path in sorted(top.rglob("_versions/*.manifest"))]


def own_versions(root: Path) -> list[Version]:
    """Read the manifests of one line."""
    return [v for v in versions_below(root) if v.path.parent == root / "_versions"]


def dropped(
    top: Path, root: Path, branch: str | None, ask: Ask, gone: Iterable[Version] = ()
) -> set[Path]:
    """Return the manifests that a policy removes from the line at `root` of the table at `top`.

    `gone` are versions of the line that were removed already.
    """
    own = list({v.path: v for v in (*own_versions(root), *gone)}.values())
    attached = sorted(v.number for v in own if v.number < DETACHED)
    held = set(_held(top, branch))
    kept = attached[-(ask.retain or 1) :]
    found = set()
    for version in own:
        is_named = ask.versions is not None and version.number in ask.versions
        is_allowed = is_named if version.number >= DETACHED else ask.versions is None or is_named
        is_early = ask.before_ns is None or version.time_ns < ask.before_ns
        if is_allowed and is_early and version.number not in {*kept, *held}:
            found.add(version.path)
    return found


def left(top: Path, root: Path, branch: str | None, ask: Ask) -> set[Path]:
    """Return the files below `top` that must be there after the line at `root` was cleaned."""
    gone = dropped(top, root, branch, ask)
    every = versions_below(top)
    staying = [version for version in every if version.path not in gone]
    going = [version for version in every if version.path in gone]
    return {
        path
        for path in top.rglob("*")
        if path.is_file()
        and path not in gone
        and not (
            _is_removable(path.relative_to(root).as_posix() if root in path.parents else "")
            and not any(version.needs(path) for version in staying)
            and (
                any(version.needs(path) for version in going)
                or ask.unverified
                or path.stat().st_mtime_ns < ask.now_ns - WEEK_NS
            )
        )
    }


def missing(top: Path) -> list[Path]:
    """Return files that a version names and that are not there."""
    return [f for version in versions_below(top) for f in version.files if not f.is_file()]


def _is_removable(path: str) -> bool:
    return any(
        re.fullmatch(pattern, path)
        for pattern in (
            r"data/[^/]+\.lance",
            r"data/[^/]+/[01]{32}\.blob",
            r"_deletions/\d+-\d+-\d+\.(arrow|bin)",
            r"_indices/[0-9a-f-]{36}/.+",
            r"_transactions/\d+-[^/]+\.txn",
            r"_versions/\.tmp[^/]*",
        )
    )


def _held(top: Path, branch: str | None) -> Iterator[int]:
    for path in top.glob("_refs/tags/*.json"):
        tag = json.loads(path.read_bytes())
        if (tag["branch"] or None) == branch:
            yield tag["version"]
    for path in top.glob("_refs/branches/*.json"):
        document = json.loads(path.read_bytes())
        if (document["parentBranch"] or None) == branch:
            yield document["parentVersion"]
        assert unquote(path.stem)


def _version(path: Path) -> Version:
    data = path.read_bytes()
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    (length,) = struct.unpack_from("<I", data, position)
    manifest = table_pb2.Manifest.FromString(data[position + 4 : position + 4 + length])
    root = path.parent.parent
    bases = {base.id: base for base in manifest.base_paths}
    files: set[Path] = set()
    folders: set[Path] = set()

    def place(entry: object, folder: str) -> Path:
        if not entry.HasField("base_id"):  # type: ignore[attr-defined]  # messages of three kinds
            return root / folder
        base = bases[entry.base_id]  # type: ignore[attr-defined]  # likewise
        return Path(base.path) / folder if base.is_dataset_root else Path(base.path)

    for fragment in manifest.fragments:
        for file in fragment.files:
            found = place(file, "data") / file.path
            files.add(found)
            folders.add(found.with_suffix(""))
        if fragment.HasField("deletion_file"):
            gone = fragment.deletion_file
            name = f"{fragment.id}-{gone.read_version}-{gone.id}.{SUFFIXES[gone.file_type]}"
            files.add(place(gone, "_deletions") / name)
    if manifest.HasField("index_section"):
        start = manifest.index_section
        (size,) = struct.unpack_from("<I", data, start)
        section = table_pb2.IndexSection.FromString(data[start + 4 : start + 4 + size])
        for index in section.indices:
            folders.add(place(index, "_indices") / str(uuid.UUID(bytes=index.uuid.uuid)))
    if manifest.transaction_file:
        files.add(root / "_transactions" / manifest.transaction_file)
    time_ns = manifest.timestamp.seconds * 10**9 + manifest.timestamp.nanos
    return Version(
        path=path,
        number=manifest.version,
        time_ns=time_ns,
        files=frozenset(files),
        folders=frozenset(folders),
    )
