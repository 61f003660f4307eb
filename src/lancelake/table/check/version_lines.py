"""Check the numbers and names of the manifests of a version line (main or a branch)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancelake.errors import ObjectNotFoundError
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.names import ManifestName, ManifestNaming, parse_manifest_name
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.check.finding import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLine:
    """The manifests below one root; `branch` is None for the main line."""

    location: Location
    branch: str | None
    names: tuple[ManifestName, ...]

    @staticmethod
    def load(location: Location, branch: str | None) -> CheckedLine:
        """List the manifests."""
        parsed = (parse_manifest_name(n) for n in open_store(location).list_names(layout.VERSIONS))
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
            severity=severity,
            code=code,
            message=message,
            version=version,
            branch=self.branch,
            path=path,
            hint=hint,
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
        content = open_store(line.location).get(layout.VERSION_HINT)
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
