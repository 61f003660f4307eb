"""Check of branches, tags and the lists of versions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lancelake.errors import LanceTableError, ObjectNotFoundError, StorageUnavailableError
from lancelake.format import layout
from lancelake.format import refs as documents
from lancelake.format.ids import Version
from lancelake.format.layout import (
    ManifestName,
    ManifestNaming,
    ensure_branch_name,
    ensure_tag_name,
    is_detached,
    parse_manifest_name,
)
from lancelake.format.refs import Branch, Tag
from lancelake.maintenance.check.finding import Finding, Severity
from lancelake.maintenance.reachable import FOLDERS, KnownRefs
from lancelake.storage.location import Location
from lancelake.threads import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLine:
    """The manifests below one root; `branch` is None for the main line."""

    location: Location
    branch: str | None
    names: tuple[ManifestName, ...]

    @staticmethod
    def load(location: Location, branch: str | None) -> CheckedLine:
        """List the manifests."""
        parsed = (parse_manifest_name(n) for n in location.store.list_names(layout.VERSIONS))
        names = tuple(name for name in parsed if name is not None)
        return CheckedLine(location=location, branch=branch, names=names)

    @property
    def newest_first(self) -> list[ManifestName]:
        """Versions of the line, one name each."""
        attached = (name for name in self.names if not is_detached(name.version))
        ordered = sorted(attached, key=lambda name: name.naming is ManifestNaming.V2)
        by_version = {name.version: name for name in ordered}
        return [by_version[version] for version in sorted(by_version, reverse=True)]

    @property
    def detached(self) -> list[ManifestName]:
        """Detached versions."""
        return [name for name in self.names if is_detached(name.version)]

    def finding(
        self,
        severity: Severity,
        code: str,
        message: str,
        *,
        version: int | None = None,
        path: str | None = None,
        hint: str | None = None,
    ) -> Finding:
        """Return a finding about the line."""
        return Finding(
            severity, code, message, version=version, branch=self.branch, path=path, hint=hint
        )


def check_names(line: CheckedLine) -> Iterator[Finding]:
    """Check that all manifests follow one naming scheme, and that the version hint is correct."""
    schemes = {name.naming for name in line.newest_first}
    if len(schemes) > 1 or (line.detached and ManifestNaming.V1 in schemes):
        yield line.finding(
            Severity.ERROR,
            "naming-mixed",
            "manifests follow two naming schemes, so official releases cannot find the "
            "latest version",
            path=layout.VERSIONS,
            hint="Finish the migration of manifest paths.",
        )
    yield from _hint(line)


def check_numbers(
    line: CheckedLine, kept: Iterable[int], *, cloned_at: int | None
) -> Iterator[Finding]:
    """Check that version numbers are consecutive; cleanup leaves gaps below retained versions.

    `kept` are versions retained by a tag or a branch, `cloned_at` is the version that a clone
    started with.
    """
    present = sorted(name.version for name in line.newest_first)
    first = 1 if cloned_at is None else cloned_at
    if present and present[0] > first:
        yield _gap(line, first, present[0] - 1, is_explained=True)
    held = set(kept)
    is_explained = True
    for before, after in itertools.pairwise(present):
        is_explained = is_explained and (before in held or before == cloned_at)
        if after > before + 1:
            yield _gap(line, before + 1, after - 1, is_explained=is_explained)


def _gap(line: CheckedLine, first: int, last: int, *, is_explained: bool) -> Finding:
    which = f"version {first} is" if first == last else f"versions {first} to {last} are"
    if is_explained:
        message = f"{which} gone, as expected after a cleanup"
        return line.finding(Severity.INFO, "versions-removed", message)
    return line.finding(
        Severity.WARNING,
        "versions-missing",
        f"{which} missing between versions that no tag or branch retains",
        hint="A cleanup does not do that, unless a tag was deleted since. Later versions are "
        "complete without them.",
    )


def _hint(line: CheckedLine) -> Iterator[Finding]:
    try:
        content = line.location.store.get(layout.VERSION_HINT)
    except ObjectNotFoundError:
        return
    try:
        hinted = int(json.loads(content)["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        message = "the version hint cannot be read; it is optional"
        yield line.finding(Severity.INFO, "hint-damaged", message, path=layout.VERSION_HINT)
        return
    newest = max((name.version for name in line.newest_first), default=0)
    if hinted > newest:
        yield line.finding(
            Severity.WARNING,
            "hint-ahead",
            f"the version hint is {hinted}, but the latest version is {newest}",
            path=layout.VERSION_HINT,
            hint="Delete the hint; writers create a new one.",
        )


Document = TypeVar("Document", Tag, Branch)

_MAIN = "main"
_THREADS = 8
_SUFFIX = ".json"
_TABLE_FOLDERS = frozenset({*FOLDERS, layout.VERSIONS, layout.TREE, layout.TAGS.partition("/")[0]})
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRefs:
    """Readable tags and branches, and findings about the others."""

    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]
    damage: tuple[Finding, ...]

    @staticmethod
    def load(main: Location) -> CheckedRefs:
        """Read all tag and branch documents."""
        damage: list[Finding] = []
        tags = _load(main, layout.TAGS, ensure_tag_name, documents.decode_tag, damage)
        branches = _load(main, layout.BRANCHES, ensure_branch_name, documents.decode_branch, damage)
        return CheckedRefs(tags=tags, branches=branches, damage=tuple(damage))

    def kept(self, branch: str | None) -> frozenset[int]:
        """Versions of a line that a tag or a fork retains."""
        return KnownRefs(tags=self.tags, branches=self.branches).held(branch)


def check_refs(refs: CheckedRefs, lines: Mapping[str | None, CheckedLine]) -> Iterator[Finding]:
    """Compare the documents with the existing versions; `lines` by name, None for the main line."""
    yield from refs.damage
    versions = {name: {n.version: n for n in line.names} for name, line in lines.items()}
    for name, tag in refs.tags.items():
        line = versions.get(_line(tag.branch), {})
        if tag.version not in line:
            yield Finding(
                Severity.ERROR,
                "tag-target-missing",
                f"tag {name!r} refers to version {tag.version} of {tag.branch or _MAIN}, "
                "which does not exist",
                path=layout.tag(name),
                hint="Delete the tag, or move it to another version.",
            )
        elif tag.manifest_size:
            manifest = layout.manifest(line[tag.version].name)
            yield from _tag_size(name, tag, lines[_line(tag.branch)].location, manifest)
    for name, branch in refs.branches.items():
        yield from _branch(name, branch, versions)


def check_zombies(main: Location, refs: CheckedRefs) -> Iterator[Finding]:
    """Find branch folders without a branch document."""
    damaged = {finding.path for finding in refs.damage}
    for name in _roots(main, layout.TREE, depth=0):
        if name not in refs.branches and layout.branch(name) not in damaged:
            yield Finding(
                Severity.WARNING,
                "branch-zombie",
                f"{layout.branch_root(name)} contains versions, but branch {name!r} does not exist",
                path=layout.branch_root(name),
                hint="Creating or deleting the branch was interrupted; delete it with force.",
            )


def _load(
    main: Location,
    folder: str,
    ensure_name: Callable[[str], None],
    decode: Callable[[bytes], Document],
    damage: list[Finding],
) -> dict[str, Document]:
    store = main.store

    def read(file: str) -> Document | LanceTableError:
        try:
            ensure_name(layout.branch_name(file))
            return decode(store.get(f"{folder}/{file}"))
        except StorageUnavailableError:
            raise
        except LanceTableError as error:
            return error

    found: dict[str, Document] = {}
    files = sorted(n for n in store.list_names(folder) if n.endswith(_SUFFIX))
    with Pool(_THREADS) as pool:
        for file, document in zip(files, pool.map(read, files), strict=True):
            if isinstance(document, ObjectNotFoundError):
                # It was removed after the listing.
                continue
            if isinstance(document, LanceTableError):
                damage.append(_damaged(f"{folder}/{file}", document))
            else:
                found[layout.branch_name(file)] = document
    return found


def _damaged(path: str, error: LanceTableError) -> Finding:
    hint = "Write the document again, or delete it."
    return Finding(Severity.ERROR, "ref-damaged", error.problem, path=path, hint=hint)


def _tag_size(name: str, tag: Tag, location: Location, manifest: str) -> Iterator[Finding]:
    size = location.store.head(manifest).size_bytes
    if size != tag.manifest_size:
        yield Finding(
            Severity.WARNING,
            "tag-manifest-size",
            f"tag {name!r} records a manifest size of {tag.manifest_size} bytes, but the "
            f"manifest has {size}",
            path=layout.tag(name),
            hint="Delete and recreate the tag.",
        )


def _branch(
    name: str, branch: Branch, versions: Mapping[str | None, Mapping[Version, ManifestName]]
) -> Iterator[Finding]:
    if not versions.get(name):
        yield Finding(
            Severity.ERROR,
            "branch-root-missing",
            f"branch {name!r} has no versions",
            path=layout.branch_root(name),
            hint="Delete the branch.",
        )
    parent = _line(branch.parent_branch)
    if parent not in versions:
        yield Finding(
            Severity.ERROR,
            "branch-parent-missing",
            f"branch {name!r} forked from branch {parent!r}, which does not exist",
            path=layout.branch(name),
        )
    elif branch.parent_version not in versions[parent]:
        yield Finding(
            Severity.WARNING,
            "branch-fork-missing",
            f"branch {name!r} was forked from version {branch.parent_version} of "
            f"{branch.parent_branch or _MAIN}, which no longer exists; its files may be "
            "removed as well",
            path=layout.branch(name),
        )


def _roots(main: Location, folder: str, *, depth: int) -> Iterator[str]:
    """Yield the names of nested folders that contain versions."""
    store = main.store
    inside = set(store.list_dirs(folder))
    if layout.VERSIONS in inside and folder != layout.TREE:
        yield folder.removeprefix(f"{layout.TREE}/")
    if depth < _MAX_DEPTH:
        for name in sorted(inside - _TABLE_FOLDERS):
            yield from _roots(main, f"{folder}/{name}", depth=depth + 1)


def _line(branch: str | None) -> str | None:
    return None if branch in (None, _MAIN) else branch
