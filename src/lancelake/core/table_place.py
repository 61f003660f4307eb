"""Place: where a table is, or will be; what works without opening a version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.commit.snapshot import (
    Latest,
    Reference,
    Snapshot,
    branch_location,
    find_version,
    has_table,
    latest_version,
    list_branches,
    list_tags,
    list_versions,
    load_branch,
    load_tag,
    open_existing,
    open_snapshot,
)
from lancelake.core.operation import late_modules, on_line
from lancelake.core.table import Table
from lancelake.errors import naming
from lancelake.format import layout
from lancelake.storage.location import Location

if TYPE_CHECKING:
    import pyarrow as pa

    from lancelake.describe import table_folder
    from lancelake.format.fragment import Fragment
    from lancelake.maintenance import repair as repairs
    from lancelake.maintenance.cleanup import run as cleanup
    from lancelake.memwal import table_check as checks
    from lancelake.table import committable, config, history, publish, statistics, write
    from lancelake.table.ingest import files
    from lancelake.table.ingest.places import Locate
    from lancelake.table.publish import CommitChoices
    from lancelake.table.write import WriteOptions, WritePlan
else:
    globals().update(late_modules(__name__))


class TablePlace:
    """The root of a table or of one of its branches; the table may not exist."""

    __slots__ = ("location",)

    def __init__(self, location: Location) -> None:
        self.location = location

    def open(self, at: Reference | None = None, *, main: Location | None = None) -> Table:
        """Open a table, by default at its newest version; `main` is its root when on a branch."""
        return Table(open_snapshot(self.location, at or Latest(), main=main))

    def open_existing(self, branch: str | None = None) -> Table | None:
        """Open the newest version of a table or of its branch; None if there is no table."""
        snapshot = open_existing(self.location, branch)
        return None if snapshot is None else Table(snapshot)

    def main(self) -> TablePlace:
        """Return the root with tags and branches, also when this is the root of a branch."""
        if f"/{layout.TREE}/" not in self.location.uri:
            return self
        return TablePlace(self.open().snapshot.main_location)

    def branch(self, name: str | None) -> TablePlace:
        """Return the root of a branch; of the main line, this one."""
        return TablePlace(branch_location(self.location, name))

    tags = on_line(lambda: list_tags)
    load_tag = on_line(lambda: load_tag)
    branches = on_line(lambda: list_branches)
    load_branch = on_line(lambda: load_branch)

    has_table = on_line(lambda: has_table)

    # Writing
    def write(self, reader: pa.RecordBatchReader, options: WriteOptions) -> Snapshot:
        """Write rows and commit them; if the table does not exist, every mode creates it."""
        base = open_existing(self.location)
        with self._naming(base):
            return write.write(base, self.location, reader, options)

    def plan_write(
        self, base: Snapshot | None, data: pa.Schema, options: WriteOptions
    ) -> WritePlan:
        """Plan a write of rows with these columns, to a version or to a new table."""
        with self._naming(base):
            return write.plan(base, self.location, data, options)

    def run_write(self, plan: WritePlan, reader: pa.RecordBatchReader) -> tuple[Fragment, ...]:
        """Write the rows of a plan in this process."""
        with self._naming(plan.base):
            return write.run(plan, reader)

    def commit_write(self, plan: WritePlan, fragments: tuple[Fragment, ...]) -> Snapshot:
        """Commit the rows of a plan, which may be written elsewhere."""
        with self._naming(plan.base):
            return write.commit(plan, fragments)

    def _naming(self, base: Snapshot | None) -> naming:
        return naming(self.location.uri, None if base is None else base.version)

    def convert(self, source: str, locate: Locate, choices: CommitChoices) -> Snapshot:
        """Create the table from a folder of files or from a Delta table."""
        self.ensure_free()
        with naming(self.location.uri):
            reader = files.sources_of(source, locate).reader(is_merging=True)
            options = write.WriteOptions(schema_mode=write.SchemaMode.MERGE, choices=choices)
            return write.write(None, self.location, reader, options)

    ensure_free = on_line(lambda: publish.ensure_free)
    publish_first = on_line(lambda: publish.publish_first)
    ensure_committable = on_line(lambda: committable.ensure_committable)
    drop = on_line(lambda: write.drop_table)
    migrate_manifest_names = on_line(lambda: config.migrate_manifest_names)

    # Versions
    versions = on_line(lambda: list_versions)
    latest_version = on_line(lambda: latest_version)
    find_version = on_line(lambda: find_version)
    snapshots = on_line(lambda: history.history)
    history = on_line(lambda: history.history_in_numbers)

    # Upkeep, of damaged tables too
    clean_up = on_line(lambda: cleanup.clean_up)
    clean_up_folder = on_line(lambda: cleanup.clean_up_folder)
    is_abandoned = on_line(lambda: cleanup.is_abandoned)
    check = on_line(lambda: checks.check_table)
    plan_repair = on_line(lambda: repairs.plan)
    repair = on_line(lambda: repairs.repair)
    find_healthy = on_line(lambda: repairs.find_healthy)
    stored_files = on_line(lambda: statistics.stored_files)
    tracked_files = on_line(lambda: statistics.tracked_files)

    # Folders of tables
    find_tables = on_line(lambda: table_folder.find_tables)
    table_facts = on_line(lambda: table_folder.table_facts)
