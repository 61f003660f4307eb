"""Properties of a table in SQL: which ones are its config, which ones choose how it is made."""

from __future__ import annotations

from collections.abc import Mapping

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError

DATA_VERSION, STABLE_ROW_IDS = "dataStorageVersion", "stableRowIds"
_AT_CREATION = {name.lower(): name for name in (DATA_VERSION, STABLE_ROW_IDS)}
_OPTION = "option."
_RESERVED = ("provider", "location", "owner", "external", "is_managed_location", "table_type")
"""What Spark itself keeps among the properties."""


def config_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the table keeps as its config.

    Options are among the properties too, and may be secret: no table keeps them.
    """
    return {
        key: value
        for key, value in properties.items()
        if key not in _RESERVED and not key.startswith(_OPTION) and not _is_for_creation(key)
    }


def creation_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the write that makes the table, by lower-case name.

    OPTIONS are all of them; of TBLPROPERTIES those that are fixed when a table is made.
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
    """Refuse a change of a property that no statement can change."""
    if key == "location":
        raise UnsupportedError(
            "the location of a Lance table cannot be changed",
            action="Clone the table to the other place: CALL lance.system.clone(...).",
        )
    if key in _RESERVED:
        raise UnsupportedError(f"property {key} of a Lance table cannot be changed", option=key)
    if _is_for_creation(key):
        raise UnsupportedError(
            f"property {key} is fixed when a table is created",
            option=key,
            action=f"Create the table again with TBLPROPERTIES ('{key}' = ...).",
        )


def _is_for_creation(key: str) -> bool:
    return key.lower() in _AT_CREATION
