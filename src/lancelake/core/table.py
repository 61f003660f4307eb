"""Table: the operations on one version of a table, the door that every face goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.commit.snapshot import Reference, open_snapshot
from lancelake.core.operation import Facet, facet, late_modules, on_main, operation

if TYPE_CHECKING:
    from lancelake.commit import snapshot as lines
    from lancelake.data import fragment_reader
    from lancelake.describe import documents as values
    from lancelake.describe import log
    from lancelake.describe import metadata_tables as metadata
    from lancelake.describe import rows as pages
    from lancelake.describe import summary as summaries
    from lancelake.feed import plan as feed
    from lancelake.feed import request as ranges
    from lancelake.format.fragment import Fragment
    from lancelake.maintenance import optimize as optimizing
    from lancelake.maintenance.check import one_version as ordering
    from lancelake.maintenance.cleanup import run as cleanup
    from lancelake.maintenance.compact import plan as planning
    from lancelake.maintenance.compact import run as compaction
    from lancelake.memwal import collect, region, setup
    from lancelake.memwal import merge as merging
    from lancelake.memwal import status as statuses
    from lancelake.memwal import table_writer as writers
    from lancelake.memwal import view as views
    from lancelake.scan import live_rows, planner, row_lookup, stream
    from lancelake.scan.search import prepared, recall
    from lancelake.table import (
        blob_lookup,
        branches,
        config,
        history,
        publish,
        row_steps,
        rows,
        sql_query,
        statistics,
        write,
    )
    from lancelake.table.columns import add, alter, backfill, join, one_fragment
    from lancelake.table.index import build, refresh, request, segments
    from lancelake.table.merge import clauses, run
else:
    globals().update(late_modules(__name__))


class Wal(Facet):
    """Operations on the MemWAL of a table."""

    set_up = operation(lambda: setup.set_up)
    initialize = operation(lambda: setup.initialize)
    details = operation(lambda: region.details_of)
    drop = operation(lambda: setup.drop_mem_wal)
    status = operation(lambda: statuses.wal_status)
    read_entries = operation(lambda: statuses.read_entries)

    writer = operation(lambda: writers.TableWriter)
    write_once = operation(lambda: writers.write_once)
    flush_tails = operation(lambda: setup.flush_tails)
    seal = operation(lambda: setup.seal_regions)
    merge = operation(lambda: merging.merge_generations)
    merge_in_background = operation(lambda: merging.BackgroundMerger)
    collect_garbage = operation(lambda: collect.collect_garbage)

    view = operation(lambda: views.open_view)
    pin = operation(lambda: views.pin)


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

    tags = on_main(lambda: lines.list_tags)
    tag = on_main(lambda: lines.load_tag)
    create_tag = operation(lambda: branches.create_tag)
    move_tag = operation(lambda: branches.move_tag)
    annotate_tag = operation(lambda: branches.annotate_tag)
    remove_tag = operation(lambda: branches.remove_tag)

    branches = on_main(lambda: lines.list_branches)
    branch = on_main(lambda: lines.load_branch)
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
    diff_to = operation(lambda: history.diff)

    # Changes of rows
    changes = operation(lambda: feed.plan_changes)
    range = operation(lambda: ranges.version_range)
    inserted_rows = operation(lambda: feed.inserted_rows)
    updated_rows = operation(lambda: feed.updated_rows)
    deleted_row_ids = operation(lambda: feed.deleted_row_ids)


class Maintenance(Facet):
    """Operations that keep a table fast and small."""

    compact = operation(lambda: compaction.compact)
    plan_compaction = operation(lambda: planning.plan)
    compaction_settings = operation(lambda: planning.table_settings)
    clustered_settings = operation(lambda: planning.clustered)
    commit_compaction = operation(lambda: compaction.land)
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


class Table(Facet):
    """A table at a version, in the session of its location.

    Operations that commit return the version that they made, with their metrics; this object
    stays at its version.
    """

    def at(self, reference: Reference) -> Table:
        """Open another version of the table."""
        main = self.snapshot.main_location
        return Table(open_snapshot(self.location, reference, main=main))

    def live_rows(self, fragment: Fragment) -> int:
        """Count the rows of a fragment that are not deleted."""
        return live_rows.live_rows(self.snapshot.files, self.snapshot.manifest_at, fragment)

    def physical_rows(self, fragment: Fragment) -> int:
        """Count the rows in a fragment's files, deleted ones included."""
        return fragment_reader.physical_rows(
            self.snapshot.files, self.snapshot.manifest_at, fragment
        )

    # Reading
    count_rows = operation(lambda: live_rows.count_rows)
    count_by_index = operation(lambda: stream.count_by_index)
    plan = operation(lambda: planner.plan)
    scan = operation(lambda: prepared.prepare)
    take = operation(lambda: row_lookup.take)
    take_at = operation(lambda: row_lookup.take_at)
    take_in = operation(lambda: row_lookup.take_from_fragment)
    addresses_of = operation(lambda: row_lookup.addresses_of)
    find_blobs = operation(lambda: blob_lookup.find_blobs)
    query = operation(lambda: sql_query.Query)

    # Searching
    search = operation(lambda: prepared.search)
    vector_column = operation(lambda: prepared.vector_column)
    nearest_to_row = operation(lambda: recall.nearest_to_row)
    measure_recall = operation(lambda: recall.measure_recall)
    duplicate_pairs = operation(lambda: recall.duplicate_pairs)
    partition_sizes = operation(lambda: recall.partition_sizes)
    partition_clusters = operation(lambda: recall.partition_clusters)

    # Changing rows
    write = operation(lambda: write.write_onto)
    merge = operation(lambda: run.merge)
    prepare_merge = operation(lambda: run.prepare)
    explain_merge = operation(lambda: clauses.explain)
    delete = operation(lambda: rows.delete)
    update = operation(lambda: rows.update)
    mark_deleted = operation(lambda: row_steps.mark_deleted)
    publish = operation(lambda: publish.publish)
    restore = operation(lambda: branches.restore)

    # Settings
    update_config = operation(lambda: config.update_config)
    update_metadata = operation(lambda: config.update_table_metadata)
    update_schema_metadata = operation(lambda: config.update_schema_metadata)
    update_field_metadata = operation(lambda: config.update_field_metadata)
    declare_primary_key = operation(lambda: config.declare_primary_key)

    # Subjects of their own
    columns = facet(Columns)
    indices = facet(Indices)
    refs = facet(Refs)
    history = facet(History)
    maintenance = facet(Maintenance)
    wal = facet(Wal)
    descriptions = facet(Descriptions)
