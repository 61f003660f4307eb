"""Table properties in SQL: config entries and creation options."""

from __future__ import annotations

from collections.abc import Mapping

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError

DATA_VERSION, STABLE_ROW_IDS = "dataStorageVersion", "stableRowIds"
_AT_CREATION = {name.lower(): name for name in (DATA_VERSION, STABLE_ROW_IDS)}
_OPTION = "option."
_RESERVED = ("provider", "location", "owner", "external", "is_managed_location", "table_type")
"""Properties that Spark itself reserves."""


def config_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are stored as the table's config.

    Properties include options, which may be secret and are not stored.
    """
    return {
        key: value
        for key, value in properties.items()
        if key not in _RESERVED and not key.startswith(_OPTION) and not _is_for_creation(key)
    }


def creation_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the creation options of a table, by lower-case name.

    All OPTIONS are included, and those TBLPROPERTIES that are fixed at creation.
    """
    options = {
        key.removeprefix(_OPTION).lower(): value
        for key, value in properties.items()
        if key.startswith(_OPTION)
    }
    for key, value in properties.items():
        if not _is_for_creation(key):
            continue
        if options.setdefault(key.lower(), value) != value:
            raise InvalidRequestError(
                f"{key} is {value!r} in TBLPROPERTIES and {options[key.lower()]!r} in OPTIONS",
                option=key,
            )
    return options


def shown_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties of a version as Spark shows them."""
    manifest = snapshot.manifest
    return {
        "provider": "lance",
        "location": snapshot.location.uri,
        DATA_VERSION: manifest.data_version.value,
        STABLE_ROW_IDS: str(manifest.has_stable_row_ids).lower(),
        **manifest.config,
    }


def ensure_changeable(key: str) -> None:
    """Refuse to change a property that cannot be changed."""
    if key == "location":
        raise UnsupportedError(
            "the location of a Lance table cannot be changed",
            action="Clone the table to the new location: CALL lance.system.clone(...).",
        )
    if key in _RESERVED:
        raise UnsupportedError(f"property {key} of a Lance table cannot be changed", option=key)
    if _is_for_creation(key):
        raise UnsupportedError(
            f"property {key} is fixed at table creation",
            option=key,
            action=f"Recreate the table with TBLPROPERTIES ('{key}' = ...).",
        )


def _is_for_creation(key: str) -> bool:
    return key.lower() in _AT_CREATION
