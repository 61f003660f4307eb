"""Report the result of a command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.text import Text

from lancelake.cli import words
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.tables import facts
from lancelake.commit.snapshot import Snapshot


def report(
    output: OutputFormat, body: Mapping[str, object], rows: Iterable[tuple[str, Text | str]]
) -> None:
    """Print `body` as JSON, or `rows` as a table."""
    if output is OutputFormat.JSON:
        print_json(dict(body))
    else:
        stdout().print(facts(rows))


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


def target_text(branch: str | None, version: int) -> str:
    """Format a version on a branch, as for `--at`."""
    return f"{branch}:{version}" if branch else str(version)
