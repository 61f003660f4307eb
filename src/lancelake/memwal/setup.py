"""Set-up of a MemWAL by a few choices: the primary key, and how rows are divided into regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.format.memwal.region_spec import RegionSpec, Unsharded
from lancelake.format.primary_key import key_names
from lancelake.memwal.initialize import bucketed, by_value, initialize
from lancelake.memwal.settings import recorded
from lancelake.memwal.shape import RowShape
from lancelake.table.primary_key import declare_primary_key
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_BUCKETS = 8


@names_table
def set_up(
    base: Snapshot,
    *,
    buckets: int | None = None,
    key: str | Sequence[str] | None = None,
    value_column: str | None = None,
    unsharded: bool = False,
    settings: Mapping[str, int | bool] | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add a MemWAL to a table; a key is declared if the table has none.

    Rows are divided by the hash of the first key column, by default into 8 buckets; by the values
    of a key column; or not at all.
    """
    undeclared = _undeclared(base, key)
    planned = _with_key(base, undeclared)
    spec = _spec(planned, buckets, value_column, unsharded=unsharded)
    writer_defaults = recorded(settings or {})
    # Before the key is declared, which is a commit of its own.
    RowShape.of(planned)
    keyed = declare_primary_key(base, undeclared, choices=choices) if undeclared else base
    return initialize(keyed, spec, choices, writer_defaults=writer_defaults)


def _undeclared(base: Snapshot, key: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the key columns that must be declared; none if the table has this key."""
    own = key_names(base.manifest.schema)
    if key is None:
        return ()
    wanted = (key,) if isinstance(key, str) else tuple(key)
    if not own:
        unknown = [name for name in wanted if name not in base.manifest.schema.names]
        if unknown:
            raise InvalidRequestError(f"the table has no column {unknown[0]}", column=unknown[0])
        return wanted
    if own != wanted:
        raise InvalidRequestError(
            f"the table's primary key is {', '.join(own)}, not {', '.join(wanted)}"
        )
    return ()


def _with_key(base: Snapshot, columns: Sequence[str]) -> Snapshot:
    """Return the version as it will be when more key columns are declared."""
    schema = base.manifest.schema
    position = {name: number for number, name in enumerate(columns, start=1)}
    fields = tuple(
        replace(
            field,
            unenforced_primary_key=True,
            unenforced_primary_key_position=position[field.name],
        )
        if field.name in position
        else field
        for field in schema.fields
    )
    return base.with_schema(replace(schema, fields=fields))


def _spec(
    base: Snapshot, buckets: int | None, value_column: str | None, *, unsharded: bool
) -> RegionSpec:
    if (buckets is not None) + (value_column is not None) + unsharded > 1:
        raise InvalidRequestError("regions are chosen by buckets, by value, or not at all")
    if unsharded:
        return Unsharded()
    if value_column is not None:
        return by_value(base, value_column)
    names = key_names(base.manifest.schema)
    if not names:
        raise InvalidRequestError(
            "a MemWAL needs a table with a primary key", action="Name its columns with key."
        )
    return bucketed(base, names[0], _BUCKETS if buckets is None else buckets)
