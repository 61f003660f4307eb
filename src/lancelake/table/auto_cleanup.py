"""Config keys of automatic cleanup."""

from __future__ import annotations

from lancelake.errors import InvalidRequestError
from lancelake.format.durations import duration_text
from lancelake.format.frozen import FrozenMap

INTERVAL = "lance.auto_cleanup.interval"
OLDER_THAN = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS = "lance.auto_cleanup.retain_versions"
REFERENCED_BRANCHES = "lance.auto_cleanup.referenced_branch"
RATE_LIMIT = "lance.auto_cleanup.delete_rate_limit"

DEFAULT_INTERVAL = 20
DEFAULT_OLDER_THAN_S = 14 * 86_400


def auto_cleanup_config(
    *, interval: int = DEFAULT_INTERVAL, older_than_s: int = DEFAULT_OLDER_THAN_S
) -> FrozenMap[str, str]:
    """Return the config entries for a cleanup every `interval` versions of versions of that age."""
    for name, value in (("interval", interval), ("older_than_seconds", older_than_s)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            problem = f"{name} of auto_cleanup_options must be a non-negative number, not {value!r}"
            raise InvalidRequestError(problem, found=value)
    return FrozenMap({INTERVAL: str(interval), OLDER_THAN: duration_text(older_than_s)})
