"""Ranked rows: the result of a search, in a plan."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancelake.format.rowids.segment import U64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRows:
    """Rows by address, best first, each with a value that the search computed."""

    addresses: U64Array
    values: pa.Array
    place: int | None
    """Which column of the result has the values; None if none has."""
    steps: tuple[str, ...]
    """Description of the search, the last step first."""
