"""Primary key of a table, which is declared but not enforced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.format.primary_key import KEY, POSITION, key_names
from lancelake.table.config import update_field_metadata
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

KeyEntries = dict[str, dict[str, str | None]]
"""Metadata of the columns of a key, by column."""


def key_entries(columns: Sequence[str], more: Mapping[str, str] | None = None) -> KeyEntries:
    """Return the field metadata that declares a key; `more` is added to each column."""
    return {
        name: {KEY: "true", POSITION: str(position), **(more or {})}
        for position, name in enumerate(columns, start=1)
    }


@names_table
def declare_primary_key(
    base: Snapshot,
    columns: Sequence[str],
    more: Mapping[str, str] | None = None,
    *,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Declare the primary key of a table that has none; its columns must not be nullable."""
    own = key_names(base.manifest.schema)
    if own:
        raise InvalidRequestError(f"the table already has the primary key {', '.join(own)}")
    nullable = {f.name for f in base.manifest.schema.fields if f.nullable}
    for name in columns:
        if name in nullable:
            raise InvalidRequestError(
                f"column {name} cannot be part of the primary key, since it is nullable",
                column=name,
            )
    return update_field_metadata(base, key_entries(columns, more), choices=choices)
