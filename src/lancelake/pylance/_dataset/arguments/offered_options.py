"""Options of official Lance: those that are accepted, ignored or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lancelake.errors import UnsupportedError

TUNING = frozenset(
    {
        "blob_pack_file_size_threshold",
        "max_rows_per_group",
        "session",
    }
)
"""Options that tune official Lance and are ignored here."""

NOT_OFFERED = frozenset(
    {
        "base_store_params",
        "namespace",
        "namespace_client",
        "namespace_client_managed_versioning",
        "storage_options_provider",
        "table_id",
    }
)
"""Options of official Lance that are accepted only with their default values."""

_OPENING = frozenset(
    {
        # Checked by themselves.
        "read_params",
        "serialized_manifest",
        # Tuning.
        "block_size",
        "commit_lock",
        "index_cache_size",
        "index_cache_size_bytes",
        "metadata_cache_size",
        "metadata_cache_size_bytes",
        "session",
    }
)
"""Options of opening a table that are accepted, at least with some values."""

_READ_TUNING = "cache_repetition_index"


def ensure_offered(rest: Mapping[str, Any]) -> None:
    """Accept options that only tune official Lance; refuse unsupported and unknown ones."""
    for name, value in rest.items():
        if name in NOT_OFFERED and value is not None and value is not False:
            raise UnsupportedError(f"{name} is not supported", found=repr(value))
    unknown = [name for name in rest if name not in TUNING and name not in NOT_OFFERED]
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")


def ensure_openable(rest: Mapping[str, Any]) -> None:
    """Accept options of opening a table that only tune official Lance; refuse the others."""
    if rest.get("serialized_manifest") is not None:
        raise UnsupportedError("serialized_manifest is not supported")
    for name, value in (rest.get("read_params") or {}).items():
        if name != _READ_TUNING and value:
            raise UnsupportedError(f"{name} of read_params is not supported", found=repr(value))
    ensure_offered({name: value for name, value in rest.items() if name not in _OPENING})
