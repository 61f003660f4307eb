"""Settings of a compaction of one table, whose clustering columns order the rewritten rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import join_list, split_list, split_path
from lancelake.scan.request import Ordering
from lancelake.table.compact.options import CompactionMode, CompactionSettings, from_config
from lancelake.table.compact.plan import plan

CLUSTER_BY = "lancelake.cluster_by"
"""Config key of the clustering columns: their paths, separated by commas."""


def cluster_columns(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of the clustering columns; empty without any."""
    return split_list(config.get(CLUSTER_BY, ""))


def cluster_text(paths: Sequence[Sequence[str]]) -> str | None:
    """Return the config value for these columns; None if there are none."""
    return join_list(paths) or None


def cluster_paths(config: Mapping[str, str]) -> list[list[str]]:
    """Return the clustering columns as lists of names."""
    return [list(split_path(path)) for path in cluster_columns(config)]


def ensure_not_clustering(base: Snapshot, paths: Iterable[str]) -> None:
    """Refuse to drop or rename a clustering column, or a struct that contains one."""
    changed = [split_path(path) for path in paths]
    for column in cluster_columns(base.manifest.config):
        names = split_path(column)
        if any(names[: len(path)] == path for path in changed):
            raise InvalidRequestError(
                f"{column} is a clustering column of the table",
                table=base.location.uri,
                version=base.version,
                column=column,
                action="Change the clustering columns first: ALTER TABLE ... CLUSTER BY NONE.",
            )


def table_settings(base: Snapshot, **given: Any) -> CompactionSettings:  # fields of the settings
    """Return given settings, completed by the table's config; None counts as not given."""
    chosen = {name: value for name, value in given.items() if value is not None}
    return clustered(base, replace(from_config(base.manifest.config), **chosen))


def clustered(base: Snapshot, settings: CompactionSettings) -> CompactionSettings:
    """Order the rows of the fragments that a compaction rewrites by the clustering columns.

    One column is sorted, several are clustered along a Z-order curve. Fragments that are not worth
    rewriting are left unchanged, so that the cost depends on the new rows, not on the table. Pages
    that are copied keep their rows in order.
    """
    columns = cluster_columns(base.manifest.config)
    is_copied = settings.compaction_mode is CompactionMode.FORCE_BINARY_COPY
    if not columns or settings.orders_rows or is_copied:
        return settings
    chosen = {fragment.id for group in plan(base, settings).groups for fragment in group.fragments}
    others = frozenset(f.id for f in base.manifest.fragments if f.id not in chosen)
    excluded = settings.excluded_fragment_ids | others
    if len(columns) == 1:
        keys = (Ordering(column=columns[0]),)
        return replace(settings, excluded_fragment_ids=excluded, sort_by=keys)
    return replace(settings, excluded_fragment_ids=excluded, z_order_by=columns)
