"""Sort keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ColumnOrdering:
    """A sort key: a column, its direction, and the position of nulls."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False
