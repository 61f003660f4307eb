"""Report the result of a command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, assert_never

from rich.text import Text

from lancelake.cli import words
from lancelake.cli.console import OutputFormat, RowFormat, print_json, stderr, stdout
from lancelake.cli.row_text import write_csv_documents, write_documents
from lancelake.cli.tables import facts
from lancelake.commit.snapshot import Snapshot
from lancelake.table.describe.documents import Json


def report(
    output: OutputFormat, body: Mapping[str, object], rows: Iterable[tuple[str, Text | str]]
) -> None:
    """Print `body` as JSON, or `rows` as a table."""
    if output is OutputFormat.JSON:
        print_json(dict(body))
    else:
        stdout().print(facts(rows))


def report_list(
    output: Literal[RowFormat.JSON, RowFormat.JSONL, RowFormat.CSV],
    body: Mapping[str, object],
    items: Sequence[Json],
    omitted: str = "",
) -> None:
    """Print `body` as JSON, or only its `items`, as JSON lines or CSV.

    `omitted` is a message about items that are not among them; a JSON body has its own field.
    """
    match output:
        case RowFormat.JSON:
            print_json(dict(body))
        case RowFormat.JSONL:
            write_documents(items, sys.stdout)
        case RowFormat.CSV:
            write_csv_documents(items, sys.stdout)
        case _:
            assert_never(output)
    if omitted and output is not RowFormat.JSON:
        stderr().print(Text(omitted, style="dim"))


def version_body(snapshot: Snapshot) -> dict[str, object]:
    """Return the new version for JSON output."""
    return {
        "uri": snapshot.location.uri,
        "branch": snapshot.branch,
        "version": snapshot.version,
    }


def version_rows(snapshot: Snapshot) -> Iterator[tuple[str, Text]]:
    """Yield the new version for table output."""
    yield "table", Text(words.printable(snapshot.location.uri), style="bold")
    number = Text(str(snapshot.version))
    if snapshot.branch is not None:
        number.append(f"  on branch {words.printable(snapshot.branch)}", style="cyan")
    yield "version", number


def older_versions(count: int, option: str) -> str:
    """Return a message about versions that an option leaves out."""
    return f"… {words.plural(count, 'older version')}: {option} 0 shows all"


def target_text(branch: str | None, version: int) -> str:
    """Format a version on a branch, as for `--at`."""
    return f"{branch}:{version}" if branch else str(version)
