"""Match columns of the data with columns of a table by name."""

from __future__ import annotations

from collections.abc import Sequence

from lancelake.errors import SchemaMismatchError

CASE_SENSITIVE = "spark.sql.caseSensitive"


def matched_names(
    data: Sequence[str], table: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """Return the data's columns by the corresponding names in the table.

    A column that the table does not have keeps its name. If names of the table differ only in case,
    matching is case-sensitive.
    """
    by_lower = {name.lower(): name for name in table}
    if case_sensitive or len(by_lower) < len(table):
        return tuple(data)
    names = tuple(by_lower.get(name.lower(), name) for name in data)
    ensure_distinct(data)
    return names


def ensure_distinct(data: Sequence[str], table: Sequence[str] = ()) -> None:
    """Refuse columns whose names differ only in case, in the data or from one of the table."""
    seen = {name.lower(): name for name in table}
    known = set(table)
    for name in data:
        other = seen.setdefault(name.lower(), name)
        if name in known or other == name:
            continue
        raise SchemaMismatchError(
            f"columns {other} and {name} differ only in case, which Spark ignores by default",
            path=name,
            action=f"Rename one of them; {CASE_SENSITIVE}=true distinguishes them when reading.",
        )
