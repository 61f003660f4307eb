"""Check the feature flags and base paths of a version against its contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lancelake.errors import LanceTableError
from lancelake.format.flags import FeatureFlags, unknown_writer_flags
from lancelake.storage.trust import place_named_by
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject

_RECOMPUTED = "Flags are recomputed by every commit; any commit corrects them."
# These flags must be set for readers as well as for writers.
_IN_BOTH_WORDS = (
    FeatureFlags.DELETION_FILES
    | FeatureFlags.STABLE_ROW_IDS
    | FeatureFlags.BASE_PATHS
    | FeatureFlags.MIXED_FILE_VERSIONS
    | FeatureFlags.TAGGED_FRAGMENT_REUSE
)


def check_features(subject: Subject) -> Iterator[Finding]:
    """Compare feature flags with the contents."""
    manifest = subject.snapshot.manifest
    reader, writer = manifest.reader_feature_flags, manifest.writer_feature_flags
    if unknown := unknown_writer_flags(writer):
        yield subject.warning(
            "unknown-writer-flags",
            "the version requires writer features that this release does not support "
            f"(flags {unknown:#x})",
            hint="Reading is safe. Write with the release that created the table.",
        )
    if lopsided := (reader ^ writer) & _IN_BOTH_WORDS:
        yield subject.warning(
            "flag-words-differ",
            f"{_names(lopsided)} must be set for both readers and writers, but is set for "
            "only one of them",
            hint=_RECOMPUTED,
        )
    for flag, content, is_there in _contents(subject):
        is_set = bool((reader | writer) & flag)
        if is_there and not is_set:
            yield subject.warning(
                "flag-missing",
                f"there are {content}, but {_names(flag)} is not set",
                hint=_RECOMPUTED,
            )
        if is_set and not is_there and flag is not FeatureFlags.STABLE_ROW_IDS:
            yield subject.info("flag-idle", f"{_names(flag)} is set, but there are no {content}")


def check_bases(subject: Subject) -> Iterator[Finding]:
    """Check that base paths have unique ids and can be resolved."""
    bases = subject.snapshot.manifest.base_paths
    for base_id, count in Counter(base.id for base in bases).items():
        if count > 1:
            yield subject.error(
                "base-id-twice", f"{count} base paths have the id {base_id}; readers take the first"
            )
    for base in bases:
        try:
            place_named_by(subject.snapshot.location, base.path)
        except LanceTableError as error:
            yield subject.error(
                "base-path-unusable",
                f"base path {base.id} cannot be resolved: {error.problem}",
                path=base.path,
            )


def _contents(subject: Subject) -> Iterator[tuple[FeatureFlags, str, bool]]:
    manifest = subject.snapshot.manifest
    fragments = subject.fragments
    has_deletions = any(f.deletion_file is not None for f in fragments)
    yield FeatureFlags.DELETION_FILES, "deletion files", has_deletions
    has_row_ids = any(f.row_ids is not None for f in fragments)
    yield FeatureFlags.STABLE_ROW_IDS, "row ids", has_row_ids
    yield FeatureFlags.TABLE_CONFIG, "config entries", bool(manifest.config)
    yield FeatureFlags.BASE_PATHS, "base paths", bool(manifest.base_paths)


def _names(flags: int) -> str:
    names = [(flag.name or "").lower() for flag in FeatureFlags if flag & flags]
    return f"flag {' and '.join(names)}"
