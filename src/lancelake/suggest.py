"""Suggestions for unknown names: the closest known name, or the names there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MIN_SIMILARITY = 0.6
_MOST_LISTED = 20


def suggestion(name: str, known: Iterable[str], what: str) -> str | None:
    """Return advice for an unknown name; `what` describes the known names, in the plural.

    Without a close name, known names are listed if they are few; otherwise there is no advice.
    """
    names = list(known)
    by_folded = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=_MIN_SIMILARITY)
    if near:
        return f"Did you mean {by_folded[near[0]]}?"
    if len(names) > _MOST_LISTED:
        return None
    return f"Known {what}: {', '.join(names) or 'none'}."
