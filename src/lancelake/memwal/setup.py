"""Set-up of a MemWAL by a few choices: the primary key, and how rows are divided into regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.format.memwal.region_spec import RegionSpec, Unsharded
from lancelake.format.primary_key import key_names
from lancelake.memwal.initialize import bucketed, by_value, initialize
from lancelake.memwal.settings import recorded
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
    keyed = _keyed(base, key, choices)
    spec = _spec(keyed, buckets, value_column, unsharded=unsharded)
    return initialize(keyed, spec, choices, writer_defaults=recorded(settings or {}))


def _keyed(base: Snapshot, key: str | Sequence[str] | None, choices: CommitChoices) -> Snapshot:
    own = key_names(base.manifest.schema)
    if key is None:
        return base
    wanted = (key,) if isinstance(key, str) else tuple(key)
    if not own:
        unknown = [name for name in wanted if name not in base.manifest.schema.names]
        if unknown:
            raise InvalidRequestError(f"the table has no column {unknown[0]}", column=unknown[0])
        return declare_primary_key(base, wanted, choices=choices)
    if own != wanted:
        raise InvalidRequestError(
            f"the table's primary key is {', '.join(own)}, not {', '.join(wanted)}"
        )
    return base


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
