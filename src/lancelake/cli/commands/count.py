"""Count the rows."""

from __future__ import annotations

from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, Filter, NoIndex, Output, Version
from lancelake.core.table import Table

commands = CommandModule()


@commands.add(example="photos.lance --filter 'id > 3'")
def count(
    version: Version,
    filter: Filter = None,
    no_index: NoIndex = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Count the rows, or those that match a filter."""
    table = version.open()
    rows = table.count_rows() if filter is None else _count_matching(table, filter, not no_index)
    if output is OutputFormat.JSON:
        print_json({"version": table.snapshot.version, "filter": filter, "rows": rows})
    else:
        stdout().print(str(rows))


def _count_matching(table: Table, filter: str, use_index: bool) -> int:
    # The manifest has the number of all rows: most counts need no scan, which is slow to load.
    from lancelake.core.values.reads import ScanRequest  # noqa: PLC0415

    request = ScanRequest(columns=(), filter=filter, use_scalar_index=use_index)
    return table.scan(request).count()
