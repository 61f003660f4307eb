"""Reader and writer feature flags of a version."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format.flags import FeatureFlags
from lancelake.format.fragment_list import FragmentList
from lancelake.format.manifest import Manifest

_DECIDED_HERE = (
    FeatureFlags.DELETION_FILES
    | FeatureFlags.STABLE_ROW_IDS
    | FeatureFlags.V2_FILES
    | FeatureFlags.TABLE_CONFIG
    | FeatureFlags.BASE_PATHS
    | FeatureFlags.NO_TRANSACTION_FILES
)


def flagged(manifest: Manifest, *, has_transaction_file: bool) -> Manifest:
    """Set both flag words by the content of the version; bits of other features stay."""
    shared = FeatureFlags(0)
    traits = FragmentList.of(manifest.fragments).traits()
    if any(t.has_deletions for t in traits):
        shared |= FeatureFlags.DELETION_FILES
    if manifest.has_stable_row_ids or any(t.has_row_ids for t in traits):
        shared |= FeatureFlags.STABLE_ROW_IDS
    if manifest.base_paths:
        shared |= FeatureFlags.BASE_PATHS
    for_writers = shared
    if manifest.config:
        for_writers |= FeatureFlags.TABLE_CONFIG
    if not has_transaction_file:
        for_writers |= FeatureFlags.NO_TRANSACTION_FILES
    return replace(
        manifest,
        reader_feature_flags=int(shared) | _others(manifest.reader_feature_flags),
        writer_feature_flags=int(for_writers) | _others(manifest.writer_feature_flags),
    )


def _others(flags: int) -> int:
    return flags & ~int(_DECIDED_HERE)
