"""A line of versions: the main one or a branch, and whether its numbers and names are in order."""

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
    """The manifests below one root; `branch` is None on the main line."""

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
        """Versions of the line, one name for each."""
        attached = (name for name in self.names if not is_detached(name.version))
        ordered = sorted(attached, key=lambda name: name.naming is ManifestNaming.V2)
        by_version = {name.version: name for name in ordered}
        return [by_version[version] for version in sorted(by_version, reverse=True)]

    @property
    def detached(self) -> list[ManifestName]:
        """Versions outside the line."""
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
        """Tell something about the line."""
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
    """All manifests are named by one scheme, and the hint does not lie."""
    schemes = {name.naming for name in line.newest_first}
    if len(schemes) > 1 or (line.detached and ManifestNaming.V1 in schemes):
        yield line.finding(
            Severity.ERROR,
            "naming-mixed",
            "manifests are named by two schemes, so official releases cannot find the latest",
            path=layout.VERSIONS,
            hint="Finish the migration of manifest paths.",
        )
    yield from _hint(line)


def check_numbers(
    line: CheckedLine, kept: Iterable[int], *, cloned_at: int | None
) -> Iterator[Finding]:
    """Versions follow each other; cleanup leaves gaps below the oldest it must keep.

    `kept` are versions that a tag or a branch keeps alive, `cloned_at` is where a clone began.
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
        message = f"{which} gone, as cleanup leaves it"
        return line.finding(Severity.INFO, "versions-removed", message)
    return line.finding(
        Severity.WARNING,
        "versions-missing",
        f"{which} missing between versions that no tag or branch keeps",
        hint="Cleanup does not do that, unless a tag was removed since. "
        "Later versions are complete without it.",
    )


def _hint(line: CheckedLine) -> Iterator[Finding]:
    try:
        content = open_store(line.location).get(layout.VERSION_HINT)
    except ObjectNotFoundError:
        return
    try:
        hinted = int(json.loads(content)["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        message = "the hint at the latest version cannot be read; it is not needed"
        yield line.finding(Severity.INFO, "hint-damaged", message, path=layout.VERSION_HINT)
        return
    newest = max((name.version for name in line.newest_first), default=0)
    if hinted > newest:
        yield line.finding(
            Severity.WARNING,
            "hint-ahead",
            f"the hint names version {hinted}, and the latest is {newest}",
            path=layout.VERSION_HINT,
            hint="Remove the hint; writers make a new one.",
        )
