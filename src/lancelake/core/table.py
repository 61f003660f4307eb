"""Table: the operations on one version of a table, the door that every face goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.core.operation import Facet, LazyModule, facet, operation
from lancelake.core.subjects import (
    Columns,
    Descriptions,
    History,
    Indices,
    Maintenance,
    Refs,
)
from lancelake.core.wal import Wal
from lancelake.table.open import Reference, open_snapshot

if TYPE_CHECKING:
    from lancelake.format.fragment import Fragment
    from lancelake.scan import live_rows, planner, row_lookup, stream
    from lancelake.scan.search import batch, duplicates, hybrid, prepared, recall
    from lancelake.table import (
        blob_lookup,
        branches,
        config,
        publish,
        row_steps,
        rows,
        sql_query,
        write,
    )
    from lancelake.table.merge import clauses, run
else:
    batch = LazyModule("scan.search.batch")
    blob_lookup = LazyModule("table.blob_lookup")
    branches = LazyModule("table.branches")
    clauses = LazyModule("table.merge.clauses")
    config = LazyModule("table.config")
    live_rows = LazyModule("scan.live_rows")
    duplicates = LazyModule("scan.search.duplicates")
    hybrid = LazyModule("scan.search.hybrid")
    planner = LazyModule("scan.planner")
    prepared = LazyModule("scan.search.prepared")
    publish = LazyModule("table.publish")
    recall = LazyModule("scan.search.recall")
    row_lookup = LazyModule("scan.row_lookup")
    row_steps = LazyModule("table.row_steps")
    rows = LazyModule("table.rows")
    run = LazyModule("table.merge.run")
    sql_query = LazyModule("table.sql_query")
    stream = LazyModule("scan.stream")
    write = LazyModule("table.write")


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
        return live_rows.physical_rows(self.snapshot.files, self.snapshot.manifest_at, fragment)

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
    search = operation(lambda: hybrid.search)
    vector_column = operation(lambda: hybrid.vector_column)
    nearest_to_row = operation(lambda: recall.nearest_to_row)
    measure_recall = operation(lambda: recall.measure_recall)
    duplicate_pairs = operation(lambda: duplicates.duplicate_pairs)
    partition_sizes = operation(lambda: duplicates.partition_sizes)
    partition_clusters = operation(lambda: duplicates.partition_clusters)

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
