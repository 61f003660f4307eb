"""Settings of optimize: thresholds for compaction and cleanup, from the caller or the config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lancelake.errors import InvalidRequestError
from lancelake.table.auto_cleanup import OLDER_THAN
from lancelake.table.cleanup.auto import policy_of
from lancelake.table.cleanup.policy import DEFAULT_AGE, CleanupPolicy
from lancelake.table.compact.options import CompactionSettings
from lancelake.table.compact.options import from_config as compaction_from_config
from lancelake.table.config_values import number, truth

CONFIG_PREFIX = "lancelake.optimize."

_FEW_FRAGMENTS = 4
_FEW_VERSIONS = 20


def _careful() -> CleanupPolicy:
    return CleanupPolicy(older_than=DEFAULT_AGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSettings:
    """The steps to run, and their thresholds."""

    compact: bool = True
    cleanup: bool = True

    min_fragments_saved: int = _FEW_FRAGMENTS
    """Minimum number of fragments saved by a compaction, unless it removes deleted rows."""

    min_versions: int = _FEW_VERSIONS
    """Minimum number of versions for a cleanup."""

    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    policy: CleanupPolicy = field(default_factory=_careful)

    def __post_init__(self) -> None:
        """Refuse invalid numbers."""
        for name in ("min_fragments_saved", "min_versions"):
            if getattr(self, name) < 0:
                raise InvalidRequestError(f"{name} must not be negative", found=getattr(self, name))


def from_config(config: Mapping[str, str]) -> OptimizeSettings:
    """Read the settings in a table's config; the others have their defaults.

    Compaction options are read from `lance.compaction.*`, cleanup options from
    `lance.auto_cleanup.*`. Versions younger than two weeks are retained unless the config sets an
    age.
    """
    given: dict[str, Any] = {}
    for key, text in config.items():
        name = key.removeprefix(CONFIG_PREFIX)
        if name != key and name in _READERS:
            given[name] = _READERS[name](key, text)
    policy = policy_of(config)
    if OLDER_THAN not in config:
        policy = replace(policy, older_than=DEFAULT_AGE)
    return OptimizeSettings(**given, compaction=compaction_from_config(config), policy=policy)


_READERS: dict[str, Callable[[str, str], object]] = {
    "compact": truth,
    "cleanup": truth,
    "min_fragments_saved": number,
    "min_versions": number,
}
