"""Operations on a version of a table, by subject: columns, indices, refs, history, upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.core.operation import Facet, LazyModule, on_main, operation

if TYPE_CHECKING:
    from lancelake.describe import documents as values
    from lancelake.describe import log
    from lancelake.describe import metadata_tables as metadata
    from lancelake.describe import rows as pages
    from lancelake.describe import summary as summaries
    from lancelake.feed import delta as moved
    from lancelake.feed import plan as feed
    from lancelake.feed import request as ranges
    from lancelake.maintenance import optimize as optimizing
    from lancelake.maintenance.check import one_version as ordering
    from lancelake.maintenance.cleanup import run as cleanup
    from lancelake.maintenance.compact import compaction_commit as landing
    from lancelake.maintenance.compact import plan as planning
    from lancelake.maintenance.compact import run as compaction
    from lancelake.table import branches, history, statistics, version_diff
    from lancelake.table import open as opening
    from lancelake.table.columns import add, alter, backfill, join, one_fragment
    from lancelake.table.index import build, refresh, request, segments
else:
    add = LazyModule("table.columns.add")
    alter = LazyModule("table.columns.alter")
    backfill = LazyModule("table.columns.backfill")
    branches = LazyModule("table.branches")
    build = LazyModule("table.index.build")
    cleanup = LazyModule("maintenance.cleanup.run")
    compaction = LazyModule("maintenance.compact.run")
    version_diff = LazyModule("table.version_diff")
    feed = LazyModule("feed.plan")
    history = LazyModule("table.history")
    join = LazyModule("table.columns.join")
    landing = LazyModule("maintenance.compact.compaction_commit")
    log = LazyModule("describe.log")
    metadata = LazyModule("describe.metadata_tables")
    moved = LazyModule("feed.delta")
    one_fragment = LazyModule("table.columns.one_fragment")
    opening = LazyModule("table.open")
    optimizing = LazyModule("maintenance.optimize")
    ordering = LazyModule("maintenance.check.one_version")
    pages = LazyModule("describe.rows")
    planning = LazyModule("maintenance.compact.plan")
    ranges = LazyModule("feed.request")
    refresh = LazyModule("table.index.refresh")
    request = LazyModule("table.index.request")
    segments = LazyModule("table.index.segments")
    statistics = LazyModule("table.statistics")
    summaries = LazyModule("describe.summary")
    values = LazyModule("describe.documents")


class Columns(Facet):
    """Operations on the columns of a version."""

    add_computed = operation(lambda: add.add_computed_columns)
    add_mapped = operation(lambda: add.add_mapped_columns)
    add_streamed = operation(lambda: add.add_streamed_columns)
    add_null = operation(lambda: add.add_null_columns)
    add_constant = operation(lambda: add.add_constant_columns)
    join = operation(lambda: join.merge_columns)
    ensure_joinable = operation(lambda: join.ensure_joinable)
    drop = operation(lambda: alter.drop_columns)
    alter = operation(lambda: alter.alter_columns)
    reorder = operation(lambda: alter.reorder_columns)
    add_null_members = operation(lambda: alter.add_null_members)
    project = operation(lambda: alter.project)
    ensure_structs_stay = operation(lambda: alter.ensure_structs_stay)
    ensure_no_nulls = operation(lambda: alter.ensure_no_nulls)
    widen = operation(lambda: alter.widened)
    widened_schema = operation(lambda: alter.widened_schema)

    # Work that the caller distributes or commits
    plan_added = operation(lambda: add.widened)
    plan_computed = operation(lambda: add.computed_plan)
    plan_mapped = operation(lambda: add.mapped_plan)
    publish = operation(lambda: backfill.publish_columns)

    # One fragment, committed by the caller
    compute_in = operation(lambda: one_fragment.compute_columns)
    map_in = operation(lambda: one_fragment.map_columns)
    stream_in = operation(lambda: one_fragment.stream_columns)
    join_in = operation(lambda: one_fragment.join_columns)
    update_in = operation(lambda: one_fragment.update_columns)


class Indices(Facet):
    """Operations on the indices of a version."""

    create = operation(lambda: build.create_index)
    refresh = operation(lambda: refresh.refresh_indices)
    plan_refresh = operation(lambda: refresh.planned)
    drop = operation(lambda: build.drop_index)
    prewarm = operation(lambda: build.prewarm)
    coverage = operation(lambda: build.coverage_of)
    coverage_named = operation(lambda: build.coverage_named)
    current_coverage = operation(lambda: build.current_coverage)
    statistics = operation(lambda: build.segment_statistics)
    entries_named = operation(lambda: request.entries_named)
    train = operation(lambda: build.trained_parameters)

    # Segments that the caller builds apart and commits together
    chosen_fragments = operation(lambda: request.chosen_fragments)
    build_segment = operation(lambda: build.build_segment)
    build_part = operation(lambda: segments.build_part)
    merge_parts = operation(lambda: segments.merge_parts)
    merge_segments = operation(lambda: segments.merge_segments)
    commit_segments = operation(lambda: segments.commit_segments)
    encode_rows = operation(lambda: segments.encoded_rows)
    write_segment = operation(lambda: segments.segment_of)


class Refs(Facet):
    """Operations on the refs of a table."""

    tags = on_main(lambda: opening.list_tags)
    tag = on_main(lambda: opening.load_tag)
    create_tag = operation(lambda: branches.create_tag)
    move_tag = operation(lambda: branches.move_tag)
    annotate_tag = operation(lambda: branches.annotate_tag)
    remove_tag = operation(lambda: branches.remove_tag)

    branches = on_main(lambda: opening.list_branches)
    branch = on_main(lambda: opening.load_branch)
    create_branch = operation(lambda: branches.create_branch)
    annotate_branch = on_main(lambda: branches.annotate_branch)
    remove_branch = on_main(lambda: branches.remove_branch)

    clone_shallow = operation(lambda: branches.shallow_clone)
    clone_deep = operation(lambda: branches.deep_clone)
    add_bases = operation(lambda: branches.add_bases)


class History(Facet):
    """Operations on the versions of a table."""

    summarize = operation(lambda: history.summarize)
    recorded_rows = operation(lambda: history.version_rows)
    facts = operation(lambda: history.facts_of)
    diff_to = operation(lambda: version_diff.diff)

    # Changes of rows
    changes = operation(lambda: feed.plan_changes)
    range = operation(lambda: ranges.version_range)
    inserted_rows = operation(lambda: moved.inserted_rows)
    updated_rows = operation(lambda: moved.updated_rows)
    deleted_row_ids = operation(lambda: moved.deleted_row_ids)


class Maintenance(Facet):
    """Operations that keep a table fast and small."""

    compact = operation(lambda: compaction.compact)
    plan_compaction = operation(lambda: planning.plan)
    compaction_settings = operation(lambda: planning.table_settings)
    clustered_settings = operation(lambda: planning.clustered)
    commit_compaction = operation(lambda: landing.land)
    clean_up = operation(lambda: cleanup.clean_up)
    optimize = operation(lambda: optimizing.optimize)

    ensure_in_order = operation(lambda: ordering.ensure_in_order)

    # Counts of files and bytes
    dataset_counts = operation(lambda: statistics.dataset_counts)
    column_bytes = operation(lambda: statistics.column_bytes)


class Descriptions(Facet):
    """Descriptions of a version."""

    summary = operation(lambda: summaries.describe)
    summary_document = operation(lambda: summaries.summary_document)
    manifest = operation(lambda: values.manifest_document)
    schema = operation(lambda: values.schema_document)
    files = operation(lambda: metadata.files_document)

    versions = operation(lambda: log.version_names)
    entries = operation(lambda: log.log_entries)
    commit = operation(lambda: log.commit_document)
    diff = operation(lambda: log.diff_document)
    schema_history = operation(lambda: log.schema_history)
    size_classes = operation(lambda: log.size_classes)
    growth = operation(lambda: log.growth)

    rows = operation(lambda: pages.row_page)
    count_matching = operation(lambda: pages.count_matching)
    cell_image = operation(lambda: pages.cell_image)
    cell_text = operation(lambda: pages.cell_text)
    fragments = operation(lambda: metadata.fragment_map)
    fragment = operation(lambda: metadata.one_fragment)
    searchable_columns = operation(lambda: pages.searchable_columns)
