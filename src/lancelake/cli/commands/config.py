"""Show and change config and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import Change, CommandModule, Output, Version, argument, flag, option
from lancelake.cli.report import facts, report_version, version_body
from lancelake.cli.tables import key_values
from lancelake.errors import NotFoundError

if TYPE_CHECKING:
    from lancelake.core.table import Table
    from lancelake.core.values.metadata import Snapshot

commands = CommandModule("Show and change config and metadata.", example="list photos.lance")

Key = Annotated[str, argument("KEY", "Name of the setting.")]
Keys = Annotated[list[str], argument("KEY", "Names of the settings.")]
Pairs = Annotated[list[str], argument("KEY=VALUE", "Settings and their values.")]
OfTable = Annotated[bool, flag("--metadata", "Use the table's metadata instead of its config.")]
OfSchema = Annotated[
    bool, flag("--schema-metadata", "Use the schema's metadata instead of the config.")
]
OfField = Annotated[
    str | None,
    option(
        "--field",
        "PATH",
        "Use the metadata of a field instead of the config; B.C is field C of struct B.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedMap:
    """The map that a command shows or changes."""

    metadata: OfTable = False
    schema_metadata: OfSchema = False
    field: OfField = None

    def __post_init__(self) -> None:
        """Refuse several maps."""
        if self.metadata + self.schema_metadata + (self.field is not None) > 1:
            raise typer.BadParameter("--metadata, --schema-metadata and --field cannot be combined")

    @property
    def kind(self) -> str:
        """Name of the map."""
        if self.field is not None:
            return "field_metadata"
        if self.schema_metadata:
            return "schema_metadata"
        return "metadata" if self.metadata else "config"

    def body(self, snapshot: Snapshot) -> dict[str, object]:
        """Return the version and the selection for JSON output."""
        return {**version_body(snapshot), "kind": self.kind, "field": self.field}

    def values(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the map, sorted by key."""
        manifest = snapshot.manifest
        values: Mapping[str, str | bytes]
        match self.kind:
            case "field_metadata":
                values = manifest.schema.resolve(self.field or "")[-1].metadata
            case "schema_metadata":
                values = manifest.schema.metadata
            case "metadata":
                values = manifest.table_metadata
            case _:
                values = manifest.config
        return {key: _text(values[key]) for key in sorted(values)}

    def change(self, table: Table, change: Change, updates: Mapping[str, str | None]) -> Snapshot:
        """Commit a change of the map."""
        if self.field is not None:
            by_field = {self.field: updates}
            return table.update_field_metadata(by_field, choices=change.choices)
        if self.schema_metadata:
            return table.update_schema_metadata(updates, choices=change.choices)
        update = table.update_metadata if self.metadata else table.update_config
        return update(updates, choices=change.choices)

    def missing(self, snapshot: Snapshot, keys: list[str]) -> NotFoundError:
        """Return the error for missing keys."""
        where = f"metadata of field {self.field}" if self.field else self.kind.replace("_", " ")
        return NotFoundError(
            f"the {where} has no {', '.join(map(repr, keys))}",
            table=snapshot.location.uri,
            version=snapshot.version,
            action="`lancelake config list` shows the existing settings.",
        )


@commands.add("list", example="photos.lance")
def list_command(version: Version, which: SelectedMap, output: Output = OutputFormat.TABLE) -> None:
    """Show all settings."""
    snapshot = version.open().snapshot
    values = which.values(snapshot)
    if output is OutputFormat.JSON:
        print_json({**which.body(snapshot), "values": values})
        return
    console = stdout()
    console.print(facts((phrases.printable(k), phrases.printable(v)) for k, v in values.items()))
    console.print(Text(phrases.plural(len(values), "setting"), style="dim"))


@commands.add("get", example="photos.lance owner")
def get_command(
    version: Version, key: Key, which: SelectedMap, output: Output = OutputFormat.TABLE
) -> None:
    """Show one setting."""
    snapshot = version.open().snapshot
    value = which.values(snapshot).get(key)
    if value is None:
        raise which.missing(snapshot, [key])
    if output is OutputFormat.JSON:
        print_json({**which.body(snapshot), "key": key, "value": value})
        return
    stdout().print(Text(phrases.printable(value)), soft_wrap=True)


@commands.add("set", example="photos.lance owner=ada retention=30d")
def set_command(
    change: Change, pairs: Pairs, which: SelectedMap, output: Output = OutputFormat.TABLE
) -> None:
    """Change settings, all in one version."""
    updates = key_values(pairs, "KEY=VALUE", "'KEY=VALUE'")
    _report(output, which, which.change(change.open(), change, updates))


@commands.add("unset", example="photos.lance owner")
def unset_command(
    change: Change, keys: Keys, which: SelectedMap, output: Output = OutputFormat.TABLE
) -> None:
    """Remove settings, all in one version."""
    table = change.open()
    missing = [key for key in keys if key not in which.values(table.snapshot)]
    if missing:
        raise which.missing(table.snapshot, missing)
    _report(output, which, which.change(table, change, dict.fromkeys(keys)))


def _report(output: OutputFormat, which: SelectedMap, snapshot: Snapshot) -> None:
    report_version(output, snapshot, {**which.body(snapshot), "values": which.values(snapshot)})


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")
