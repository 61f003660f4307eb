"""Update config, table metadata, schema metadata and field metadata."""

from __future__ import annotations

from collections.abc import Mapping

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.operations import UpdateConfig
from lancelake.format.operations.update_config import MapUpdate
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish

Updates = Mapping[str, str | None]


@names_table
def update_config(
    base: Snapshot,
    updates: Updates,
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of the config; a value of None removes a key."""
    return _publish(base, UpdateConfig(config=_map(updates, replace=replace)), choices)


@names_table
def update_table_metadata(
    base: Snapshot,
    updates: Updates,
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of the table's metadata; a value of None removes a key."""
    return _publish(base, UpdateConfig(table_metadata=_map(updates, replace=replace)), choices)


@names_table
def update_schema_metadata(
    base: Snapshot,
    updates: Updates,
    *,
    replace: bool = False,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Set keys of the schema's metadata; a value of None removes a key."""
    return _publish(base, UpdateConfig(schema_metadata=_map(updates, replace=replace)), choices)


@names_table
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
    return _publish(base, UpdateConfig(field_metadata=FrozenMap(changes)), choices)


def _map(updates: Updates, *, replace: bool) -> MapUpdate:
    return MapUpdate(entries=FrozenMap(dict(updates)), replace=replace)


def _publish(base: Snapshot, operation: UpdateConfig, choices: CommitChoices) -> Snapshot:
    return publish(base, new_transaction(operation, base.version, choices), choices)
