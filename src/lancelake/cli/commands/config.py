"""`lancelake config`: config of a table, and metadata of table, schema and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at, open_head
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import (
    At,
    Branch,
    Message,
    Output,
    StorageOptions,
    Uri,
    location,
    subcommands,
)
from lancelake.cli.report import report, version_body, version_rows
from lancelake.cli.tables import facts
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import NotFoundError
from lancelake.table import config as settings
from lancelake.table.publish import CommitChoices

app = subcommands("Show and change config and metadata.")

Key = Annotated[str, typer.Argument(metavar="KEY", show_default=False, help="Name of the setting.")]
Keys = Annotated[
    list[str], typer.Argument(metavar="KEY", show_default=False, help="Names of the settings.")
]
Pairs = Annotated[
    list[str],
    typer.Argument(metavar="KEY=VALUE", show_default=False, help="Settings and their values."),
]
OfTable = Annotated[
    bool, typer.Option("--metadata", help="Use the table's metadata instead of its config.")
]
OfSchema = Annotated[
    bool, typer.Option("--schema-metadata", help="Use the schema's metadata instead of the config.")
]
OfField = Annotated[
    str | None,
    typer.Option(
        "--field",
        metavar="PATH",
        show_default=False,
        help="Use the metadata of a field instead of the config; B.C is field C of struct B.",
    ),
]


@app.command("list")
def list_command(
    uri: Uri,
    metadata: OfTable = False,
    schema_metadata: OfSchema = False,
    field: OfField = None,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show all settings."""
    which = _SelectedMap.of(metadata, schema_metadata, field)
    snapshot = open_at(location(uri, options), at)
    found = which.values(snapshot)
    if output is OutputFormat.JSON:
        print_json({**version_body(snapshot), **which.body(), "values": found})
        return
    console = stdout()
    console.print(facts((words.printable(k), words.printable(v)) for k, v in found.items()))
    console.print(Text(words.plural(len(found), "setting"), style="dim"))


@app.command("get")
def get_command(
    uri: Uri,
    key: Key,
    metadata: OfTable = False,
    schema_metadata: OfSchema = False,
    field: OfField = None,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show one setting."""
    which = _SelectedMap.of(metadata, schema_metadata, field)
    snapshot = open_at(location(uri, options), at)
    value = which.values(snapshot).get(key)
    if value is None:
        raise which.missing(snapshot, [key])
    if output is OutputFormat.JSON:
        print_json({**version_body(snapshot), **which.body(), "key": key, "value": value})
        return
    stdout().print(Text(words.printable(value)), soft_wrap=True)


@app.command("set")
def set_command(
    uri: Uri,
    pairs: Pairs,
    metadata: OfTable = False,
    schema_metadata: OfSchema = False,
    field: OfField = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change settings, all in one version."""
    which = _SelectedMap.of(metadata, schema_metadata, field)
    updates = _pairs(pairs)
    base = open_head(location(uri, options), branch)
    _report(output, which, which.change(base, updates, CommitChoices(message=message)))


@app.command("unset")
def unset_command(
    uri: Uri,
    keys: Keys,
    metadata: OfTable = False,
    schema_metadata: OfSchema = False,
    field: OfField = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove settings, all in one version."""
    which = _SelectedMap.of(metadata, schema_metadata, field)
    base = open_head(location(uri, options), branch)
    missing = [key for key in keys if key not in which.values(base)]
    if missing:
        raise which.missing(base, missing)
    updates = dict.fromkeys(keys)
    _report(output, which, which.change(base, updates, CommitChoices(message=message)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _SelectedMap:
    """The selected map of a table."""

    kind: str
    field: str | None = None

    @staticmethod
    def of(is_metadata: bool, is_schema_metadata: bool, field: str | None) -> _SelectedMap:
        """Parse the options, of which at most one may be set."""
        if is_metadata + is_schema_metadata + (field is not None) > 1:
            raise typer.BadParameter("--metadata, --schema-metadata and --field cannot be combined")
        if field is not None:
            return _SelectedMap(kind="field_metadata", field=field)
        if is_schema_metadata:
            return _SelectedMap(kind="schema_metadata")
        return _SelectedMap(kind="metadata" if is_metadata else "config")

    def body(self) -> dict[str, str | None]:
        """Return the selection for JSON output."""
        return {"kind": self.kind, "field": self.field}

    def values(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the map, sorted by key."""
        manifest = snapshot.manifest
        found: Mapping[str, str | bytes]
        if self.field is not None:
            found = manifest.schema.resolve(self.field)[-1].metadata
        elif self.kind == "schema_metadata":
            found = manifest.schema.metadata
        else:
            found = manifest.config if self.kind == "config" else manifest.table_metadata
        return {key: _text(found[key]) for key in sorted(found)}

    def change(
        self, base: Snapshot, updates: Mapping[str, str | None], choices: CommitChoices
    ) -> Snapshot:
        """Commit a change of the map."""
        if self.field is not None:
            return settings.update_field_metadata(base, {self.field: updates}, choices=choices)
        if self.kind == "schema_metadata":
            return settings.update_schema_metadata(base, updates, choices=choices)
        if self.kind == "metadata":
            return settings.update_table_metadata(base, updates, choices=choices)
        return settings.update_config(base, updates, choices=choices)

    def missing(self, snapshot: Snapshot, keys: list[str]) -> NotFoundError:
        """Return the error for missing keys."""
        where = f"metadata of field {self.field}" if self.field else self.kind.replace("_", " ")
        return NotFoundError(
            f"the {where} has no {', '.join(map(repr, keys))}",
            table=snapshot.location.uri,
            version=snapshot.version,
            action="`lancelake config list` shows the existing settings.",
        )


def _pairs(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise typer.BadParameter(
                f"{pair!r} is not of the form KEY=VALUE", param_hint="'KEY=VALUE'"
            )
        found[key] = value
    return found


def _report(output: OutputFormat, which: _SelectedMap, made: Snapshot) -> None:
    body = {**version_body(made), **which.body(), "values": which.values(made)}
    report(output, body, version_rows(made))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")
