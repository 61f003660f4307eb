"""Settings of a table: config, metadata, primary key, features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot, list_versions
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format import layout
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.format.operations import MapUpdate, UpdateConfig
from lancelake.format.primary_key import KEY, POSITION, key_names
from lancelake.storage.location import Location
from lancelake.storage.store import create_once
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, publish
from lancelake.txn.options import TableState

Updates = Mapping[str, str | None]


def update_config(
    base: Snapshot,
    updates: Updates,
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of the config; a value of None removes a key."""
    return publish(base, UpdateConfig(config=_map(updates, replace=replace)), choices)


def update_table_metadata(
    base: Snapshot,
    updates: Updates,
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of the table's metadata; a value of None removes a key."""
    return publish(base, UpdateConfig(table_metadata=_map(updates, replace=replace)), choices)


def update_schema_metadata(
    base: Snapshot,
    updates: Updates,
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of the schema's metadata; a value of None removes a key."""
    return publish(base, UpdateConfig(schema_metadata=_map(updates, replace=replace)), choices)


def update_field_metadata(
    base: Snapshot,
    updates: Mapping[str, Updates],
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of fields' metadata, by path; a value of None removes a key."""
    changes: dict[FieldId, MapUpdate] = {
        base.manifest.schema.resolve(path)[-1].id: _map(keys, replace=replace)
        for path, keys in updates.items()
    }
    return publish(base, UpdateConfig(field_metadata=FrozenMap(changes)), choices)


def _map(updates: Updates, *, replace: bool) -> MapUpdate:
    return MapUpdate(entries=FrozenMap(dict(updates)), replace=replace)


_MOST_DIGITS = 19
_TRUTHS = {"true": True, "false": False}


def number(key: str, text: str) -> int:
    """Return the non-negative number that a config key is set to."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise _wrong(key, text, "a non-negative number")
    return int(text)


def truth(key: str, text: str) -> bool:
    """Return the truth value that a config key is set to."""
    if text not in _TRUTHS:
        raise _wrong(key, text, "true or false")
    return _TRUTHS[text]


def _wrong(key: str, text: str, expected: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"config {key} is {text!r}, but must be {expected}",
        action="Correct the table's config, or remove the key.",
    )


KeyEntries = dict[str, dict[str, str | None]]
"""Metadata of the columns of a key, by column."""


def key_entries(columns: Sequence[str], more: Mapping[str, str] | None = None) -> KeyEntries:
    """Return the field metadata that declares a key; `more` is added to each column."""
    return {
        name: {KEY: "true", POSITION: str(position), **(more or {})}
        for position, name in enumerate(columns, start=1)
    }


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


KEY_INDEX = "lancelake.key_index"
MAX_ROWS = f"{KEY_INDEX}.max_rows"
MAX_SEGMENTS = f"{KEY_INDEX}.max_segments"

_FEW_ROWS = 1_000_000
_FEW_SEGMENTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIndexSettings:
    """Limits of the update that follows a commit."""

    max_rows: int = _FEW_ROWS
    """Most unindexed rows that are added to the index; more are left to `optimize`."""

    max_segments: int = _FEW_SEGMENTS
    """Most segments of the index; when there would be more, small ones are merged."""

    def __post_init__(self) -> None:
        """Refuse fewer than one segment."""
        if self.max_segments < 1:
            raise InvalidRequestError(f"config {MAX_SEGMENTS} must be at least 1")


def from_config(config: Mapping[str, str]) -> KeyIndexSettings | None:
    """Return the settings in a table's config; None where the key index is turned off."""
    if KEY_INDEX not in config or not truth(KEY_INDEX, config[KEY_INDEX]):
        return None
    keys = {"max_rows": MAX_ROWS, "max_segments": MAX_SEGMENTS}
    given = {name: number(key, config[key]) for name, key in keys.items() if key in config}
    return KeyIndexSettings(**given)


def migrate_manifest_names(location: Location) -> int:
    """Rename manifests oldest first, each copied before it is removed; return their number.

    Every version stays readable if this is interrupted. There must be no other writers.
    """
    store = location.store
    renamed = 0
    for name in list_versions(location):
        if name.naming is ManifestNaming.V2:
            continue
        old = layout.manifest(name.name)
        new = layout.manifest(manifest_name(name.version, ManifestNaming.V2))
        data = store.get(old)
        if not create_once(store, new, data):
            problem = f"version {name.version} has two manifests, which differ"
            raise CorruptTableError(problem, path=new, version=name.version)
        store.delete(old)
        renamed += 1
    return renamed


def lacks_facts(state: TableState) -> bool:
    """Whether a manifest of an early release lacks numbers of rows, or fragments of indices.

    The next commit of official Lance adds them.
    """
    lacks_rows = any(
        fragment.physical_rows is None or fragment.num_deleted_rows is None
        for fragment in state.manifest.fragments
    )
    return lacks_rows or any(not index.fragment_bitmap for index in state.indices)
