"""Config keys of the key index: whether the primary key's index is updated after commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lancelake.errors import InvalidRequestError
from lancelake.table.config_values import number, truth

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
